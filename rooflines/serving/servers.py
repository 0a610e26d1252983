"""Model servers: TPOT by batch, prompts and memory, from request rows.

A server is one engine instance on the chips in one split. Its times are rows from the package's
tables, so that a deployment has the numbers that `requests:` in a config has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.basics.errors import RooflinesError
from rooflines.config.axis_sizes import Sizes
from rooflines.dictionary.columns import ESTIMATE_SUFFIX, EXACT_BATCH
from rooflines.evaluation.chosen_rows import ChosenRows
from rooflines.evaluation.footprints import largest_fitting_batch, stage_footprints
from rooflines.hardware.support import default_route, interconnects
from rooflines.models.memory import kv_cache_elements
from rooflines.models.split import Split
from rooflines.sweep.checks import checked_sweep
from rooflines.sweep.every_split import splits_of
from rooflines.sweep.prompt_times import prompt_seconds, prompts_per_s
from rooflines.theory.network import PAIR, parse_axes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from fractions import Fraction

    from rooflines.config.model_fields import Request
    from rooflines.evaluation.footprints import Footprint
    from rooflines.models.architecture import Shape
    from rooflines.sweep.step_sweep import ModelSweep, StepCase
    from rooflines.theory.network import Link

MAX_BATCH = 2**16
"""Largest batch that is searched [1]."""

STAGES = (2, 3, 4, 6, 8, 12, 16)
"""Pipeline stages that are searched [1]."""

MAX_STAGES = 8
"""Most pipeline stages where no number is given [1]."""

TRIED = 6
"""Batches tried at once between two [1]."""

LOWER_KEY, SERIAL_KEY, ESTIMATE_KEY = "bound", "serialized", "estimate"
"""Bases: everything overlaps; kernels one after another; as calibrated."""

COLUMNS = (
    "split",
    "B",
    "max_B",
    "footprint_bytes",
    "tpot_s",
    "tpot_serial_s",
    "tpot_mixed_s",
    "tpot_mixed_serial_s",
    "t_estimate_s",
    "t_estimate_p10_s",
    "t_estimate_p90_s",
    "prompts_estimate_s",
)
"""Columns that servers read."""

ENGINE_COLUMNS = ("engine", "engine_version", EXACT_BATCH)
"""Columns that they read where an engine's pool is asked for."""


class StepTimes(NamedTuple):
    """Means over the decode steps in a request.

    Attributes:
        alone, mixed: Token time by basis, without prompts and with them between steps [s]; an
            estimate is None without a calibration.
        memory_bytes: Weights and KV cache on the fullest chip when answers end [byte].
        band: p10 and p90 over the estimate [1]; None: no band.
    """

    alone: Mapping[str, float | None]
    mixed: Mapping[str, float | None]
    memory_bytes: float
    band: tuple[float, float] | None


