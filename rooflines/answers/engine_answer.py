"""Serving engine's pool in an answer: what it holds, why that is less, what gives it back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import RooflinesError
from rooflines.basics.text import counted, significant
from rooflines.models.engine_pool import CHUNK, STATE_LAYERS, WINDOW, EnginePool, kept_entries
from rooflines.models.engine_rules import BY_CAPACITY, GIB
from rooflines.models.memory import cache_on_chip, weights_on_chip
from rooflines.sweep.engine_pools import pool_of_case

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.models.engine_start import Started
    from rooflines.sweep.step_sweep import StepCase

TRIED = (
    ("utilization", 0.95, "--utilization 0.95"),
    ("max_batched_tokens", 2048, "--max-batched-tokens 2048"),
    ("max_seqs", 256, "--max-seqs 256"),
)
"""Options that may hold more: key, value and words."""

LAYER_WORDS = {WINDOW: "windowed", CHUNK: "chunked"}
"""Words for layers that keep a part of the tokens, by kind."""

MIN_GAIN = 1.01
"""Requests over those without an option, from which on the option is said [1]."""

FITTED_TOKENS, FITTED_SEQS = 8192, 1024
"""Options in the starts that activations are fitted on [1]."""


@dataclass(frozen=True)
class EngineAnswer:
    """Engine's pool in plain numbers.

    Attributes:
        name, version: The engine, and the version whose rules hold.
        context: Tokens per request [1].
        concurrency: Requests that a replica's pool holds [1].
        exact: Requests that fit beside the weights by the exact need alone [1].
        capacity_gib, weights_gib, pool_gib: Capacity, weights as loaded, pool per chip [GiB].
        share: Utilization [1].
        by_capacity: Whether it is a share of the capacity; else of free memory.
        reserved_gib: Memory kept besides, by name [GiB].
        parts: Layers with their blocks: `text`, `layers`, `kind`, `window`, `groups`,
            `block_tokens`, `blocks`, `request_blocks`, `entries` that a request keeps [1].
        shared: Whether all parts draw blocks from one store.
        blocks, request_blocks, group_layers, padding, tokens: As in `EnginePool` [1].
        max_batched_tokens, max_seqs: Options that it is started with [1].
        pool_loss, block_loss: Share that is no pool in the exact room, and share in the pool that
            holds nothing that a request needs [1].
        lever: Option that holds most, and its requests; None: none holds more.
        doubts: What the numbers leave out or assume.
    """

    name: str
    version: str
    context: int
    concurrency: float
    exact: int
    capacity_gib: float
    weights_gib: float
    pool_gib: float
    share: float
    by_capacity: bool
    reserved_gib: Mapping[str, float]
    parts: Sequence[Mapping[str, Any]]
    shared: bool
    blocks: int
    request_blocks: int
    group_layers: int
    padding: int
    tokens: int
    max_batched_tokens: int
    max_seqs: int | None
    pool_loss: float
    block_loss: float
    lever: tuple[str, float] | None
    doubts: Sequence[str]

    def lines(self, replicas: int) -> Iterator[tuple[str, str]]:
        """Statements for a screen: requests and memory, blocks, and why they are less.

        Args:
            replicas: Replicas, each with its pool [1].
        """
        per_replica = " a replica" if replicas > 1 else ""
        requests = significant(self.concurrency, 3)
        most = ""
        if self.max_seqs is not None and self.concurrency > self.max_seqs:
            most = f", at most {self.max_seqs:,} at a time"
        statement = (
            f"{requests} requests of {self.context:,} tokens{per_replica}{most}: {self._sum()}"
        )
        yield f"{self.name} {self.version}", statement
        yield "blocks", self._blocks()
        yield "why less", self._why()
        yield "assumed", "; ".join(self.doubts)

    def _sum(self) -> str:
        """Memory for caches, term by term."""
        terms = {"weights": self.weights_gib, **self.reserved_gib}
        less = "".join(f" - {significant(gib, 3)} {name}" for name, gib in terms.items() if gib)
        capacity, share = f"{significant(self.capacity_gib, 3)} GiB", f"{self.share:.4g}"
        pool = f"{significant(max(self.pool_gib, 0.0), 3)} GiB for caches"
        if self.by_capacity:
            return f"{capacity} x {share}{less} = {pool}"
        return f"({capacity}{less}) x {share} = {pool}"

    def _blocks(self) -> str:
        """Blocks, groups, and what a request takes."""
        if not self.shared:
            stores = []
            for part in self.parts:
                if part["kind"] == STATE_LAYERS:
                    stores.append(f"{part['blocks']:,} states in {part['text']}")
                    continue
                tokens = part["blocks"] * part["block_tokens"]
                takes = part["request_blocks"] * part["block_tokens"]
                text = f"{tokens:,} tokens in {part['text']}, {takes:,} a request"
                stores.append(text)
            return "; ".join(stores)
        groups = sum(part["groups"] for part in self.parts)
        layers = counted(self.group_layers, "layer")
        text = f"{self.blocks:,} blocks in {counted(groups, 'group')} of {layers}"
        if self.padding:
            text += f" ({self.padding} of {groups * self.group_layers} padding)"
        tokens = [part["block_tokens"] for part in self.parts if part["block_tokens"]]
        size = f" of {min(tokens)} tokens" if tokens else ""
        return f"{text}, {self.request_blocks:,} a request; {self.tokens:,} tokens, blocks{size}"

    def _why(self) -> str:
        """Largest cause for fewer requests than the exact need says, and the option that helps."""
        if self.concurrency >= self.exact:
            return ""
        cause = self._of_blocks() if self.block_loss > self.pool_loss else self._of_pool()
        if self.lever is None:
            return cause
        option, requests = self.lever
        return f"{cause}: {option} gives {significant(requests, 3)}"

    def _of_blocks(self) -> str:
        """Cause in the way that the pool is dealt out."""
        windows = [part for part in self.parts if part["window"] is not None]
        for part in windows if self.shared else ():
            if part["entries"] > min(self.context, part["window"]):
                layers = f"{part['layers']} {LAYER_WORDS[part['kind']]} layers"
                return (
                    f"{layers} keep {part['entries']:,} tokens, not {part['window']:,}, while the "
                    f"budget of a step is {self.max_batched_tokens:,}"
                )
        if windows and not self.shared:
            return (
                f"each kind of layers has a store of a fixed share, and {self._fullest()} fill "
                "theirs first"
            )
        if any(part["kind"] == STATE_LAYERS for part in self.parts):
            return "states take whole blocks, and share the pool with the tokens"
        if self.padding:
            return f"{self.padding} layers of padding fill the groups"
        return "blocks are whole"

    def _fullest(self) -> str:
        """Layers whose store is full first."""
        part = min(self.parts, key=lambda part: part["blocks"] / part["request_blocks"])
        return str(part["text"])

    def _of_pool(self) -> str:
        """Cause in what is kept from the pool."""
        left = self.capacity_gib * (1 - self.share)
        if not self.by_capacity:
            free = self.capacity_gib - self.weights_gib - sum(self.reserved_gib.values())
            left = free * (1 - self.share)
        terms = [("not taken", left), *self.reserved_gib.items()]
        parts = [f"{significant(gib, 3)} GiB {name}" for name, gib in terms if gib >= 0.01]  # noqa: PLR2004, two digits
        return f"kept back: {', '.join(parts)}"


def engine_answer(case: StepCase, context: int) -> EngineAnswer | None:
    """Pool for a case's engine; None: none is asked for, or no capacity is known.

    Args:
        case: The case.
        context: Tokens per request [1].

    Raises:
        RooflinesError: Nothing is left for caches, or no rules are known for them.
    """
    started = case.started
    pool = None if started is None else pool_of_case(case, started, context)
    if started is None or pool is None:
        return None
    peak = pool.settings.peak
    if peak is not None and peak < pool.weights.total:
        problem = (
            f"is {peak / GIB:.4g} GiB, less than {float(pool.weights.total) / GIB:.4g} of weights"
        )
        raise RooflinesError("peak", problem, "give the peak with the weights, or use more chips")
    if pool.blocks == 0:
        raise nothing_left(started, pool)
    shape, bits, split = case.workload.resident_shape, case.sharing.bits, case.split
    exact_cache = cache_on_chip(shape, context, bits, split)
    room = pool.capacity - weights_on_chip(shape, bits, split)
    settings = pool.settings
    return EngineAnswer(
        name=started.name,
        version=started.version,
        context=context,
        concurrency=float(pool.concurrency),
        exact=max(math.floor(room / exact_cache), 0),
        capacity_gib=pool.capacity / GIB,
        weights_gib=float(pool.weights.total) / GIB,
        pool_gib=pool.pool_bytes / GIB,
        share=settings.utilization,
        by_capacity=started.rules.share == BY_CAPACITY,
        reserved_gib=_reserved_gib(pool),
        parts=[*_parts(pool)],
        shared=pool.shared,
        blocks=pool.blocks,
        request_blocks=pool.request_blocks,
        group_layers=pool.group_layers,
        padding=pool.padding,
        tokens=pool.tokens,
        max_batched_tokens=settings.max_batched_tokens,
        max_seqs=settings.max_seqs,
        pool_loss=float(1 - Fraction(pool.pool_bytes) / room),
        block_loss=float(1 - pool.concurrency * exact_cache / pool.pool_bytes),
        lever=_lever(case, started, pool),
        doubts=[*_doubts(case, started, pool)],
    )


def _reserved_gib(pool: EnginePool) -> dict[str, float]:
    """Memory kept besides weights by name; a typed peak has them both [GiB]."""
    if pool.settings.peak is not None:
        besides = pool.settings.peak / GIB - float(pool.weights.total) / GIB
        return {"the rest of the peak": besides}
    return {name: float(size) / GIB for name, size in pool.reserved.items()}


def _parts(pool: EnginePool) -> Iterator[Mapping[str, Any]]:
    """Pool parts in plain numbers."""
    for part in pool.parts:
        kind = part.kind
        yield {
            "text": kind.text,
            "kind": kind.kind,
            "layers": kind.layers,
            "window": kind.tokens,
            "groups": part.groups,
            "block_tokens": part.block_tokens,
            "blocks": part.blocks,
            "request_blocks": part.request_blocks,
            "entries": kept_entries(kind, pool.context, pool.settings.max_batched_tokens),
        }


def _lever(case: StepCase, started: Started, pool: EnginePool) -> tuple[str, float] | None:
    """Option that holds most requests, and how many."""
    best: tuple[str, float] | None = None
    for key, value, words in TRIED:
        present = getattr(pool.settings, key)
        is_more = key == "utilization" and value > present
        is_less = key != "utilization" and present is not None and value < present
        keeps_activations = started.rules.reserve is not None  # in what utilization leaves
        if not (is_more or is_less) or (is_more and keeps_activations):
            continue
        start = started.start.model_copy(update={key: value})
        changed = pool_of_case(case, started._replace(start=start), pool.context)
        requests = 0.0 if changed is None else float(changed.concurrency)
        if requests >= MIN_GAIN * max(float(pool.concurrency), best[1] if best else 0.0):
            best = words, requests
    return best


def _doubts(case: StepCase, started: Started, pool: EnginePool) -> Iterator[str]:
    """Assumptions behind a pool, in words."""
    rules, settings = started.rules, pool.settings
    if not started.runs_on(case.place.entry.vendor or ""):
        yield f"{started.engine.name} is not known to run on this chip"
    if rules.activation is not None and settings.reserve is None and settings.peak is None:
        if rules.share != BY_CAPACITY:
            yield "the peak is vLLM's: --peak has the engine's own"
        elif rules.fitted is not None and started.version != rules.fitted:
            yield f"activation and other were fitted on {rules.fitted}, not on {started.version}"
        if (settings.max_batched_tokens, settings.max_seqs) != (FITTED_TOKENS, FITTED_SEQS):
            yield (
                f"activation was fitted at {FITTED_TOKENS:,} tokens and {FITTED_SEQS:,} sequences, "
                f"not {settings.max_batched_tokens:,} and {settings.max_seqs or 0:,}"
            )
    without_encoders = any("without its encoders" in note for note in case.model.notes())
    if without_encoders and not case.model.shape.encoder:
        yield "encoders are not counted"
    if rules.activation is None:
        yield "what is not the pool must hold the activations"


def nothing_left(started: Started, pool: EnginePool) -> RooflinesError:
    """Error about a budget that weights and reserves fill."""
    settings, capacity = pool.settings, pool.capacity / GIB
    weights = float(pool.weights.total) / GIB
    besides = sum(_reserved_gib(pool).values())
    block = float(pool.page_bytes) / GIB
    share, budget = settings.utilization, settings.utilization * capacity
    problem = f"is {started.title}: {share:.4g} x {capacity:.1f} GiB is {budget:.1f}; "
    problem += f"{weights:.1f} of weights"
    problem += f" and {besides:.1f} kept leave nothing" if besides else " leave nothing"
    least = (weights + besides + block) / capacity
    fix = "use more chips (tp), fewer bits, or a chip with more memory"
    if started.rules.share == BY_CAPACITY and least <= 1:
        share = math.ceil(least * 100) / 100
        fix = f"--utilization {share:g} is the least that holds a block; or {fix}"
    return RooflinesError("engine", problem, fix)
