"""Charts: one job per family writes its charts as pictures, specifications and data."""


rule chart_digest:
    """A digest of everything that the charts of a family depend on; a change redraws them.

    The rule `charts` cannot have it in `params`: Snakemake does not compare the `params` of a job
    whose `ancient` inputs are remade in the same run.
    """
    output:
        digest="<results>/.made/charts/{family}.sha256",
    log:
        "<results>/logs/charts/{family}.digest.log",
    localrule: True
    conda:
        "../envs/rooflines.yaml"
    threads: 1
    resources:
        mem_mb=100,
    params:
        digest=plan.family_digest,
    shell:
        "echo {params.digest} > {output.digest} 2> {log}"


rule charts:
    """The charts of one family; a table that is remade unchanged does not redraw them."""
    input:
        digest="<results>/.made/charts/{family}.sha256",
        index=ancient("<results>/tables/index.csv"),
        tables=ancient(
            lambda wildcards: expand("<results>/{part}", part=plan.family_parts(wildcards))
        ),
        thresholds=ancient("<results>/thresholds.parquet"),
        model_thresholds=ancient(expand("<results>/{file}", file=plan.model_thresholds())),
    output:
        folder=report(
            directory("<results>/charts/{family}"),
            patterns=["{name}-light.png"],
            caption="../report/charts.rst",
            category="Charts",
            subcategory="{family}",
            labels={"chart": "{name}"},
        ),
    log:
        "<results>/logs/charts/{family}.log",
    conda:
        "../envs/rooflines.yaml"
    threads: 1
    resources:
        mem_mb=1500,
    params:
        spec=plan.family_spec,
    script:
        "../scripts/charts.py"
