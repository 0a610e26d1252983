"""Model servers: TPOT by batch, prompts and memory, from request tables.

A server is one engine instance on the chips in one split. Its times are rows from the package's
tables, so that a deployment has the numbers that `requests:` in a config has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.basics.errors import RooflinesError
from rooflines.config.axis_sizes import Sizes
from rooflines.dictionary.columns import ESTIMATE_SUFFIX, EXACT_BATCH
from rooflines.evaluation.row_frames import StepTable
from rooflines.hardware.support import default_route, interconnects
from rooflines.models.architecture import PREFILL
from rooflines.sweep.checks import checked_sweep
from rooflines.sweep.every_split import splits_of
from rooflines.theory.network import parse_axes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from rooflines.config.model_fields import Request
    from rooflines.models.split import Split
    from rooflines.sweep.step_sweep import ModelSweep

MAX_BATCH = 2**16
"""Largest batch that is searched [1]."""

TRIED = 16
"""Batches tried at once in a search [1]."""

LOWER_KEY, SERIAL_KEY, ESTIMATE_KEY = "bound", "serialized", "estimate"
"""Bases: everything overlaps; kernels one after another; as calibrated."""


class PromptTimes(NamedTuple):
    """Prompt times, one on every replica, on an idle server.

    Attributes:
        by_basis: TTFT by basis [s]; an estimate is None without a calibration.
        math_s: Matrix units [s].
        cache_s: Memory, writing the prompts' KV cache once; a step reads the weights [s].
    """

    by_basis: Mapping[str, float | None]
    math_s: float
    cache_s: float


class StepTimes(NamedTuple):
    """Means over the decode steps in a request, prompts apart.

    Attributes:
        by_basis: Step time by basis [s]; an estimate is None without a calibration.
        math_s, memory_s, network_s: Resource times [s].
        memory_bytes: Weights and KV cache on the fullest chip when answers end [byte].
        prompts_s: Estimated time that prompts between steps add [s]; None: no calibration.
        band: p10 and p90 over the estimate [1]; None: no band.
    """

    by_basis: Mapping[str, float | None]
    math_s: float
    memory_s: float
    network_s: float
    memory_bytes: float
    prompts_s: float | None
    band: tuple[float, float] | None


@dataclass
class Server:
    """One engine instance.

    Attributes:
        chip: Chip id.
        split: How its chips share the model.
        name: Split name.
        output: Answer tokens, OSL [1].
        max_batch: Largest batch whose KV cache fits when answers end; 0: none [1].
        pool_limits: True if it is the engine's pool that ends it, not the exact need.
        prompt: Prompt times.
        steps: Times by batch.
    """

    chip: str
    split: Split
    name: str
    output: int
    max_batch: int
    pool_limits: bool
    prompt: PromptTimes
    steps: dict[int, StepTimes] = field(default_factory=dict)

    @property
    def chips(self) -> int:
        """Chips, tp * dp [1]."""
        return self.split.chips

    def tpot(self, basis: str, batch: int, *, mixed: bool) -> float:
        """Mean token time at an evaluated batch [s].

        With prompts, a step reads phi = batch / (dp * OSL) on every replica. By the bound, each
        resource takes d + phi * p: the decode step d, and prompts p, whose weights the step reads;
        their network time is left out. Serialized times and estimates add phi prompts in separate
        steps.
        """
        step = self.steps[batch]
        alone = _on(step.by_basis, basis)
        if not mixed:
            return alone
        share = batch / (self.split.dp * self.output)
        if basis == ESTIMATE_KEY:
            return alone + (step.prompts_s or 0.0)
        if basis == SERIAL_KEY:
            return alone + share * (self.prompt.by_basis[SERIAL_KEY] or 0.0)
        with_math = step.math_s + share * self.prompt.math_s
        with_cache = step.memory_s + share * self.prompt.cache_s
        return max(alone, with_math, with_cache, step.network_s)

    def ttft(self, basis: str) -> float:
        """Prompt time on an idle server [s]."""
        return _on(self.prompt.by_basis, basis)

    def prompts_per_s(self, basis: str) -> float:
        """Prompts that the server reads a second when it reads nothing else [1/s]."""
        factor = 1.0
        step = next(iter(self.steps.values()))
        batch = next(iter(self.steps))
        if basis == ESTIMATE_KEY and step.prompts_s is not None:
            share = batch / (self.split.dp * self.output)
            factor = step.prompts_s / (share * self.ttft(basis))
        return self.split.dp / (factor * self.ttft(basis))


class ServerTable:
    """All servers on one kind of chip.

    Args:
        sweep: Decode sweep with one model, chip, dtype combination and request.
        chips: Chips that are given [1].
        only: The only split; None: all that the model and its network allow.

    Attributes:
        servers: Servers by split name.
        refused: Splits without rows, and why.
        engine: Serving engine whose pool ends batches, with its version; empty: none.

    Raises:
        RooflinesError: No split is possible.
    """

    def __init__(self, sweep: ModelSweep, chips: int, only: Split | None = None) -> None:
        (self.chip,) = sweep.config.chips
        self.request: Request = (sweep.config.requests or [])[0]
        self.sweep = sweep
        self.refused: dict[str, str] = {}
        self.engine = ""
        self._sweeps = [*self._by_route(_sizes(chips) if only is None else [only.chips], only)]
        self.servers: dict[str, Server] = {}
        prompts = self._prompts()
        capacity = {}
        starts = [2**power for power in range(MAX_BATCH.bit_length())]
        for row in self._rows(starts):
            name, batch = row["split"], row["B"]
            if name not in self.servers and name in prompts:
                split = self._splits[name]
                most, pool_limits = _max_batch(row)
                if row.get("engine"):
                    self.engine = f"{row['engine']} {row['engine_version']}"
                capacity[name] = most
                self.servers[name] = Server(
                    self.chip, split, name, self.request.output, most, pool_limits, prompts[name]
                )
            if name in self.servers and batch <= max(capacity[name], 1):
                self.servers[name].steps[batch] = _step_times(row)

    @property
    def estimated(self) -> bool:
        """True if every server has an estimate."""
        return all(
            step.by_basis[ESTIMATE_KEY] is not None
            and server.prompt.by_basis[ESTIMATE_KEY] is not None
            and step.prompts_s is not None
            for server in self.servers.values()
            for step in server.steps.values()
        )

    def evaluate(self, batches: Mapping[str, Collection[int]]) -> None:
        """Evaluate steps at further batches, by server name."""
        missing = {
            name: {batch for batch in tried if batch not in self.servers[name].steps}
            for name, tried in batches.items()
        }
        sizes = sorted(set().union(*missing.values()))
        if not sizes:
            return
        for row in self._rows(sizes, {name for name, tried in missing.items() if tried}):
            if row["B"] in missing.get(row["split"], ()):
                self.servers[row["split"]].steps[row["B"]] = _step_times(row)

    def largest_batches(
        self, basis: str, limit_s: float, *, mixed: bool, names: Collection[str]
    ) -> dict[str, int]:
        """Search each server's largest batch that fits and keeps a TPOT, which never falls with it.

        Args:
            basis: The time that decides.
            limit_s: Limit on TPOT [s].
            mixed: True if the server reads prompts, too.
            names: The servers.

        Returns:
            Batches by name; 0: a sequence a replica does not keep it, or does not fit [1].
        """
        bounds = {}
        for name in names:
            server = self.servers[name]
            start = server.split.dp
            bounds[name] = [start - 1, max(server.max_batch, start - 1) + 1]
            for batch in sorted(server.steps):
                if not start <= batch < bounds[name][1]:
                    continue
                keeps = server.tpot(basis, batch, mixed=mixed) <= limit_s
                bounds[name][0 if keeps else 1] = batch
                if not keeps:
                    break
        while any(high - low > 1 for low, high in bounds.values()):
            tried = {}
            for name, (low, high) in bounds.items():
                width = max(1, (high - low) // TRIED)
                tried[name] = [*range(low + width, high, width)]
            self.evaluate(tried)
            for name, batches in tried.items():
                server = self.servers[name]
                for batch in batches:
                    keeps = server.tpot(basis, batch, mixed=mixed) <= limit_s
                    bounds[name][0 if keeps else 1] = batch
                    if not keeps:
                        break
        return {
            name: low if low >= self.servers[name].split.dp else 0
            for name, (low, _) in bounds.items()
        }

    # ---------------------------------------------------------------- rows

    def _by_route(self, sizes: Sequence[int], only: Split | None) -> Iterator[ModelSweep]:
        """Yield sweeps with all splits, one for each route between chips."""
        entry = self.sweep.chips[self.chip]
        (model,) = self.sweep.models.values()
        self._splits: dict[str, Split] = {}
        by_route: dict[tuple[str, ...], list[Split]] = {}
        for size in sizes:
            names = tuple(default_route(entry, size)) if size > 1 else ()
            links = interconnects(entry, list(names))[1] if names else ()
            candidates = [only] if only is not None else splits_of(model.shape, size, links)
            for split in candidates:
                if only is not None or _is_server(split):
                    by_route.setdefault(names, []).append(split)
        for names, splits in by_route.items():
            self._splits |= {split.name: split for split in splits}
            config = self.sweep.config.model_copy(
                update={
                    "splits": splits,
                    "network": [list(names)] if names else None,
                    "thresholds": [],
                }
            )
            changed = replace(self.sweep, config=config)
            self.refused |= {
                skipped.split: skipped.reason for skipped in changed.skipped if skipped.split
            }
            if changed.rows:
                yield checked_sweep(changed)

    def _rows(
        self, batches: Sequence[int], names: Collection[str] | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield rows at every batch, for some servers or all."""
        for sweep in self._sweeps:
            splits = [
                split for split in sweep.config.splits if names is None or split.name in names
            ]
            if splits:
                grid = {**sweep.config.grid, "B": Sizes([*batches])}
                config = sweep.config.model_copy(update={"grid": grid, "splits": splits})
                yield from StepTable(replace(sweep, config=config)).frame().collect().to_dicts()

    def _prompts(self) -> dict[str, PromptTimes]:
        """Prompt times, one on every replica, by split name."""
        prompts = {}
        for sweep in self._sweeps:
            sizes = sorted({split.dp for split in sweep.config.splits})
            grid = {"B": Sizes(sizes), "S": Sizes([self.request.input])}
            keys = {"phase": [PREFILL], "requests": None, "grid": grid}
            config = sweep.config.model_copy(update=keys)
            for row in StepTable(replace(sweep, config=config)).frame().collect().to_dicts():
                if row["B"] != self._splits[row["split"]].dp:
                    continue
                cache_share = row["kv_cache_bytes"] / row["memory_bytes"]
                by_basis = {
                    LOWER_KEY: row["t_lower_s"],
                    SERIAL_KEY: row["t_serial_s"],
                    ESTIMATE_KEY: row["t_estimate_s"],
                }
                times = PromptTimes(by_basis, row["t_math_s"], row["t_memory_s"] * cache_share)
                prompts[row["split"]] = times
        return prompts


