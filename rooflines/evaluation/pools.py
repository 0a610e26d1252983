"""Prefill on chips of its own: what a server of it takes, beside servers that decode.

A server is the chips of a split. Times are those of kernels one after another. Handing caches over
overlaps with computing, so that its time is stated and not added.
"""

from __future__ import annotations

from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, cast

import polars as pl

from rooflines.evaluation.compiler import quotient
from rooflines.evaluation.footprints import Footprint
from rooflines.evaluation.requests import RequestSheet, first_token
from rooflines.evaluation.step_rows import cost_columns, where_fits
from rooflines.hardware.support import interconnects
from rooflines.models.memory import cache_on_chip, kv_cache_elements
from rooflines.models.split import Split

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from fractions import Fraction

    from rooflines.evaluation.operation_rows import Stages
    from rooflines.sweep.step_sweep import ModelSweep, StepCase

HANDED_OVER = ("ttft_pool_s", "kv_transfer_bytes", "kv_transfer_s")
"""Columns with a number of every request of every case."""

WHOLE = Split.model_validate({})
"""On one chip, whose cache has no copies."""


class PoolSheet(RequestSheet):
    """The columns of rows of requests whose prompts are read by servers of their own."""

    def stages(self) -> Stages:
        """The columns but keys and sizes; null where the pool lacks a dtype."""
        prices = self.config.prices
        prompt_s = quotient(
            pl.col("ttft_pool_s"), self._of_servers(lambda each: float(each.split.dp))
        )
        answer_s = pl.col("output").cast(pl.Float64) * quotient(
            pl.col("tpot_serial_s"), pl.col("B").cast(pl.Float64)
        )
        chips = self._of_servers(lambda each: float(each.split.chips))
        usd_per_s = self._of_servers(lambda each: cost_columns([each], prices)["#usd_per_s"][0])
        return [
            *super().stages(),
            self._prompts_apart(),
            {"prefill_servers": quotient(prompt_s, answer_s)},
            {
                "tokens_per_s_per_chip_pools": quotient(
                    pl.col("tokens_per_s_serial"),
                    pl.col("chips") + pl.col("prefill_servers") * chips,
                ),
                "usd_per_mtok_input": where_fits(
                    usd_per_s * 1e6 * quotient(prompt_s, pl.col("input").cast(pl.Float64))
                ),
            },
        ]

    def footprints(self) -> Stages:
        """What chips hold, and whether it fits: there, and a prompt where it is read."""
        room: list[bool | None] = []
        for server, request in product(self.servers, self.requests):
            if server is None:
                room.append(True)
                continue
            shape = server.workload.resident_shape
            far, near = (
                kv_cache_elements(shape, request.input, local=each) for each in (False, True)
            )
            most = Footprint.of(server, server.split).sequences(far, near)
            room.append(None if most is None else most > 0)
        reads = self.of_requests(room, pl.Boolean)
        return [*super().footprints(), {"fits": pl.col("fits") & reads}]

    @cached_property
    def servers(self) -> list[StepCase | None]:
        """What prefills for every case; None where the pool lacks a dtype."""
        pool = cast("ModelSweep", self.cases[0].place.sweep).prefill_pool
        known = {_served(case): case for case in pool.cases} if pool else {}
        return [known.get(_served(case)) for case in self.cases]

    def _of_servers(self, number: Callable[[StepCase], float | None]) -> pl.Expr:
        """A number of the server of every case."""
        return self.sheet.constant(
            [None if each is None else number(each) for each in self.servers]
        )

    def _prompts_apart(self) -> dict[str, pl.Expr]:
        """The time of a prompt, and the caches that change servers."""
        rows: list[tuple[float | None, ...]] = []
        for (case, server), request in product(
            zip(self.cases, self.servers, strict=True), self.requests
        ):
            if server is None:
                rows.append((None, None, None))
                continue
            moved = cache_on_chip(server.model.shape, request.input, server.sharing.bits, WHOLE)
            longest = kv_transfer_s(moved, [server, case])
            first_s = first_token(server, request).ops
            rows.append((first_s, float(moved), None if longest is None else float(longest)))
        columns = zip(HANDED_OVER, zip(*rows, strict=True), strict=True)
        return {name: self.of_requests(values) for name, values in columns}


def _served(case: StepCase) -> tuple[str, str, str]:
    """What the servers of a row have in common: its model, memory level and dtypes."""
    return case.name, case.memory, case.dtypes.label


def kv_transfer_s(moved: Fraction, ends: Sequence[StepCase]) -> Fraction | None:
    """How long caches take between servers, over the interconnect around their first one [s].

    Args:
        moved: The caches [byte].
        ends: The servers; each of the chips of a replica moves its part, and the slower counts.

    Returns:
        None where a chip has no interconnect.
    """
    times = []
    for end in ends:
        entry = end.place.entry
        _, links, missing = interconnects(entry, [*entry.networks][:2][-1:])
        if missing:
            return None
        times.append(moved / (links[0].bytes_per_s * links[0].links * end.split.shards))
    return max(times)
