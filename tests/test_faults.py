"""What is broken on purpose: runs that are killed, cross each other or meet a full disk, and files that something else changed.

`make verify` has the long forms: a hundred moments, and whole runs on a disk that is full.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest
from trials import (
    CONFIG,
    SEED,
    Trial,
    emptied,
    flipped,
    jobs_of,
    may_unshare,
    outlives,
    replaced,
    truncated,
    unfinished,
)

from rooflines.basics.errors import RooflinesError
from rooflines.results import records
from rooflines.results.atomic import LEFTOVER, atomic_folder
from rooflines.results.tables import write_parquet
from rooflines.results.write_errors import unwritable
from rooflines.run import foreign, guard
from rooflines.run.jobs import write_skipped
from rooflines.run.lock import STATE, ActiveRun, RunLock
from rooflines.run.stale import MOST_NAMED, FileCache, stale_outputs


class Clean(NamedTuple):
    """A run that nothing disturbed: its folder, what it made, how much it worked [CPU s], and what it left in home and tmp."""

    trial: Trial
    contents: dict[str, str]
    work_s: float
    elsewhere: list[str]


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Clean:
    """A run without a network, with a home and a folder for temporary files of its own; not to be changed."""
    folder = tmp_path_factory.mktemp("clean")
    trial = Trial(folder / "run")
    before = os.times()
    done = trial.sealed(folder)
    after = os.times()
    assert done.returncode == 0, done.stdout
    work_s = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    return Clean(trial, trial.contents(), work_s, trial.elsewhere(folder))


@pytest.fixture
def made(clean: Clean, tmp_path: Path) -> Trial:
    """A folder with results of its own, as a copy of the whole folder has them."""
    shutil.copytree(clean.trial.path, tmp_path / "made", symlinks=True)
    return Trial(tmp_path / "made")


# ---------------------------------------------------------------- a run by itself


def test_a_run_needs_no_network(clean: Clean) -> None:
    """It was cut off, where the machine lets one; it made everything."""
    assert {
        "tables/index.csv",
        "thresholds.csv",
        "skipped.csv",
        "bundle/index.html",
    } <= clean.contents.keys()
    if not may_unshare():
        pytest.skip("the system does not let a process leave the network (unshare --net)")


def test_a_run_writes_nothing_elsewhere(clean: Clean) -> None:
    """Results and the workflow's own folder are where it was started; home and the folder for temporary files are as empty as before."""
    assert clean.elsewhere == []
    assert {path.name for path in clean.trial.path.iterdir()} == {
        "my.yaml",
        "results",
        ".snakemake",
    }


# ---------------------------------------------------------------- runs that are struck


