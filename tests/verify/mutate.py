"""Changes the formulas one by one, to see whether a test notices: `make mutate`.

mutmut makes the changes. It would try each of them in a fork of its own, but polars does not survive a fork of a process that has
computed, and importing everything anew takes longer than the tests. So one process collects the tests once and tries change after
change: each is chosen by a variable that the changed modules look at in every call. A process that a change has hung or broken is
replaced by a new one. Results are kept in mutants/, also of a run that was ended, and only what has none is tried: `mutmut results` and
`mutmut show <name>` tell more.

    python tests/verify/mutate.py                        what has no result yet, against all chosen tests
    python tests/verify/mutate.py 'rooflines.sweep.space*'     the same, of these
    python tests/verify/mutate.py --budget 4             each only against the tests that come first and together take four seconds
    python tests/verify/mutate.py --survivors            once more what no test has noticed, what ran out of time included
    python tests/verify/mutate.py --again NAME...        these once more, whatever became of them
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
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from _pytest.runner import runtestprotocol

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from mutmut.mutation.data import SourceFileMutationData

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "mutants"
ASKED, FOUND, CLEAN = FOLDER / "asked.json", FOLDER / "found.jsonl", FOLDER / "clean.json"
LOG = FOLDER / "worker.log"
VARIABLE = "MUTANT_UNDER_TEST"

KILLED, SURVIVED, NO_TEST, TIMEOUT, CRASHED = 1, 0, 33, 36, -11
"""As mutmut notes them."""

OFTEN = 10
"""How often a test that notices changes is run without one, to see whether it still passes."""

LEFTOVER = 9
"""How a process ends in which a change left something behind."""

PATIENCE_S = 15.0
"""A test that takes this and five times as long as usual does not end: an endless loop. Time of the processor, however busy it is."""

SILENCE_S = 120.0
"""A process that has begun no test for so long is stuck where Python cannot interrupt it, as in a loop that polars calls."""

MEMORY_BYTES = 6 * 2**30
"""What an endless loop may fill."""


class TimeUpError(BaseException):
    """A test takes too long. No Exception, so that nothing on the way catches it."""


class Trial:
    """A pytest session that tries changes instead of running its tests once."""

    def __init__(self, names: list[str], budget: float) -> None:
        self.names = names
        self.budget = budget
        self.durations: dict[str, float] = {}
        self.late = False
        self.kills = 0
        self.tried: Counter[pytest.Item] = Counter()
        self.noticed: Counter[pytest.Item] = Counter()
        self.killers: dict[str, set[pytest.Item]] = defaultdict(set)

    def run(self, item: pytest.Item, changed: str, limit: float = 600.0) -> bool:
        """Whether a test passes with a change."""
        os.environ[VARIABLE] = changed
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
        """Draw the same examples every time, and make no failing one smaller, which takes long."""
        from hypothesis import Phase, settings  # noqa: PLC0415, pytest wants to be the first to import it

        settings.register_profile(
            "mutating", derandomize=True, database=None, phases=[Phase.explicit, Phase.generate]
        )
        settings.load_profile("mutating")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """See what each test calls and how long it takes, then try the changes."""
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
                code, by = self.attempt(name, calls[name.partition("__mutmut_")[0]])
                print(
                    json.dumps([name, code, round(time.perf_counter() - start, 3), by]),
                    file=out,
                    flush=True,
                )
        return True

    def clean(self, item: pytest.Item) -> tuple[float, list[str]]:
        """How long the processor takes for a test as it is, and what it calls."""
        from mutmut.state import state  # noqa: PLC0415, here the changed package is in front

        state()._stats.clear()  # noqa: SLF001, where the changed modules note what is called
        start = time.process_time()
        if not self.run(item, "stats"):
            raise RuntimeError(f"{item.nodeid} fails as it is")
        return time.process_time() - start, sorted(state()._stats)  # noqa: SLF001

    def attempt(self, name: str, items: list[pytest.Item]) -> tuple[int, str]:
        """What becomes of a change: what notices most for its time comes first; what noticed others of its function is run."""
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
            late, known = self.late, item in killers
            killers.add(item)
            self.noticed[item] += 1
            self.kills += 1
            if (not known or self.kills % OFTEN == 0) and not self.run(item, ""):
                os._exit(LEFTOVER)  # a change left something behind: once more, in a new process
            return TIMEOUT if late else KILLED, item.nodeid
        return (SURVIVED if items else NO_TEST), ""


def work(budget: float) -> int:
    """Try what is asked for, in the folder of changed modules."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    from mutmut.configuration import config  # noqa: PLC0415, as above

    tests = config().pytest_add_cli_args_test_selection
    trial = Trial(json.loads(ASKED.read_text(encoding="utf-8")), budget)
    told = [
        "--assert=plain",
        "--tb=native",
    ]  # pytest's own words for a failure take longer than most tests: changed modules are long
    return int(
        pytest.main(
            ["--rootdir=.", "-q", *told, "-p", "no:xdist", "-p", "no:cacheprovider", *tests],
            plugins=[trial],
        )
    )


