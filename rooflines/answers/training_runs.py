"""Measured training steps beside their bound and estimate: errors, bands, order of pairs."""

from __future__ import annotations

from itertools import combinations
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.answers.train import train
from rooflines.basics.errors import RooflinesError
from rooflines.fits.calibration_files import AUTO_CALIBRATION, NEWER_RELEASE
from rooflines.models.library import find_model
from rooflines.training.parallel_plan import ZERO_STAGES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rooflines.answers.question import QuestionCatalogues

SYNONYMS = {
    "B": "global_batch",
    "S": "sequence_length",
    "dtypes": "precision",
    "interleave": "vpp",
    "release": "stack_version",
}
"""Column names of a table of training steps, by other names for them."""

NEEDED = ("model", "chip", "chips", "global_batch", "sequence_length", "seconds")
"""Columns that a table of training steps has at least."""

SHARDS = {**ZERO_STAGES, "hsdp": "weights"}
"""Values of `shard` by name in tables."""

RECOMPUTE = ("none", "selective", "full")

PAIR_RATIO = 1.1
"""Least ratio of measured times per token in a pair whose order is judged [1]."""


def is_training_table(columns: Iterable[str]) -> bool:
    """True if a table with these columns has training steps."""
    names = {SYNONYMS.get(name, name) for name in columns}
    return {*NEEDED} <= names


def training_runs(frame: pl.DataFrame, catalogues: QuestionCatalogues) -> pl.DataFrame:
    """Training steps beside bound and estimate.

    Args:
        frame: A row for each step, with the columns in `NEEDED`; besides, where known, `tp`, `pp`,
            `cp`, `ep`, `vpp`, `micro_batch`, `shard`, `recompute`, `precision`, `stack` and
            `stack_version`.
        catalogues: Chips and calibrations.

    Returns:
        Its keys, `split`, `seconds` [s], `t_lower_s`, `t_estimate_s` [s], `ratio`, measured over
        estimate [1], `in_band`, `below_bound`, and `reason` where it has no answer.
    """
    renamed = frame.rename({name: SYNONYMS[name] for name in frame.columns if name in SYNONYMS})
    rows = [
        _judged(row, catalogues)
        for row in renamed.iter_rows(named=True)
        if row["seconds"] is not None
    ]
    return pl.DataFrame(rows, schema=RUN_TYPES)


RUN_TYPES: Mapping[str, Any] = {
    **dict.fromkeys(("model", "chip"), pl.String),
    "chips": pl.Int64,
    **dict.fromkeys(("precision", "stack", "release", "split"), pl.String),
    **dict.fromkeys(("tokens", "seconds", "t_lower_s", "t_estimate_s", "ratio"), pl.Float64),
    **dict.fromkeys(("in_band", "below_bound"), pl.Boolean),
    "reason": pl.String,
}
"""Columns in `training_runs` with their types."""


def _judged(row: Mapping[str, Any], catalogues: QuestionCatalogues) -> dict[str, Any]:
    """A step beside its bound and estimate, or with the reason why it has none."""
    judged: dict[str, Any] = dict.fromkeys(RUN_TYPES)
    judged |= {name: row.get(name) for name in ("model", "chip", "precision", "stack")}
    batch, context = int(row["global_batch"]), int(row["sequence_length"])
    judged |= {
        "chips": int(row["chips"]),
        "release": None if row.get("stack_version") is None else str(row["stack_version"]),
        "tokens": float(batch * context),
        "seconds": float(row["seconds"]),
    }
    if row.get("shape"):
        return {**judged, "reason": f"model has a shape of its own, {row['shape']}"}
    try:
        answer = _answer(row, batch, context, catalogues)
    except RooflinesError as error:
        return {**judged, "reason": f"{error.where} {error.problem}".partition(";")[0]}
    seconds, estimate_s = judged["seconds"], answer["t_estimate_s"]
    judged |= {name: answer[name] for name in ("split", "t_lower_s", "t_estimate_s")}
    judged["below_bound"] = seconds < answer["t_lower_s"]
    if estimate_s is not None:
        judged["ratio"] = seconds / estimate_s
        if answer["t_estimate_p10_s"] is not None:
            low_s = answer["t_estimate_p10_s"]
            if _is_newer(judged, answer, catalogues):
                low_s = max(low_s * NEWER_RELEASE, answer["t_lower_s"])
            judged["in_band"] = low_s <= seconds <= answer["t_estimate_p90_s"]
    return judged


def _is_newer(
    judged: Mapping[str, Any], answer: Mapping[str, Any], catalogues: QuestionCatalogues
) -> bool:
    """True if a step's release is newer than those that its stack's fit is of."""
    fits, stack = catalogues.calibrations, judged["stack"]
    if fits is None or not stack:
        return False
    compute, experts = answer["dtypes"].split()[0], find_model(answer["model"]).shape.moe
    fit = fits.training_of(judged["chip"], [stack], compute, experts=experts is not None)
    return fit is not None and fit.is_newer(judged["release"])