@dataclass
class Server:
    """One engine instance.

    Attributes:
        case: The model on its chips.
        request: The request.
        max_batch: Largest batch whose KV cache fits when answers end; 0: none [1].
        pool_limits: True if it is the engine's pool that ends it, not the exact need.
        yielded: Tokens that a step adds to a sequence [1].
        steps: Times by batch.
    """

    case: StepCase
    request: Request
    max_batch: int
    pool_limits: bool = False
    yielded: float = 1.0
    steps: dict[int, StepTimes] = field(default_factory=dict)

    @property
    def chip(self) -> str:
        """Chip id."""
        return self.case.chip

    @property
    def split(self) -> Split:
        """Split over its chips."""
        split: Any = self.case.split
        return split  # type: ignore[no-any-return]

    @property
    def name(self) -> str:
        """Split name."""
        return self.case.split.name

    @property
    def output(self) -> int:
        """Answer tokens, OSL [1]."""
        return self.request.output

    @property
    def new_tokens(self) -> int:
        """Tokens that a step computes in each sequence: 1, with a draft its tokens + 1 [1]."""
        draft = self.case.place.sweep.config.draft
        return 1 if draft is None else draft.tokens + 1

    @property
    def chips(self) -> int:
        """Chips, tp * pp * dp [1]."""
        return self.case.split.chips

    def fullest_weights(self, batch: float) -> float:
        """Weights on the fullest chip, with a batch whose answers end [byte].

        Args:
            batch: Sequences on all replicas [1].
        """
        full, local = _cache_elements(self.case, self.request)
        sequences = max(1, math.floor(batch / self.split.dp))

        def stage_bytes(footprint: Footprint) -> Fraction:
            units = footprint.units
            return footprint.weights + units.unit * units.sequence_units(full, local) * sequences

        return float(max(stage_footprints(self.case), key=stage_bytes).weights)

    def tpot(self, basis: str, batch: int, *, mixed: bool) -> float:
        """Mean token time at an evaluated batch [s].

        Mixed servers read phi = batch / (dp * OSL) prompts a step on every replica: by the bound
        the largest over resources of decode step and prompts, else prompts in separate steps.
        """
        step = self.steps[batch]
        return _on(step.mixed if mixed else step.alone, basis)

    def ttft(self, basis: str) -> float:
        """Prompt time on an idle server [s]."""
        return _on(self._first_token, basis)

    @cached_property
    def _first_token(self) -> dict[str, float | None]:
        return _by_basis(prompt_seconds(self.case, self.request))

    @cached_property
    def _prompts(self) -> dict[str, float | None]:
        return _by_basis(prompts_per_s(self.case, self.request))

    def prompts_per_s(self, basis: str) -> float:
        """Prompts that the server reads a second when it reads nothing else [1/s]."""
        return _on(self._prompts, basis)

    @property
    def estimated(self) -> bool:
        """True if prompts and all steps have an estimate."""
        by_basis = [self._first_token, self._prompts]
        by_basis += [dict(step.mixed) for step in self.steps.values()]
        return all(times[ESTIMATE_KEY] is not None for times in by_basis)


class Wanted(NamedTuple):
    """Last batch that keeps a limit, where a value never falls with the batch.

    Attributes:
        name: Server name.
        largest: Last batch that is tried [1].
        value: Value at an evaluated batch.
        limit: Its limit.
    """

    name: str
    largest: int
    value: Callable[[int], float]
    limit: float


