"""The roofline workflow, as `snakemake` finds it in the repository's root; everything is in workflow/Snakefile."""


include: "workflow/Snakefile"


rule default:
    """What plain `snakemake` makes: everything."""
    input:
        rules.all.input,