def test_a_run_that_is_killed_is_outlived(
    clean: Clean, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The next plain run takes over, although jobs of the dead one still work: all is as it would have been, and nothing was seen half."""
    chance = random.Random(f"{SEED} killed")  # noqa: S311 - a moment, not a secret
    moment_s = chance.uniform(0.3, 0.8) * clean.work_s
    with capsys.disabled():
        print(
            f"(ROOFLINES_SEED={SEED}: killed after {moment_s:.2f} of {clean.work_s:.2f} CPU s) ",
            end="",
        )
    outlives(Trial(tmp_path), clean.contents, "snakemake is killed (SIGKILL)", moment_s, chance)


# ---------------------------------------------------------------- files that something else changed


DAMAGES = {
    "tables/grid/part-00000.parquet": (truncated, "bytes, and"),
    "tables/grid/part-00001.parquet": (emptied, "is empty"),
    "tables/grid/part-00002.parquet": (flipped, "has other content than was written"),
    "tables/shapes/part-00000.parquet": (replaced, "has other content than was written"),
    "thresholds.csv": (flipped, "has other content than was written"),
    "bundle/index.html": (truncated, "has index.html, which has"),
}


def test_an_index_that_is_asked_for_is_made_after_a_table_that_outlived_its_run(
    made: Trial, clean: Clean
) -> None:
    """Snakemake forgets that it is missing: it comes after a table that is there and is made again, and does not care how new that is."""
    marker = unfinished(made.path, "results/tables/grid/part-00001.parquet")
    (made.results / "tables/index.csv").unlink()
    done = Trial(made.path, CONFIG, "results/tables/index.csv").run()
    assert done.returncode == 0, done.stdout
    assert not marker.exists()
    made.whole(clean.contents)


def test_an_index_that_is_asked_for_is_made_after_a_table_of_another_config(
    made: Trial, clean: Clean
) -> None:
    """The same where the config was edited."""
    sweeps = CONFIG["sweeps"]
    config = {
        **CONFIG,
        "sweeps": {**sweeps, "grid": {**sweeps["grid"], "efficiency": {"math": 0.5}}},
    }
    (made.results / "tables/index.csv").unlink()
    done = Trial(made.path, config, "results/tables/index.csv").run()
    assert done.returncode == 0, done.stdout
    assert made.contents().keys() == clean.contents.keys()


def test_whatever_happened_to_files_they_are_told_of_and_made_again(
    made: Trial, clean: Clean
) -> None:
    """Truncated, emptied, with one bit changed, or replaced, and their times as before: a line for each, and then all is as it was."""
    kept = made.finished()
    for name, (damage, _) in DAMAGES.items():
        path = made.results / name
        times = path.stat()
        damage(path)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    done = made.run()
    assert done.returncode == 0, done.stdout
    told = [line for line in done.stdout.splitlines() if line.endswith(": it is made again")]
    for name, (_, why) in list(DAMAGES.items())[:MOST_NAMED]:
        output = f"results/{name.partition('/')[0] if name.startswith('bundle') else name}"
        assert any(line.startswith(output) and why in line for line in told), output
    assert "... and 1 more like these" in done.stdout
    made.whole(clean.contents)
    fine = [
        name
        for name in kept
        if not any(name in f"results/{damaged}" for damaged in DAMAGES) and "thresholds" not in name
    ]
    assert fine
    assert "results/skipped.csv" in fine
    assert {name: made.finished()[name] for name in fine if "index" not in name} == {
        name: kept[name] for name in fine if "index" not in name
    }


# ---------------------------------------------------------------- the parts of it


def recorded_file(folder: Path, name: str = "skipped.csv") -> tuple[Path, str]:
    """A file with a record, in a folder of results, and what it was made from."""
    (folder / records.FOLDER).mkdir(exist_ok=True)
    spec = json.dumps({"rows": [], "sweeps": []})
    write_skipped(spec, folder / name)
    return folder / name, spec


def stale(folder: Path, specs: dict[str, str], cache: FileCache | None = None) -> list[str]:
    """The stale outputs, each with the reason."""
    cache = cache or FileCache(folder / "known")
    outputs = stale_outputs(folder, specs, cache, lambda _: None)
    return [f"{output.path.name} {output.reason}" for output in outputs]


def test_a_file_that_nobody_touched_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read once, known from then on, also by the next process; touched, it is read again."""
    path, spec = recorded_file(tmp_path)
    read: list[Path] = []
    digest = records.digest_of

    def reading(file: Path) -> str:
        read.append(file)
        return digest(file)

    monkeypatch.setattr(records, "digest_of", reading)
    for reads in (1, 1, 1):
        assert stale(tmp_path, {path.name: spec}) == []
        assert len(read) == reads
    path.touch()
    assert stale(tmp_path, {path.name: spec}) == []
    assert len(read) == 2


def test_a_changed_bit_shows_although_size_and_time_are_as_before(tmp_path: Path) -> None:
    """The time of the change cannot be put back."""
    path, spec = recorded_file(tmp_path)
    assert stale(tmp_path, {path.name: spec}) == []
    times = path.stat()
    flipped(path)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert stale(tmp_path, {path.name: spec}) == ["skipped.csv has other content than was written"]


def test_what_another_config_made_is_told(tmp_path: Path) -> None:
    """A file that is whole, and is not what the plan asks for."""
    path, _ = recorded_file(tmp_path)
    assert stale(tmp_path, {path.name: '{"sweeps": [1]}'}) == [
        "skipped.csv was made from another config or by another version"
    ]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            lambda home, path: truncated(records.record_file(home, path)),
            "has no record of what made it",
        ),
        (
            lambda home, path: records.record_file(home, path).write_text(
                "[" * 10**5 + "]" * 10**5
            ),
            "has no record of what made it",
        ),
        (
            lambda home, path: records.record_file(home, path).write_text(
                '{"files": {".": [1e999, ""]}}'
            ),
            "has no record of what made it",
        ),
        (
            lambda home, path: records.record_file(home, path).write_bytes(b"\xff\x00"),
            "has no record of what made it",
        ),
        (lambda _, path: path.write_text("sweep,unit\n"), "bytes, and"),
    ],
    ids=[
        "record truncated",
        "record nested deep",
        "record with an infinite size",
        "record in no encoding",
        "file edited",
    ],
)
def test_what_cannot_be_vouched_for_is_made_again(
    tmp_path: Path, change: Callable[[Path, Path], object], why: str
) -> None:
    """A file that has other content than its record says, or whose record cannot be read."""
    path, spec = recorded_file(tmp_path)
    change(tmp_path, path)
    (said,) = stale(tmp_path, {path.name: spec})
    assert why in said


