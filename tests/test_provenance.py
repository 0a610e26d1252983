"""What made a table, a chart or a CSV, and whether it still is what was written: asked of the file, or of a copy of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import Mock

import polars as pl
import pytest
import yaml

import rooflines
from rooflines.charts.families import write_family
from rooflines.results import provenance
from rooflines.results.provenance_command import main
from rooflines.results.records import FOLDER, record_file, recorded_outputs
from rooflines.results.table_index import write_index
from rooflines.results.tables import METADATA_KEY
from rooflines.run.jobs import write_part, write_skipped, write_thresholds
from rooflines.run.plan import plan
from rooflines.run.workflow import index_spec, outputs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CONFIG = {
    "sweeps": {
        "small": {
            "operation": "matmul",
            "grid": {"B": [1, 64, 4096], "D": 1024, "F": "D"},
            "dtypes": ["bf16", "mxfp4"],
            "chips": ["tpu-v5e", "own"],
            "rows_per_part": 3,
        },
        "other": {
            "operation": "matmul",
            "grid": {"B": [1], "D": 1024, "F": 512},
            "dtypes": ["bf16"],
            "chips": ["h100-sxm"],
        },
    },
    "charts": [{"chart": "chips", "sweep": "small"}],
    "chips": {
        "own": {"base": "h100-sxm", "memory.hbm.bytes_per_s": 4e12, "source": "a measurement"}
    },
}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of results as the workflow's jobs write it, its site aside; not to be changed."""
    results = tmp_path_factory.mktemp("written") / "results"
    (results / FOLDER).mkdir(parents=True)
    planned = plan(rooflines.load_config(CONFIG))
    for part in planned.parts:
        write_part(part.spec, results / "tables" / f"{part.name}.parquet")
    write_index(index_spec(planned.parts), results / "tables" / "index.csv")
    write_thresholds(
        planned.thresholds_spec, results / "thresholds.parquet", results / "thresholds.csv"
    )
    write_skipped(planned.skipped_spec, results / "skipped.csv")
    for family, spec in planned.family_specs.items():
        write_family(spec, results, results / "charts" / family)
    return results


@pytest.fixture
def results(written: Path, tmp_path: Path) -> Path:
    """A folder of results that may be changed."""
    return Path(shutil.copytree(written, tmp_path / "results"))


def test_every_output_of_a_plan_has_a_record(written: Path) -> None:
    """What the workflow checks at its start is what its jobs write; its site is tested where it is made."""
    planned = outputs(plan(rooflines.load_config(CONFIG)))
    assert {
        path.relative_to(written).as_posix() for path in recorded_outputs(written)
    } == planned.keys() - {"bundle"}
    assert all(fault is None for _, fault in provenance.check_results(written))


@pytest.mark.parametrize(
    "name",
    [
        "tables/small/part-00000.parquet",
        "tables/index.csv",
        "thresholds.parquet",
        "thresholds.csv",
        "skipped.csv",
        "charts/chips",
    ],
)
def test_an_output_says_what_made_it(written: Path, name: str) -> None:
    """Versions, the config of each sweep, and the catalogue entries with their sources: of a CSV as of a table."""
    found = rooflines.origin(written / name)
    assert found.whole
    assert found.verdict == "is as it was written"
    assert found.made_with["rooflines"] == rooflines.__version__
    assert found.made_with["polars"] == pl.__version__
    sweep = found.sweeps["small"]
    assert sweep["config"]["grid"]["B"] == [1, 64, 4096]
    assert sweep["chips"]["tpu-v5e"]["memory"]["hbm"]["bytes_per_s"] == 8.19e11
    assert sweep["chips"]["tpu-v5e"]["memory"]["hbm"]["source"] == ["gcp-v5e-old"]
    assert "v5e" in str(yaml.safe_load(found.text())["sources"]["gcp-v5e-old"])
    assert ("other" in found.sweeps) == (
        name not in ("tables/small/part-00000.parquet", "charts/chips")
    )


def test_what_is_said_of_a_sweep_is_all_its_parts(written: Path) -> None:
    """A part has its own chips; the list of parts, which is made from all, has those of all."""
    assert list(
        rooflines.origin(written / "tables/small/part-00000.parquet").sweeps["small"]["chips"]
    ) == ["tpu-v5e"]
    whole = rooflines.origin(written / "tables/index.csv").sweeps["small"]
    assert whole["config"]["chips"] == list(whole["chips"]) == ["tpu-v5e", "own"]
    assert whole["chips"]["own"]["memory"]["hbm"]["source"]["bytes_per_s"] == "a measurement"


