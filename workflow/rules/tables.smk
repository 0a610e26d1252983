"""Tables: the rows of every sweep of operations, in parts; lists of all parts; what was skipped."""


rule sweep_table:
    """One part of the table of a sweep of operations."""
    output:
        table="<results>/tables/{sweep}/part-{part}.parquet",
    log:
        "<results>/logs/sweep_table/{sweep}/part-{part}.log",
    conda:
        "../envs/rooflines.yaml"
    threads: plan.tables.threads
    resources:
        mem_mb=plan.tables.memory_mb,
    params:
        spec=plan.tables.spec,
    script:
        "../scripts/sweep_table.py"


rule table_index:
    """The lists of all parts with their rows; its job also deletes parts that are in no sweep."""
    input:
        tables=left_in_place(expand("<results>/{part}", part=plan.part_paths()), workflow),
    output:
        tables="<results>/tables/index.csv",
        models="<results>/models/index.csv",
        layers="<results>/layers/index.csv",
    log:
        "<results>/logs/table_index.log",
    localrule: True
    conda:
        "../envs/rooflines.yaml"
    threads: 1
    resources:
        mem_mb=500,
    params:
        tables=plan.tables.index_spec(),
        models=plan.models.index_spec(),
        layers=plan.layers.index_spec(),
        measured=plan.measured_names(),
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
