"""Fuzzing: every input gives a valid table or one message, within limits of time and memory.

No case may write another file, start a program, or open a connection.
"""

import contextlib
import os
import resource
import signal
import sys
from pathlib import Path

import polars as pl
import predicates
from messages import assert_form
from threshold_files import write_threshold_files
from valid_files import CHIPS, DTYPES, ODD

import rooflines
from rooflines.evaluation.row_frames import KernelTable, table_of
from rooflines.fits.calibration_files import shipped_calibrations
from rooflines.hardware import chip_catalogue as catalogue
from rooflines.hardware import dtype_catalogue as formats
from rooflines.models.library import model_entries
from rooflines.results.folders import FOLDERS
from rooflines.run.jobs import write_part, write_skipped
from rooflines.run.plan import plan
from rooflines.sweep.step_sweep import ModelSweep

SECONDS = 20
"""Time limit of a case [s]."""

MEMORY = 2 * 2**30
"""Memory limit of the cases of a process, on top of its memory before [byte]."""

SOLVED = 0.4
"""Thresholds are slow: solve them if the slice of a case begins before this share of the table."""

MOST_ROWS, MOST_THRESHOLDS = 200, 5_000
"""Most rows to compute of a valid table, and most thresholds to solve [1]."""


TEXTS: list[str] = ODD["texts"]
"""Pieces of text that are special in Snakemake, Python, a shell, HTML, YAML or JSON."""


def config_of_texts():
    """A valid, cheap config with all `TEXTS` in its free texts."""

    def text(joint="", start=0, step=1):
        return "x" + joint.join(TEXTS[start::step]).strip()

    names = [text("", number, 3) + str(number) for number in range(3)]
    own = {
        "base": "h100-sxm",
        "memory.hbm.bytes_per_s": 4e12,
        "name": text(),
        "source": text("\n"),
        "note": text("\n"),
    }
    sweep = {
        "operation": "matmul",
        "grid": {"B": [1, 64, 4096]},
        "shapes": [{"name": name, "D": 1024, "F": 512} for name in names],
        "dtypes": ["bf16", "mxfp4"],
        "chips": ["own", "h100-sxm"],
    }
    charts = [{"chart": "chips", "sweep": "texts", "title": text()}]
    return {"sweeps": {"texts": sweep}, "charts": charts, "chips": {"own": own}}


STARTS = {
    *("os.system", "subprocess.Popen", "socket.connect", "os.exec", "os.posix_spawn"),
    "pickle.find_class",
}
CHANGES = {
    *("os.mkdir", "os.remove", "os.rename", "os.rmdir"),
    *("os.symlink", "os.link", "os.chmod", "os.truncate"),
}
"""Audit events that start something, and that change files."""


def is_written(path, _, flags):
    """True if a file is opened by its path to be written."""
    return isinstance(path, str) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)


class Outside:
    """Audit hook for forbidden effects: files outside a folder, programs, connections."""

    def __init__(self):
        self.folder: str | None = None
        self.found: list[str] = []
        sys.addaudithook(self._hear)

    def _hear(self, event, arguments):
        if self.folder is None:
            return
        if event in STARTS:
            self.found.append(event)
        elif event in CHANGES or (event == "open" and is_written(*arguments)):
            self._check(event, arguments[0])

    def _check(self, event, path):
        if not f"{os.path.realpath(str(path))}/".startswith(f"{self.folder}/"):
            self.found.append(f"{event} {path!r}")


OUTSIDE = Outside()


@contextlib.contextmanager
def watched(folder):
    """Check that no file outside a folder is written, no program started, no connection opened."""
    OUTSIDE.folder, OUTSIDE.found = os.path.realpath(folder), []
    try:
        yield
    finally:
        OUTSIDE.folder = None
    assert OUTSIDE.found == [], OUTSIDE.found