def results_of_others(home: Path) -> dict[str, str]:
    """A folder with outputs of ours, a file and two folders, and with files of others beside them that are in no run's way; the plan."""
    _, spec = recorded_file(home)
    for name in ("bundle", "charts/roofline"):
        with records.recording(spec={}), atomic_folder(home / name) as aside:
            (aside / "index.json").write_text("[]")
    for name in (
        "notes.txt",
        "tables/t/README",
        "charts/mine/figure.png",
        ".notes.a1b2c3d4.tmp",
        "bundle/.DS_Store",
    ):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("mine")
    more = (
        "thresholds.csv",
        "thresholds.parquet",
        "tables/t/part-00000.parquet",
        "tables/index.csv",
    )
    return {"skipped.csv": spec, "bundle": "{}", "charts/roofline": "{}"} | dict.fromkeys(
        more, "{}"
    )


def looks(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Everything in a folder: what it is, how long, and when it was changed."""
    found = {str(path): path.lstat() for path in folder.rglob("*")}
    return {name: (stat.st_mode, stat.st_size, stat.st_mtime_ns) for name, stat in found.items()}


def written_to(name: str) -> Callable[[Path], object]:
    """A change of a folder of results: a file of one's own in it."""

    def write(home: Path) -> None:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("mine")

    return write


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (written_to("bundle/thesis.tex"), "bundle/thesis.tex"),
        (written_to("bundle/chapters/one.tex"), "bundle/chapters/one.tex"),
        (lambda home: (home / "bundle/data").symlink_to(home), "bundle/data"),
        (written_to("charts/roofline/mine.png"), "charts/roofline/mine.png"),
        (written_to("thresholds.csv"), "thresholds.csv"),
        (written_to("thresholds.parquet"), "thresholds.parquet"),
        (
            lambda home: pl.DataFrame({"x": [1]}).write_parquet(
                home / "tables/t/part-00000.parquet"
            ),
            "tables/t/part-00000.parquet",
        ),
        (written_to("tables/index.csv"), "tables/index.csv"),
        (written_to("thresholds.csv/mine"), "thresholds.csv"),
        (lambda home: (home / "thresholds.csv").symlink_to(home / "notes.txt"), "thresholds.csv"),
        (lambda home: (home / "thresholds.csv").symlink_to("nowhere"), "thresholds.csv"),
        (lambda home: os.mkfifo(home / "thresholds.csv"), "thresholds.csv"),
        (lambda home: records.record_file(home, home / "skipped.csv").unlink(), "skipped.csv"),
        (lambda home: records.record_file(home, home / "bundle").unlink(), "bundle"),
        (lambda home: records.record_file(home, home / "bundle").write_text("[]"), "bundle"),
        (
            lambda home: shutil.rmtree(home / records.FOLDER),
            "skipped.csv, {home}/bundle, {home}/charts/roofline",
        ),
        (
            lambda home: ((home / "skipped.csv").unlink(), (home / "skipped.csv").mkdir()),
            "skipped.csv",
        ),
    ],
)
def test_files_of_others_are_never_deleted_or_overwritten(
    tmp_path: Path, change: Callable[[Path], object], named: str
) -> None:
    """Whatever would have to go for an output: one message names it, and nothing in the folder is touched."""
    expected = results_of_others(tmp_path)
    change(tmp_path)
    before = looks(tmp_path)
    with pytest.raises(RooflinesError) as error:
        stale(tmp_path, expected)
    first, fix = str(error.value).splitlines()
    assert first.startswith(f"{tmp_path}/{named.format(home=tmp_path)} w")
    assert "not made by this program" in first
    assert fix.startswith(f"  fix: move it out of {tmp_path}, or put results elsewhere")
    assert looks(tmp_path) == before


