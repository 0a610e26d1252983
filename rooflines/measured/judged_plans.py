"""Choices among deployments, judged by served runs.

A planner sees the split and the requests in flight of each measured run, and chooses by its own
TPOT and output tokens/s/chip. Reach compares the best measured run with the chosen split to the
best of all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence  # noqa: TC003, named tuples read them
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from rooflines.fits.timings import PARALLEL, POOL_COLUMNS
from rooflines.measured.served_estimates import (
    LACKS,
    NOT_MODELLED,
    NOT_RECORDED,
    SYSTEM,
    system_sweep,
    with_splits,
)
from rooflines.measured.unseen_models import LeftOut
from rooflines.models.split import Split
from rooflines.serving.deployments import MIXED, POOLS, TIE_BY_CHIPS, TIE_BY_DIVISION
from rooflines.serving.front import doubling_batches
from rooflines.serving.servers import ESTIMATE_KEY, LOWER_KEY, SERIAL_KEY, ServerTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflines.measured.catalogues import Catalogues
    from rooflines.serving.servers import Server

LIMITS_S = (0.02, 0.03, 0.05, 0.1)
"""Limits on TPOT that choices are made for [s]."""

MIN_RUNS = {MIXED: 6, POOLS: 4}
"""Fewest runs with at least two splits in a group from which to choose, by kind [1]."""

KEPT_WITHIN = 1.05
"""Measured TPOT over its limit up to which a choice keeps it [1]."""

NEARLY_BEST = 0.95
"""Reach from which a choice counts as nearly the best [1]."""

GROUP = ("model", "chip", "software", "linear", "experts", "input_tokens", "output_tokens")
"""Columns in which the runs that a choice is made among agree."""

BASES = (LOWER_KEY, SERIAL_KEY, ESTIMATE_KEY)

AT_RANDOM, MIN_CHIPS, MAX_CHIPS = "a split at random", "the fewest chips", "the most chips"
"""Rules that choose without any model."""

STEPS_A_DOUBLING = 4
"""Batches that are evaluated for each doubling [1]; times are lines in between."""

ROUNDS = 40
"""Halvings in the search of a batch [1]."""


class Planned(NamedTuple):
    """Run as a planner expects it.

    Attributes:
        tpot_s: Mean token time [s].
        output_per_chip: Output tokens a second and chip [1/s].
    """

    tpot_s: float
    output_per_chip: float


class MeasuredDeployment(NamedTuple):
    """Measured run beside what a planner expects.

    Attributes:
        group: Values in `GROUP`.
        kind: `mixed` or `pools`.
        split: Deployment name.
        chips: All chips [1].
        in_sample: True if the step fit has seen the model in mixed runs.
        measured: As measured.
        planned: By basis.
    """

    group: tuple[Any, ...]
    kind: str
    split: str
    chips: int
    in_sample: bool
    measured: Planned
    planned: Mapping[str, Planned]


@dataclass(frozen=True)
class BatchTimes:
    """A server's TPOT over real batches, on one basis.

    Attributes:
        batches: Evaluated batches, ascending [1].
        times: TPOT at these [s].
    """

    batches: Sequence[int]
    times: Sequence[float]

    def tpot(self, batch: float) -> float:
        """TPOT at a batch, by lines between the evaluated ones [s]."""
        if batch <= self.batches[0]:
            return self.times[0]
        for (low, high), (first, last) in zip(
            pairwise(self.batches), pairwise(self.times), strict=True
        ):
            if batch <= high:
                return first + (last - first) * (batch - low) / (high - low)
        return self.times[-1]


def measured_deployments(frame: pl.DataFrame, catalogues: Catalogues) -> list[MeasuredDeployment]:
    """Runs with an estimate, beside what a planner expects of them.

    Estimates of mixed runs are by step fits that have not seen the model: the given ones, or fits
    to the other models' runs; with too few of them, by the given ones, in sample. No step fit has
    seen two pools.

    Args:
        frame: Served runs joined with the model.
        catalogues: Chips, dtypes and calibrations that they were joined by.
    """
    if "tpot_s" not in frame.columns:  # no served models
        return []
    runs = with_kinds(frame)
    left_out = LeftOut(runs.filter(pl.col("kind") == MIXED), catalogues)
    deployments: list[MeasuredDeployment] = []
    for (kind, model), part in runs.group_by("kind", "model", maintain_order=True):
        fits = left_out.without(str(model)) if kind == MIXED else catalogues
        planner = Planner(fits or catalogues, in_sample=fits is None)
        for keys, group in part.group_by(GROUP, maintain_order=True):
            deployments += planner.deployments(keys, str(kind), group)
    return deployments


def with_kinds(frame: pl.DataFrame) -> pl.DataFrame:
    """Runs with an estimate, with their kind and deployment name.

    Inside tp, experts by width or by expert are one deployment.
    """
    missing = {name: pl.lit(None, pl.Int64) for name in POOL_COLUMNS if name not in frame.columns}
    apart = pl.max_horizontal("prefill_servers", 0).fill_null(0) > 0
    is_known = pl.col(LACKS).is_null() | ~pl.col(LACKS).is_in([NOT_MODELLED, NOT_RECORDED])
    runs = frame.with_columns(**missing).with_columns(
        kind=pl.when(apart).then(pl.lit(POOLS)).otherwise(pl.lit(MIXED)),
        ep=pl.when(pl.col("dp") == 1).then(1).otherwise("ep"),
    )
    if "disaggregated" in frame.columns:
        runs = runs.filter(apart | (pl.col("disaggregated").fill_null(0) == 0))
    named = pl.format("tp{}-dp{}-ep{}", "tp", "dp", "ep")
    pools = pl.format(
        "{}P tp{}-dp{} + {}D {}",
        *("prefill_servers", "prefill_tp", "prefill_attention_dp", "servers"),
        named,
    )
    return runs.filter(is_known, pl.col("t_estimate_s").is_not_null()).with_columns(
        deployment=pl.when(pl.col("kind") == POOLS).then(pools).otherwise(named)
    )


class Planner:
    """Planner that expects a TPOT and a throughput of a measured run.

    Args:
        catalogues: Chips, dtypes and calibrations.
        in_sample: True if their step fits have seen the model.
    """

    def __init__(self, catalogues: Catalogues, *, in_sample: bool = False) -> None:
        self.catalogues = catalogues
        self.in_sample = in_sample
        self._servers: dict[tuple[Any, ...], Server] = {}

    def deployments(
        self, keys: tuple[Any, ...], kind: str, runs: pl.DataFrame
    ) -> Iterator[MeasuredDeployment]:
        """Yield the runs in one group beside what is expected of them.

        Args:
            keys: Values in `GROUP`.
            kind: `mixed` or `pools`.
            runs: From `with_kinds`.
        """
        for run in runs.iter_rows(named=True):
            server, chips, count = self._server(run, runs), run["chips"], 1
            prefill = None
            if kind == POOLS:
                prefill = self._prefill_server(run, runs)
                if prefill is None:
                    continue
                count = run["servers"]
                chips = count * chips + run["prefill_servers"] * prefill.chips
            expected = {}
            for basis in BASES:
                times = batch_times(server, basis, mixed=prefill is None)
                if prefill is None:
                    expected[basis] = closed_loop(run, server, times, basis, chips)
                else:
                    expected[basis] = pools_loop(run, server, prefill, times, basis, chips)
            rate = run["concurrency"] * run["output_tokens"]
            rate /= run["ttft_s"] + run["output_tokens"] * run["tpot_s"]
            measured = Planned(run["tpot_s"], rate / chips)
            yield MeasuredDeployment(
                keys, kind, run["deployment"], chips, self.in_sample, measured, expected
            )

    def _prefill_server(self, run: Mapping[str, Any], runs: pl.DataFrame) -> Server | None:
        """Prefill server in a run; None: a split that is not modelled."""
        parallelism = {name: run[f"prefill_{name}"] for name in PARALLEL}
        columns = {name: pl.lit(value, pl.Int64) for name, value in parallelism.items()}
        row = runs.head(1).with_columns(**columns, concurrency=pl.lit(1, pl.Int64))
        (split,) = with_splits(row).to_dicts()
        if split[LACKS] is not None:
            return None
        ep = split["ep"] if split["dp"] > 1 else 1
        return self._server({**split, "ep": ep}, with_splits(row).with_columns(ep=ep))

    def _server(self, run: Mapping[str, Any], runs: pl.DataFrame) -> Server:
        """Server with a run's split, with times at batches up to the most requests in flight."""
        conditions = [pl.col(name).eq_missing(pl.lit(run[name])) for name in ("tp", "dp", "ep")]
        part = runs.filter(*conditions)
        most = max(run["dp"], *part["concurrency"].drop_nulls())
        keys = *(run[name] for name in (*SYSTEM, "input_tokens", "output_tokens")), most
        if keys not in self._servers:
            sweep = system_sweep(part, self.catalogues)
            split = Split.model_validate({name: run[name] for name in ("tp", "dp", "ep")})
            table = ServerTable(sweep, split.chips, split)
            (server,) = table.servers.values()
            batches = doubling_batches(split.dp, most, STEPS_A_DOUBLING)
            table.evaluate({server.name: batches})
            self._servers[keys] = server
        return self._servers[keys]