def _answer(
    row: Mapping[str, Any], batch: int, context: int, catalogues: QuestionCatalogues
) -> Mapping[str, Any]:
    """Row for a step; its stack's fits estimate it, without a stack the chip's first.

    A stack without a fit for the step leaves the bound alone.
    """
    keys: dict[str, Any] = {
        "B": batch,
        "S": context,
        "split": _split(row),
        "dtypes": _format(row.get("precision")),
        "micro_batch": int(row.get("micro_batch") or 1),
        "shard": SHARDS.get(str(row.get("shard")), row.get("shard")),
        "recompute": row["recompute"] if row.get("recompute") in RECOMPUTE else None,
        "config": catalogues,
    }
    try:
        keys["calibration"] = _calibration(row, catalogues)
        return train(row["chip"], row["model"], **keys).row
    except RooflinesError as error:
        if error.where != "calibration" or keys["calibration"] is None:
            raise
        return train(row["chip"], row["model"], **{**keys, "calibration": None}).row


def _split(row: Mapping[str, Any]) -> dict[str, int]:
    """Plan in a row; the chips that are left are replicas."""
    sizes = {name: int(row.get(name) or 1) for name in ("tp", "pp", "cp", "ep")}
    dp, rest = divmod(int(row["chips"]), sizes["tp"] * sizes["pp"] * sizes["cp"])
    if rest:
        raise RooflinesError("chips", "are no multiple of tp * pp * cp", "write whole degrees")
    chunks = int(row.get("vpp") or 1)
    return {**sizes, "dp": dp, **({"interleave": chunks} if chunks > 1 else {})}


def _format(precision: object) -> str | None:
    """Format in a row: every kind of fp8 is fp8."""
    if precision is None:
        return None
    return "fp8" if "fp8" in str(precision) else str(precision)


def _calibration(row: Mapping[str, Any], catalogues: QuestionCatalogues) -> str | None:
    """Software that estimates a step; None: its stack has no fit on the chip."""
    stack, fits = row.get("stack"), catalogues.calibrations
    if not stack:
        return AUTO_CALIBRATION
    is_fitted = fits is not None and stack in fits.training_softwares(str(row["chip"]))
    return str(stack) if is_fitted else None


def run_errors(
    runs: pl.DataFrame, keys: Sequence[str] = ("stack", "chip")
) -> Iterator[dict[str, Any]]:
    """Yield errors by these keys, then over all steps.

    Args:
        runs: From `training_runs`.
        keys: Columns.

    Yields:
        `steps`, `answered`, `estimated`, `below`, counts [1]; `median` and `p90` over
        |estimate / measured - 1|, `ratio`, the median measured over estimate, `coverage`, the share
        in the band, `pairs` and `right_share`, pairs with one model and stack whose times per token
        and chip differ by `PAIR_RATIO`, and the share that the estimate orders [1].
    """
    for names, part in runs.group_by(*keys, maintain_order=True):
        yield {**dict(zip(keys, names, strict=True)), **_errors(part)}
    yield {**dict.fromkeys(keys), keys[0]: "all", **_errors(runs)}


def _errors(runs: pl.DataFrame) -> dict[str, Any]:
    """Errors over steps."""
    ratios = runs["ratio"].drop_nulls().to_list()
    errors = [abs(1 / ratio - 1) for ratio in ratios]
    tail = quantiles(errors, n=10, method="inclusive")[-1] if len(errors) > 1 else None
    orders = [*_orders(runs.filter(pl.col("ratio").is_not_null()))]
    return {
        "steps": runs.height,
        "answered": runs["t_lower_s"].count(),
        "estimated": len(ratios),
        "below": int(runs["below_bound"].sum() or 0),
        "median": median(errors) if errors else None,
        "p90": tail,
        "ratio": median(ratios) if ratios else None,
        "coverage": runs["in_band"].mean(),
        "pairs": len(orders),
        "right_share": sum(orders) / len(orders) if orders else None,
    }


def _orders(runs: pl.DataFrame) -> Iterator[bool]:
    """Yield, for each pair with measured times apart, whether the estimate orders it."""
    for _, part in runs.group_by("model", "stack", maintain_order=True):
        paces = [
            (row["seconds"] * row["chips"] / row["tokens"], row["ratio"])
            for row in part.iter_rows(named=True)
        ]
        for (first, first_ratio), (last, last_ratio) in combinations(paces, 2):
            if max(first, last) > PAIR_RATIO * min(first, last):
                yield (first < last) == (first / first_ratio < last / last_ratio)