def test_files_of_others_beside_outputs_are_left_alone(tmp_path: Path) -> None:
    """They stop no run; half-written files are removed where they are those of an output."""
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
        path.write_text("half")
    assert set(foreign.temporary_outputs(tmp_path, expected)) == set(left[1:])


def test_a_table_whose_record_was_lost_is_made_again(tmp_path: Path) -> None:
    """It says in its metadata that it is ours."""
    (tmp_path / records.FOLDER).mkdir()
    write_parquet(pl.LazyFrame({"a": [1]}), tmp_path / "thresholds.parquet", {"version": "0"})
    assert stale(tmp_path, {"thresholds.parquet": "{}"}) == [
        "thresholds.parquet has no record of what made it"
    ]


def test_a_run_leaves_files_of_others_as_they_are(made: Trial) -> None:
    """A dry run and a run say the same and end before any job, although the site is out of date."""
    (made.results / "bundle/thesis.tex").write_text("a year of work")
    made.write({**CONFIG, "sweeps": {"shapes": CONFIG["sweeps"]["shapes"]}})
    before = looks(made.results)
    for options in (("--dry-run",), ()):
        done = subprocess.run(
            [*made.command, *options],
            cwd=made.path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 1
        problem, fix = done.stdout.splitlines()[-2:]
        assert (
            problem
            == "results/bundle/thesis.tex was not made by this program, and a run would delete or overwrite what is there."
        )
        assert fix.startswith("  fix: move it out of results, or ")
        assert "Job stats" not in done.stdout
    assert looks(made.results) == before


def test_a_first_run_overwrites_no_log_of_others(tmp_path: Path) -> None:
    """Where no run has made files yet, a file called as a log is somebody's own."""
    trial = Trial(tmp_path)
    written_to("results/logs/bundle.log")(tmp_path)
    done = trial.run()
    assert done.returncode == 1
    assert "results/logs/bundle.log was not made by this program" in done.stdout
    assert list(looks(trial.results)) == [
        f"{trial.results}/logs",
        f"{trial.results}/logs/bundle.log",
    ]


def test_a_file_where_a_folder_is_needed_ends_a_run_with_one_message(tmp_path: Path) -> None:
    """It is left as it is."""
    trial = Trial(tmp_path)
    written_to("results")(tmp_path)
    done = trial.run()
    assert done.returncode == 1
    assert done.stdout.endswith(
        "results is not a folder, and a run needs one there.\n  fix: move it away, then type the same command again.\n"
    )
    assert "Traceback" not in done.stdout
    assert trial.results.read_text() == "mine"


@pytest.mark.parametrize(
    "name", ["results", "results/tables", "results/tables/t", "results/.made", "results/charts"]
)
def test_every_folder_of_results_is_looked_at(name: str, tmp_path: Path) -> None:
    """A file in place of any of them would end a run in the middle."""
    written_to(name)(tmp_path)
    outputs = [
        tmp_path / "results" / output
        for output in ("tables/t/part-00000.parquet", "charts/roofline", "bundle")
    ]
    assert foreign.in_the_way(tmp_path / "results", outputs) == [tmp_path / name]


@pytest.mark.parametrize("name", [".snakemake", ".snakemake/rooflines"])
def test_a_file_where_runs_are_noted_is_explained(name: str, tmp_path: Path) -> None:
    """What cannot be made into a folder is named, not what was to be made in it."""
    written_to(name)(tmp_path)
    with pytest.raises(
        SystemExit,
        match=rf"{tmp_path}/{name} is not a folder, and a run needs one there\.\n  fix: move it away",
    ):
        guard.require_writable(tmp_path / STATE)


def test_a_journal_that_is_cut_off_or_is_none_only_costs_reading(tmp_path: Path) -> None:
    """What it does not say is looked up in the records."""
    path, spec = recorded_file(tmp_path)
    (tmp_path / "known").write_bytes(b"\xff\xfe 1234 \n\nabc")
    assert stale(tmp_path, {path.name: spec}) == []
    truncated(tmp_path / "known")
    assert stale(tmp_path, {path.name: spec}) == []


def test_the_check_of_a_hundred_known_files_takes_no_time(tmp_path: Path) -> None:
    """Less than 20 ms of processor time, so that a run with nothing to do stays one."""
    paths = [recorded_file(tmp_path, f"{number}.csv") for number in range(100)]
    expected = {path.name: spec for path, spec in paths}
    assert stale(tmp_path, expected) == []
    cache = FileCache(tmp_path / "known")
    started_s = time.process_time()
    assert stale(tmp_path, expected, cache) == []
    assert time.process_time() - started_s < 0.02


def test_a_job_that_outlives_its_run_does_not_publish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once another run has taken over, an older one's job leaves its files alone and its own half behind nowhere."""
    path, _ = recorded_file(tmp_path)
    before = path.read_bytes()
    run = tmp_path / "run"
    run.write_text("second 1 host then\n")
    monkeypatch.setenv(records.RUN, f"{run}:first")
    with pytest.raises(RooflinesError, match="is being made by a later run"):
        write_skipped('{"rows": [], "sweeps": [], "by": "first"}', path)
    assert path.read_bytes() == before
    assert not list(tmp_path.glob(LEFTOVER))
    monkeypatch.setenv(records.RUN, f"{run}:second")
    write_skipped('{"rows": [], "sweeps": []}', path)


def test_only_one_process_is_alone(tmp_path: Path) -> None:
    """A sign of life is seen by others, and ends with the process that gave it."""
    first = RunLock(tmp_path)
    assert (first.exclusive, first.local) == (True, True)
    second = RunLock(tmp_path)
    assert not second.exclusive
    first.close()
    second.close()
    third = RunLock(tmp_path)
    assert third.exclusive
    third.close()
    (tmp_path / "alive").write_text("another-machine\n")
    fourth = RunLock(tmp_path)
    assert not fourth.local, "what another machine does cannot be seen from here"
    fourth.close()
    (tmp_path / "alive").write_bytes(b"\xff\x00\xfe")
    fifth = RunLock(tmp_path)
    assert (fifth.exclusive, fifth.local) == (True, False), (
        "a garbled file may have named another machine"
    )
    fifth.close()


def test_the_advice_ends_a_run_that_is_suspended() -> None:
    """Typed as it is written, for the process and for the job that it waits for, both stopped as by Ctrl-Z."""
    with subprocess.Popen(
        ["/bin/sh", "-c", "trap 'wait; exit 3' TERM; sleep 1 & wait"], start_new_session=True
    ) as run:
        while not jobs_of(run.pid):
            time.sleep(0.01)
        os.killpg(run.pid, signal.SIGSTOP)
        try:
            subprocess.run(
                ["/bin/sh", "-c", ActiveRun(run.pid, os.getpgid(run.pid), "here", "now").stop],
                check=True,
            )
            assert run.wait(20) == 3
        finally:
            run.kill()


def test_a_file_that_may_not_grow_is_explained(tmp_path: Path) -> None:
    """One message that says what to do, from Python's own writes and from those of polars; nothing half written stays."""
    code = (
        "import resource, sys, polars as pl; from rooflines.results.tables import write_parquet\n"
        "from rooflines.results.atomic import atomic_file\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))\n"
        "def text(path):\n"
        "    with atomic_file(path) as aside: aside.write_bytes(bytes(100_000))\n"
        "def table(path): write_parquet(pl.LazyFrame({'a': range(100_000)}).with_columns(b=pl.col('a').hash()), path, {})\n"
        "for write in (text, table):\n"
        "    try: write(sys.argv[1])\n"
        "    except ValueError as error: print(error)\n"
    )
    target = tmp_path / "file.parquet"
    done = subprocess.run(
        [sys.executable, "-c", code, target], capture_output=True, text=True, check=True
    )
    assert (
        done.stdout.count(f"{target} cannot be written: a file may not grow that large.\n  fix: ")
        == 2
    ), done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []


def test_other_errors_are_not_taken_for_a_full_disk() -> None:
    """Only what the user can mend is explained."""
    assert unwritable("x", FileNotFoundError(2, "No such file")) is None
    assert unwritable("x", ValueError("wrong")) is None
