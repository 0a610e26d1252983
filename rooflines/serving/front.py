"""Deployment fronts: the most output tokens/s/chip for each tokens/s/user."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from rooflines.serving.deployments import MIXED, POOLS, deployment_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rooflines.serving.deployments import Search
    from rooflines.serving.servers import Server

STEPS_A_DOUBLING = 2
"""Batches that a front tries for each doubling, besides those that a search has evaluated [1]."""


class FrontPoint(NamedTuple):
    """Point on a front.

    Attributes:
        decode, prefill: Servers that write answers and read prompts; in `mixed` the same.
        kind: `mixed` or `pools`.
        servers, prefill_servers: Number for each; in `mixed` the second is 0 [1].
        batch: Sequences in decode on a server [1].
        tpot_s, ttft_s: Mean token time, and a prompt on an idle server, on the basis [s].
        output_per_chip: Output tokens a second and given chip [1/s].
        prompt_share: Share in the chips' time that prompts take [1].
    """

    decode: Server
    prefill: Server
    kind: str
    servers: int
    prefill_servers: int
    batch: int
    tpot_s: float
    ttft_s: float
    output_per_chip: float
    prompt_share: float

    @property
    def chip(self) -> str:
        """Chip that writes answers."""
        return self.decode.chip

    @property
    def deployment(self) -> str:
        """Name, such as `2 x tp8`."""
        return deployment_name(self)

    @property
    def user_rate(self) -> float:
        """Tokens a second and user [1/s]."""
        return 1 / self.tpot_s


def front(search: Search, kinds: Sequence[str]) -> list[FrontPoint]:
    """Fronts by kind, the most tokens/s/user first.

    Its points keep TTFT, not TPOT. Prefill that limits two pools caps their rate at this batch.

    Args:
        search: The servers and their chips.
        kinds: Kinds that are wanted.
    """
    table = search.table
    servers = [table.servers[name] for name, mixed in search.batches if mixed]
    table.evaluate(
        {
            server.name: doubling_batches(server.split.dp, server.max_batch, STEPS_A_DOUBLING)
            for server in servers
            if server.split.pp == 1  # with stages as far as the search has tried
        }
    )
    by_kind = {MIXED: _mixed, POOLS: _pools}
    return [point for kind in kinds for point in pareto_points(by_kind[kind](search, servers))]


def pareto_points(points: Iterable[FrontPoint]) -> list[FrontPoint]:
    """Points that no other one exceeds in both rates, the most tokens/s/user first."""
    best, kept_points = 0.0, []
    for point in sorted(points, key=lambda point: (point.tpot_s, -point.output_per_chip)):
        if point.output_per_chip > best:
            best = point.output_per_chip
            kept_points.append(point)
    return kept_points


def doubling_batches(smallest: int, largest: int, steps: int) -> set[int]:
    """Batches between two, as many for each doubling, ends included [1].

    Args:
        smallest: First batch [1].
        largest: Last batch [1].
        steps: Batches for each doubling [1].
    """
    count = math.ceil(math.log2(largest / smallest) * steps)
    middle = (round(smallest * 2 ** (n / steps)) for n in range(count))
    return {smallest, largest, *(min(largest, batch) for batch in middle)}


def _evaluated(server: Server) -> list[int]:
    """Batches with times that fit, with a sequence for each replica [1]."""
    return [batch for batch in server.steps if server.split.dp <= batch <= server.max_batch]


def _mixed(search: Search, servers: Sequence[Server]) -> Iterator[FrontPoint]:
    """Yield mixed servers at every evaluated batch."""
    for server in servers:
        count = search.chips // server.chips
        if not count or not search.prompts_keep[server.name]:
            continue
        for batch in _evaluated(server):
            tpot = server.tpot(search.basis, batch, mixed=True)
            rate = count * batch / tpot / search.chips
            alone = server.tpot(search.basis, batch, mixed=False)
            first, share = server.ttft(search.basis), max(0.0, 1 - alone / tpot)
            yield FrontPoint(server, server, MIXED, count, 0, batch, tpot, first, rate, share)


def _pools(search: Search, servers: Sequence[Server]) -> Iterator[FrontPoint]:
    """Yield two pools at every evaluated batch, with the counts that serve most."""
    quickest, _ = search.quickest()
    prefill = [
        (server, server.prompts_per_s(search.basis) * search.limits.busy) for server in quickest
    ]
    for server in servers:
        for batch in _evaluated(server):
            tpot = server.tpot(search.basis, batch, mixed=False)
            answers = batch / (server.output * tpot)
            for first, prompts in prefill:
                counts = _best_counts(search.chips, first, prompts, server, answers)
                if counts is not None:
                    rate, prefills, decodes = counts
                    reading, writing = prefills * first.chips, decodes * server.chips
                    yield FrontPoint(
                        server,
                        first,
                        POOLS,
                        decodes,
                        prefills,
                        batch,
                        tpot,
                        first.ttft(search.basis),
                        rate * server.output / search.chips,
                        reading / (reading + writing),
                    )


def _best_counts(
    chips: int, prefill: Server, prompts: float, decode: Server, answers: float
) -> tuple[float, int, int] | None:
    """Requests a second [1/s], and the prefill and decode counts that serve most [1].

    Decode's rate rises with its count and prefill's falls: the best is where they cross.
    """
    most = (chips - prefill.chips) // decode.chips
    if most < 1:
        return None
    crossing = chips * prompts / (prompts * decode.chips + answers * prefill.chips)
    best = None
    for decodes in range(max(1, math.floor(crossing) - 1), min(most, math.ceil(crossing) + 1) + 1):
        prefills = (chips - decodes * decode.chips) // prefill.chips
        if prefills:
            rate = min(prefills * prompts, decodes * answers)
            best = max(best or (0.0, 0, 0), (rate, prefills, decodes))
    if best is None:
        prefills = (chips - decode.chips * most) // prefill.chips
        best = min(prefills * prompts, most * answers), prefills, most
    return best
