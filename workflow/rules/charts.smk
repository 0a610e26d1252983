"""Charts: a job for each family draws all charts of it, as pictures, specifications and data."""


rule chart_digest:
    """A digest of all that decides the charts of a family; only where it changes are they drawn anew.

    The charts themselves cannot say so: Snakemake compares no `params` of a job whose `ancient` inputs are made anew in the same run.
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
    """The charts of one family. What decides their numbers stands in `spec`: a table made again just as it was draws nothing anew."""
    input:
        digest="<results>/.made/charts/{family}.sha256",
        index=ancient("<results>/tables/index.csv"),
        tables=ancient(
            lambda wildcards: expand(
                "<results>/tables/{part}.parquet", part=plan.family_parts(wildcards)
            )
        ),
        thresholds=ancient("<results>/thresholds.parquet"),
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
