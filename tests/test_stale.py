"""Stale outputs go, foreign files stay, and two runs cannot share a folder."""

import json
import os
import re
import shutil
from pathlib import Path

import polars as pl
import pytest
from damage import emptied, flipped, replaced, truncated, written_to
from processes import python
from trials import stats

from rooflines.basics.errors import RooflinesError
from rooflines.results import records
from rooflines.results.atomic import atomic_folder, write_bytes
from rooflines.run.jobs import write_skipped
from rooflines.run.lock import STATE, acquire
from rooflines.run.outputs import Output
from rooflines.run.snakemake import guard
from rooflines.run.stale import FileCache, remove_others, stale_outputs, temporary_outputs


def recorded_file(folder, name="skipped.csv"):
    """A file with a record, in a folder of results, and its spec."""
    (folder / records.RECORDS_FOLDER).mkdir(exist_ok=True)
    spec = json.dumps({"rows": [], "sweeps": []})
    write_skipped(spec, folder / name)
    return folder / name, spec


def stale(folder, specs, cache=None):
    cache = cache or FileCache(folder / "known")
    planned = {name: Output(name, "", spec) for name, spec in specs.items()}
    outputs = stale_outputs(folder, planned, cache)
    return [f"{output.path.name} {output.reason}" for output in outputs]


def test_a_file_that_nobody_touched_is_not_read_again(tmp_path, monkeypatch):
    path, spec = recorded_file(tmp_path)
    read: list[Path] = []
    digest = records.digest_of

    def reading(file):
        read.append(file)
        return digest(file)

    monkeypatch.setattr(records, "digest_of", reading)
    for reads in (1, 1, 1):
        assert stale(tmp_path, {path.name: spec}) == []
        assert len(read) == reads
    path.touch()
    assert stale(tmp_path, {path.name: spec}) == []
    assert len(read) == 2


def flipped_with_its_old_time(path):
    """One bit is changed, and the file's time set back."""
    stat = path.stat()
    flipped(path)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


@pytest.mark.parametrize("known", [True, False], ids=["checked before", "never checked"])
@pytest.mark.parametrize(
    "damage", [truncated, emptied, flipped, replaced, flipped_with_its_old_time]
)
def test_a_damaged_output_is_named_each_time_until_it_is_made_again(tmp_path, damage, known):
    """Asked again it is named again: only what is intact is noted as such."""
    path, spec = recorded_file(tmp_path)
    folder = {"bundle": "{}", path.name: spec}
    results_of_others(tmp_path)
    if known:
        assert stale(tmp_path, folder) == []
    for name in (path.name, "bundle/index.json"):
        damage(tmp_path / name)
    for _ in range(3):
        assert stale(tmp_path, folder) == [
            "bundle has index.json, which has other content than was written",
            f"{path.name} has other content than was written",
        ]
    results_of_others(tmp_path)
    assert stale(tmp_path, folder) == []


@pytest.mark.parametrize("damage", [truncated, emptied, replaced])
def test_a_record_that_changed_is_read_again(tmp_path, damage):
    path, spec = recorded_file(tmp_path)
    assert stale(tmp_path, {path.name: spec}) == []
    damage(records.record_file(tmp_path, path))
    assert stale(tmp_path, {path.name: spec}) == [f"{path.name} has no record of what made it"]


def test_a_damaged_output_of_another_config_is_named_as_damaged(tmp_path):
    path, _ = recorded_file(tmp_path)
    flipped(path)
    for _ in range(2):
        assert stale(tmp_path, {path.name: '{"sweeps": [1]}'}) == [
            f"{path.name} has other content than was written"
        ]


def test_an_output_of_another_config_is_stale(tmp_path):
    path, _ = recorded_file(tmp_path)
    for _ in range(2):
        assert stale(tmp_path, {path.name: '{"sweeps": [1]}'}) == [
            "skipped.csv was made from another config or by another version"
        ]


