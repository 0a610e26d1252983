"""Model deployments on given chips: mixed servers, or two pools.

The search is exact: TPOT never falls with the batch, so that bisection finds the largest batch that
keeps it; two pools' requests/s never fall with either rate, so that the quickest server with each
number of chips is enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from rooflines.hardware.support import default_route, interconnects
from rooflines.models.memory import cache_on_chip
from rooflines.models.split import Split
from rooflines.serving.servers import ESTIMATE_KEY, LOWER_KEY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rooflines.serving.servers import Server, ServerTable

ONE_CHIP = Split(tp=1, pp=1, dp=1, ep=1)
"""Split for a whole KV cache."""

MIXED, POOLS = "mixed", "pools"
"""Kinds: servers that read prompts and write answers, or servers for either."""

THROUGHPUT, COST = "throughput", "cost"

GOALS = (THROUGHPUT, COST)
"""Goals: output tokens/s/chip, or money a request."""

TIE_BY_DIVISION = 1.5
"""Ratio below which estimates cannot order servers that divide as many chips otherwise [1].

56 pairs of published served runs are ordered right less often than not."""

TIE_BY_CHIPS = 1.1
"""Ratio below which estimates cannot order servers of other numbers of chips [1].

From 52 pairs of published served runs that are 10% to 15% apart 92% are ordered right, 98% beyond.
"""

TIE_BY_KIND = 2.0
"""Ratio below which estimates cannot order mixed servers and pools [1].

12 / 18 closer pairs of published runs, DeepSeek-V3, are ordered right, 19 / 21 beyond."""

POOL_BAND = 0.75, 1.45
"""Measured over estimated TPOT with two pools: p10 and p90 over 236 published
disaggregated runs in no fit [1]."""

TILES = (8, 16, 32, 64, 128, 256)
"""Kernel tiles: just past a multiple an estimate's throughput falls [1]."""

SLACK = 1e-12
"""Share by which a rate may exceed another: both are rounded [1]."""


class Limits(NamedTuple):
    """Latencies to keep.

    Attributes:
        tpot_s: TPOT [s].
        ttft_s: TTFT, held against its bound [s].
    """

    tpot_s: float = math.inf
    ttft_s: float = math.inf


@dataclass(frozen=True)
class Deployment:
    """Model servers on the given chips.

    Attributes:
        kind: `mixed` or `pools`.
        chip: Chip id.
        decode: Server that writes answers.
        prefill: Server that reads prompts; in `mixed` the same.
        servers, prefill_servers: Number for each; in `mixed` the second is 0 [1].
        chips: Given chips, idle ones among them [1].
        batch: Sequences in decode on a server; real where prefill limits them [1].
        tpot_s, tpot_lower_s: Mean token time on the basis, and its bound [s].
        band: p10 and p90 over TPOT [1]; None: no estimate.
        ttft_s, ttft_lower_s: A prompt on an idle server, on the basis and by the bound [s].
        req_per_s, req_per_s_bound: Requests a second on all chips at this batch [1/s].
        prompt_share: Share in the chips' time that prompts take [1].
        prefill_busy: Time share in which prefill servers read prompts [1]; None: mixed.
        memory_bytes: Fullest chip, when answers end [byte].
        limit: Reason for the batch: `memory`, `pool`, `tpot`, `prefill`, or `tile`.
    """

    kind: str
    chip: str
    decode: Server
    prefill: Server
    servers: int
    prefill_servers: int
    chips: int
    batch: float
    tpot_s: float
    tpot_lower_s: float
    band: tuple[float, float] | None
    ttft_s: float
    ttft_lower_s: float
    req_per_s: float
    req_per_s_bound: float
    prompt_share: float
    prefill_busy: float | None
    memory_bytes: float
    limit: str

    @property
    def name(self) -> str:
        """Name, such as `2 x tp8` or `8P tp1 + 2D tp4`."""
        if self.kind == POOLS:
            return (
                f"{self.prefill_servers}P {self.prefill.name} + {self.servers}D {self.decode.name}"
            )
        return f"{self.servers} x {self.decode.name}"

    @property
    def chips_used(self) -> int:
        """Chips that serve [1]."""
        return self.servers * self.decode.chips + self.prefill_servers * self.prefill.chips

    @property
    def concurrency(self) -> float:
        """Requests in flight, by Little's law: req/s * (TTFT + OSL * TPOT); TTFT is the least."""
        return self.req_per_s * (self.ttft_s + self.decode.output * self.tpot_s)

    @property
    def output_per_chip(self) -> float:
        """Output tokens a second and given chip [1/s]."""
        return self.req_per_s * self.decode.output / self.chips

    @property
    def output_per_chip_bound(self) -> float:
        """Output tokens a second and given chip, at most [1/s]."""
        return self.req_per_s_bound * self.decode.output / self.chips


