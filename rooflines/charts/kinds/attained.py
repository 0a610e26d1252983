"""What an operation attains over its batch: curves with a knee at the critical batch."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import alt, pl
from rooflines.basics.text import si
from rooflines.charts.chart import Chart, Need
from rooflines.charts.frames import TIMES, first_shown, highest, lowest
from rooflines.charts.kinds.attained_labels import HEADROOM, MARGINS, labels_of
from rooflines.charts.kit.drawing import (
    Choice,
    assemble,
    binary_axis,
    chosen,
    data,
    placed_text,
    si_axis,
    starting,
    zoom,
)
from rooflines.charts.kit.text import chip_label, sizes_text
from rooflines.charts.needs import LONG_LEAD, OTHER_DIMS, OWN_LEAD, SOLVED_LEAD, need
from rooflines.charts.offers import shape_names
from rooflines.model.resources import MATH, math_rate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.charts.results import Selection

__all__ = ["attained", "attained_frame"]

CURVE_POINTS = 81
"""Points of a curve. Times are affine between the sizes of the table, so interpolation is exact."""

KEYS = ["chip", "dtypes", "series", "order"]
"""What a curve is of."""


def attained_frame(of: Selection, shape: str | None = None, most_series: int = 6) -> pl.DataFrame:
    """What an operation attains over its batch, for several of its other sizes.

    Args:
        of: The chips and combinations of a sweep, from `Results.of`.
        shape: Shapes whose names begin with it, if the sweep has shapes.
        most_series: Curves at most; an even selection of more.

    Returns:
        `chip`, `dtypes`, `series` (the other sizes, such as `D = F = 4,096`), its `order`, `kind`
        and numbers: for `curve` a size and what it attains, `flops_per_s` [FLOP/s]; for
        `knee` the critical size, whole and `exact`, null for never; `peak` [FLOP/s].
    """
    begins = shape is not None and any(name.startswith(shape) for name in shape_names(of.sweep))
    need(CHART, of.sweep, shape=None if begins else shape)
    lead, *others = of.dims
    rows = of.rows().filter(of.on_fewest())
    sizes = _series_of(rows, others, shape, most_series)
    size = pl.col(lead).cast(pl.Float64).alias("size")
    table = (
        rows.join(sizes.lazy(), on=["shape", *others], nulls_equal=True)
        .select(*KEYS, size, MATH.work, *TIMES.values())
        .collect()
        .sort(*KEYS, "size")
    )
    peaks = pl.DataFrame(
        [(chip, name, float(math_rate(target).per_s)) for chip, name, target in of.targets()],
        schema={"chip": pl.String, "dtypes": pl.String, "peak": pl.Float64},
        orient="row",
    )
    table = table.join(peaks, on=["chip", "dtypes"], maintain_order="left")
    curve = (_thinned(table) if of.sweep.tile else _densified(table)).with_columns(
        flops_per_s=pl.col(MATH.work) / pl.max_horizontal(*TIMES.values())
    )
    knees = _knees(of, sizes, peaks)
    curve = curve.select(
        *KEYS,
        pl.lit("curve").alias("kind"),
        "size",
        pl.lit(None, dtype=pl.Float64).alias("exact"),
        pl.lit(None, dtype=pl.String).alias("limit"),
        "flops_per_s",
        "peak",
    )
    bends = knees.filter(pl.col("exact") > 0).with_columns(
        kind=pl.lit("curve"), size="exact", exact=None, limit=None
    )
    bends = bends.filter(
        pl.col("size").is_between(lowest(table, "size", 1), highest(table, "size", 1))
    )
    return pl.concat([curve, bends, knees], how="vertical_relaxed").sort(
        "chip", "dtypes", "order", "size", nulls_last=True
    )


def _knees(of: Selection, sizes: pl.DataFrame, peaks: pl.DataFrame) -> pl.DataFrame:
    """The critical sizes of every series, at the peak."""
    lead, *others = of.dims
    return (
        of.thresholds()
        .filter(pl.col("axis") == lead, of.on_fewest())
        .join(sizes.lazy(), on=["shape", *others], nulls_equal=True)
        .join(peaks.lazy(), on=["chip", "dtypes"])
        .select(
            *KEYS,
            pl.lit("knee").alias("kind"),
            size=pl.col("critical").cast(pl.Float64),
            exact="critical_exact",
            limit="limit",
            flops_per_s="peak",
            peak="peak",
        )
        .unique(KEYS, keep="first", maintain_order=True)
        .collect()
    )


def _series_of(
    rows: pl.LazyFrame, dims: Sequence[str], shape: str | None, most: int
) -> pl.DataFrame:
    """The sizes that get a curve each: named shapes, or sizes of the dimensions."""
    shaped = rows.select("shape", *dims).unique().sort(*dims, descending=True).collect()
    if shape is not None:
        shaped = shaped.filter(pl.col("shape").str.starts_with(shape))
    elif shaped.height > most and len(dims) > 1:
        square = shaped.filter(pl.all_horizontal(pl.col(d) == pl.col(dims[0]) for d in dims))
        shaped = square if square.height > 1 else shaped
    picks = sorted(
        {
            round(i * (shaped.height - 1) / max(min(most, shaped.height) - 1, 1))
            for i in range(min(most, shaped.height))
        }
    )
    shaped = shaped[picks]
    return shaped.with_columns(
        series=pl.Series([_series_name(row, dims) for row in shaped.to_dicts()], dtype=pl.String)
    ).with_row_index("order")


def _series_name(row: Mapping[str, Any], dims: Sequence[str]) -> str:
    """The label of a series: its shape, or its sizes."""
    if row.get("shape"):
        return str(row["shape"])
    values = [row[dim] for dim in dims]
    if len(set(values)) == 1:
        return f"{' = '.join(dims)} = {values[0]:,}"
    return ", ".join(f"{dim} = {row[dim]:,}" for dim in dims)


def _thinned(table: pl.DataFrame) -> pl.DataFrame:
    """As many sizes as a curve needs, about even on a log axis: times of tiles are not affine."""
    sizes = table["size"].unique().sort().to_list()
    low, high = sizes[0], sizes[-1]
    wanted = (low * (high / low) ** (i / (CURVE_POINTS - 1)) for i in range(CURVE_POINTS - 1))
    kept = {sizes[bisect_left(sizes, size)] for size in wanted} | {high}
    return table.filter(pl.col("size").is_in(kept)) if len(sizes) > CURVE_POINTS else table


def _densified(table: pl.DataFrame) -> pl.DataFrame:
    """More sizes between those of a table, interpolated: times and costs are affine in one size."""
    low, high = lowest(table, "size", 1), highest(table, "size", 1)
    steps = CURVE_POINTS - 1
    grid = pl.DataFrame({"size": [low * (high / low) ** (i / steps) for i in range(CURVE_POINTS)]})
    cases = table.select(*KEYS, "peak").unique(maintain_order=True)
    wanted = cases.join(grid, how="cross").sort("size")
    before = wanted.join_asof(
        table.sort("size").drop("peak"),
        on="size",
        by=KEYS,
        strategy="backward",
        coalesce=False,
        suffix="_a",
        check_sortedness=False,
    )
    after = wanted.join_asof(
        table.sort("size").drop("peak"),
        on="size",
        by=KEYS,
        strategy="forward",
        coalesce=False,
        suffix="_b",
        check_sortedness=False,
    )
    affine = (MATH.work, *TIMES.values())
    both = before.hstack(
        after.select(pl.col("size_b"), *(pl.col(c).alias(f"{c}_b") for c in affine))
    )
    share = (
        pl.when(pl.col("size_b") > pl.col("size_a"))
        .then((pl.col("size") - pl.col("size_a")) / (pl.col("size_b") - pl.col("size_a")))
        .otherwise(0.0)
    )
    return both.select(
        *KEYS,
        "size",
        "peak",
        *((pl.col(c) + share * (pl.col(f"{c}_b") - pl.col(c))).alias(c) for c in affine),
    ).sort(*KEYS, "size")


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
        A chart with the parameters `chip` and `dtypes`.
    """
    chips, combinations = (
        frame[name].unique(maintain_order=True).to_list() for name in ("chip", "dtypes")
    )
    curves = frame.filter(kind="curve")
    low, high = lowest(curves, "size"), highest(curves, "size")
    high = high if high > low else low * 2
    series = frame.sort("order")["series"].unique(maintain_order=True).to_list()
    labels, findings, roofs = [], {}, []
    for (chip_id, combination), case in frame.group_by("chip", "dtypes", maintain_order=True):
        peak = highest(case, "peak")
        labels.append(
            labels_of(case, size, (low, high, peak * HEADROOM)).with_columns(
                chip=pl.lit(chip_id), dtypes=pl.lit(combination)
            )
        )
        findings[f"{chip_id}|{combination}"] = _finding(
            case, str(chip_id), str(combination), size, title
        )
        roofs.append({"chip": chip_id, "dtypes": combination, "peak": peak})
    shown = frame.filter((pl.col("kind") == "curve") | pl.col("size").is_between(low, high))
    return assemble(
        [*_marks(shown, pl.DataFrame(roofs), size), *_texts(pl.concat(labels), series)],
        findings,
        starting([Choice("chip", chips), Choice("dtypes", combinations)], first),
        MARGINS,
        [
            alt.param(
                name="tops",
                value={f"{r['chip']}|{r['dtypes']}": r["peak"] * HEADROOM for r in roofs},
            ),
            alt.param(name="top", expr="tops[chip + '|' + dtypes] || 1"),
        ],
    )


