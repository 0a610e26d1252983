"""What an operation attains over its batch: curves with a knee at the critical batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.basics.lazy import alt, pl
from rooflines.basics.text import si
from rooflines.charts.basis import (
    BAND,
    CALIBRATED,
    NOMINAL,
    basis_choice,
    basis_names,
    with_estimates,
)
from rooflines.charts.chart import Chart, Need
from rooflines.charts.claims import Finding, claim, size_of, solved
from rooflines.charts.frames import TIMES, first_shown, highest, lowest, shares_below_peak
from rooflines.charts.kinds.attained_cases import cases_of
from rooflines.charts.kinds.attained_curves import (
    ATTAINED,
    KEYS,
    curves_of,
    estimates_of,
    knees_of,
    series_of,
    turns_of,
)
from rooflines.charts.kinds.attained_labels import HEADROOM, MARGINS, labels_of
from rooflines.charts.kinds.attained_marks import marks_of, texts_of
from rooflines.charts.kit.drawing import (
    Choice,
    assemble,
    starting,
)
from rooflines.charts.kit.text import chip_label, sizes_text, width_em
from rooflines.charts.kit.titles import LONGEST_TITLE
from rooflines.charts.needs import OTHER_DIMS, SOLVED_AXIS, SOLVED_SIZES, need
from rooflines.charts.offers import curved_of, shape_names
from rooflines.model.resources import math_rate

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Mapping, Sequence

    from rooflines.charts.chart import Spec
    from rooflines.charts.claims import Plain
    from rooflines.charts.kinds.attained_cases import Case
    from rooflines.charts.results import Selection
    from rooflines.sweep.sweep import Sweep

__all__ = ["attained", "attained_frame"]


BY = ("chip", "dtypes", "sweep")
"""What a reader chooses, beside the basis; `sweep` only where a frame has several."""


def attained_frame(of: Selection, shape: str | None = None, most_series: int = 6) -> pl.DataFrame:
    """What an operation attains over a size, such as its batch, for several of its other sizes.

    The size is that of `curved_of`: the first dimension, or another that the sweep solves for.

    Args:
        of: The chips and combinations of a sweep, from `Results.of`.
        shape: Shapes whose names begin with it, if the sweep has shapes.
        most_series: Curves at most; an even selection of more.

    Returns:
        `chip`, `dtypes`, `series` (the other sizes, such as `D = F = 4,096`), its `order`, `kind`
        and numbers: for `curve` a size of the table, or the one where the curve bends, and what it
        attains, `flops_per_s` [FLOP/s]; for `estimate` a size of the table and what it attains
        calibrated, with the band, `slow` at p90 and `fast` at p10 of the time [FLOP/s]. Of a table
        with many sizes they are some. For `knee` the critical size, whole and `exact`, null for
        never, and `critical_estimate`; for `share` the critical size for a smaller share of the
        peak, where sizes have no tiles; `peak` [FLOP/s]; `setting`: the sizes that all curves
        have; `calibrated`: whether chip and dtypes have estimates and critical sizes of these.
    """
    begins = shape is not None and any(name.startswith(shape) for name in shape_names(of.sweep))
    need(CHART, of.sweep, shape=None if begins else shape)
    lead = curved_of(of.sweep)
    others = [dim for dim in of.dims if dim != lead]
    rows = with_estimates(of.rows()).filter(of.on_fewest())
    solved_for = of.thresholds().filter(pl.col("axis") == lead, of.on_fewest())
    sizes = series_of(solved_for, others, shape, most_series)
    shown = [pl.col(dim).is_in(sizes[dim].unique().implode()) for dim in others]
    size = pl.col(lead).cast(pl.Float64).alias("size")
    table = (
        rows.filter(shown)
        .join(sizes.lazy(), on=["shape", *others], nulls_equal=True)
        .select(*KEYS, size, ATTAINED, *TIMES.values(), *BAND)
        .collect()
        .sort(*KEYS, "size")
    )
    peaks = pl.DataFrame(
        [(chip, name, float(math_rate(target).per_s)) for chip, name, target in of.targets()],
        schema={"chip": pl.String, "dtypes": pl.String, "peak": pl.Float64},
        orient="row",
    )
    table = table.join(peaks, on=["chip", "dtypes"], maintain_order="left")
    curve = curves_of(of, table)
    knees = knees_of(of, sizes, peaks)
    bends = knees.filter(pl.col("exact") > 0, not of.sweep.tile).with_columns(
        kind=pl.lit("curve"), size="exact", exact=None, limit=None, critical_estimate=None
    )
    bends = bends.filter(
        pl.col("size").is_between(lowest(table, "size", 1), highest(table, "size", 1))
    )
    shares = [] if of.sweep.tile else shares_below_peak(of)[:1]
    near = [knees_of(of, sizes, peaks, share) for share in shares]
    curves = pl.concat([bends, curve], how="diagonal_relaxed").unique([*KEYS, "size"], keep="first")
    parts = [knees, *near, curves, estimates_of(table)]
    return (
        pl.concat(parts, how="diagonal_relaxed")
        .with_columns(pl.col("setting").fill_null(sizes["setting"][0]))
        .with_columns(calibrated=of.calibrated() & (pl.col("kind") == "estimate").any().over(KEYS))
        .sort("chip", "dtypes", "kind", "order", "size", nulls_last=True)
    )


def attained(
    frame: pl.DataFrame,
    *,
    size: str = "B",
    first: Mapping[str, Any] | None = None,
    title: str | None = None,
) -> alt.LayerChart:
    """Attained FLOP/s over a size, a curve for each of several other sizes.

    Args:
        frame: From `attained_frame`: curves [FLOP/s], and the critical sizes as knees.
        size: The name of the size.
        first: The initial choices by parameter; the first of the frame by default.
        title: Replaces the finding.

    Returns:
        A chart with the parameters `chip`, `dtypes`, `sweep` if the frame has the column, and
        `basis` where chips are calibrated.
    """
    chips, combinations = (
        frame[name].unique(maintain_order=True).to_list() for name in ("chip", "dtypes")
    )
    curves = frame.filter(kind="curve")
    low, high = lowest(curves, "size"), highest(curves, "size")
    high = high if high > low else low * 2
    series = frame.sort("order")["series"].unique(maintain_order=True).to_list()
    on_axis = pl.col("exact").is_between(low, high)
    views = _views(frame).filter((pl.col("kind") != "share") | on_axis)
    by = [*_names(frame), *basis_names(frame)]
    cases = cases_of(views, by)
    findings = {
        case.key: _finding(case, size, title)._replace(
            drawn={
                "top": float(f"{case.peak * HEADROOM:.5g}"),
                "turns": turns_of(case.curves, case.peak),
            }
        )
        for case in cases
    }
    labels = labels_of(cases, size, (low, high))
    choices = [Choice("chip", chips), Choice("dtypes", combinations)]
    if "sweep" in frame.columns:
        choices.append(Choice("sweep", frame["sweep"].unique(maintain_order=True).to_list()))
    choices += basis_choice(frame)
    of_case = "(findings[" + " + '|' + ".join(by) + "] || {})"
    return assemble(
        [*marks_of(frame, size, by, (low, high)), *texts_of(labels, series, by)],
        findings,
        starting(choices, first),
        MARGINS,
        [
            alt.param(name="top", expr=f"{of_case}.top || 1"),
            alt.param(name="turns", expr=f"{of_case}.turns || {{}}"),
        ],
    )


def _names(frame: pl.DataFrame) -> list[str]:
    """What the reader of a frame chooses, beside the basis."""
    return [name for name in BY if name in frame.columns]


def _views(frame: pl.DataFrame) -> pl.DataFrame:
    """Curves and knees by `basis`; those of estimates where chip and dtypes are calibrated."""
    nominal = frame.filter(pl.col("kind") != "estimate").with_columns(basis=pl.lit(NOMINAL))
    estimates = frame.filter("calibrated", pl.col("kind").is_in(["estimate", "knee"])).with_columns(
        basis=pl.lit(CALIBRATED),
        kind=pl.col("kind").replace("estimate", "curve"),
        size=pl.when(kind="knee").then("critical_estimate").otherwise("size"),
        exact=None,
        limit=None,
    )
    return pl.concat([nominal, estimates], how="vertical_relaxed")


def _finding(case: Case, size: str, title: str | None) -> Finding:
    """Title and subtitle: the first knee, and the last one or the first series without."""
    chip, combination = case.choice["chip"], case.choice["dtypes"]
    basis = case.choice.get("basis", NOMINAL)
    knee = "Dots" if basis == NOMINAL else "Stems"
    hollow = f", hollow for {case.near} of the peak" if case.near else ""
    setting = f", {case.setting}" if case.setting else ""
    subtitle = (
        f"{combination} on {chip_label(chip)}{setting}, every byte counted. {knee}: the first"
        f" compute-bound {size}{hollow}; roof {si(case.peak, 'FLOP/s')}."
    )
    if basis != NOMINAL:
        band = " Bands: p10 to p90." if case.banded else ""
        subtitle += f" Calibrated.{band} Thin: nominal."
    if title or not case.knees:
        return Finding(title or f"What {chip_label(chip)} attains over {size}", subtitle)
    finding = _needed(case.knees, combination, size)
    rows: dict[str, list[Plain]] = {"chip": [chip], "dtypes": [combination], **solved(size)}
    said = [knee for knee in case.knees if knee["series"] in finding.of]
    found = [knee["size"] and round(knee["size"]) for knee in said]
    at = [size_of(knee) for knee in said]
    stated = claim("values", "critical", rows, found, basis=basis, at=at)
    return Finding(finding.title, subtitle, stated)


class _Needed(NamedTuple):
    """A title, and the series whose critical sizes it states."""

    title: str
    of: Collection[str]


def _needed(knees: Sequence[Mapping[str, Any]], combination: str, size: str) -> _Needed:
    """The first knee, and the last one or the last series without one if a title has room."""
    every = [knee["series"] for knee in knees]
    reached = [knee for knee in knees if knee["size"] is not None]
    never = [knee for knee in knees if knee["size"] is None]
    if not reached:
        return _Needed(f"No {size} makes {combination} compute-bound at the sizes shown", every)
    first = min(reached, key=lambda knee: knee["size"])
    last = never[-1] if never else max(reached, key=lambda knee: knee["size"])
    least = sizes_text(size, [first["size"]])
    if not never and first["size"] == last["size"]:
        at = first["series"] if len(reached) == 1 else "every size shown"
        return _Needed(f"{combination} is compute-bound from {least} on at {at}", every)
    sizes, _, value = last["series"].rpartition(" = ")
    other = value if sizes and first["series"].startswith(f"{sizes} = ") else last["series"]
    most = f"; at {other} no {size} is enough" if never else f", {round(last['size']):,} at {other}"
    needs, alone = f"{combination} needs {least}", [first["series"]]
    stated = (
        _Needed(f"{needs} at {first['series']}{most}", [first["series"], last["series"]]),
        _Needed(f"{needs} at {first['series']}", alone),
        _Needed(f"{needs} or more at the sizes shown", alone),
    )
    fitting = (one for one in stated if width_em(one.title, bold=True) <= LONGEST_TITLE)
    return next(fitting, stated[-1])


def _alike(sweep: Sweep) -> Hashable:
    """What sweeps have in common that are one chart: the operation, and variants of one chip."""
    chips = {sweep.chips[chip].base or chip for chip in sweep.rows_by_chip()}
    return (
        (sweep.op.name, curved_of(sweep), sweep.unit, chips.pop())
        if len(chips) == 1
        else sweep.name
    )


def _frame(of: Selection, spec: Spec) -> pl.DataFrame:
    """The frame of a spec, by `sweep` if it has several."""
    if not spec.others:
        return attained_frame(of, spec.shape)
    several = of.results.of_several((spec.sweep, *spec.others), spec.chips, spec.dtypes)
    frames = [attained_frame(one).with_columns(sweep=pl.lit(one.sweep.name)) for one in several]
    return pl.concat(frames, how="vertical_relaxed")


CHART = Chart(
    name="attained",
    family="attained",
    heading="Attained FLOP/s",
    caption=(
        "What the operation attains over one of its sizes, every byte counted. A dot is the "
        "first compute-bound size; a curve without one never reaches the roof."
    ),
    order=30,
    needs=(
        OTHER_DIMS,
        SOLVED_AXIS,
        SOLVED_SIZES,
        Need("no shapes", lambda s: not s.config.shapes, auto=True),
        Need("rows of one chip alone", lambda s: min(s.counts) == 1),
        Need("no other numbers of chips", lambda s: max(s.counts) == 1, auto=True),
    ),
    reads=(ATTAINED, *TIMES.values()),
    most=7,
    most_chips=4,
    most_dtypes=2,
    merges=_alike,
    frame=_frame,
    draw=lambda frame, of, spec: attained(
        frame,
        size=curved_of(of.sweep),
        first=first_shown(frame, spec, *_names(frame)),
        title=spec.title,
    ),
)
