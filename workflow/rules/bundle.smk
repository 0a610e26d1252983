"""Bundle: the site to publish."""


rule bundle:
    """A static site: a page that answers for any chip, matmul and model, charts, chips and tables.
    `index.html` opens without a server.
    """
    input:
        **plan.inputs("bundle"),
    output:
        site=report(
            directory("<results>/bundle"),
            htmlindex="index.html",
            category="Site",
            caption="../report/bundle.rst",
            labels={"what": "the site, as published"},
        ),
    log:
        "<results>/logs/bundle.log",
    threads: 1
    resources:
        mem_mb=1000,
    params:
        spec=plan.spec("bundle"),
    run:
        run_process(
            "site.site.write_site",
            log[0],
            threads,
            params.spec,
            output.site,
            {name: list(files) for name, files in input.items()},
            STATE,
        )