def batch_times(server: Server, basis: str, *, mixed: bool) -> BatchTimes:
    """Times at all evaluated batches with a sequence for each replica."""
    batches = sorted(batch for batch in server.steps if batch >= server.split.dp)
    return BatchTimes(batches, [server.tpot(basis, batch, mixed=mixed) for batch in batches])


def closed_loop(
    run: Mapping[str, Any], server: Server, times: BatchTimes, basis: str, chips: int
) -> Planned:
    """Mixed server with as many requests in flight as a run had.

    By Little's law, the batch B in decode is concurrency * OSL * t(B) / (TTFT + OSL * t(B)).
    """
    ttft, answer = server.ttft(basis), run["output_tokens"]

    def room(batch: float) -> float:
        decoding = answer * times.tpot(batch)
        return float(run["concurrency"] * decoding / (ttft + decoding)) - batch

    batch = _largest(run["concurrency"], lambda size: room(size) >= 0)
    tpot = times.tpot(max(batch, server.split.dp))
    return Planned(tpot, run["concurrency"] * answer / (ttft + answer * tpot) / chips)


def pools_loop(  # noqa: PLR0913, PLR0917, parts of a run
    run: Mapping[str, Any],
    server: Server,
    prefill: Server,
    times: BatchTimes,
    basis: str,
    chips: int,
) -> Planned:
    """Two pools with as many requests in flight as a run had.

    The largest batch on a decode server that leaves room for requests in prefill, and that prefill
    feeds.
    """
    answer, count, ttft = run["output_tokens"], run["servers"], prefill.ttft(basis)
    most = run["prefill_servers"] * prefill.prompts_per_s(basis)

    def rate(batch: float) -> float:
        return float(count * batch / (answer * times.tpot(batch)))

    def keeps(batch: float) -> bool:
        in_flight = count * batch + rate(batch) * ttft
        return bool(in_flight <= run["concurrency"] and rate(batch) <= most)

    batch = _largest(run["concurrency"] / count, keeps)
    tpot = times.tpot(max(batch, server.split.dp))
    return Planned(tpot, min(rate(batch), most) * answer / chips)


