"""After a kill, the next run finishes with a clean run's tables, to the byte: 100 kills."""

import random
import sys
from itertools import product
from typing import NamedTuple

import pytest
from run_folder import RunFolder
from trials import CONFIG, SEED, SIGNALS, TABLES, Work, recovers, worked

MOMENTS = 20
"""For each of the five ways [1]."""


RULES = ("sweep_table", "model_table", "layer_table", "summary", "thresholds", "workbook")

AS_PROCESSES = ("--set-resources", *(f"{rule}:mem_mb=1000000000" for rule in RULES))
"""More memory than there is: these jobs are processes, as they are where memory is short."""


class Clean(NamedTuple):
    """An undisturbed run: its targets, its options, its outputs, and its CPU time."""

    targets: tuple[str, ...]
    options: tuple[str, ...]
    contents: dict[str, str]
    work: Work


@pytest.fixture(scope="module")
def cleans(tmp_path_factory):
    cleans = {}
    for targets, options in product((TABLES, ()), ((), AS_PROCESSES)):
        run = RunFolder(tmp_path_factory.mktemp("clean"), CONFIG, *targets, options=options)
        work = worked(run)
        cleans[bool(targets), bool(options)] = Clean(targets, options, run.contents(), work)
    return cleans


def test_jobs_on_threads_and_in_processes_make_the_same(cleans):
    for targets in (True, False):
        assert cleans[targets, True].contents == cleans[targets, False].contents
    assert cleans[True, True].work.jobs_s > 0.3 * cleans[True, True].work.all_s


@pytest.fixture(scope="module", autouse=True)
def tally(request):
    hits: list[bool] = []
    yield hits
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print(
            f"\nROOFLINES_SEED={SEED}: {sum(hits)} of {len(hits)} runs were killed at work",
            file=sys.stderr,
        )
    assert sum(hits) >= 0.8 * len(hits)


@pytest.mark.parametrize("number", range(MOMENTS))
@pytest.mark.parametrize("kind", SIGNALS)
def test_the_next_run_completes_a_killed_one(kind, number, cleans, tally, tmp_path):
    of_job = SIGNALS[kind][0] == "job"
    clean = cleans[number % 5 != 0, of_job]
    chance = random.Random(f"{SEED} {kind} {number}")
    work_s = clean.work.jobs_s if of_job else clean.work.all_s
    moment_s = chance.uniform(0.0, 0.9) * work_s
    print(f"ROOFLINES_SEED={SEED}: {kind} after {moment_s:.2f} of {work_s:.2f} CPU s")
    run = RunFolder(tmp_path, CONFIG, *clean.targets, options=clean.options)
    tally.append(recovers(run, clean.contents, kind, moment_s, chance))
