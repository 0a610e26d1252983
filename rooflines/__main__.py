"""`python -m rooflines` is the command `rooflines`."""

from rooflines.cli.main import main

if __name__ == "__main__":
    main()