def _color(series: Sequence[str]) -> alt.Color:
    """The colours of the curves: steps of a ramp."""
    return alt.Color("series:N", legend=None, scale=alt.Scale(domain=list(series), range="ramp"))


def _marks(frame: pl.DataFrame, roofs: pl.DataFrame, size: str) -> list[alt.Chart]:
    """The peak, stems from the knees down, curves and knees."""
    now = chosen("chip", "dtypes")
    sizes = frame.filter(kind="curve")["size"]
    low, high = float(sizes.min()), float(sizes.max())  # type: ignore[arg-type]
    x = alt.X(
        "size:Q",
        **binary_axis(
            low, max(high, low * 2), "Batch size B (tokens)" if size == "B" else f"Size of {size}"
        ),
    )
    y = alt.Y(
        "flops_per_s:Q",
        axis=si_axis("Attained FLOP/s"),
        scale=alt.Scale(domainMin=0, domainMax=alt.expr("top"), nice=False),
    )
    color = _color(frame.sort("order")["series"].unique(maintain_order=True).to_list())
    attains = alt.Tooltip("flops_per_s:Q", title="attained FLOP/s", format=".4~s")
    tooltip = ["series:N", alt.Tooltip("size:Q", title=size, format=",.0f"), attains]
    exactly = alt.Tooltip("exact:Q", title="exactly", format=",.4f")
    at_knee = [
        "series:N",
        alt.Tooltip("size:Q", title=f"critical {size}", format=",.0f"),
        exactly,
        "limit:N",
    ]
    common = ("chip", "dtypes", "series", "size", "flops_per_s")
    kept = {"knee": (*common, "exact", "limit"), "curve": common}
    knees, curves = (
        alt.Chart(data(frame.filter(kind=kind).select(columns))).transform_filter(now)
        for kind, columns in kept.items()
    )
    return [
        alt.Chart(data(roofs))
        .transform_filter(now)
        .mark_rule(style="rule")
        .encode(y=alt.Y("peak:Q")),
        knees.mark_rule(style="stem").encode(
            x=x, y=y, y2=alt.datum(0), color=color, detail="series:N"
        ),
        curves.mark_line(style="curve")
        .encode(x=x, y=y, color=color, tooltip=tooltip)
        .add_params(zoom("x")),
        knees.mark_point(style="dot", filled=True).encode(x=x, y=y, color=color, tooltip=at_knee),
    ]


