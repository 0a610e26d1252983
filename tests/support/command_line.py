"""The command line in this process: what it prints, and its message if it refuses."""

from __future__ import annotations

import re

import pytest

from rooflines.cli.main import run


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command prints on stdout."""
    assert run(list(words)) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The message of a command that is refused."""
    assert run(list(words)) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    return printed.err


SIZES = re.compile(r"[A-Z=\d.,x]+")
"""Sizes, of which a fix says the range."""


def offered(message: str, before: list[str], after: list[str]) -> bool:
    """Whether a reader of a message knows every word to type next; `{...}` has a long form."""
    new = [word for word in after if word not in before and not word.startswith(("--", "{"))]
    known = " ".join([message, *before])
    return all(SIZES.fullmatch(word) or word.rpartition("=")[2] in known for word in new)