def _max_batch(row: Mapping[str, Any]) -> tuple[int, bool]:
    """Largest batch by the exact need or the engine's pool [1]; True: the pool holds fewer."""
    most = MAX_BATCH if row["max_B"] is None else min(row["max_B"], MAX_BATCH)
    exact = row.get(EXACT_BATCH)
    return most, exact is not None and most < min(exact, MAX_BATCH)


def _on(by_basis: Mapping[str, float | None], basis: str) -> float:
    """Time on a basis [s].

    Raises:
        RooflinesError: There is no estimate.
    """
    time = by_basis[basis]
    if time is None:
        raise RooflinesError("calibration", "is lacking", "plan by kernels one after another")
    return time


def _step_times(row: Mapping[str, Any]) -> StepTimes:
    """Step times in a request row."""
    estimate, prompts = row["t_estimate_s"], row["prompts_estimate_s"]
    alone = None if estimate is None else estimate - (prompts or 0.0)
    band = None
    if estimate is not None and row.get(f"t{ESTIMATE_SUFFIX}_p10_s") is not None:
        low, high = row[f"t{ESTIMATE_SUFFIX}_p10_s"], row[f"t{ESTIMATE_SUFFIX}_p90_s"]
        band = low / estimate, high / estimate
    return StepTimes(
        {LOWER_KEY: row["tpot_s"], SERIAL_KEY: row["tpot_serial_s"], ESTIMATE_KEY: alone},
        row["t_math_s"],
        row["t_memory_s"],
        row["t_network_s"] or 0.0,
        row["footprint_bytes"],
        prompts,
        band,
    )


def _is_server(split: Split) -> bool:
    """Check for a server: a dense model's replicas are separate servers."""
    if split.dp == 1:
        return str(split.ep) == "1"  # experts inside tp: by width or by expert is one deployment
    return math.prod(parse_axes(str(split.ep))) > 1


def _sizes(chips: int) -> list[int]:
    """Server sizes: powers of two, and divisors of all chips [1]."""
    powers = {2**power for power in range(int(math.log2(chips)) + 1)}
    return sorted({size for size in range(1, chips + 1) if chips % size == 0} | powers)