class ServerTable:
    """All servers on a chip.

    Args:
        sweep: Decode sweep with one model, chip, dtype combination and request.
        chips: Chips that are given [1].
        only: The only split; None: all that the model and its network allow.
        max_stages: Most pipeline stages in a server [1].

    Attributes:
        servers: Servers by split name.
        roots: Server names without stages, or the only split.
        stages: Pipeline stages that a search may add [1].
        refused: Splits without rows, and why.
        engine: Serving engine whose pool ends batches, with its version; empty: none.

    Raises:
        RooflinesError: No split is possible.
    """

    def __init__(
        self,
        sweep: ModelSweep,
        chips: int,
        only: Split | None = None,
        max_stages: int = MAX_STAGES,
    ) -> None:
        (self.chip,) = sweep.config.chips
        request = (sweep.config.requests or [])[0]
        self.request: Request = request.model_copy(update={"mixed": True})
        self.sweep = sweep
        self.refused: dict[str, str] = {}
        self.engine = ""
        draft = sweep.config.draft
        self._yielded = 1.0 if draft is None else 1.0 + draft.accepted
        sizes = server_sizes(chips) if only is None else [only.chips]
        cases = [*self._cases(self._splits(sizes, only))]
        has_engine = sweep.config.engine is not None
        columns = (*COLUMNS, *(ENGINE_COLUMNS if has_engine else ()))
        self._rows = ChosenRows(sweep, cases, columns)
        self.servers: dict[str, Server] = {}
        self._fill([self._server(case) for case in cases])
        self.roots = tuple(self.servers)
        (model,) = sweep.models.values()
        most = 1 if only is not None else min(max_stages, model.shape.layers)
        self.stages = tuple(stages for stages in STAGES if stages <= most)

    def _server(self, case: StepCase) -> Server:
        """Server without rows; its largest batch is by the exact need."""
        return Server(case, self.request, _exact_batch(case, self.request), yielded=self._yielded)

    def _fill(self, servers: Sequence[Server]) -> None:
        """Evaluate servers' first rows, a sequence on each replica; largest batches are theirs."""
        self.servers |= {server.name: server for server in servers}
        for row in self._rows.at((server.case, server.split.dp) for server in servers):
            server = self.servers[row["split"]]
            server.max_batch, server.pool_limits = _max_batch(row)
            server.steps[row["B"]] = _step_times(row, self._yielded)
            if row.get("engine"):
                self.engine = f"{row['engine']} {row['engine_version']}"

    def add_stages(self, chosen: Iterable[tuple[str, int]]) -> dict[tuple[str, int], Server]:
        """Add servers with pipeline stages, without rows: these are computed when asked for.

        Args:
            chosen: Server names without stages, each with its stages [1].

        Returns:
            Those that the model and its networks allow.
        """
        splits = {
            (root, stages): Split.model_validate(
                {**self.servers[root].split.model_dump(), "pp": stages}
            )
            for root, stages in chosen
        }
        entry = self.sweep.chips[self.chip]
        routed = [
            (tuple(default_route(entry, split.chips)), split)
            for split in splits.values()
            if split.name not in self.servers
        ]
        servers = [self._server(case) for case in self._cases(routed)]
        self.servers |= {server.name: server for server in servers}
        return {
            key: self.servers[split.name]
            for key, split in splits.items()
            if split.name in self.servers
        }

    def add_every_stage(self, chips: int) -> None:
        """Add all servers with pipeline stages that fit on the chips, without rows.

        Args:
            chips: The chips [1].
        """
        self.add_stages(
            (name, stages)
            for name in self.roots
            for stages in self.stages
            if self.servers[name].chips * stages <= chips
        )

    @property
    def estimated(self) -> bool:
        """True if every server has an estimate."""
        return all(server.estimated for server in self.servers.values())

    def evaluate(self, batches: Mapping[str, Collection[int]]) -> None:
        """Evaluate steps at further batches, by server name, in one table."""
        empty = [self.servers[name] for name in batches if not self.servers[name].steps]
        if empty:
            self._rows.add(server.case for server in empty)
            self._fill(empty)
        points = [
            (self.servers[name].case, batch)
            for name, tried in batches.items()
            for batch in sorted({*tried} - self.servers[name].steps.keys())
        ]
        for row in self._rows.at(points):
            server = self.servers[row["split"]]
            server.steps[row["B"]] = _step_times(row, server.yielded)

    def last_batches(self, wanted: Sequence[Wanted]) -> list[int]:
        """Search the last batches that keep limits, all in lockstep.

        A value never falls with the batch, so that between a batch that keeps the limit and one
        that does not it is enough to look further in between: first at powers of two, then near
        the batch at which a line between both crosses the limit.

        Args:
            wanted: What is searched.

        Returns:
            Batches; 0: a sequence a replica does not keep the limit, or does not fit [1].
        """
        bounds, powers = list[list[int]](), dict[str, set[int]]()
        for name, largest, _, _ in wanted:
            start = self.servers[name].split.dp
            bounds.append([start - 1, max(largest, start - 1) + 1])
            tried = powers.setdefault(name, set())
            batch = start
            while batch <= largest:
                tried.add(batch)
                batch *= 2
        self.evaluate(powers)
        for search, bound in zip(wanted, bounds, strict=True):
            _narrow(search, bound, sorted(self.servers[search.name].steps))
        while any(high - low > 1 for low, high in bounds):
            tries = [
                _tries(search, bound, self.servers[search.name].steps)
                for search, bound in zip(wanted, bounds, strict=True)
            ]
            batches: dict[str, set[int]] = {}
            for search, tried_batches in zip(wanted, tries, strict=True):
                batches.setdefault(search.name, set()).update(tried_batches)
            self.evaluate(batches)
            for search, bound, tried_batches in zip(wanted, bounds, tries, strict=True):
                _narrow(search, bound, tried_batches)
        return [
            low if low >= self.servers[search.name].split.dp else 0
            for search, (low, _) in zip(wanted, bounds, strict=True)
        ]

    def largest_batches(
        self, basis: str, limit_s: float, *, mixed: bool, names: Collection[str]
    ) -> dict[str, int]:
        """Search each server's largest batch that fits and keeps a TPOT.

        Args:
            basis: The time that decides.
            limit_s: Limit on TPOT [s].
            mixed: True if the server reads prompts, too.
            names: The servers.

        Returns:
            Batches by name; 0: a sequence a replica does not keep it, or does not fit [1].
        """
        wanted = [self.within(name, basis, limit_s, mixed=mixed) for name in names]
        return dict(zip(names, self.last_batches(wanted), strict=True))

    def within(
        self, name: str, basis: str, limit_s: float, *, mixed: bool, fits: bool = True
    ) -> Wanted:
        """Search for a server's largest batch that fits and keeps a TPOT.

        Args:
            name: The server.
            basis: The time that decides.
            limit_s: Limit on TPOT [s].
            mixed: True if the server reads prompts, too.
            fits: False for a batch that need not fit.
        """
        server = self.servers[name]

        def value(batch: int) -> float:
            return server.tpot(basis, batch, mixed=mixed)

        return Wanted(name, server.max_batch if fits else MAX_BATCH, value, limit_s)

    # ---------------------------------------------------------------- cases

    def _splits(
        self, sizes: Sequence[int], only: Split | None
    ) -> Iterator[tuple[tuple[str, ...], Split]]:
        """Yield every split with the route between its chips."""
        entry = self.sweep.chips[self.chip]
        (model,) = self.sweep.models.values()
        for size in sizes:
            names = tuple(default_route(entry, size)) if size > 1 else ()
            links = interconnects(entry, list(names))[1] if names else ()
            servers = [only] if only is not None else server_splits(model.shape, size, links)
            yield from ((names, split) for split in servers)

    def _cases(self, routed: Iterable[tuple[tuple[str, ...], Split]]) -> Iterator[StepCase]:
        """Yield a case for every split on a route."""
        by_route: dict[tuple[str, ...], list[Split]] = {}
        for names, split in routed:
            by_route.setdefault(names, []).append(split)
        for names, splits in by_route.items():
            config = self.sweep.config.model_copy(
                update={
                    "splits": splits,
                    "network": [list(names)] if names else None,
                    "thresholds": [],
                    "requests": [self.request],
                    "grid": {**self.sweep.config.grid, "B": Sizes([MAX_BATCH])},
                }
            )
            changed = replace(self.sweep, config=config)
            self.refused |= {
                skipped.split: skipped.reason for skipped in changed.skipped if skipped.split
            }
            if changed.rows:
                yield from checked_sweep(changed).cases


