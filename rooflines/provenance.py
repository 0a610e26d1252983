"""`python -m rooflines.provenance`: where a file comes from; see `rooflines.results.provenance`."""

from rooflines.results.provenance import command

if __name__ == "__main__":
    command()
