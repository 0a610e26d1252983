"""Shared fixtures: the repository, Snakemake as a user starts it, a run of the default config."""

import fcntl
import gc
import os
import random
from contextlib import ExitStack, closing
from functools import cache
from pathlib import Path

import hypothesis
import pytest
import run_folder

from rooflines.basics.lazy import GARBAGE_THRESHOLDS

REPOSITORY = Path(__file__).parent.parent

SEED = os.environ.setdefault("ROOFLINES_SEED", str(random.SystemRandom().randrange(10**6)))
"""Seed of random choices, inherited by the workers; set ROOFLINES_SEED to repeat a run."""

os.environ.setdefault("ROOFLINES_CACHE", str(REPOSITORY / ".pytest_cache" / "rooflines"))
"""The cache of the tests' processes, apart from the user's."""

os.environ.setdefault("POLARS_MAX_THREADS", "1")
"""Polars computes on one thread: frames are small, and the workers share the cores."""

SLOW = {"browser", "browsers", "once", "snakemake"}
"""Fixtures that run the workflow or start a browser, and those of which others are made."""

ALWAYS = hypothesis.settings(
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=list(hypothesis.HealthCheck),  # configs are large
)
DRAWN = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
"""A failure is reported as drawn; `make verify` shrinks it."""

hypothesis.settings.register_profile("quick", ALWAYS, phases=DRAWN)
hypothesis.settings.register_profile("thorough", ALWAYS)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

IN_BOTH = pytest.mark.parametrize("browser", ["chromium", "firefox"], indirect=True)
"""The mark of a test in Chromium and in Firefox."""


def pytest_addoption(parser):
    parser.addoption("--update", action="store_true", help="rewrite reviewed texts; see git diff")
    parser.addoption("--fast", action="store_true", help="leave out workflow runs and browsers")


@pytest.fixture
def reviewed(request):
    """Check what a command prints against its reviewed text, or rewrite that text."""

    def check(asked, output):
        if request.config.getoption("--update"):
            asked.update(output)
        else:
            assert output == asked.output

    return check


def pytest_configure(config):
    """Seed Hypothesis too, before its plugin reads its option."""
    config.option.hypothesis_seed = config.option.hypothesis_seed or SEED
    gc.set_threshold(*GARBAGE_THRESHOLDS)


def pytest_collection_finish():
    """Leave what is imported out of later collections, else a fifth of the time."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup(item):
    """Seed the random choices of a test, whatever ran before it."""
    random.seed(f"{SEED} {item.nodeid}")


def is_slow(item):
    """True if a test runs the workflow or a browser."""
    return item.get_closest_marker("slow") or SLOW & set(getattr(item, "fixturenames", ()))


def pytest_collection_modifyitems(config, items):
    """Bare `pytest` leaves out what runs the workflow or a browser; `pytest tests` runs all."""
    bare = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    if not bare and not config.getoption("--fast"):
        return
    slow = [item for item in items if is_slow(item)]
    config.hook.pytest_deselected(items=slow)
    items[:] = [item for item in items if item not in slow]


def pytest_terminal_summary(terminalreporter):
    """Say after a failure how to draw the same again."""
    if terminalreporter.stats.get("failed"):
        terminalreporter.write_line(f"ROOFLINES_SEED={SEED} repeats the random choices")


@pytest.fixture(scope="session")
def repository():
    return REPOSITORY


@pytest.fixture(scope="session")
def snakemake():
    return run_folder.snakemake


@pytest.fixture(scope="session")
def browsers():
    """Start a browser on its first use; it runs as long as the worker.

    Without it, tests are skipped; in CI, which sets the variable CI, they fail.
    """
    from playwright.sync_api import sync_playwright  # noqa: PLC0415, most tests need no browser
    from visits import installed, launched  # noqa: PLC0415

    @cache
    def started(name):
        if installed(name) is None:
            missing = pytest.fail if os.environ.get("CI") else pytest.skip
            missing(f"no {name}: apt-get install chromium firefox-esr")
        return ends.enter_context(closing(launched(playwright, name)))

    with sync_playwright() as playwright, ExitStack() as ends:
        yield started


@pytest.fixture(scope="session")
def browser(request, browsers):
    return browsers(getattr(request, "param", "chromium"))


@pytest.fixture(scope="session")
def once(tmp_path_factory):
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def made(name, make):
        folder = base / name
        folder.mkdir(exist_ok=True)
        with (base / f"{name}.lock").open("a+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            lock.seek(0)
            if lock.read() != "made":
                make(folder)
                lock.write("made")
        return folder

    return made


@pytest.fixture(scope="session")
def default_results(once):
    def run(folder):
        done = run_folder.snakemake(*run_folder.SNAKEFILE, "--directory", folder, cwd=folder)
        assert done.returncode == 0, done.stdout

    return once("default", run) / "results"


@pytest.fixture(scope="session")
def undisturbed(once):
    from trials import run_undisturbed  # noqa: PLC0415, most tests need no run

    return once("undisturbed", run_undisturbed)


@pytest.fixture(scope="session")
def site(once):
    from bundles import run_small_site  # noqa: PLC0415, most tests need no site

    return once("small-site", run_small_site) / "results" / "bundle"


@pytest.fixture(scope="session")
def visits_in(site):
    from visits import Visits, serving  # noqa: PLC0415

    with serving(site) as base:
        yield cache(lambda browser: Visits(browser, base))


@pytest.fixture
def visit(browser, visits_in):
    visits = visits_in(browser)
    visits.page.faults.clear()
    yield visits
    assert visits.page.faults == []