def _narrow(wanted: Wanted, bound: list[int], batches: Sequence[int]) -> None:
    """Narrow the batches between which the last one is, by evaluated ones in order."""
    for batch in batches:
        if bound[0] < batch < bound[1]:
            keeps = wanted.value(batch) <= wanted.limit
            bound[0 if keeps else 1] = batch
            if not keeps:
                break


def _tries(wanted: Wanted, bound: Sequence[int], steps: Mapping[int, object]) -> list[int]:
    """Batches to try between two, mostly near where a line crosses the limit."""
    low, high = bound
    width = max(1, (high - low) // TRIED)
    tried = {*range(low + width, high, width)}
    if low in steps and high in steps:
        below, above = wanted.value(low), wanted.value(high)
        if math.isfinite(wanted.limit) and above > below:
            near = low + math.floor((high - low) * (wanted.limit - below) / (above - below))
            tried |= {near + offset for offset in (-4, -1, 0, 1, 2, 5)}
    return sorted(batch for batch in tried if low < batch < high)


def _by_basis(times: Sequence[float | None]) -> dict[str, float | None]:
    """Times or rates by basis."""
    return dict(zip((LOWER_KEY, SERIAL_KEY, ESTIMATE_KEY), times, strict=True))


def _max_batch(row: Mapping[str, Any]) -> tuple[int, bool]:
    """Largest batch by the exact need or the engine's pool [1]; True: the pool holds fewer."""
    most = MAX_BATCH if row["max_B"] is None else min(row["max_B"], MAX_BATCH)
    exact = row.get(EXACT_BATCH)
    return most, exact is not None and most < min(exact, MAX_BATCH)


def _cache_elements(case: StepCase, request: Request) -> tuple[int, int]:
    """Cache elements per sequence when its answer ends, in full layers and in others [1]."""
    shape, context = case.workload.resident_shape, request.input + request.output
    full, local = (kv_cache_elements(shape, context, local=is_local) for is_local in (False, True))
    return full, local


def _exact_batch(case: StepCase, request: Request) -> int:
    """Largest batch whose KV cache fits when answers end, by the exact need [1]."""
    batch = largest_fitting_batch(case, *_cache_elements(case, request))
    return MAX_BATCH if batch is None else min(batch * case.split.dp, MAX_BATCH)


def _on(by_basis: Mapping[str, float | None], basis: str) -> float:
    """Time on a basis [s].

    Raises:
        RooflinesError: There is no estimate.
    """
    time = by_basis[basis]
    if time is None:
        raise RooflinesError("calibration", "is lacking", "plan by kernels one after another")
    return time


def _step_times(row: Mapping[str, Any], yielded: float) -> StepTimes:
    """Times in a request row, over tokens that a step yields."""
    estimate, prompts = row["t_estimate_s"], row["prompts_estimate_s"]
    alone = mixed = band = None
    if estimate is not None:
        alone = (estimate - (prompts or 0.0)) / yielded
        mixed = None if prompts is None else estimate / yielded
        if row[f"t{ESTIMATE_SUFFIX}_p10_s"] is not None:
            low, high = row[f"t{ESTIMATE_SUFFIX}_p10_s"], row[f"t{ESTIMATE_SUFFIX}_p90_s"]
            band = low / estimate, high / estimate
    return StepTimes(
        {LOWER_KEY: row["tpot_s"], SERIAL_KEY: row["tpot_serial_s"], ESTIMATE_KEY: alone},
        {
            LOWER_KEY: row["tpot_mixed_s"],
            SERIAL_KEY: row["tpot_mixed_serial_s"],
            ESTIMATE_KEY: mixed,
        },
        row["footprint_bytes"],
        band,
    )


def server_splits(shape: Shape, chips: int, links: tuple[Link, ...] = ()) -> Iterator[Split]:
    """Yield every split of a server that a search tries, without pipeline stages.

    Args:
        shape: The model.
        chips: Its chips [1].
        links: The interconnects between them, inner first.
    """
    for split in splits_of(shape, chips, links):
        if _is_server(split):
            yield split
        yield from _expert_groups(shape, split)


def _is_server(split: Split) -> bool:
    """Check for a server: a dense model's replicas are separate servers."""
    if split.dp == 1:
        return str(split.ep) == "1"  # experts inside tp: by width or by expert is one deployment
    return math.prod(parse_axes(str(split.ep))) > 1


def _expert_groups(shape: Shape, split: Split) -> Iterator[Split]:
    """Yield the split with experts over fewer groups of chips, where chips share them unevenly.

    Groups split the width in their experts. Where all chips have as many whole experts, groups
    only send more.
    """
    experts, chips = 0 if shape.moe is None else shape.moe.E, split.stage_chips
    if split.dp == 1 or split.shards == 1 or split.parts > 1 or not experts or experts % chips == 0:
        return
    for parts in range(PAIR, min(chips, experts + 1)):
        if chips % parts == 0:
            yield Split.model_validate({**split.model_dump(), "ep": parts})


def server_sizes(chips: int) -> list[int]:
    """Server sizes: powers of two, and divisors of all chips [1].

    Args:
        chips: All chips [1].
    """
    powers = {2**power for power in range(int(math.log2(chips)) + 1)}
    return sorted({size for size in range(1, chips + 1) if chips % size == 0} | powers)
