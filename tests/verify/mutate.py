"""Mutation tests of the formulas: changes them one by one and checks that a test fails.

Run by `make mutate`. mutmut generates the mutants. It would fork for each of them, but polars does
not survive a fork of a process that has computed, and a fresh import takes longer than the tests.
So one process collects the tests once and tries mutant after mutant: an environment variable, read
in every call, selects it. A process that a mutant has hung or broken is replaced. Results are kept
in mutants/, also after an interruption, and mutants with a result are skipped. `mutmut results` and
`mutmut show <name>` print details.

    python tests/verify/mutate.py                           mutants without a result
    python tests/verify/mutate.py 'rooflines.sweep.space*'  the same, of these mutants
    python tests/verify/mutate.py --budget 4                only the first tests that take 4 s
    python tests/verify/mutate.py --survivors               again those that survived or timed out
    python tests/verify/mutate.py --again NAME...           again, with any result
    python tests/verify/mutate.py --changed main            of modules changed against a revision
    python tests/verify/mutate.py --tests tests/test_x.py   by these tests, in place of the usual
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator
from itertools import accumulate
from pathlib import Path

import polars as pl
import pytest
from _pytest.runner import runtestprotocol
from mutmut.mutation.data import SourceFileMutationData

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "mutants"
REQUESTED, FOUND, CLEAN = FOLDER / "requested.json", FOLDER / "found.jsonl", FOLDER / "clean.json"
LOG = FOLDER / "worker.log"
VARIABLE = "MUTANT_UNDER_TEST"

KILLED, SURVIVED, NO_TEST, TIMEOUT, CRASHED = 1, 0, 33, 36, -11
"""As mutmut notes them."""

OFTEN = 10
"""Kills between checks that the killing test still passes without a mutant [1]."""

LEFTOVER = 9
"""Exit code of a process in which a mutant left state behind."""

PATIENCE_S = 15.0
"""CPU time, plus five times the usual one, after which a test counts as an endless loop."""

SILENCE_S = 120.0
"""Time without a new test after which a process is stuck where Python cannot interrupt it."""

MEMORY_BYTES = 6 * 2**30
"""Memory that an endless loop may fill."""


class TimeUpError(BaseException):
    """A test takes too long. Not an Exception, so that nothing between catches it."""


class Trial:
    """A pytest session that tries mutants instead of running its tests once."""

    def __init__(self, names: list[str], budget: float) -> None:
        self.names = names
        self.budget = budget
        self.durations: dict[str, float] = {}
        self.late = False
        self.kills = 0
        self.tried: Counter[pytest.Item] = Counter()
        self.noticed: Counter[pytest.Item] = Counter()
        self.killers: dict[str, set[pytest.Item]] = defaultdict(set)

    def run(self, item: pytest.Item, mutant: str, limit: float = 600.0) -> bool:
        """Whether a test passes with a mutant."""
        os.environ[VARIABLE] = mutant
        random.seed(0)
        pl.set_random_seed(0)
        self.late = False
        FOUND.touch()
        signal.setitimer(signal.ITIMER_PROF, limit, limit)
        try:
            reports = runtestprotocol(item, log=False)
        except TimeUpError:
            return False
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            os.environ[VARIABLE] = ""
        return all(report.passed for report in reports)

    def ring(self, *_: object) -> None:
        """End a test that takes too long."""
        self.late = True
        raise TimeUpError

    def pytest_sessionstart(self) -> None:
        """Draw the same examples every time, and do not shrink failing ones, which is slow."""
        from hypothesis import Phase, settings  # noqa: PLC0415, pytest wants to be the first to import it

        settings.register_profile(
            "mutating", derandomize=True, database=None, phases=[Phase.explicit, Phase.generate]
        )
        settings.load_profile("mutating")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out tests in other processes, which have no mutant."""
        from conftest import is_slow  # noqa: PLC0415, known once pytest runs

        items[:] = [item for item in items if not is_slow(item)]

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Measure what each test calls and how long it takes, then try the mutants."""
        signal.signal(signal.SIGPROF, self.ring)
        clean = json.loads(CLEAN.read_text(encoding="utf-8")) if CLEAN.exists() else {}
        for item in session.items:
            if item.nodeid not in clean:
                clean[item.nodeid] = self.clean(item)
                CLEAN.write_text(json.dumps(clean), encoding="utf-8")
        calls: dict[str, list[pytest.Item]] = defaultdict(list)
        for item in session.items:
            self.durations[item.nodeid], called = clean[item.nodeid]
            for function in called:
                calls[function].append(item)
        with FOUND.open("a", encoding="utf-8") as out:
            for name in self.names:
                start = time.perf_counter()
                code, killer = self.attempt(name, calls[name.partition("__mutmut_")[0]])
                print(
                    json.dumps([name, code, round(time.perf_counter() - start, 3), killer]),
                    file=out,
                    flush=True,
                )
        return True

    def clean(self, item: pytest.Item) -> tuple[float, list[str]]:
        """The CPU time of a test without a mutant [s], and the functions that it calls."""
        from mutmut.state import state  # noqa: PLC0415, here the changed package is in front

        state()._stats.clear()  # noqa: SLF001, where the changed modules note what is called
        start = time.process_time()
        if not self.run(item, "stats"):  # it needs what the copied folder lacks
            print(f"left out, since it fails without a mutant: {item.nodeid}")
            return 0.0, []
        return time.process_time() - start, sorted(state()._stats)  # noqa: SLF001

    def attempt(self, name: str, items: list[pytest.Item]) -> tuple[int, str]:
        """The result of a mutant, and the test that killed it.

        Tests that kill most for their time come first; those that killed other mutants of the
        function always run.
        """
        killers = self.killers[name.partition("__mutmut_")[0]]
        price = {
            item: self.durations[item.nodeid] * (2 + self.tried[item]) / (1 + self.noticed[item])
            for item in items
        }
        first = sorted(items, key=lambda item: price[item])
        total = accumulate(self.durations[item.nodeid] for item in first)
        for item in [
            item
            for item, until in zip(first, total, strict=True)
            if until <= self.budget or item in killers
        ]:
            limit = PATIENCE_S + 5 * self.durations[item.nodeid]
            self.tried[item] += 1
            if self.run(item, name, limit):
                continue
            late, seen = self.late, item in killers
            killers.add(item)
            self.noticed[item] += 1
            self.kills += 1
            if (not seen or self.kills % OFTEN == 0) and not self.run(item, ""):
                os._exit(LEFTOVER)  # a mutant left state behind: again, in a new process
            return TIMEOUT if late else KILLED, item.nodeid
        return (SURVIVED if items else NO_TEST), ""


def work(budget: float, tests: list[str]) -> int:
    """Try the requested mutants, in the folder of changed modules."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    from mutmut.configuration import config  # noqa: PLC0415, as above

    tests = tests or config().pytest_add_cli_args_test_selection
    trial = Trial(json.loads(REQUESTED.read_text(encoding="utf-8")), budget)
    # reports of pytest take longer than most tests: mutated modules are long
    options = ["--assert=plain", "--tb=native", "-p", "no:xdist", "-p", "no:cacheprovider"]
    return int(
        pytest.main(
            ["--rootdir=.", "-q", *options, *tests],
            plugins=[trial],
        )
    )


