"""Provenance of any file: records, metadata and Parquet files of wrong forms, hostile names."""

import os

import polars as pl
import pytest

from rooflines.cli.main import run
from rooflines.results.records import FOLDER, record_file, recording
from rooflines.results.tables import METADATA_KEY, write_parquet

RECORDS = [
    "",
    "{",
    "null",
    "[]",
    '{"files": {}, "made_with": {}, "spec": 1, "recipes": []}',
    '{"files": {}, "made_with": {}, "spec": 1, "recipes": [{"sweep": "s"}], "inputs": {}}',
]
"""Records that are empty, truncated, or of another form or version."""


def status(arguments, capsys):
    """The exit status of the command, and its output, which has no control characters."""
    code = run(["origin", *map(str, arguments)])
    printed = "".join(capsys.readouterr())
    assert all(letter.isprintable() or letter == "\n" for letter in printed), printed
    return code, printed


@pytest.mark.parametrize("text", RECORDS, ids=range(len(RECORDS)))
def test_a_record_of_any_form_is_answered(text, tmp_path, capsys):
    home = tmp_path / "results"
    (home / FOLDER).mkdir(parents=True)
    for name in ("summary.csv", "bundle"):
        record_file(home, home / name).write_text(text)
    (home / "summary.csv").write_text("a,b\n")
    (home / "bundle").mkdir()
    for asked in (
        [home / "summary.csv"],
        [home / "summary.csv", "--check"],
        [home],
    ):
        assert status(asked, capsys)[0] == 1
    assert status([home / "bundle"], capsys)[0] in (0, 1)


@pytest.mark.parametrize("text", ["{", "7", "{}", '{"version": "0", "made_from": [{}]}'])
def test_metadata_of_any_form_are_answered(text, tmp_path, capsys):
    pl.DataFrame({"x": [1]}).write_parquet(tmp_path / "x.parquet", metadata={METADATA_KEY: text})
    code, printed = status([tmp_path / "x.parquet"], capsys)
    assert code == 1
    assert "has no record of what made it" in printed


def piped(path):
    """A pipe without a writer: opening it blocks."""
    os.mkfifo(path)
    return path


def damaged(written):
    """Damaged forms of a Parquet file."""
    foot = len(written) - 12
    return {
        "empty": b"",
        "one byte": b"P",
        "begin": written[:100],
        "no end": written[:-1],
        "no footer": written[:4] + written[-8:],
        "footer too long": written[:-8] + b"\xff\xff\xff\x7fPAR1",
        "footer garbled": written[: foot - 200] + bytes(200) + written[foot:],
        "text": b"PAR1 is a text PAR1",
    }


@pytest.mark.parametrize("kind", damaged(bytes(1000)))
def test_a_damaged_table_is_answered(kind, tmp_path, capsys):
    home, path = tmp_path / "results", tmp_path / "x.parquet"
    (home / FOLDER).mkdir(parents=True)
    with recording(spec={}):
        write_parquet(pl.LazyFrame({"x": range(1000)}), home / "thresholds.parquet", {"about": 1})
    path.write_bytes(damaged((home / "thresholds.parquet").read_bytes())[kind])
    assert status([path], capsys)[0] == 1


@pytest.mark.parametrize(
    ("make", "expected", "said"),
    [
        (lambda path: path.mkdir(), 1, "has no record"),
        (piped, 2, "is neither a file nor a folder"),
        (lambda path: path.symlink_to("/dev/zero"), 2, "is neither a file nor a folder"),
        (lambda path: path.symlink_to(path), 2, "does not exist"),
        (lambda path: path.symlink_to("nowhere"), 2, "does not exist"),
        (lambda path: (path.mkdir(), (path / FOLDER).write_text("")), 1, "has no record"),
        (
            lambda path: ((path / FOLDER).mkdir(parents=True), (path / FOLDER / "x.json").mkdir()),
            1,
            "is not there and was written",
        ),
        (
            lambda path: (
                (path / FOLDER).mkdir(parents=True),
                piped(path / FOLDER / "x.json"),
                (path / "x").mkdir(),
            ),
            1,
            "cannot be read",
        ),
    ],
    ids=[
        "folder",
        "pipe",
        "device",
        "loop",
        "nowhere",
        "records as a file",
        "a record as a folder",
        "a record as a pipe",
    ],
)
def test_what_is_no_file_is_answered(make, expected, said, tmp_path, capsys):
    path = tmp_path / "x.parquet"
    make(path)
    code, printed = status([path], capsys)
    assert code == expected
    assert said in printed


@pytest.mark.parametrize(
    "name", [b"\x1b[2J\x1b]0;title\x07.csv", b"\xff\xfe.csv", "a\u202eb.csv".encode(), b"a\nb.csv"]
)
def test_names_are_printed_with_escapes(name, tmp_path, capsys):
    home = tmp_path / "results"
    (home / FOLDER).mkdir(parents=True)
    (home / "tables").mkdir()
    path = home / "tables" / os.fsdecode(name)
    path.write_text("a\n")
    for asked in ([path, "--check"], [home]):
        code, printed = status(asked, capsys)
        assert (code, "\\" in printed) == (1, True)
    assert status([path], capsys)[0] == 1
    assert status([f"{path}x"], capsys)[0] == 2