@dataclass
class Search:
    """Search over the servers on one kind of chip.

    Args:
        table: The servers.
        basis: Time that decides.
        chips: Given chips [1].
        limits: Latencies to keep.

    Attributes:
        lost: Servers that make no deployment, and why.
    """

    table: ServerTable
    basis: str
    chips: int
    limits: Limits
    lost: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Search each server's largest batch, with prompts and without."""
        self.lost |= self.table.refused
        self.batches: dict[tuple[str, bool], int] = {}
        self.limit: dict[tuple[str, bool], str] = {}
        fitting = []
        for name, server in self.table.servers.items():
            if server.max_batch < server.split.dp:
                self.lost[name] = "memory"
            else:
                fitting.append(name)
        self.prompts_keep = {
            name: self.table.servers[name].ttft(LOWER_KEY) <= self.limits.ttft_s for name in fitting
        }
        for mixed in (True, False):
            largest = self.table.largest_batches(
                self.basis, self.limits.tpot_s, mixed=mixed, names=fitting
            )
            for name, batch in largest.items():
                self._keep_batch(name, batch, mixed=mixed)
        self._try_tiles()
        for name in fitting:
            if not self.prompts_keep[name]:
                self.lost[name] = "ttft"
            elif not self.batches[name, True]:
                self.lost[name] = "tpot"

    def _keep_batch(self, name: str, batch: int, *, mixed: bool) -> None:
        server = self.table.servers[name]
        self.batches[name, mixed] = batch
        by_memory = "pool" if server.pool_limits else "memory"
        self.limit[name, mixed] = by_memory if batch == server.max_batch else "tpot"

    def _try_tiles(self) -> None:
        """Take a tile's last multiple where it yields more than the largest batch."""
        if self.basis != ESTIMATE_KEY:
            return
        tried: dict[str, set[int]] = {}
        for (name, _), batch in self.batches.items():
            dp = self.table.servers[name].split.dp
            tiles = {batch // (tile * dp) * tile * dp for tile in TILES}
            tried.setdefault(name, set()).update(tile for tile in tiles if dp <= tile <= batch)
        self.table.evaluate(tried)
        for (name, mixed), batch in self.batches.items():
            if not batch:
                continue
            server = self.table.servers[name]
            sizes = [size for size in server.steps if server.split.dp <= size <= batch]
            rates = {size: size / server.tpot(self.basis, size, mixed=mixed) for size in sizes}
            best = max(sizes, key=lambda size: (rates[size], size))
            if rates[best] > rates[batch] * (1 + SLACK):
                self.batches[name, mixed], self.limit[name, mixed] = best, "tile"

    # ---------------------------------------------------------------- deployments

    def deployments(self, kinds: Sequence[str] = (MIXED, POOLS)) -> list[Deployment]:
        """Deployments that keep the latencies, each server at its largest batch.

        Args:
            kinds: Kinds that are wanted.
        """
        mixed = self.mixed() if MIXED in kinds else ()
        pools = self.pools() if POOLS in kinds else ()
        return [*mixed, *pools]

    def mixed(self) -> Iterator[Deployment]:
        """Yield each split with as many servers as the chips make."""
        for name, server in self.table.servers.items():
            batch = self.batches.get((name, True), 0)
            count = self.chips // server.chips
            if not batch or not count or not self.prompts_keep[name]:
                continue
            tpot = server.tpot(self.basis, batch, mixed=True)
            alone = server.tpot(self.basis, batch, mixed=False)
            lower = server.tpot(LOWER_KEY, batch, mixed=True)
            yield Deployment(
                MIXED,
                server.chip,
                server,
                server,
                count,
                0,
                self.chips,
                batch,
                tpot,
                lower,
                server.steps[batch].band if self.basis == ESTIMATE_KEY else None,
                server.ttft(self.basis),
                server.ttft(LOWER_KEY),
                count * batch / (server.output * tpot),
                count * batch / (server.output * lower),
                1 - alone / tpot,
                None,
                server.steps[batch].memory_bytes,
                self.limit[name, True],
            )

    def quickest(self) -> tuple[dict[int, Server], dict[int, Server]]:
        """Quickest prefill and decode servers, by number of chips."""
        prefill: dict[int, Server] = {}
        decode: dict[int, Server] = {}
        for name, server in self.table.servers.items():
            if name not in self.prompts_keep:
                continue
            size = server.chips
            if self.prompts_keep[name] and (
                size not in prefill or self._prompts(server) > self._prompts(prefill[size])
            ):
                prefill[size] = server
            if self.batches[name, False] and (
                size not in decode or self.answers(server) > self.answers(decode[size])
            ):
                decode[size] = server
        return prefill, decode

    def _prompts(self, server: Server) -> float:
        return server.prompts_per_s(self.basis)

    def answers(self, server: Server) -> float:
        """Answers a second that a decode server ends at its largest batch [1/s]."""
        batch = self.batches[server.name, False]
        return batch / (server.output * server.tpot(self.basis, batch, mixed=False))

    def pools(self) -> Iterator[Deployment]:
        """Yield the best counts for each pair of sizes."""
        prefill, decode = self.quickest()
        for prefill_server in prefill.values():
            for decode_server in decode.values():
                counts = self._best_counts(prefill_server, decode_server)
                if counts is not None:
                    yield self.pool(prefill_server, decode_server, *counts)

    def _best_counts(self, prefill: Server, decode: Server) -> tuple[int, int] | None:
        """Prefill and decode counts with the most requests/s, fewest chips first."""
        prompts, answers = self._prompts(prefill), self.answers(decode)
        best: tuple[float, int, int, int] | None = None
        for decode_count in range(1, (self.chips - prefill.chips) // decode.chips + 1):
            left = (self.chips - decode_count * decode.chips) // prefill.chips
            needed = max(1, math.ceil(decode_count * answers / prompts - SLACK))
            count = min(left, needed)
            rate = min(count * prompts, decode_count * answers)
            used = count * prefill.chips + decode_count * decode.chips
            if best is None or (rate, -used) > (best[0], best[1]):
                best = rate, -used, count, decode_count
        return None if best is None else best[2:]

    def pool(
        self, prefill: Server, decode: Server, prefill_count: int, decode_count: int
    ) -> Deployment:
        """Two pools; where prefill limits them, fewer sequences run in decode.

        Args:
            prefill: Prefill server.
            decode: Decode server.
            prefill_count: Prefill servers [1].
            decode_count: Decode servers [1].
        """
        prompts, answers = (
            prefill_count * self._prompts(prefill),
            decode_count * self.answers(decode),
        )
        rate, largest = min(prompts, answers), self.batches[decode.name, False]
        limit: str = self.limit[decode.name, False]
        batch: float = largest
        tpot = decode.tpot(self.basis, largest, mixed=False)
        if prompts < answers * (1 - SLACK):
            limit, batch = "prefill", self._batch_at(decode, rate / decode_count, largest)
            tpot = decode_count * batch / (decode.output * rate)
        at = max(decode.split.dp, math.floor(batch))  # a bound never falls with the batch
        self.table.evaluate({decode.name: {at}})
        lower = decode.tpot(LOWER_KEY, at, mixed=False)
        bound_rate = min(
            prefill_count * prefill.prompts_per_s(LOWER_KEY),
            decode_count * max(batch, at) / (decode.output * lower),
        )
        used = prefill_count * prefill.chips + decode_count * decode.chips
        return Deployment(
            POOLS,
            decode.chip,
            decode,
            prefill,
            decode_count,
            prefill_count,
            self.chips,
            batch,
            tpot,
            lower,
            POOL_BAND if self.basis == ESTIMATE_KEY else None,
            prefill.ttft(self.basis),
            prefill.ttft(LOWER_KEY),
            rate,
            bound_rate,
            prefill_count * prefill.chips / used,
            rate / prompts,
            decode.steps[at].memory_bytes,
            limit,
        )

    def _batch_at(self, server: Server, rate: float, largest: int) -> float:
        """Real batch at which a decode server ends answers at a rate [1].

        Between whole batches the rate is taken as a line.
        """
        low, high = server.split.dp, largest

        def answers(batch: int) -> float:
            self.table.evaluate({server.name: {batch}})
            return batch / (server.output * server.tpot(self.basis, batch, mixed=False))

        while high - low > 1:
            width = max(1, (high - low) // 16)
            tried = [*range(low + width, high, width)]
            self.table.evaluate({server.name: set(tried)})
            for batch in tried:
                if answers(batch) <= rate:
                    low = max(low, batch)
                else:
                    high = min(high, batch)
                    break
        below, above = answers(low), answers(high)
        if above <= below:
            return float(low)
        return low + (high - low) * min(1.0, max(0.0, (rate - below) / (above - below)))


class NeededChips(NamedTuple):
    """Chips for a load.

    Attributes:
        chips: Whole servers' chips [1].
        name: Deployment name.
        req_per_s: Requests a second that they do [1/s].
    """

    chips: int
    name: str
    req_per_s: float


def chips_for(
    search: Search, kinds: Sequence[str], *, load: float | None, users: float | None
) -> list[NeededChips]:
    """Deployments for a load, fewest chips first, each server at its largest batch.

    Args:
        search: The servers and their batches.
        kinds: Kinds that are wanted.
        load: Requests a second [1/s]; None: `users` are given.
        users: Requests in flight [1].
    """
    options = []
    basis = search.basis
    if MIXED in kinds:
        for name, server in search.table.servers.items():
            batch = search.batches.get((name, True), 0)
            if not batch or not search.prompts_keep[name]:
                continue
            tpot = server.tpot(basis, batch, mixed=True)
            rate = batch / (server.output * tpot)
            wanted = _rate_of(load, users, server.ttft(basis) + server.output * tpot)
            count = max(1, math.ceil(wanted / rate - SLACK))
            options.append(NeededChips(count * server.chips, f"{count} x {name}", count * rate))
    if POOLS in kinds:
        prefill, decode = search.quickest()
        for prefill_server in prefill.values():
            prompts = prefill_server.prompts_per_s(basis)
            for server in decode.values():
                batch = search.batches[server.name, False]
                tpot = server.tpot(basis, batch, mixed=False)
                answers = search.answers(server)
                wanted = _rate_of(load, users, prefill_server.ttft(basis) + server.output * tpot)
                first = max(1, math.ceil(wanted / prompts - SLACK))
                second = max(1, math.ceil(wanted / answers - SLACK))
                chips = first * prefill_server.chips + second * server.chips
                text = f"{first}P {prefill_server.name} + {second}D {server.name}"
                rate = min(first * prompts, second * answers)
                options.append(NeededChips(chips, text, rate))
    return sorted(options, key=lambda option: (option.chips, -option.req_per_s))


def _rate_of(load: float | None, users: float | None, latency_s: float) -> float:
    """Requests a second: the load, or from requests in flight by Little's law [1/s]."""
    return load if load is not None else (users or 0.0) / latency_s


def is_tie(best: Deployment, rival: Deployment) -> bool:
    """Check for estimates closer than measured pairs can be ordered."""
    ratio = best.output_per_chip / rival.output_per_chip
    if best.kind != rival.kind:
        return ratio < TIE_BY_KIND
    same_chips = (best.decode.chips, best.prefill.chips) == (
        rival.decode.chips,
        rival.prefill.chips,
    )
    return ratio < (TIE_BY_DIVISION if same_chips else TIE_BY_CHIPS)


class Handover(NamedTuple):
    """KV cache transfer for a prompt, from prefill to decode.

    Attributes:
        cache_bytes: The whole cache [byte].
        time_s: Time at the data-sheet rate with all chips in the smaller server [s].
        busy: Time share in which the smaller pool's links send [1].
        network: Outermost network between the given chips.
    """

    cache_bytes: float
    time_s: float
    busy: float
    network: str


def handover(table: ServerTable, deployment: Deployment) -> Handover | None:
    """Hand over caches between two pools; None: no network joins the chips.

    Args:
        table: The servers.
        deployment: The pools.
    """
    entry = table.sweep.chips[deployment.chip]
    names = default_route(entry, deployment.chips)[-1:]
    _, links, missing = interconnects(entry, names)
    if missing or not links:
        return None
    case = table.sweep.blocks[0].cases[0]
    bits = case.sharing.bits
    cache = float(cache_on_chip(case.model.shape, table.request.input, bits, ONE_CHIP))
    per_s = float(links[0].bytes_per_s * links[0].links)
    smaller = min(deployment.prefill.chips, deployment.decode.chips)
    pools = (
        deployment.prefill_servers * deployment.prefill.chips,
        deployment.servers * deployment.decode.chips,
    )
    busy = deployment.req_per_s * cache / (per_s * min(pools))
    return Handover(cache, cache / (per_s * smaller), busy, names[0])