def _largest(most: float, keeps: Any) -> float:  # noqa: ANN401, a condition on a batch
    """Largest real batch that keeps a condition, by halving [1]."""
    low, high = 0.0, float(most)
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


# ---------------------------------------------------------------- choices


def plan_choices(deployments: Sequence[MeasuredDeployment]) -> pl.DataFrame:
    """Choices for each group and limit on TPOT that a run keeps.

    Args:
        deployments: From `measured_deployments`.

    Returns:
        A row for each group, limit and basis: columns from `GROUP`, `kind`, `tpot_limit_s` [s],
        `in_sample`, `by`, `chosen` and `best`, deployments; `reach`, the best measured output
        tokens/s/chip of the chosen deployment within the limit over the best of all, and
        `reach_ties`, that of all that the basis cannot tell from it [1]; `kept`, true if the chosen
        run keeps the limit; `tpot_ratio` and `output_ratio`, planned over measured there [1].
    """
    rows = []
    groups: dict[tuple[Any, ...], list[MeasuredDeployment]] = {}
    for deployment in deployments:
        groups.setdefault((*deployment.group, deployment.kind), []).append(deployment)
    for keys, runs in groups.items():
        *_, kind = keys
        if len(runs) < MIN_RUNS[kind] or len({run.split for run in runs}) == 1:
            continue
        named = dict(zip((*GROUP, "kind"), keys, strict=True))
        for limit in LIMITS_S:
            if any(run.measured.tpot_s <= limit for run in runs):
                named |= {"tpot_limit_s": limit, "in_sample": runs[0].in_sample}
                rows += [{**named, **row} for row in _choices(runs, limit)]
    return pl.DataFrame(rows, schema=CHOICE_TYPES, infer_schema_length=None)