def results_of_others(home):
    """A folder with a file and two folders of ours, and harmless files of others; the specs."""
    _, spec = recorded_file(home)
    for name in ("bundle", "charts/roofline"):
        with records.recording({}), atomic_folder(home / name) as aside:
            (aside / "index.json").write_text("[]".ljust(40))
    for name in (
        "notes.txt",
        "tables/t/README",
        "charts/mine/figure.png",
        ".notes.a1b2c3d4.tmp",
        "bundle/.DS_Store",
    ):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("mine")
    more = ("summary.csv", "thresholds.parquet", "tables/t/part-00000.parquet", "parts.csv")
    return {"skipped.csv": spec, "bundle": "{}", "charts/roofline": "{}"} | dict.fromkeys(
        more, "{}"
    )


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (written_to("bundle/thesis.tex"), "bundle/thesis.tex"),
        (written_to("bundle/chapters/one.tex"), "bundle/chapters/one.tex"),
        (lambda home: (home / "bundle/data").symlink_to(home), "bundle/data"),
        (written_to("charts/roofline/mine.png"), "charts/roofline/mine.png"),
        (written_to("summary.csv"), "summary.csv"),
        (written_to("thresholds.parquet"), "thresholds.parquet"),
        (
            lambda home: pl.DataFrame({"x": [1]}).write_parquet(
                home / "tables/t/part-00000.parquet"
            ),
            "tables/t/part-00000.parquet",
        ),
        (written_to("parts.csv"), "parts.csv"),
        (written_to("summary.csv/mine"), "summary.csv"),
        (lambda home: (home / "summary.csv").symlink_to(home / "notes.txt"), "summary.csv"),
        (lambda home: (home / "summary.csv").symlink_to("nowhere"), "summary.csv"),
        (lambda home: os.mkfifo(home / "summary.csv"), "summary.csv"),
        (lambda home: records.record_file(home, home / "skipped.csv").unlink(), "skipped.csv"),
        (lambda home: records.record_file(home, home / "bundle").unlink(), "bundle"),
        (lambda home: records.record_file(home, home / "bundle").write_text("[]"), "bundle"),
        (
            lambda home: shutil.rmtree(home / records.RECORDS_FOLDER),
            "skipped.csv and bundle, charts/roofline",
        ),
        (
            lambda home: ((home / "skipped.csv").unlink(), (home / "skipped.csv").mkdir()),
            "skipped.csv",
        ),
    ],
)
def test_files_of_others_are_never_deleted_or_overwritten(tmp_path, change, named):
    expected = results_of_others(tmp_path)
    change(tmp_path)
    before = stats(tmp_path)
    with pytest.raises(RooflinesError) as error:
        stale(tmp_path, expected)
    first, fix = str(error.value).splitlines()
    assert first.startswith(f"{tmp_path}/{named} w")
    assert "not made by this program" in first
    assert fix.startswith(f"  fix: move it out of {tmp_path}, or put results elsewhere")
    assert stats(tmp_path) == before


def test_files_of_others_beside_outputs_are_left_alone(tmp_path):
    expected = results_of_others(tmp_path)
    assert stale(tmp_path, expected) == []
    left = [
        tmp_path / name
        for name in (
            "bundle.a1b2c3d4.tmp",
            ".bundle.a1b2c3d4.tmp",
            ".made/.skipped.csv.json.00000042.tmp",
        )
    ]
    for path in left:
        path.write_text("partial")
    assert set(temporary_outputs(tmp_path, expected)) == set(left[1:])


def test_outputs_of_earlier_configs_are_removed_and_files_of_others_stay(tmp_path):
    results_of_others(tmp_path)
    written_to("bundle/mine.txt")(tmp_path)
    written_to("summary.csv")(tmp_path)
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    remove_others(tmp_path, ["skipped.csv"])
    gone = before - {path for path in tmp_path.rglob("*") if path.is_file()}
    assert {path.relative_to(tmp_path).as_posix() for path in gone} == {
        "bundle/index.json",
        "charts/roofline/index.json",
        ".made/bundle.json",
        ".made/charts/roofline.json",
    }
    assert not (tmp_path / "charts/roofline").exists()


@pytest.mark.parametrize("name", [".snakemake", ".snakemake/rooflines"])
def test_a_file_in_place_of_the_state_folder_is_explained(name, tmp_path):
    written_to(name)(tmp_path)
    message = "cannot be written: "
    with pytest.raises(SystemExit, match=re.escape(f"{tmp_path / STATE} {message}")):
        guard.require_writable(tmp_path / STATE)


def test_a_damaged_journal_only_costs_reading(tmp_path):
    path, spec = recorded_file(tmp_path)
    (tmp_path / "known").write_bytes(b"\xff\xfe 1234 \n\nabc")
    assert stale(tmp_path, {path.name: spec}) == []
    truncated(tmp_path / "known")
    assert stale(tmp_path, {path.name: spec}) == []


def test_only_one_run_works_in_a_folder(tmp_path):
    code = "from rooflines.run.lock import Path, acquire; acquire(Path.cwd())"

    def another(status=0):
        return python("-c", code, cwd=tmp_path, status=status).stderr

    assert another() == "", "the lock of a process that has ended is free"
    with acquire(tmp_path):
        assert f"is in use by another run (process {os.getpid()} on " in another(status=1)
        assert acquire(tmp_path).fileno()
    acquire.cache_clear()
    assert another() == ""


def test_a_file_that_may_not_grow_is_explained(tmp_path):
    code = (
        "import resource, sys, polars as pl; from rooflines.results.tables import write_parquet\n"
        "from rooflines.results.atomic import atomic_file\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))\n"
        "def text(path):\n"
        "    with atomic_file(path) as aside: aside.write_bytes(bytes(100_000))\n"
        "frame = pl.LazyFrame({'a': range(100_000)}).with_columns(b=pl.col('a').hash())\n"
        "def table(path): write_parquet(frame, path, {})\n"
        "for write in (text, table):\n"
        "    try: write(sys.argv[1])\n"
        "    except ValueError as error: print(error)\n"
    )
    target = tmp_path / "file.parquet"
    printed = python("-c", code, target).stdout
    assert printed.count(f"{target} cannot be written: File too large.\n  fix: ") == 2, printed
    assert list(tmp_path.iterdir()) == []


def test_a_written_file_can_be_read_by_all_whom_the_umask_lets(tmp_path):
    old = os.umask(0o027)
    try:
        write_bytes(tmp_path / "file", "text")
    finally:
        os.umask(old)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640