def changed_modules(revision: str) -> list[str]:
    """The modules of the package that differ from a revision."""
    command = ["git", "diff", "--name-only", "--diff-filter=d", revision, "--", "rooflines/*.py"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if shown.returncode:
        sys.exit(shown.stderr.strip())
    return shown.stdout.split() or sys.exit(f"No module has changed against {revision}")


def generate(changed: str | None) -> dict[str, SourceFileMutationData]:
    """Generate missing mutants, of modules changed against a revision; the data of each file."""
    from mutmut.__main__ import create_mutants  # noqa: PLC0415, looks at the folder it is imported in
    from mutmut.configuration import config  # noqa: PLC0415
    from mutmut.mutation.data import SourceFileMutationData  # noqa: PLC0415
    from mutmut.utils import file_utils  # noqa: PLC0415

    if changed:
        config().only_mutate[:] = changed_modules(changed)
    FOLDER.mkdir(exist_ok=True)
    os.environ[VARIABLE] = "mutant_generation"
    file_utils.copy_src_dir()
    file_utils.copy_also_copy_files()
    file_utils.setup_source_paths()
    with contextlib.redirect_stdout(None):
        create_mutants(1)
    if CLEAN.exists() and any(
        path.stat().st_mtime > CLEAN.stat().st_mtime
        for path in [*ROOT.glob("rooflines/**/*.py"), *ROOT.glob("tests/**/*.py")]
    ):
        CLEAN.unlink()
    found = {}
    for path in config().only_mutate:
        found[path] = SourceFileMutationData(path=path)
        found[path].load()
    return found


def worked(left: list[str], more: list[str]) -> Generator[tuple[str, int, float], None, int]:
    """Results of a process, whose mutants leave the list, until it ends; returns its exit code."""
    REQUESTED.write_text(json.dumps(left), encoding="utf-8")
    FOUND.write_text("", encoding="utf-8")
    environment = {**os.environ, VARIABLE: "", "PYTHONPATH": str(FOLDER), "POLARS_MAX_THREADS": "1"}
    with LOG.open("w", encoding="utf-8") as log:
        command = [sys.executable, __file__, "--worker", *more]
        worker = subprocess.Popen(command, cwd=FOLDER, env=environment, stdout=log, stderr=log)
    seen, ended = 0, False
    try:
        while not ended:
            time.sleep(0.5)
            ended = worker.poll() is not None
            for line in FOUND.read_text(encoding="utf-8").splitlines(keepends=True)[seen:]:
                if not line.endswith("\n"):
                    break
                name, code, seconds, _ = json.loads(line)
                left.remove(name)
                yield name, code, seconds
                seen += 1
            if time.time() - FOUND.stat().st_mtime > SILENCE_S and not ended:
                worker.kill()
                yield left.pop(0), TIMEOUT, SILENCE_S
                ended = True
    finally:
        if not ended:
            worker.kill()
    return worker.wait()


def tried(names: list[str], more: list[str]) -> Iterator[tuple[str, int, float]]:
    """The mutants with their results; one that ends its process twice is not tried again."""
    left, last = list(names), ""
    while left:
        code = yield from worked(left, more)
        if not left or last != left[0]:
            last = left[0] if left else ""
        elif code == LEFTOVER:
            yield left.pop(0), KILLED, 0.0  # alone in a process it fails a test that passed before
        elif code < 0:
            yield left.pop(0), CRASHED, 0.0
        else:
            raise RuntimeError(LOG.read_text(encoding="utf-8")[-3000:])


def main() -> int:
    """Try the requested mutants, and print the survivors."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--budget", type=float, default=float("inf"))
    parser.add_argument("--survivors", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--worker", action="store_true")
    parser.add_argument("--changed", metavar="REVISION")
    parser.add_argument("--tests", nargs="*", default=[])
    options = parser.parse_args()
    if options.worker:
        return work(options.budget, options.tests)
    os.chdir(ROOT)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # the worker ends too
    files = generate(options.changed)
    by_mutant = {name: data for data in files.values() for name in data.exit_code_by_key}
    matching = [
        name
        for name in by_mutant
        if not options.names or any(fnmatch.fnmatch(name, pattern) for pattern in options.names)
    ]
    again = (SURVIVED, NO_TEST, TIMEOUT) if options.survivors else ()
    names = [
        name
        for name in matching
        if options.again or by_mutant[name].exit_code_by_key[name] in (None, *again)
    ]
    more = ["--budget", str(options.budget), "--tests", *options.tests]
    print(f"{len(by_mutant)} mutants, {len(names)} to try", flush=True)
    for name, code, seconds in tried(names, more):
        data = by_mutant[name]
        data.exit_code_by_key[name] = code
        data.durations_by_key[name] = seconds
        # a half-written file would lose all its results
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT])
        data.save()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM, signal.SIGINT])
        if code != KILLED:
            print(f"{name}: {'survived' if code == SURVIVED else code}", flush=True)
    for path, data in files.items():
        codes = Counter(data.exit_code_by_key.values())
        if codes:
            print(f"{path}: {sum(codes.values())} mutants, {dict(codes)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
