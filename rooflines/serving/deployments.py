"""Model deployments on given chips: mixed servers, or two pools.

The search is exact: TPOT never falls with the batch, so that bisection finds the largest batch that
keeps it; two pools' requests/s never fall with either rate, so that the quickest server with each
number of chips is enough.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from itertools import compress, product
from typing import TYPE_CHECKING, NamedTuple, Protocol

from rooflines.hardware.support import default_route, interconnects
from rooflines.models.memory import cache_on_chip
from rooflines.models.split import ONE_CHIP_SPLIT
from rooflines.serving.servers import ESTIMATE_KEY, LOWER_KEY, MAX_BATCH, Wanted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rooflines.serving.servers import Server, ServerTable

MIXED, POOLS = "mixed", "pools"
"""Kinds: servers that read prompts and write answers, or servers for either."""

THROUGHPUT, COST, MIN_CHIPS = "throughput", "cost", "min-chips"

GOALS = (THROUGHPUT, COST, MIN_CHIPS)
"""Goals: output tokens/s/chip, money a request, or the fewest chips."""

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

BATCH_TILES = (8, 16, 32, 64, 128, 256)
"""Kernel tiles: just past a multiple an estimate's throughput falls [1]."""

NEARLY = 0.99
"""Share of a load from which on a deployment carries it: batches are rounded [1]."""

STAGE_ROUNDS = (2, 3), (4, 6), (8, 12), (16,)
"""Pipeline stages in the order in which a search tries them: divisors first [1]."""

SLACK = 1e-12
"""Share by which a rate may exceed another: both are rounded [1]."""


class Limits(NamedTuple):
    """Latencies to keep, and how near the edge.

    Attributes:
        tpot_s: TPOT [s].
        ttft_s: TTFT, kept by its bound; by its time on the basis where any deployment does [s].
        busy: Largest time share in which prefill servers read prompts [1].
        sure: True if TPOT's p90 keeps its limit, not the estimate alone.
        load: Requests a second that are enough [1/s]; None: as many as the chips do.
        users: Requests in flight that are enough [1]; None: as many as the chips hold.
    """

    tpot_s: float = math.inf
    ttft_s: float = math.inf
    busy: float = 1.0
    sure: bool = False
    load: float | None = None
    users: float | None = None


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
        limit: Reason for the batch: `memory`, `pool`, `tpot`, `prefill`, `tile` or `load`.
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
        return deployment_name(self)

    @property
    def stages(self) -> int:
        """Most pipeline stages in a server [1]."""
        return max(self.prefill.split.pp, self.decode.split.pp)

    @property
    def micro_batches(self) -> int:
        """Micro-batches on the way in a decode server, min(pp, B / dp), whole ones [1]."""
        split = self.decode.split
        return max(1, min(split.pp, math.floor(self.batch / split.dp)))

    @property
    def hop_s(self) -> float | None:
        """Micro-batch hop time between decode stages [s]; None: one stage."""
        case, stages = self.decode.case, self.decode.split.pp
        if case.pipeline is None:
            return None
        batch = max(self.decode.split.dp, math.floor(self.batch))
        request = self.decode.request
        step = case.step(batch, request.input + 1, self.decode.new_tokens)
        return float(case.pipeline.hops_s.at(case.extents(step))) / (stages - 1)

    @property
    def prefill_chip(self) -> str:
        """Chip that reads prompts."""
        return self.prefill.chip

    def prompts_per_s(self, basis: str) -> float | None:
        """Prompts a second that the prefill pool reads at most [1/s]; None: mixed servers."""
        if self.kind == MIXED:
            return None
        return self.prefill_servers * self.prefill.prompts_per_s(basis)

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


class CountedServers(Protocol):
    """Servers with their numbers, as a deployment or a front's point has them."""

    @property
    def kind(self) -> str:
        """`mixed` or `pools`."""

    @property
    def decode(self) -> Server:
        """Server that writes answers."""

    @property
    def prefill(self) -> Server:
        """Server that reads prompts; in `mixed` the same."""

    @property
    def servers(self) -> int:
        """Number of servers that write answers [1]."""

    @property
    def prefill_servers(self) -> int:
        """Number of servers that only read prompts [1]."""


