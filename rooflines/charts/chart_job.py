"""Job that draws a run's changed charts, in several processes.

Each chart has its own folder, named by a digest of everything that the chart depends on; family
folders are assembled from these. A chart whose folder matches its record is not drawn again.
Views of a changed chart are all drawn again: to read them from its earlier folder takes as long.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import shutil
import signal
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import TypeAdapter

from rooflines.charts.chart_data import on_disk
from rooflines.charts.registry import kinds
from rooflines.charts.views import Spec
from rooflines.results.atomic import atomic_folder, link_or_copy, write_bytes
from rooflines.results.folders import CHARTS
from rooflines.results.records import (
    RECORDS_FOLDER,
    files_in,
    forget,
    made_with,
    record_of,
    recording,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rooflines.basics.yaml_file import JSON
    from rooflines.charts.chart_data import Results

SPECS = TypeAdapter(tuple[Spec, ...])
"""Parser of a family's charts, as the plan serializes them."""

ENTRY = "entry.json"
"""File with a drawn chart's entry in its family's index."""


class Task(NamedTuple):
    """A chart to draw.

    Attributes:
        chart: The chart.
        formats: Picture formats.
        digest: Digest of all its inputs, from `Plan`.
    """

    chart: Spec
    formats: tuple[str, ...]
    digest: str


def write_charts(spec: str, results: str | Path, state: str | Path, processes: int = 1) -> str:
    """Draw all families' charts: pictures, specification, data and `index.json`.

    An `auto` chart with nothing to say, or with more than a page can draw, is left out and named
    in the job's log.

    Args:
        spec: Their inputs, from `Plan.charts_spec`.
        results: The run's folder; family folders go into its `charts`.
        state: The folder in which each chart is drawn, and kept for later runs.
        processes: Processes that draw [1]. Polars must not have been used before more than one are
            started, since it does not work in the fork of a process that has used it.

    Returns:
        Lines for the log: the charts that are left out.

    Raises:
        RooflinesError: A chart that the config lists would hold more than a page can draw.
    """
    # One working directory may have several results: of a workflow that imports this one.
    place = hashlib.sha256(str(results).encode()).hexdigest()[:16]
    families, drawn = json.loads(spec)["families"], Path(state) / "drawn" / place
    tasks = {name: _tasks(family) for name, family in families.items()}
    distinct = {task.digest: task for family in tasks.values() for task in family}
    (drawn / RECORDS_FOLDER).mkdir(parents=True, exist_ok=True)
    changed = [task for digest, task in distinct.items() if not _is_whole(drawn, digest)]
    # The charts that read tables take longest: they come first.
    changed.sort(key=lambda task: not kinds()[task.chart.chart].reads)
    if changed:
        _draw(changed, str(results), drawn, min(processes, len(changed)))
    left_out: list[str] = []
    for name, family in families.items():
        with recording(family):
            left_out += _publish(
                [drawn / task.digest for task in tasks[name]], Path(results) / CHARTS / name
            )
    _remove_stale(drawn, distinct)
    return "\n".join(left_out)


def _tasks(family: JSON) -> list[Task]:
    """Drawing tasks of a family."""
    formats, charts = tuple(family["formats"]), SPECS.validate_python(family["charts"])
    pairs = zip(charts, family["shown"], strict=True)
    return [Task(chart, formats, shown) for chart, shown in pairs]


def _is_whole(drawn: Path, digest: str) -> bool:
    """Check that a chart was drawn by the installed versions and is undamaged."""
    record = record_of(drawn, drawn / digest)
    return (
        record is not None
        and (record.spec, record.made_with) == (digest, made_with())
        and record.damage(drawn / digest) is None
    )


def _draw(tasks: Sequence[Task], results: str, drawn: Path, processes: int) -> None:
    """Draw charts, each into its folder.

    Args:
        tasks: The charts.
        results: The folder that a run writes to.
        drawn: Parent of the folders.
        processes: Processes that draw [1].
    """
    import rooflines.charts.chart_files  # noqa: F401, PLC0415 - slow, and imported once for all processes

    _results.cache_clear()  # the results may be others than those of an earlier call
    draw = partial(_draw_one, results, drawn)
    if processes == 1:
        for task in tasks:
            draw(task)
        return
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(processes, fork, initializer=_end_with_parent) as pool:
        for _ in pool.map(draw, tasks):
            pass


def _end_with_parent() -> None:
    """End this process with the one that started it, which also answers Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def wait() -> None:
        if parent:
            parent.join()
        os._exit(1)

    Thread(target=wait, daemon=True).start()


def _draw_one(results: str, drawn: Path, task: Task) -> None:
    from rooflines.charts.chart_files import write_chart  # noqa: PLC0415 - as in `_draw`

    folder = drawn / task.digest
    with recording(folder.name), atomic_folder(folder) as aside:
        entry = write_chart(_results(results), task.chart, task.formats, aside)
        write_bytes(aside / ENTRY, json.dumps(entry, ensure_ascii=False))


@cache
def _results(results: str) -> Results:
    return on_disk(results)


def _publish(drawn: Iterable[Path], folder: Path) -> list[str]:
    """Assemble a family's folder from its drawn charts; return what is left out."""
    left_out: list[str] = []
    index: list[Mapping[str, Any]] = []
    with atomic_folder(folder) as aside:
        for chart in drawn:
            files = files_in(chart)
            entry = json.loads(files.pop(ENTRY).read_text(encoding="utf-8"))
            if "left_out" in entry:
                left_out.append(f"{entry['left_out']}: left out")
                continue
            for name, file in files.items():
                link_or_copy(file, aside / name)
            index.append(entry)
        text = json.dumps(index, ensure_ascii=False, indent=1) + "\n"
        write_bytes(aside / "index.json", text)
    return left_out


def _remove_stale(drawn: Path, digests: Iterable[str]) -> None:
    """Remove charts that are no longer shown, and remains of killed jobs."""
    names = {*digests, RECORDS_FOLDER}
    for path in drawn.iterdir():
        if path.name not in names:
            shutil.rmtree(path, ignore_errors=True)
            forget(path)
