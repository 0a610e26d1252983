"""Timing session: interleaved runs by block, written after each, resumed where it ended."""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass, field
from itertools import islice
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.basics.errors import RooflinesError, quote
from rooflines.basics.files import read_parquet
from rooflines.fits.timings import DTYPES, MATMUL_SIZES
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.measured.multiplier import REFERENCE
from rooflines.measured.timed_shapes import cost
from rooflines.results.records import recording
from rooflines.results.tables import metadata_of, write_parquet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from rooflines.measured.machine import Host
    from rooflines.measured.multiplier import MachineState, Multiplier
    from rooflines.measured.timed_shapes import MatmulSizes

BLOCK = 20
"""Shapes that are timed in turn, between two runs of the reference shape [1]."""

ROUNDS = 7
"""Passes through a block [1]."""

VISIT_S, MAX_RUNS = 0.01, 20
"""Time that a visit to a shape fills with runs [s], and the most runs [1]."""


@dataclass
class Session:
    """Timings on one machine, in a Parquet file that grows block by block.

    Attributes:
        path: The file.
        machine: The machine that multiplies.
        about: Metadata in the file: the machine, how it was timed, the fastest rates so far by
            compute dtype, and by dtype combination the reference shape's median time in every block
            and the largest power.
        frame: The timings so far, in the tidy form.
    """

    path: Path
    machine: Host
    about: dict[str, Any] = field(default_factory=dict)
    frame: pl.DataFrame = field(default_factory=pl.DataFrame)

    @classmethod
    def resume(cls, path: Path, machine: Host, chip: str, about: dict[str, Any]) -> Session:
        """Session in a file, or a new one.

        Args:
            path: The file.
            machine: The machine that multiplies.
            chip: Its id as a chip.
            about: How it is timed.

        Raises:
            RooflinesError: The file is no session, or one of another machine.
        """
        facts = {**about, "machine": asdict(machine), "chip": chip}
        facts |= {"flops_per_s": {}, "bytes_per_s": 0.0, "reference_s": {}, "watts": {}}
        if not path.exists():
            return cls(path, machine, facts)
        metadata = metadata_of(path)
        if any(metadata.get(key) != facts[key] for key in ("machine", "chip")):
            machine_name = metadata.get("machine", {}).get("name", "no machine")
            problem = (
                f"holds timings of {quote(machine_name)}, with other software, threads or chip"
            )
            raise RooflinesError("", problem, "name another file with --out", file=str(path))
        return cls(path, machine, metadata, read_parquet(path))

    def missing(self, dtypes: str, shapes: Iterable[MatmulSizes]) -> list[MatmulSizes]:
        """Shapes that are not timed yet in a dtype combination."""
        if self.frame.is_empty():
            return list(shapes)
        done = self.frame.filter(**_dtype_columns(dtypes)).select(MATMUL_SIZES).rows()
        return [shape for shape in shapes if shape not in done]

    def time(
        self, multiplier: Multiplier, shapes: Sequence[MatmulSizes], progress: Callable[[int], None]
    ) -> None:
        """Time shapes, and write the file after each block.

        Args:
            multiplier: The multiplier that times them.
            shapes: The shapes, none of them timed yet.
            progress: Called with the number of shapes done after each block.
        """
        order = random.Random(0)  # noqa: S311, no secret
        self.about["bytes_per_s"] = max(self.about["bytes_per_s"], multiplier.bytes_per_s())
        remaining, done = iter(shapes), 0
        while block := list(islice(remaining, BLOCK)):
            runs, states = _time_interleaved(multiplier, block, order)
            rows = [self._row(multiplier, shape, runs[shape], states[shape]) for shape in block]
            self.frame = pl.concat([self.frame, pl.DataFrame(rows)], how="diagonal_relaxed")
            self._note(multiplier.dtypes, runs, states.values())
            with recording(None):
                write_parquet(self.frame.lazy(), self.path, self.about)
            done += len(block)
            progress(done)

    def _note(
        self, dtypes: str, runs: dict[MatmulSizes, list[float]], states: Iterable[MachineState]
    ) -> None:
        """Keep the fastest rate, the reference shape's time, and the largest power."""
        rates, compute = self.about["flops_per_s"], _dtype_columns(dtypes)["compute"]
        fastest = max(cost(shape, dtypes, "flops") / min(times) for shape, times in runs.items())
        rates[compute] = max(rates.get(compute, 0.0), fastest)
        self.about["reference_s"].setdefault(dtypes, []).append(median(runs[REFERENCE]))
        powers = [state.watts for state in states if state.watts]
        if powers:
            self.about["watts"][dtypes] = max(*powers, self.about["watts"].get(dtypes, 0.0))

    def _row(
        self,
        multiplier: Multiplier,
        shape: MatmulSizes,
        times: Sequence[float],
        state: MachineState,
    ) -> dict[str, Any]:
        """Timing in the tidy form."""
        lower_quartile, _, upper_quartile = quantiles(times, n=4)
        return {
            "source": "rooflines measured measure",
            "chip": self.about["chip"],
            "software": self.machine.software,
            **_dtype_columns(multiplier.dtypes),
            **shape._asdict(),
            "seconds": median(times),
            "seconds_min": min(times),
            "seconds_iqr": upper_quartile - lower_quartile,
            "runs": len(times),
            "copies": multiplier.copies(shape),
            **({"contents": multiplier.contents} if multiplier.contents else {}),
            **({"clock_mhz": state.clock_mhz} if state.clock_mhz else {}),
        }


def _dtype_columns(dtypes: str) -> dict[str, str]:
    """Dtype combination as timings have it, by column."""
    return dict(zip(DTYPES, dtype_entries().combinations[dtypes].dtypes.values(), strict=True))


def _time_interleaved(
    multiplier: Multiplier, block: Sequence[MatmulSizes], order: random.Random
) -> tuple[dict[MatmulSizes, list[float]], dict[MatmulSizes, MachineState]]:
    """Time a block and the reference shape in interleaved runs, warm-up left out [s].

    With the times the machine's state after each shape's last runs.
    """
    shapes = list(dict.fromkeys([REFERENCE, *block]))
    counts = {shape: _runs(multiplier.seconds(shape)) for shape in shapes}
    runs: dict[MatmulSizes, list[float]] = {shape: [] for shape in shapes}
    states: dict[MatmulSizes, MachineState] = {}
    for _ in range(ROUNDS):
        order.shuffle(shapes)
        for shape in shapes:
            runs[shape] += (multiplier.seconds(shape) for _ in range(counts[shape]))
            states[shape] = multiplier.state()
    return runs, states


def _runs(seconds: float) -> int:
    """Runs per visit to a shape that takes so long [1]."""
    return min(max(int(VISIT_S / seconds), 1), MAX_RUNS)