@contextlib.contextmanager
def within(seconds):
    """Limit CPU time, and wall time to six times that, because the machine may be busy."""

    def late(*_):
        raise TimeoutError(f"took more than {seconds} s")

    clocks = {
        signal.ITIMER_PROF: (signal.SIGPROF, seconds),
        signal.ITIMER_REAL: (signal.SIGALRM, 6 * seconds),
    }
    before = {number: signal.signal(number, late) for number, _ in clocks.values()}
    for clock, (_, limit) in clocks.items():
        signal.setitimer(clock, limit)
    try:
        yield
    finally:
        for clock in clocks:
            signal.setitimer(clock, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def little_memory(more=MEMORY):
    """Limit the memory that the process may allocate in addition [byte]."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def outcome(case, folder):
    """Check the outcome of a case, in a folder of its own.

    Returns:
        `table` or `message`.
    """
    files = {
        "config": case.config,
        "chips": case.chips or CHIPS.encode(),
        "dtypes": case.dtypes or DTYPES.encode(),
    }
    for name, content in files.items():
        (folder / f"{name}.yaml").write_bytes(content)
    use_catalogues(folder / "chips.yaml", folder / "dtypes.yaml")
    try:
        with within(SECONDS), watched(folder / "results"):
            check(rooflines.load_config(folder / "config.yaml"), folder / "results", case.where)
    except rooflines.RooflinesError as error:
        assert_form(str(error), mistakes=None)
        return "message"
    return "table"


def check(config, results, where):
    """Check some of what a run of a config computes, and write some of its files."""
    made = plan(config)
    rooflines.chips(config)
    rooflines.dtypes()
    for sweep in (*config.sweeps.values(), *config.model_sweeps.values()):
        start = int(where * max(sweep.rows - MOST_ROWS, 0))
        rows = start, min(start + MOST_ROWS, sweep.rows)
        predicates.check_table(table_of(sweep).frame(*rows).collect(), sweep.columns)
        if isinstance(sweep, ModelSweep) and not sweep.config.requests:
            kernels = KernelTable(sweep).frame(*rows).collect()
            predicates.check_table(kernels, sweep.layer_columns)
    for parts in filter(None, map(made.parts_in, FOLDERS)):
        part = parts[int(where * (len(parts) - 1))]
        if part.rows <= MOST_THRESHOLDS:
            write_part(part.spec, results / part.path)
    if where < SOLVED and config.model_sweeps:
        solved = results / "model-thresholds.parquet"
        write_threshold_files(made, solved.name, results)
        predicates.check_numbers(pl.read_parquet(solved))
    most = sum(sweep.max_thresholds() for sweep in config.sweeps.values())
    if where < SOLVED and most <= MOST_THRESHOLDS:
        write_threshold_files(made, "thresholds.parquet", results)
        frame = pl.read_parquet(results / "thresholds.parquet")
        for name, sweep in config.sweeps.items():
            predicates.check_thresholds(frame.filter(sweep=name), sweep)
    write_skipped(made.spec("skipped.csv"), results / "skipped.csv")
    assert pl.read_csv(results / "skipped.csv", infer_schema_length=None).width
    for csv in results.glob("*.csv"):
        predicates.check_csv(csv.read_text(encoding="utf-8"))


@contextlib.contextmanager
def real_catalogues():
    """Restore the real catalogues afterwards; they are read again only if others were used."""
    files = catalogue.CHIPS_FILE, formats.DTYPES_FILE
    try:
        yield
    finally:
        used = catalogue.CHIPS_FILE, formats.DTYPES_FILE
        if used != files:
            use_catalogues(*files)


def use_catalogues(chips, dtypes):
    """Replace the catalogue files; models and calibrations stay those of the real ones."""
    for cached_with_real_dtypes in (model_entries, shipped_calibrations):
        cached_with_real_dtypes()
    catalogue.CHIPS_FILE, formats.DTYPES_FILE = chips, dtypes
    for cached in (formats.dtype_entries, catalogue._catalogue):  # noqa: SLF001
        cached.cache_clear()