def deployment_name(counted: CountedServers) -> str:
    """Name, such as `2 x tp8` or `8P tp1 + 2D tp4`.

    Args:
        counted: The servers.
    """
    decode = counted.decode.name
    if counted.kind == POOLS:
        return f"{counted.prefill_servers}P {counted.prefill.name} + {counted.servers}D {decode}"
    return f"{counted.servers} x {decode}"


class RatedServer(NamedTuple):
    """Server with sequences for a load.

    Attributes:
        server: The server.
        mixed: True if it reads prompts, too.
        largest: Its largest batch [1].
        load: Requests a second that it ends, or with `prompt_s` requests in flight.
        prompt_s: Time of a prompt that is in flight, too [s]; None: requests a second.
    """

    server: Server
    mixed: bool
    largest: int
    load: float
    prompt_s: float | None = None


class PoolCounts(NamedTuple):
    """Servers in two pools.

    Attributes:
        prefill, decode: Server in each.
        prefill_count, decode_count: Their numbers [1].
        chips: Chips that count [1].
    """

    prefill: Server
    decode: Server
    prefill_count: int
    decode_count: int
    chips: int


@dataclass
class Search:
    """Search over all servers on a chip.

    Args:
        table: The servers.
        basis: Time that decides.
        chips: Given chips [1].
        limits: Latencies to keep.
        prefill: Search on another chip, whose servers read all prompts; None: this one.

    Attributes:
        lost: Servers that make no deployment, and why.
    """

    table: ServerTable
    basis: str
    chips: int
    limits: Limits
    lost: dict[str, str] = field(default_factory=dict)
    prefill: Search | None = None

    def __post_init__(self) -> None:
        """Search each server's largest batch, with prompts and without; then pipeline stages."""
        self.lost |= self.table.refused
        self.batches: dict[tuple[str, bool], int] = {}
        self.limit: dict[tuple[str, bool], str] = {}
        self.prompts_keep: dict[str, bool] = {}
        self._within: dict[tuple[str, bool], int] = {}
        self._staged: dict[tuple[str, int], str] = {}
        self._search(self.table.roots)
        for name in self.table.roots:
            if name not in self.prompts_keep:
                self.lost[name] = "memory"
            elif not self.prompts_keep[name]:
                self.lost[name] = "ttft"
            elif not self.batches[name, True]:
                self.lost[name] = "tpot"
        self._search_stages()

    def _search(self, names: Iterable[str]) -> None:
        """Search largest batches, by server name."""
        servers = [self.table.servers[name] for name in names]
        self.table.evaluate({server.name: {server.split.dp} for server in servers})
        keys = [(server.name, mixed) for mixed in (True, False) for server in servers]
        wanted = [
            self.table.within(
                name,
                self.basis,
                self._tpot_limit(name, mixed=mixed),
                mixed=mixed,
                fits=not self.table.stages or name not in self.table.roots,
            )
            for name, mixed in keys
        ]
        self._within |= zip(keys, self.table.last_batches(wanted), strict=True)
        for server in servers:
            if server.max_batch < server.split.dp:
                continue
            self.prompts_keep[server.name] = server.ttft(LOWER_KEY) <= self.limits.ttft_s
            for mixed in (True, False):
                self._keep_batch(server, mixed=mixed)
        self._try_tiles(keys)

    def reading_on(self, prefill: Search) -> Search:
        """Same search, with all prompts on another chip.

        Args:
            prefill: Search on that chip.
        """
        pooled = copy(self)
        pooled.prefill = prefill
        return pooled

    def _tpot_limit(self, name: str, *, mixed: bool) -> float:
        """Limit on TPOT; where p90 has to keep it, less by the band [s]."""
        server = self.table.servers[name]
        band = server.steps[server.split.dp].band if mixed else POOL_BAND
        if not self.limits.sure or self.basis != ESTIMATE_KEY or band is None:
            return self.limits.tpot_s
        return self.limits.tpot_s / max(1.0, band[1])

    def _keep_batch(self, server: Server, *, mixed: bool) -> None:
        within = self._within[server.name, mixed]
        self.batches[server.name, mixed] = min(within, server.max_batch)
        by_memory = "pool" if server.pool_limits else "memory"
        ends = by_memory if within >= server.max_batch else "tpot"
        self.limit[server.name, mixed] = ends

    def _tiles(self, server: Server, batch: int) -> set[int]:
        """Batch, and by an estimate the last tile multiples below [1]."""
        sizes = [tile * server.split.dp * server.split.pp for tile in BATCH_TILES]
        multiples = {batch // size * size for size in sizes} if self.basis == ESTIMATE_KEY else ()
        return {size for size in (batch, *multiples) if server.split.dp <= size <= MAX_BATCH}

    def _try_tiles(self, keys: Sequence[tuple[str, bool]]) -> None:
        """Take a tile's last multiple where it yields more than the largest batch."""
        tried: dict[str, set[int]] = {}
        for key in keys:
            server, batches = self.table.servers[key[0]], tried.setdefault(key[0], set())
            for batch in (self._within[key] + 1, self.batches.get(key, 0)):
                batches |= self._tiles(server, batch)
        self.table.evaluate(tried)
        for name, mixed in keys if self.basis == ESTIMATE_KEY else ():
            batch = self.batches.get((name, mixed), 0)
            if not batch:
                continue
            server = self.table.servers[name]
            sizes = [size for size in server.steps if server.split.dp <= size <= batch]
            rates = {size: size / server.tpot(self.basis, size, mixed=mixed) for size in sizes}
            best = max(sizes, key=lambda size: (rates[size], size))
            if rates[best] > rates[batch] * (1 + SLACK):
                self.batches[name, mixed], self.limit[name, mixed] = best, "tile"

    # ---------------------------------------------------------------- pipeline stages

    def _search_stages(self) -> None:
        """Search servers with pipeline stages where memory or TTFT ends those with fewer.

        By times stages never pay: pp servers with b sequences each have pp b / t(b) tokens a
        second, since the slowest stage takes at least t(b) / pp.
        """
        if self.limits.sure and self.basis == ESTIMATE_KEY:
            return  # without a run with pp no p90 is known
        for numbers in STAGE_ROUNDS:
            stages = [number for number in numbers if number in self.table.stages]
            pairs = [
                (root, number)
                for root in self.table.roots
                for number in stages
                if self.table.servers[root].chips * number <= self.chips
            ]
            if pairs:
                self._add_stages(pairs)

    def _add_stages(self, pairs: Sequence[tuple[str, int]]) -> None:
        """Search servers with pipeline stages, by root and stages."""
        servers = self.table.servers
        reading = [pair for pair in pairs if self._may_read(*pair)]
        serving = [
            (root, stages, mixed)
            for root, stages in pairs
            for mixed in (True, False)
            if self._may_serve(root, stages, self._within[root, mixed] + 1, mixed=mixed)
        ]
        wanted = dict.fromkeys([*reading, *((root, stages) for root, stages, _ in serving)])
        added = self.table.add_stages(wanted)
        self._staged |= {pair: server.name for pair, server in added.items()}
        fitting = {
            pair: server for pair, server in added.items() if server.max_batch >= server.split.dp
        }
        for pair in fitting.keys() & reading:
            server = fitting[pair]
            self.prompts_keep[server.name] = server.ttft(LOWER_KEY) <= self.limits.ttft_s
        last: dict[tuple[str, int, bool], int] = {}
        tried: dict[str, set[int]] = {}
        for root, stages, mixed in serving:
            if (root, stages) in fitting:
                most = -(-fitting[root, stages].max_batch // stages)
                batch = max(min(most, self._within[root, mixed] + 1), servers[root].split.dp)
                last[root, stages, mixed] = batch
                tried.setdefault(root, set()).update(self._tiles(servers[root], batch))
        self.table.evaluate(tried)
        self._search(
            dict.fromkeys(
                fitting[root, stages].name
                for (root, stages, mixed), batch in last.items()
                if self._may_serve(root, stages, batch, mixed=mixed)
            )
        )

    def _fewer_stages(self, root: str, stages: int) -> Iterator[str]:
        """Yield servers with fewer stages that divide these."""
        for fewer in range(1, stages):
            if stages % fewer == 0:
                name = root if fewer == 1 else self._staged.get((root, fewer))
                if name is not None:
                    yield name

    def _may_read(self, root: str, stages: int) -> bool:
        """Check whether stages may read more prompts than other servers on as many chips."""
        server = self.table.servers[root]
        if server.ttft(LOWER_KEY) / stages > self.limits.ttft_s or any(
            self.prompts_keep.get(name) for name in self._fewer_stages(root, stages)
        ):
            return False
        chips = server.chips * stages
        rival_rates = [
            self._prompts(rival) * (chips // rival.chips)
            for name, keeps in self.prompts_keep.items()
            if keeps and chips % (rival := self.table.servers[name]).chips == 0
        ]
        return stages * self._prompts(server) > max(rival_rates, default=0.0) * (1 + SLACK)

    def _may_serve(self, root: str, stages: int, last: int, *, mixed: bool) -> bool:
        """Check whether stages may yield more than other servers on as many chips.

        Args:
            root: Server with one stage.
            stages: Pipeline stages [1].
            last: Largest batch in a stage [1].
            mixed: True if the stages read prompts, too.
        """
        server = self.table.servers[root]
        first = server.split.dp
        if self._within[root, mixed] < first or (
            mixed and server.ttft(LOWER_KEY) / stages > self.limits.ttft_s
        ):
            return False
        if any(
            self._within.get((name, mixed), MAX_BATCH) < self.table.servers[name].max_batch
            and (self.prompts_keep.get(name) or not mixed)
            for name in self._fewer_stages(root, stages)
        ):
            return False
        rates = [
            size / (server.output * server.tpot(self.basis, size, mixed=mixed))
            for size in server.steps
            if first <= size <= last
        ]
        chips = server.chips * stages
        rival_rates = [
            self._rate(rival, batch, mixed=mixed) * (chips // rival.chips)
            for (name, reads), batch in self.batches.items()
            if reads == mixed
            and batch
            and (self.prompts_keep.get(name) or not mixed)
            and chips % (rival := self.table.servers[name]).chips == 0
        ]
        return stages * max(rates) > max(rival_rates, default=0.0) * (1 + SLACK)

    # ---------------------------------------------------------------- deployments

    def deployments(self, kinds: Sequence[str] = (MIXED, POOLS)) -> list[Deployment]:
        """Deployments that keep the latencies, each server at its largest batch.

        Args:
            kinds: Kinds that are wanted.
        """
        mixed = self.mixed() if MIXED in kinds and self.prefill is None else ()
        pools = self.pools() if POOLS in kinds else ()
        return [*mixed, *pools]

    def _usable(self) -> Iterator[Server]:
        """Yield mixed servers that keep the latencies."""
        for name, server in self.table.servers.items():
            if self.batches.get((name, True), 0) and self.prompts_keep[name]:
                yield server

    def mixed(self) -> list[Deployment]:
        """Each split with as many servers as the chips make."""
        counts = [(server, self.chips // server.chips) for server in self._usable()]
        counts = [(server, count) for server, count in counts if count]
        return self._mixed_servers([(server, count, self.chips) for server, count in counts])

    def with_counts(
        self, mixed: Sequence[tuple[Server, int, int]], pools: Sequence[PoolCounts]
    ) -> list[Deployment]:
        """Deployments with given numbers of servers, at the batches that a load needs.

        Args:
            mixed: Mixed servers with their counts and chips.
            pools: Two pools with their counts.
        """
        return [*self._mixed_servers(mixed), *self._pools_at(pools)]

    def _mixed_servers(self, chosen: Sequence[tuple[Server, int, int]]) -> list[Deployment]:
        """Mixed servers with their counts and chips, at the batches that a load needs."""
        enough = [self._loaded(server, server, count, mixed=True) for server, count, _ in chosen]
        batches = self._batches_at(enough)
        return [
            self._mixed_at(*servers, batch) for servers, batch in zip(chosen, batches, strict=True)
        ]

    def _loaded(self, server: Server, prefill: Server, count: int, *, mixed: bool) -> RatedServer:
        """Server with its share of the load; without one it is endless."""
        limits = self.limits
        load = limits.load if limits.users is None else limits.users
        return RatedServer(
            server,
            mixed=mixed,
            largest=self.batches[server.name, mixed],
            load=math.inf if load is None else load / count,
            prompt_s=None if limits.users is None else prefill.ttft(self.basis),
        )

    def _mixed_at(self, server: Server, count: int, chips: int, batch: float) -> Deployment:
        """Mixed servers at a batch; between whole batches the rate is taken as a line."""
        at = max(server.split.dp, math.floor(batch))
        rate = self._rate(server, batch, mixed=True)
        tpot = batch / (server.output * rate)
        lower = server.tpot(LOWER_KEY, at, mixed=True)
        alone = server.tpot(self.basis, at, mixed=False)
        fewer = batch < self.batches[server.name, True]
        return Deployment(
            MIXED,
            server.chip,
            server,
            server,
            count,
            0,
            chips,
            batch,
            tpot,
            lower,
            server.steps[at].band if self.basis == ESTIMATE_KEY else None,
            server.ttft(self.basis),
            server.ttft(LOWER_KEY),
            count * rate,
            count * max(batch, at) / (server.output * lower),
            max(0.0, 1 - alone / server.tpot(self.basis, at, mixed=True)),
            None,
            server.steps[at].memory_bytes,
            "load" if fewer else self.limit[server.name, True],
        )

    def quickest(self) -> tuple[list[Server], list[Server]]:
        """Quickest prefill and decode servers for each number of chips, with stages and without.

        Prefill servers that keep TTFT on the basis and those that keep it by the bound alone are
        quickest apart.
        """
        prefill: dict[tuple[int, bool, bool], Server] = {}
        decode: dict[tuple[int, bool], Server] = {}
        source = self.prefill or self
        for name, server in source.table.servers.items():
            keeps = server.ttft(self.basis) <= self.limits.ttft_s
            size = server.chips, server.split.pp > 1, keeps
            if source.prompts_keep.get(name) and (
                size not in prefill or self._prompts(server) > self._prompts(prefill[size])
            ):
                prefill[size] = server
        for name, server in self.table.servers.items():
            place = server.chips, server.split.pp > 1
            if self.batches.get((name, False)) and (
                place not in decode or self.answers(server) > self.answers(decode[place])
            ):
                decode[place] = server
        return [*prefill.values()], [*decode.values()]

    def _prompts(self, server: Server) -> float:
        return server.prompts_per_s(self.basis)

    def answers(self, server: Server) -> float:
        """Answers a second that a decode server ends at its largest batch [1/s]."""
        batch = self.batches[server.name, False]
        return batch / (server.output * server.tpot(self.basis, batch, mixed=False))

    def pools(self) -> list[Deployment]:
        """Two pools with the best counts, for each two sizes."""
        prefill, decode = self.quickest()
        chosen = []
        for prefill_server, decode_server in product(prefill, decode):
            counts = self._best_counts(prefill_server, decode_server)
            if counts is not None:
                chosen.append(PoolCounts(prefill_server, decode_server, *counts, self.chips))
        return self._pools_at(chosen)

    def _best_counts(self, prefill: Server, decode: Server) -> tuple[int, int] | None:
        """Prefill and decode counts with the most requests/s, fewest chips first."""
        prompts, answers = self._prompts(prefill) * self.limits.busy, self.answers(decode)
        enough = math.inf if self.limits.load is None else self.limits.load
        best: tuple[float, int, int, int] | None = None
        for decode_count in range(1, (self.chips - prefill.chips) // decode.chips + 1):
            left = (self.chips - decode_count * decode.chips) // prefill.chips
            ended = min(decode_count * answers, enough)
            count = min(left, max(1, math.ceil(ended / prompts - SLACK)))
            rate = min(count * prompts, ended)
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
        counts = PoolCounts(prefill, decode, prefill_count, decode_count, self.chips)
        (deployment,) = self._pools_at([counts])
        return deployment

    def _pools_at(self, chosen: Sequence[PoolCounts]) -> list[Deployment]:
        """Two pools with given counts; where prefill or a load limits them, fewer run in decode."""
        rates, limits = list[float](), list[str]()
        for counts, loaded in zip(chosen, self._rates_at_load(chosen), strict=True):
            rate = counts.decode_count * self.answers(counts.decode)
            limit = self.limit[counts.decode.name, False]
            fewer = {"prefill": counts.prefill_count * self._prompts(counts.prefill)}
            fewer["prefill"] *= self.limits.busy
            fewer["load"] = loaded
            for name, chosen_limit in fewer.items():
                if chosen_limit < rate * (1 - SLACK):
                    rate, limit = chosen_limit, name
            rates.append(rate)
            limits.append(limit)
        batches = self._batches_at(
            [
                RatedServer(
                    counts.decode,
                    mixed=False,
                    largest=self.batches[counts.decode.name, False],
                    load=rate / counts.decode_count if limit in FEWER else math.inf,
                )
                for counts, rate, limit in zip(chosen, rates, limits, strict=True)
            ]
        )
        return [
            self._pool_at(counts, rate, batch, limit)
            for counts, rate, batch, limit in zip(chosen, rates, batches, limits, strict=True)
        ]

    def _rates_at_load(self, chosen: Sequence[PoolCounts]) -> list[float]:
        """Requests a second of two pools at a load; without one they are endless [1/s]."""
        if self.limits.users is None:
            load = math.inf if self.limits.load is None else self.limits.load
            return [load] * len(chosen)
        loaded = [
            self._loaded(counts.decode, counts.prefill, counts.decode_count, mixed=False)
            for counts in chosen
        ]
        return [
            counts.decode_count * self._rate(counts.decode, batch, mixed=False)
            for counts, batch in zip(chosen, self._batches_at(loaded), strict=True)
        ]

    def _pool_at(self, counts: PoolCounts, rate: float, batch: float, limit: str) -> Deployment:
        prefill, decode, prefill_count, decode_count, chips = counts
        at = max(decode.split.dp, math.floor(batch))  # a bound never falls with the batch
        lower = decode.tpot(LOWER_KEY, at, mixed=False)
        bound_rate = min(
            prefill_count * prefill.prompts_per_s(LOWER_KEY),
            decode_count * max(batch, at) / (decode.output * lower),
        )
        used = prefill_count * prefill.chips + decode_count * decode.chips
        staged = max(prefill.split.pp, decode.split.pp)  # no run has stages
        return Deployment(
            POOLS,
            decode.chip,
            decode,
            prefill,
            decode_count,
            prefill_count,
            chips,
            batch,
            decode_count * batch / (decode.output * rate),
            lower,
            POOL_BAND if self.basis == ESTIMATE_KEY and staged == 1 else None,
            prefill.ttft(self.basis),
            prefill.ttft(LOWER_KEY),
            rate,
            bound_rate,
            prefill_count * prefill.chips / used,
            rate / (prefill_count * self._prompts(prefill)),
            decode.steps[at].memory_bytes,
            limit,
        )

    def _rate(self, server: Server, batch: float, *, mixed: bool) -> float:
        """Requests a second at a real batch, a line between whole ones [1/s]."""

        def rate(size: int) -> float:
            return size / (server.output * server.tpot(self.basis, size, mixed=mixed))

        low = math.floor(batch)
        if low < server.split.dp:
            return batch / (server.output * server.tpot(self.basis, server.split.dp, mixed=mixed))
        below = rate(low)
        return below if batch == low else below + (batch - low) * (rate(low + 1) - below)

    def _load(self, rated: RatedServer, batch: float) -> float:
        """Requests a second at a batch, or requests in flight: those in decode, and prompts."""
        rate = self._rate(rated.server, batch, mixed=rated.mixed)
        return rate if rated.prompt_s is None else batch + rate * rated.prompt_s

    def _batches_at(self, rated: Sequence[RatedServer]) -> list[float]:
        """Real batches at which servers carry their loads, the largest at most [1].

        Between whole batches the rate is taken as a line; below a sequence a replica a token takes
        as long as with one.
        """
        is_fewer = [
            needed.load * (1 + SLACK) < self._load(needed, needed.largest) for needed in rated
        ]
        searched = [*compress(rated, is_fewer)]
        wanted = [
            Wanted(needed.server.name, needed.largest, partial(self._load, needed), needed.load)
            for needed in searched
        ]
        lows = self.table.last_batches(wanted)
        above: dict[str, set[int]] = {}
        for needed, low in zip(searched, lows, strict=True):
            above.setdefault(needed.server.name, set()).add(max(low + 1, needed.server.split.dp))
        self.table.evaluate(above)
        batches = iter(
            self._between(needed, low) for needed, low in zip(searched, lows, strict=True)
        )
        return [
            next(batches) if fewer else float(needed.largest)
            for needed, fewer in zip(rated, is_fewer, strict=True)
        ]

    def _between(self, needed: RatedServer, low: int) -> float:
        """Real batch from a whole one on at which a server carries its load [1]."""
        if low < needed.server.split.dp:
            first = needed.server.split.dp
            return first * needed.load / self._load(needed, first)
        below = self._load(needed, low)
        rise = self._load(needed, low + 1) - below
        return low + (min(1.0, max(0.0, (needed.load - below) / rise)) if rise > 0 else 0.0)

    # ---------------------------------------------------------------- a load

    def needed(
        self, kinds: Sequence[str], *, load: float | None, users: float | None
    ) -> list[Deployment]:
        """Deployments for a load, fewest chips first, each server at the batch that it needs.

        Args:
            kinds: Kinds that are wanted.
            load: Requests a second [1/s]; None: `users` are given, or one server is enough.
            users: Requests in flight [1].
        """
        at_load = copy(self)
        at_load.limits = self.limits._replace(load=load, users=users)
        servers = []
        for server in self._usable() if MIXED in kinds and self.prefill is None else ():
            batch = self.batches[server.name, True]
            rate = self._rate(server, batch, mixed=True)
            latency = server.ttft(self.basis) + batch / rate
            count = max(1, math.ceil(_rate_of(load, users, latency) / rate - SLACK))
            servers.append((server, count, count * server.chips))
        chosen = []
        prefill, decode = self.quickest()
        for first, second in product(prefill, decode) if POOLS in kinds else ():
            prompts, answers = self._prompts(first) * self.limits.busy, self.answers(second)
            batch = self.batches[second.name, False]
            latency = first.ttft(self.basis) + batch / answers
            wanted = _rate_of(load, users, latency)
            readers, writers = (
                max(1, math.ceil(wanted / rate - SLACK)) for rate in (prompts, answers)
            )
            chips = readers * first.chips + writers * second.chips
            chosen.append(PoolCounts(first, second, readers, writers, chips))
        deployments = at_load.with_counts(servers, chosen)
        if users is not None:  # prompts that wait are in flight, too, and not in decode
            carrying = [plan for plan in deployments if plan.concurrency >= NEARLY * users]
            deployments = carrying or deployments
        return sorted(
            deployments, key=lambda planned: (planned.chips, planned.stages, -planned.req_per_s)
        )


FEWER = "prefill", "load"
"""Limits by which fewer sequences run than a server's largest batch."""


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


def handover(search: Search, deployment: Deployment) -> Handover | None:
    """Hand over caches between two pools; None: no network joins the chips.

    Between two chips the slower network counts.

    Args:
        search: The search with the servers.
        deployment: The pools.
    """
    routes = []
    for table in {
        id(part.table): part.table for part in (search, search.prefill or search)
    }.values():
        entry = table.sweep.chips[table.chip]
        names = default_route(entry, deployment.chips)[-1:]
        _, links, missing = interconnects(entry, names)
        if missing or not links:
            return None
        routes.append((float(links[0].bytes_per_s * links[0].links), names[0]))
    per_s, network = min(routes)
    case = deployment.decode.case
    prompt = deployment.decode.request.input
    cache = float(cache_on_chip(case.model.shape, prompt, case.sharing.bits, ONE_CHIP_SPLIT))
    smaller = min(deployment.prefill.chips, deployment.decode.chips)
    pools = (
        deployment.prefill_servers * deployment.prefill.chips,
        deployment.servers * deployment.decode.chips,
    )
    busy = deployment.req_per_s * cache / (per_s * min(pools))
    return Handover(cache, cache / (per_s * smaller), busy, network)
