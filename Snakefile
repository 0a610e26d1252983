"""The entry that `snakemake` finds in the repository's root; the workflow is workflow/Snakefile."""


include: "workflow/Snakefile"


rule default:
    """What plain `snakemake` makes: everything."""
    input:
        rules.all.input,
