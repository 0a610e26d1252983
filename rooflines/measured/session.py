"""A session of timings: blocks of interleaved runs, written after each, resumed where it ended."""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass, field
from itertools import islice
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.basics.errors import RooflinesError, quote
from rooflines.basics.files import read_parquet
from rooflines.fits.timings import DTYPES, SIZES
from rooflines.measured.shapes import MatmulSizes, cost
from rooflines.results.records import unrecorded
from rooflines.results.tables import metadata_of, write_parquet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from rooflines.measured.blas import Blas
    from rooflines.measured.machine import Host

BLOCK = 20
"""Shapes that are timed in turn, between two looks at the reference shape [1]."""

ROUNDS = 7
"""Times that a block is gone through [1]."""

VISIT_S, MOST_RUNS = 0.01, 20
"""Time that one visit of a shape is filled with runs [s], and the most of them [1]."""

REFERENCE = MatmulSizes(2048, 2048, 2048)
"""The shape whose time shows drift, and the peak."""


@dataclass
class Session:
    """Timings of one machine, in a Parquet file that grows block by block.

    Attributes:
        path: The file.
        machine: This machine.
        about: What the metadata of the file say: the machine, how it was timed, the fastest rates
            so far by dtype, and the median time of the reference shape in every block.
        frame: The timings so far, in the tidy form.
    """

    path: Path
    machine: Host
    about: dict[str, Any] = field(default_factory=dict)
    frame: pl.DataFrame = field(default_factory=pl.DataFrame)

    @classmethod
    def opened(cls, path: Path, machine: Host, about: dict[str, Any]) -> Session:
        """A new session, or the one that a file holds.

        Args:
            path: The file.
            machine: This machine.
            about: How it is timed.

        Raises:
            RooflinesError: The file is no session, or one of another machine.
        """
        facts = {**about, "machine": asdict(machine), "chip": machine.id}
        facts |= {"flops_per_s": {}, "bytes_per_s": 0.0, "reference_s": {}}
        if not path.exists():
            return cls(path, machine, facts)
        known = metadata_of(path)
        if known.get("machine") != facts["machine"]:
            other = known.get("machine", {}).get("name", "no machine")
            problem = f"holds timings of {quote(other)}, with other software or other threads"
            raise RooflinesError("", problem, "name another file with --out", file=str(path))
        return cls(path, machine, known, read_parquet(path))

    def missing(self, dtype: str, shapes: Iterable[MatmulSizes]) -> list[MatmulSizes]:
        """The shapes that are not timed yet."""
        if self.frame.is_empty():
            return list(shapes)
        done = self.frame.filter(compute=dtype).select(SIZES).rows()
        return [shape for shape in shapes if shape not in done]

    def time(
        self, blas: Blas, shapes: Sequence[MatmulSizes], progress: Callable[[int], None]
    ) -> None:
        """Time shapes, and write the file after each block.

        Args:
            blas: What multiplies.
            shapes: The shapes, none of them timed yet.
            progress: Called with the number of shapes done after each block.
        """
        order = random.Random(0)  # noqa: S311, no secret
        self.about["bytes_per_s"] = max(self.about["bytes_per_s"], blas.bytes_per_s())
        left, done = iter(shapes), 0
        while block := list(islice(left, BLOCK)):
            runs = _interleaved(blas, block, order)
            rows = [self._row(blas, shape, runs[shape]) for shape in block]
            self.frame = pl.concat([self.frame, pl.DataFrame(rows)], how="diagonal")
            self._note(blas, runs)
            with unrecorded():
                write_parquet(self.frame.lazy(), self.path, self.about)
            done += len(block)
            progress(done)

    def _note(self, blas: Blas, runs: dict[MatmulSizes, list[float]]) -> None:
        """Keep the fastest rate and the time of the reference shape."""
        rates = self.about["flops_per_s"]
        fastest = max(
            cost(shape, blas.dtype, "flops") / min(times) for shape, times in runs.items()
        )
        rates[blas.dtype] = max(rates.get(blas.dtype, 0.0), fastest)
        self.about["reference_s"].setdefault(blas.dtype, []).append(median(runs[REFERENCE]))

    def _row(self, blas: Blas, shape: MatmulSizes, times: Sequence[float]) -> dict[str, Any]:
        """A timing in the tidy form."""
        first, _, third = quantiles(times, n=4)
        return {
            "source": "rooflines measured measure",
            "chip": self.machine.id,
            "software": self.machine.software,
            **dict.fromkeys(DTYPES, blas.dtype),
            **shape._asdict(),
            "seconds": median(times),
            "seconds_min": min(times),
            "seconds_iqr": third - first,
            "runs": len(times),
            "copies": blas.copies(shape),
        }


def _interleaved(
    blas: Blas, block: Sequence[MatmulSizes], order: random.Random
) -> dict[MatmulSizes, list[float]]:
    """The times of the runs of a block and the reference shape, warm-up left out [s]."""
    shapes = list(dict.fromkeys([REFERENCE, *block]))
    counts = {shape: _runs(blas.seconds(shape)) for shape in shapes}
    runs: dict[MatmulSizes, list[float]] = {shape: [] for shape in shapes}
    for _ in range(ROUNDS):
        order.shuffle(shapes)
        for shape in shapes:
            runs[shape] += (blas.seconds(shape) for _ in range(counts[shape]))
    return runs


def _runs(seconds: float) -> int:
    """Runs of a visit of a shape that takes so long [1]."""
    return min(max(int(VISIT_S / seconds), 1), MOST_RUNS)