def generate() -> dict[str, SourceFileMutationData]:
    """Make the changes that are not made yet; the data of each file."""
    from mutmut.__main__ import create_mutants  # noqa: PLC0415, looks at the folder it is imported in
    from mutmut.configuration import config  # noqa: PLC0415
    from mutmut.mutation.data import SourceFileMutationData  # noqa: PLC0415
    from mutmut.utils import file_utils  # noqa: PLC0415

    FOLDER.mkdir(exist_ok=True)
    os.environ[VARIABLE] = "mutant_generation"
    file_utils.copy_src_dir()
    file_utils.copy_also_copy_files()
    file_utils.setup_source_paths()
    with contextlib.redirect_stdout(None):
        create_mutants(1)
    if CLEAN.exists() and any(
        path.stat().st_mtime > CLEAN.stat().st_mtime
        for path in [*ROOT.glob("rooflines/*.py"), *ROOT.glob("tests/*.py")]
    ):
        CLEAN.unlink()
    found = {}
    for path in config().only_mutate:
        found[path] = SourceFileMutationData(path=path)
        found[path].load()
    return found


def worked(left: list[str], budget: float) -> Generator[tuple[str, int, float], None, int]:
    """What a process finds out about changes, which leave the list, until it ends; how it ended."""
    ASKED.write_text(json.dumps(left), encoding="utf-8")
    FOUND.write_text("", encoding="utf-8")
    environment = {**os.environ, VARIABLE: "", "PYTHONPATH": str(FOLDER), "POLARS_MAX_THREADS": "1"}
    with LOG.open("w", encoding="utf-8") as log:
        command = [sys.executable, __file__, "--worker", "--budget", str(budget)]
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


def tried(names: list[str], budget: float) -> Iterator[tuple[str, int, float]]:
    """The changes, each with what became of it; one that ends its process twice is tried no more."""
    left, last = list(names), ""
    while left:
        code = yield from worked(left, budget)
        if not left or last != left[0]:
            last = left[0] if left else ""
        elif code == LEFTOVER:
            yield (
                left.pop(0),
                KILLED,
                0.0,
            )  # in a process of its own it fails a test, which passed before
        elif code < 0:
            yield left.pop(0), CRASHED, 0.0
        else:
            raise RuntimeError(LOG.read_text(encoding="utf-8")[-3000:])


def main() -> int:
    """Try what is asked for, and say what no test noticed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--budget", type=float, default=float("inf"))
    parser.add_argument("--survivors", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--worker", action="store_true")
    given = parser.parse_args()
    if given.worker:
        return work(given.budget)
    os.chdir(ROOT)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # the worker ends too
    files = generate()
    of_name = {name: data for data in files.values() for name in data.exit_code_by_key}
    asked = [
        name
        for name in of_name
        if not given.names or any(fnmatch.fnmatch(name, pattern) for pattern in given.names)
    ]
    again = (SURVIVED, NO_TEST, TIMEOUT) if given.survivors else ()
    names = [
        name
        for name in asked
        if given.again or of_name[name].exit_code_by_key[name] in (None, *again)
    ]
    print(f"{len(of_name)} changes, {len(names)} to try", flush=True)
    for name, code, seconds in tried(names, given.budget):
        data = of_name[name]
        data.exit_code_by_key[name] = code
        data.durations_by_key[name] = seconds
        signal.pthread_sigmask(
            signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT]
        )  # a file half written would lose all results in it
        data.save()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM, signal.SIGINT])
        if code != KILLED:
            print(f"{name}: {'survived' if code == SURVIVED else code}", flush=True)
    for path, data in files.items():
        codes = Counter(data.exit_code_by_key.values())
        if codes:
            print(f"{path}: {sum(codes.values())} changes, {dict(codes)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
