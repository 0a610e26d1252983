"""Disaggregated serving: prefill on servers apart from the servers that decode.

A server is the chips of a split. Times are serialized. The transfer of KV caches overlaps with
computing, so that its time is a column and not added.
"""

from __future__ import annotations

from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, cast

import polars as pl

from rooflines.basics.expressions import quotient
from rooflines.dictionary.columns import ESTIMATE_SUFFIX, SERIAL_SUFFIX
from rooflines.evaluation.footprints import largest_fitting_batch
from rooflines.evaluation.requests import request_column, request_parts
from rooflines.evaluation.step_rows import cost_columns, where_fits
from rooflines.hardware.support import interconnects
from rooflines.models.memory import cache_on_chip, kv_cache_elements
from rooflines.models.split import ONE_CHIP_SPLIT
from rooflines.sweep.prompt_times import (
    prompt_seconds,
    prompts_per_s,
    prompts_seconds,
    slowest_stage,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from fractions import Fraction

    from rooflines.evaluation.operation_rows import Stages
    from rooflines.evaluation.step_rows import StepBlock, StepParts
    from rooflines.sweep.step_sweep import ModelSweep, StepCase

PREFILL_COLUMNS = ("ttft_pool_s", "#prompts_s", "kv_transfer_bytes", "kv_transfer_s")
"""Columns of prefill and transfer, with a number for every request in every case."""

STEP_TIMES = {"": "t_lower_s", SERIAL_SUFFIX: "t_serial_s", ESTIMATE_SUFFIX: "t_estimate_s"}
"""Columns with the time of a decode step, by the suffix of rates at it."""


def pool_parts(steps: StepBlock[StepCase]) -> StepParts:
    """Parts of rows for requests with prompts on separate prefill servers."""
    requests, pool = request_parts(steps), PrefillPool(steps)
    return requests._replace(
        footprints=[*requests.footprints, {"fits": pl.col("fits") & pool.has_room()}],
        after=[*requests.after, *pool.stages()],
    )


class PrefillPool:
    """Servers that prefill for steps.

    Args:
        steps: The steps, whose sweep has the pool.
    """

    def __init__(self, steps: StepBlock[StepCase]) -> None:
        self.steps, self.cases = steps, steps.cases
        self.requests = steps.config.requests or ()

    def stages(self) -> Stages:
        """Columns of the pool; null where it lacks a dtype.

        Prefill servers per decode server: (ttft_pool_s / dp) / (output * tpot_serial_s / B); with
        pipeline stages the slowest one's time in place of the TTFT.
        """
        prices = self.steps.config.prices
        prompt_s = quotient(
            pl.col("#prompts_s"), self._server_constant(lambda server: float(server.split.dp))
        )
        answer_s = pl.col("output").cast(pl.Float64) * quotient(
            pl.col("tpot_serial_s"), pl.col("B").cast(pl.Float64)
        )
        chips = self._server_constant(lambda server: float(server.split.chips))
        usd_per_s = self._server_constant(
            lambda server: cost_columns([server], prices)["#usd_per_s"][0]
        )
        return [
            self._prefill_and_transfer(),
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
            *self._rates(chips),
        ]

    def _rates(self, prefill_chips: pl.Expr) -> Stages:
        """Columns with requests per second on all servers, where their numbers are given.

        Also the time of a prompt alone on a server that prefills.

        min(n_p dp / t(prompts), n_d B / (output TPOT)); busy is this over the former.
        """
        pools = self.steps.config.pools
        if pools is None or pools.servers is None:
            return []
        servers = pools.servers
        rates: list[tuple[float | None, ...]] = []
        for server, request in product(self.servers, self.requests):
            rates_by_time = (None,) * 3 if server is None else prompts_per_s(server, request)
            rates.append(
                tuple(None if rate is None else servers.prefill * rate for rate in rates_by_time)
            )
        prompts = [request_column(self.steps, values) for values in zip(*rates, strict=True)]
        used = pl.col("chips") * float(servers.decode) + prefill_chips * float(servers.prefill)
        output = pl.col("output").cast(pl.Float64)
        columns = self._first_tokens()
        for (suffix, time), prompt_rate in zip(STEP_TIMES.items(), prompts, strict=True):
            tokens = pl.col("#tokens") * float(servers.decode)
            answers = quotient(tokens, output * pl.col(time))
            rate = pl.when(answers.is_not_null() & prompt_rate.is_not_null()).then(
                pl.min_horizontal(answers, prompt_rate)
            )
            columns |= {
                f"req_per_s{suffix}": rate,
                f"output_tokens_per_s_per_chip{suffix}": quotient(rate * output, used),
                f"prefill_busy{suffix}": quotient(rate, prompt_rate),
            }
        return [columns]

    def _first_tokens(self) -> dict[str, pl.Expr]:
        """Columns with the time of one prompt on an idle prefill server: bound and estimate."""
        times = [
            None if server is None else prompt_seconds(server, request)
            for server, request in product(self.servers, self.requests)
        ]
        lower, estimate = (
            [None if time is None else getattr(time, name) for time in times]
            for name in ("lower", "estimate")
        )
        return {
            "ttft_pool_lower_s": request_column(self.steps, lower),
            "ttft_pool_estimate_s": request_column(self.steps, estimate),
        }

    def has_room(self) -> pl.Expr:
        """Column that is true where a prompt fits on its prefill server, or has none."""
        has_room: list[bool | None] = []
        for server, request in product(self.servers, self.requests):
            if server is None:
                has_room.append(True)
                continue
            shape = server.workload.resident_shape
            full, local = (
                kv_cache_elements(shape, request.input, local=is_local)
                for is_local in (False, True)
            )
            max_prompts = largest_fitting_batch(server, full, local)
            has_room.append(None if max_prompts is None else max_prompts > 0)
        return request_column(self.steps, has_room, pl.Boolean)

    @cached_property
    def servers(self) -> list[StepCase | None]:
        """Prefill server for every case; None where the pool lacks a dtype."""
        pool = cast("ModelSweep", self.cases[0].place.sweep).prefill_pool
        by_model = {_model_key(case): case for case in pool.cases} if pool else {}
        return [by_model.get(_model_key(case)) for case in self.cases]

    def _server_constant(self, number: Callable[[StepCase], float | None]) -> pl.Expr:
        """Column with a number from every case's prefill server."""
        return self.steps.compiler.constant(
            [None if server is None else number(server) for server in self.servers]
        )

    def _prefill_and_transfer(self) -> dict[str, pl.Expr]:
        """Columns with the prefill time, and the KV caches that change servers."""
        rows: list[tuple[float | None, ...]] = []
        for (case, server), request in product(
            zip(self.cases, self.servers, strict=True), self.requests
        ):
            if server is None:
                rows.append((None,) * len(PREFILL_COLUMNS))
                continue
            kv_cache_bytes = cache_on_chip(
                server.model.shape, request.input, server.sharing.bits, ONE_CHIP_SPLIT
            )
            longest = kv_transfer_s(kv_cache_bytes, [server, case])
            first_s = prompts_seconds(server, request).serial
            prompts_s = slowest_stage(server, request).serial
            transfer_s = None if longest is None else float(longest)
            rows.append((first_s, prompts_s, float(kv_cache_bytes), transfer_s))
        columns = zip(PREFILL_COLUMNS, zip(*rows, strict=True), strict=True)
        return {name: request_column(self.steps, values) for name, values in columns}


def _model_key(case: StepCase) -> tuple[str, str, str]:
    """Model, memory level and dtypes, which the servers of a row share."""
    return case.name, case.memory, case.dtypes.label


def kv_transfer_s(kv_cache_bytes: Fraction, ends: Sequence[StepCase]) -> Fraction | None:
    """KV cache transfer time between servers: bytes / (links * bandwidth * chips) [s].

    The interconnect is the second, around the first, if there are two.

    Args:
        kv_cache_bytes: The caches [byte].
        ends: The servers; every chip of a replica moves its part, and the slower end counts.

    Returns:
        None where a chip has no interconnect.
    """
    times = []
    for end in ends:
        entry = end.place.entry
        _, links, missing = interconnects(entry, [*entry.networks][:2][-1:])
        if missing:
            return None
        chips = end.split.shards * end.split.stages
        times.append(kv_cache_bytes / (links[0].bytes_per_s * links[0].links * chips))
    return max(times)
