"""The command line in this process: what it prints, and its message if it refuses."""

import csv
import io

from rooflines.cli.main import run


def said(capsys, *words):
    """Stdout of a command."""
    assert run(list(words)) == 0
    return capsys.readouterr().out


def refused(capsys, *words):
    """The message of a command that is refused."""
    assert run(list(words)) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    return printed.err


def table(capsys, *words):
    """The rows that a command prints as CSV."""
    return list(csv.DictReader(io.StringIO(said(capsys, *words, "--csv"))))