CHOICE_TYPES = {
    **{name: pl.Int64 if name.endswith("_tokens") else pl.String for name in (*GROUP, "kind")},
    "tpot_limit_s": pl.Float64,
    "in_sample": pl.Boolean,
    **dict.fromkeys(("by", "chosen", "best"), pl.String),
    "reach": pl.Float64,
    "reach_ties": pl.Float64,
    "kept": pl.Boolean,
    "tpot_ratio": pl.Float64,
    "output_ratio": pl.Float64,
}
"""Columns in `plan_choices` with their types."""


def _choices(runs: Sequence[MeasuredDeployment], limit: float) -> Iterator[dict[str, Any]]:
    """Yield the choice of each basis, and of rules without a model, for one limit."""
    within = [run for run in runs if run.measured.tpot_s <= limit]
    first = max(within, key=lambda run: run.measured.output_per_chip)
    best = first.measured.output_per_chip

    def reach(names: set[str]) -> float:
        rates = [run.measured.output_per_chip for run in within if run.split in names]
        return max(rates, default=0.0) / best

    for basis in BASES:
        possible = [run for run in runs if run.planned[basis].tpot_s <= limit]
        chosen = (
            min(possible, key=lambda run: _rank(run, basis))
            if possible
            else min(runs, key=lambda run: run.planned[basis].tpot_s)
        )
        planned, measured = chosen.planned[basis], chosen.measured
        ties = {chosen.split}
        for run in possible:
            ratio = TIE_BY_DIVISION if run.chips == chosen.chips else TIE_BY_CHIPS
            if run.planned[basis].output_per_chip * ratio > planned.output_per_chip:
                ties.add(run.split)
        yield {
            "by": basis,
            "chosen": chosen.split,
            "best": first.split,
            "reach": reach({chosen.split}),
            "reach_ties": reach(ties),
            "kept": measured.tpot_s <= limit * KEPT_WITHIN,
            "tpot_ratio": planned.tpot_s / measured.tpot_s,
            "output_ratio": planned.output_per_chip / measured.output_per_chip,
        }
    splits = sorted({run.split for run in runs})
    at_random = sum(reach({split}) for split in splits) / len(splits)
    yield {"by": AT_RANDOM, "best": first.split, "reach": at_random}
    for rule, choose in ((MIN_CHIPS, min), (MAX_CHIPS, max)):
        count = choose(run.chips for run in runs)
        chosen_splits = {run.split for run in runs if run.chips == count}
        yield {"by": rule, "best": first.split, "reach": reach(chosen_splits)}


def _rank(run: MeasuredDeployment, basis: str) -> tuple[float, int, float, str]:
    """Rank: output tokens/s/chip to three digits as in a plan, then chips, TPOT and name."""
    planned = run.planned[basis]
    rate = -float(f"{planned.output_per_chip:.3g}")
    return rate, run.chips, planned.tpot_s, run.split


def choice_errors(choices: pl.DataFrame, by: Sequence[str] = ()) -> pl.DataFrame:
    """Means over choices.

    Args:
        choices: From `plan_choices`.
        by: Further columns to group by, such as `model` or `tpot_limit_s`.

    Returns:
        A row for each kind and basis: `choices` [1]; `reach`, the mean, `nearly_best_share`, the
        share with a reach of at least `NEARLY_BEST`, and `reach_ties`, with ties tried [1];
        `kept_share` [1]; medians and p90 over |planned / measured - 1| at the chosen run, for TPOT,
        `tpot_median` and `tpot_p90`, and for output tokens/s/chip, `output_median` and
        `output_p90` [1].
    """
    tpot, output = ((pl.col(f"{name}_ratio") - 1).abs() for name in ("tpot", "output"))
    return choices.group_by("kind", *by, "by", maintain_order=True).agg(
        choices=pl.len().cast(pl.Int64),
        reach=pl.col("reach").mean(),
        nearly_best_share=(pl.col("reach") >= NEARLY_BEST).mean(),
        reach_ties=pl.col("reach_ties").mean(),
        kept_share=pl.col("kept").mean(),
        tpot_median=tpot.median(),
        tpot_p90=tpot.quantile(0.9, "linear"),
        output_median=output.median(),
        output_p90=output.quantile(0.9, "linear"),
    )


def above_bound(deployments: Sequence[MeasuredDeployment]) -> int:
    """Runs with more output tokens/s/chip than the bound at their requests in flight [1]."""
    return sum(
        run.measured.output_per_chip > run.planned[LOWER_KEY].output_per_chip for run in deployments
    )