@pytest.mark.parametrize("ending", ["-light.png", ".svg", ".pdf", ".json", ".csv", ".parquet"])
def test_a_copy_of_a_chart_says_what_made_it(
    written: Path, tmp_path: Path, ending: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """By its digest, whatever it is called now: one command prints it all as YAML, and ends with 0."""
    original = next((written / "charts" / "chips").glob(f"*{ending}"))
    copy = tmp_path / f"figure-1{ending}"
    shutil.copy(original, copy)
    assert main([str(copy), "--results", str(written)]) == 0
    said = yaml.safe_load(capsys.readouterr().out)
    assert said["verdict"] == "is as it was written"
    assert [chart["chart"] for chart in said["charts"]] == ["chips"]
    assert list(said["sweeps"]) == ["small"]
    assert said["sweeps"]["small"]["chips"]["own"]["memory"]["hbm"]["bytes_per_s"] == 4e12


def test_a_file_that_was_changed_is_told(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With what it was made from, and an exit status that is not 0; so is a copy of it, which nobody wrote."""
    table = results / "thresholds.csv"
    table.write_text(table.read_text().replace("tpu", "TPU", 1))
    assert main([str(table), "--check"]) == 1
    assert capsys.readouterr().out == f"{table} has other content than was written\n"
    assert rooflines.origin(table).sweeps.keys() == {"small", "other"}
    copied = rooflines.origin(table, results)
    assert not copied.whole
    assert "no file of that content was written" in copied.verdict


def test_a_folder_is_checked_whole(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every byte of every output: what was damaged, what is gone, and what readers would take for a table and nobody wrote."""
    assert main([str(results)]) == 0
    assert "all as they were written" in capsys.readouterr().out
    part = results / "tables/small/part-00001.parquet"
    part.write_bytes(part.read_bytes()[:-1] + b"2")
    (results / "skipped.csv").unlink()
    foreign = results / "tables/small/part-00007.parquet"
    pl.DataFrame({"x": [1]}).write_parquet(foreign)
    (results / "charts/chips/mine.txt").write_text("a note")
    assert main([str(results)]) == 1
    said = capsys.readouterr().out
    assert f"{part} has other content than was written\n" in said
    assert f"{results / 'skipped.csv'} is not there and was written\n" in said
    assert f"{foreign} has no record of what made it" in said
    assert f"{results / 'charts/chips'} has mine.txt in it, which nothing here made\n" in said
    assert "4 of them not as they were written" in said


def test_a_copy_of_a_part_is_not_removed_with_the_parts_of_old_sweeps(results: Path) -> None:
    """What the program wrote under its name goes when no sweep has it now; a copy under another name is somebody's own."""
    backup = results / "tables/backup/part-00000.parquet"
    shutil.copytree(results / "tables/small", backup.parent)
    write_index("[]", results / "tables/index.csv")
    assert [path.parent.name for path in sorted((results / "tables").glob("*/*"))] == [
        "backup",
        "backup",
    ]


def test_a_table_without_a_record_still_says_what_made_it(results: Path) -> None:
    """From its own metadata; whether it is whole nobody knows, and so it is not said to be."""
    table = results / "tables/small/part-00000.parquet"
    record_file(results, table).unlink()
    found = rooflines.origin(table)
    assert not found.whole
    assert "has no record" in found.verdict
    assert list(found.sweeps) == ["small"]
    assert found.made_with == {"rooflines": rooflines.__version__}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.csv"], "nowhere.csv does not exist.\n  fix: "),
        (["{results}/skipped.csv", "--results", "/"], "/ has no records in .made.\n  fix: "),
    ],
)
def test_a_wrong_question_is_answered_with_one_message(
    written: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """And with an exit status of its own."""
    assert main([argument.format(results=written) for argument in arguments]) == 2
    assert said in capsys.readouterr().err


# ---------------------------------------------------------------- records, metadata and files of any form

DEEP = "[" * 10_000 + "]" * 10_000
NESTED = "[" * 300 + "]" * 300
RECIPE = '{"sweep": "s", "config": {"a": 1}, "chips": {"c": {}}, "dtypes": []}'
RECIPES = [
    *(
        "null",
        "7",
        '"text"',
        "{}",
        "[]",
        "[null]",
        "[7]",
        '["text"]',
        "[[]]",
        "[{}]",
        '[{"sweep": []}]',
        DEEP,
        f"[{NESTED}]",
    ),
    *(
        RECIPE.join("[]").replace(part, odd)
        for part in ('{"a": 1}', '{"c": {}}')
        for odd in ("null", "7", '"text"', "[1]", NESTED)
    ),
    *(RECIPE.join("[]").replace("[]", odd) for odd in (NESTED, "1e999", '"\\u001b[31m\\ud800"')),
]
"""Where recipes are read, as JSON: of another type, incomplete, nested deep, with infinities and with terminal escapes."""


def record(
    files: str = "{}",
    made_with: str = "{}",
    spec: str = "1",
    recipes: str = "[]",
    inputs: str = "{}",
) -> str:
    """A record of the form that is read, but for one of its parts."""
    return f'{{"files": {files}, "made_with": {made_with}, "spec": {spec}, "recipes": {recipes}, "inputs": {inputs}}}'


RECORDS = [
    *("", "null", "7", "[]", '"text"', "{", "\0", DEEP, "9" * 5000),
    *(
        record(files=odd)
        for odd in (
            "null",
            "7",
            '{".": 7}',
            '{".": [1e999, 2]}',
            '{"..": [1, "x"], "/etc/passwd": [1, "x"]}',
        )
    ),
    *(record(made_with=odd) for odd in ("null", "7", '["a"]', NESTED)),
    *(
        record(spec=odd)
        for odd in (
            '{"charts": 7}',
            '{"charts": [7]}',
            '{"sweeps": 7}',
            '{"sweep": 7}',
            "[7]",
            '[{"path": "/"}]',
        )
    ),
    *(record(inputs=odd) for odd in ("7", '["a"]')),
    *(record(recipes=odd) for odd in RECIPES),
]
"""Records of any form."""


def status(arguments: Sequence[object], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit status of the command, and what it printed, which has no control character."""
    found = main([str(argument) for argument in arguments])
    printed = "".join(capsys.readouterr())
    assert all(letter.isprintable() or letter == "\n" for letter in printed), printed
    return found, printed


@pytest.mark.parametrize("text", RECORDS, ids=range(len(RECORDS)))
def test_a_record_of_any_form_is_answered(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a file and of the whole folder: it is not as it was written, or nobody knows; no other exception."""
    home = tmp_path / "results"
    (home / FOLDER).mkdir(parents=True)
    for name in ("thresholds.csv", "bundle"):
        record_file(home, home / name).write_text(text)
    (home / "thresholds.csv").write_text("a,b\n")
    (home / "bundle").mkdir()
    for asked in (
        [home / "thresholds.csv"],
        [home / "thresholds.csv", "--check"],
        [home / "thresholds.csv", "--results", home],
        [home],
    ):
        assert status(asked, capsys)[0] == 1
    assert status([home / "bundle"], capsys)[0] in (0, 1)


@pytest.mark.parametrize(
    "text",
    [*("null", "7", "[]", '"text"', "{", "", DEEP, NESTED, "{}", '{"version": 7}'), *RECIPES],
    ids=repr,
)
def test_metadata_of_any_form_are_answered(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A Parquet file without a record: nobody knows."""
    if not text.startswith("{"):
        text = f'{{"version": "0", "made_from": {text or "[]"}, "chart": {text or "7"}}}'
    pl.DataFrame({"x": [1]}).write_parquet(tmp_path / "x.parquet", metadata={METADATA_KEY: text})
    found, printed = status([tmp_path / "x.parquet"], capsys)
    assert found == 1
    assert "has no record of what made it" in printed


def piped(path: Path) -> Path:
    """A pipe that nobody writes to: who opens it waits."""
    os.mkfifo(path)
    return path


def damaged(written: bytes) -> dict[str, bytes]:
    """Forms of a Parquet file that no reader reads."""
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
def test_a_damaged_table_is_answered(
    kind: str, written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With and without a folder to look in."""
    path = tmp_path / "x.parquet"
    path.write_bytes(damaged((written / "thresholds.parquet").read_bytes())[kind])
    assert status([path], capsys)[0] == 1
    assert status([path, "--results", written], capsys)[0] == 1


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
def test_what_is_no_file_is_answered(
    make: Callable[[Path], object],
    expected: int,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nothing is waited for, and nothing endless is read."""
    path = tmp_path / "x.parquet"
    make(path)
    found, printed = status([path], capsys)
    assert found == expected
    assert said in printed


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "a/" * 3000])
def test_a_path_that_no_system_has_is_answered(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Too long, or with a byte that ends it."""
    assert status([tmp_path / name], capsys)[0] == 2


def test_a_file_that_may_not_be_read_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what the system says."""
    (tmp_path / "x.csv").write_text("a\n")
    monkeypatch.setattr(
        provenance, "digest_of", Mock(side_effect=PermissionError(13, "Permission denied"))
    )
    found, printed = status([tmp_path / "x.csv"], capsys)
    assert (found, "x.csv cannot be read: Permission denied.\n  fix: " in printed) == (2, True)


@pytest.mark.parametrize(
    "name", [b"\x1b[2J\x1b]0;title\x07.csv", b"\xff\xfe.csv", "a\u202eb.csv".encode(), b"a\nb.csv"]
)
def test_names_reach_no_terminal_as_they_are(
    name: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Escapes, and bytes that are no text, in every answer: of a file, of a folder, of a wrong question."""
    home = tmp_path / "results"
    (home / FOLDER).mkdir(parents=True)
    (home / "tables").mkdir()
    path = home / "tables" / os.fsdecode(name)
    path.write_text("a\n")
    for asked in ([path, "--check"], [home]):
        found, printed = status(asked, capsys)
        assert (found, "\\" in printed) == (1, True)
    assert status([path], capsys)[0] == 1
    assert status([f"{path}x"], capsys)[0] == 2


def test_a_reader_that_stops_early_is_no_error(written: Path) -> None:
    """`| head -1`: a line, and nothing on the other stream."""
    command = f"'{sys.executable}' -m rooflines.provenance '{written}/tables/index.csv' '{written}/tables/index.csv' | head -1"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (f"file: {written}/tables/index.csv\n", "")