def _texts(labels: pl.DataFrame, series: Sequence[str]) -> list[alt.Chart]:
    """Numbers and names in the colours of their curves, the peak in grey."""
    now = chosen("chip", "dtypes")
    place_of: dict[str, Any] = {"x": alt.X("size:Q"), "y": alt.Y("flops_per_s:Q")}
    layers = placed_text(
        labels.filter(style="value").drop("style"), "value", now, color=_color(series), **place_of
    )
    return layers + placed_text(labels.filter(style="note").drop("style"), "note", now, **place_of)


def _finding(
    case: pl.DataFrame, chip: str, combination: str, size: str, title: str | None
) -> tuple[str, str]:
    """Title and subtitle: the first knee, and the last one or the first series without."""
    knees = case.filter(kind="knee").sort("order").to_dicts()
    peak = highest(case, "peak")
    subtitle = (
        f"{combination} on {chip_label(chip)}, every byte counted. Dots: the first compute-bound"
        f" {size}; roof {si(peak, 'FLOP/s')}."
    )
    reached = [knee for knee in knees if knee["size"] is not None]
    if title or not knees:
        return title or f"What {chip_label(chip)} attains over {size}", subtitle
    never = [knee for knee in knees if knee["size"] is None]
    if not reached:
        return f"No {size} makes {combination} compute-bound at the sizes shown", subtitle
    first = min(reached, key=lambda knee: knee["size"])
    last = never[-1] if never else max(reached, key=lambda knee: knee["size"])
    if not never and first["size"] == last["size"]:
        at = first["series"] if len(reached) == 1 else "every size shown"
        return (
            f"{combination} is compute-bound from {sizes_text(size, [first['size']])} on at {at}",
            subtitle,
        )
    start = f"{combination} needs {sizes_text(size, [first['size']])} at {first['series']}"
    sizes, _, value = last["series"].rpartition(" = ")
    other = value if sizes and first["series"].startswith(f"{sizes} = ") else last["series"]
    return (
        f"{start}; at {other} no {size} is enough"
        if never
        else f"{start}, {round(last['size']):,} at {other}",
        subtitle,
    )


CHART = Chart(
    name="attained",
    family="attained",
    heading="Attained FLOP/s",
    caption=(
        "What the operation attains over its first dimension, every byte counted. A dot is the "
        "first compute-bound size; a curve without one never reaches the roof."
    ),
    order=30,
    needs=(
        OTHER_DIMS,
        OWN_LEAD,
        SOLVED_LEAD,
        LONG_LEAD,
        Need("no shapes", lambda s: not s.config.shapes, auto=True),
        Need("rows of one chip alone", lambda s: min(s.counts) == 1),
        Need("no other numbers of chips", lambda s: max(s.counts) == 1, auto=True),
    ),
    reads=(MATH.work, *TIMES.values()),
    most=4,
    frame=lambda of, spec: attained_frame(of, spec.shape),
    draw=lambda frame, of, spec: attained(
        frame, size=of.dims[0], first=first_shown(frame, spec, "chip", "dtypes"), title=spec.title
    ),
)
