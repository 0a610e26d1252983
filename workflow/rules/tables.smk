"""Tables: the rows of every sweep, in parts, and what was skipped."""


rule sweep_table:
    """One part of a sweep's table."""
    output:
        table="<results>/tables/{sweep}/part-{part}.parquet",
    log:
        "<results>/logs/sweep_table/{sweep}/part-{part}.log",
    conda:
        "../envs/rooflines.yaml"
    threads: plan.part_threads
    resources:
        mem_mb=plan.part_memory_mb,
    params:
        spec=plan.part_spec,
    script:
        "../scripts/sweep_table.py"


rule table_index:
    """The list of all parts with their rows; its job also deletes parts that are in no sweep."""
    input:
        tables=left_in_place(
            expand("<results>/tables/{part}.parquet", part=plan.part_names()), workflow
        ),
    output:
        index="<results>/tables/index.csv",
    log:
        "<results>/logs/table_index.log",
    localrule: True
    conda:
        "../envs/rooflines.yaml"
    threads: 1
    resources:
        mem_mb=500,
    params:
        spec=index_spec(plan.parts),
    script:
        "../scripts/table_index.py"


rule skipped:
    """Combinations that no chip supports, with the reason."""
    output:
        csv="<results>/skipped.csv",
    log:
        "<results>/logs/skipped.log",
    conda:
        "../envs/rooflines.yaml"
    threads: 1
    resources:
        mem_mb=500,
    params:
        spec=plan.skipped_spec,
    script:
        "../scripts/skipped.py"
