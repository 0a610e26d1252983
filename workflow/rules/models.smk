"""Models: shapes of published models."""


rule model_shapes:
    """Parameters by every convention and caches of the models of the catalogue, with sources."""
    output:
        csv="<results>/model-shapes.csv",
    log:
        "<results>/logs/model_shapes.log",
    conda:
        "../envs/rooflines.yaml"
    threads: 1
    resources:
        mem_mb=500,
    params:
        spec=plan.model_shapes_spec,
    script:
        "../scripts/model_shapes.py"
