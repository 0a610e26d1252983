"""`python -m rooflines.provenance`; see `rooflines.results.provenance_command`."""

from rooflines.results.provenance_command import command

if __name__ == "__main__":
    command()
