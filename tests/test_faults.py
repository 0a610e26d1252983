"""Killed runs resume, changed or truncated files are reported and remade, foreign files stay.

`make verify` has the long forms: a hundred kill times, and whole runs on a full disk.
"""

import os
import random
import re
from pathlib import Path
from typing import NamedTuple

import pytest
from damage import emptied, flipped, replaced, truncated, unfinished
from processes import python
from run_folder import RunFolder
from trials import CONFIG, SEED, TABLES, may_unshare, recovers, stats

from rooflines.run.stale import MAX_NAMED_FILES

pytestmark = pytest.mark.slow


class Clean(NamedTuple):
    around: Path
    run: RunFolder
    contents: dict[str, str]


@pytest.fixture(scope="module")
def clean(undisturbed):
    run = RunFolder(undisturbed / "run", CONFIG)
    return Clean(undisturbed, run, run.contents())


@pytest.fixture
def made(clean, tmp_path):
    return clean.run.copied(tmp_path / "made")


def test_a_run_needs_no_network(clean):
    assert {*TABLES, "bundle/index.html"} <= clean.contents.keys()
    if not may_unshare():
        pytest.skip("the system does not let a process leave the network (unshare --net)")


def test_the_next_run_completes_a_killed_one(clean, tmp_path, capsys):
    """The next run takes over while jobs of the dead one still work; no partial file is seen.

    Of all but the site, which `make verify` has too: it takes a third of the whole run.
    """
    chance = random.Random(f"{SEED} killed")
    work_s = float((clean.around / "cpu_s").read_text())
    moment_s = chance.uniform(0.2, 0.5) * work_s
    with capsys.disabled():
        print(
            f"(ROOFLINES_SEED={SEED}: killed after {moment_s:.2f} of {work_s:.2f} CPU s) ",
            end="",
        )
    tables = {name: sha for name, sha in clean.contents.items() if not name.startswith("bundle/")}
    recovers(
        RunFolder(tmp_path, CONFIG, *TABLES),
        tables,
        "snakemake is killed (SIGKILL)",
        moment_s,
        chance,
    )


WHILE_LOCKED = """
import os, signal, threading
from snakemake.scheduling.job_scheduler import JobScheduler
from rooflines.run.snakemake.interrupt import handle_sigterm

handle_sigterm()
scheduler = object.__new__(JobScheduler)
scheduler._lock, scheduler._open_jobs = threading.Lock(), threading.Semaphore(0)
signal.signal(signal.SIGTERM, scheduler.exit_gracefully)
with scheduler._lock:
    os.kill(os.getpid(), signal.SIGTERM)
scheduler._open_jobs.acquire()
print(scheduler._user_kill)
"""


def test_sigterm_ends_a_run_whose_scheduler_is_at_work():
    assert python("-c", WHILE_LOCKED).stdout == "graceful\n"


DAMAGES = {
    "tables/catalogue/part-00000.parquet": (truncated, "has other content than was written"),
    "tables/catalogue/part-00001.parquet": (emptied, "has other content than was written"),
    "tables/catalogue/part-00002.parquet": (flipped, "has other content than was written"),
    "tables/own/part-00000.parquet": (replaced, "has other content than was written"),
    "summary.csv": (flipped, "has other content than was written"),
    "bundle/index.html": (truncated, "has index.html, which has other content"),
}


def test_an_index_that_is_asked_for_is_made_after_a_table_that_outlived_its_run(made, clean):
    marker = unfinished(made.path, "results/tables/catalogue/part-00001.parquet")
    (made.results / "parts.csv").unlink()
    made.finish("--", "results/parts.csv")
    assert not marker.exists()
    made.whole(clean.contents)


def test_damaged_files_are_named_and_made_again(made, clean):
    kept = made.finished()
    for name, (damage, _) in DAMAGES.items():
        path = made.results / name
        times = path.stat()
        damage(path)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    said = made.finish()
    named = [line for line in said.splitlines() if line.endswith(": it is made again")]
    for name, (_, reason) in list(DAMAGES.items())[:MAX_NAMED_FILES]:
        output = f"results/{name.partition('/')[0] if name.startswith('bundle') else name}"
        assert any(line.startswith(output) and reason in line for line in named), output
    assert "... and 1 more like these" in said
    made.whole(clean.contents)
    fine = [
        name
        for name in kept
        if not any(name in f"results/{damaged}" for damaged in DAMAGES)
        # made from what was damaged
        and not re.search("thresholds|parts.csv|summary|rooflines.xlsx", name)
    ]
    assert fine
    assert "results/skipped.csv" in fine
    assert {name: made.finished()[name] for name in fine} == {name: kept[name] for name in fine}


def test_a_run_leaves_files_of_others_as_they_are(made):
    (made.results / "bundle/thesis.tex").write_text("a year of work")
    del made.config["sweeps"]["catalogue"]
    made.write()
    before = stats(made.results)
    for options in (("--dry-run",), ()):
        done = made.run(*options)
        assert done.returncode == 1
        problem, fix = done.stdout.splitlines()[-2:]
        assert problem == (
            "results/bundle/thesis.tex was not made by this program, "
            "and a run would delete or overwrite what is there."
        )
        assert fix.startswith("  fix: move it out of results, or ")
        assert "Job stats" not in done.stdout
    assert stats(made.results) == before


def test_a_dry_run_deletes_no_damaged_output(made):
    (made.results / "skipped.csv").write_text("damaged")
    before = stats(made.results)
    done = made.run("--dry-run")
    assert "would be made again" in done.stdout
    assert stats(made.results) == before
