"""The roofline of a chip: what it attains at every intensity, per memory level and interconnect."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby, product
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import alt, pl
from rooflines.charts.basis import (
    BAND,
    BASES,
    NOMINAL,
    basis_choice,
    basis_names,
    with_estimates,
)
from rooflines.charts.chart import Chart, Need
from rooflines.charts.frames import first_shown, route_name
from rooflines.charts.kinds.roofline_labels import labels_of
from rooflines.charts.kinds.roofline_marks import marks, texts
from rooflines.charts.kinds.roofline_roof import ESTIMATES, MARGINS, Roof, plane_of
from rooflines.charts.kit.drawing import Choice, assemble, starting
from rooflines.charts.needs import by_chips, need
from rooflines.charts.offers import sizes_of
from rooflines.charts.planes import (
    PICTURE,
    in_picture,
    log_axes,
    pictured,
    plane_parameters,
    sides_of,
)
from rooflines.model.network import PAIR, NetworkLevel
from rooflines.model.resources import math_rate, memory_rate, network_rate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.catalogue.entries import Chip
    from rooflines.charts.results import Selection
    from rooflines.model.target import Target
    from rooflines.sweep.support import ChipRows

__all__ = ["roofline", "roofline_frame"]


COLUMNS = {
    "chip": str,
    "dtypes": str,
    "kind": str,
    "name": str,
    "flops_per_s": float,
    "bytes_per_s": float,
    "intensity": float,
    "B": int,
    "shape": str,
    **dict.fromkeys(ESTIMATES, float),
}
"""The columns of `roofline_frame`."""


def roofline_frame(
    of: Selection, shape: str | None = None, sizes: Sequence[int] = ()
) -> pl.DataFrame:
    """Ceilings, slopes and operating points of chips.

    Args:
        of: The chips and combinations, from `Results.of`; the sweep's rows are operating points.
        shape: Which of its shapes; without shapes the largest sizes of the grid.
        sizes: Sizes of the operation's first dimension to mark; powers of eight by default.

    Returns:
        A row for everything drawn. `kind` is `memory` or `network` (`name` with its `bytes_per_s`
        [byte/s], the peak `flops_per_s` [FLOP/s] and the ridge between the two, `intensity`
        [FLOP/byte]; the sweep's memory level first), `ceiling` (`name` is a compute dtype of the
        chip, with its peak), or `point` (a row of the table: its `intensity` and what it attains,
        `flops_per_s`; calibrated `estimate` with its band, `slow` at p90 and `fast` at p10 of the
        time [FLOP/s]).
    """
    need(CHART, of.sweep, shape=shape, sizes=sizes)
    records: list[dict[str, Any]] = []
    for chip, group in groupby(of.targets(), key=lambda target: target[0]):
        targets = list(group)
        target = targets[0][2]
        entry = of.sweep.chips[chip]
        records += [
            {
                "chip": chip,
                "kind": "ceiling",
                "name": compute,
                "flops_per_s": float(math_rate(replace(target, peak=peak.exact)).per_s),
            }
            for compute, peak in entry.units[of.sweep.unit].items()
        ]
        records += [
            {"chip": chip, "dtypes": name, **line}
            for _, name, target in targets
            for line in _bandwidths(entry, of, chip, target)
        ]
    lines = pl.DataFrame(records, schema=COLUMNS, orient="row").with_columns(
        intensity=pl.col("flops_per_s") / pl.col("bytes_per_s")
    )
    frame = pl.concat([lines, _operating_points(of, shape, sizes)])
    return frame.with_columns(calibrated=pl.col("estimate").is_not_null())


def _bandwidths(entry: Chip, of: Selection, chip: str, target: Target) -> Iterator[dict[str, Any]]:
    """Memory levels, the target's own first, and networks, with their rates.

    The network of the sweep's split is at the rate of its largest split, others at that of a pair.
    """
    peak = float(math_rate(target).per_s)
    chip_rows = of.by_chip[chip]
    for name in sorted(entry.memory, key=lambda level: level != chip_rows.memory):
        if entry.memory[name].bytes_per_s:
            rate = memory_rate(replace(target, level=entry.memory[name].exact))
            yield {
                "kind": "memory",
                "name": name,
                "flops_per_s": peak,
                "bytes_per_s": float(rate.per_s),
            }
    split = _of_split(of, chip_rows)
    whole = {part for name in split for part in name.partition(" ")[0].split("+")}
    pairs = {name: each for name, each in _of_pairs(entry, target).items() if name not in whole}
    for name, per_s in {**split, **pairs}.items():
        yield {"kind": "network", "name": name, "flops_per_s": peak, "bytes_per_s": per_s}


def _of_pairs(entry: Chip, target: Target) -> dict[str, float]:
    """The rates of interconnects to one other chip [byte/s]."""
    share = target.efficiency["network"]
    pairs = {name: NetworkLevel(each.exact, (PAIR,)) for name, each in entry.networks.items()}
    return {
        name: float(pair.bytes_per_s * share)
        for name, pair in pairs.items()
        if pair.link.domain != 1
    }


def _of_split(of: Selection, chip_rows: ChipRows) -> dict[str, float]:
    """The rate of a chip's network in the largest split that sends something [byte/s]."""
    sending = (
        variant
        for variant in chip_rows.variants
        if variant.shards > 1 and of.sweep.shardings[variant.sharding].transfers
    )
    largest = max(sending, key=lambda variant: variant.shards, default=None)
    if largest is None:
        return {}
    rate = network_rate(of.sweep.target(chip_rows, largest))
    return {str(route_name(chip_rows, largest)): float(rate.per_s)} if rate else {}


def _operating_points(of: Selection, shape: str | None, sizes: Sequence[int]) -> pl.DataFrame:
    """Rows of one chip and one shape as points, over the first dimension that has several sizes."""
    several = (dim for dim in of.dims if len(sizes_of(of.sweep, dim)) > 1)
    lead = of.dims[0] if sizes else next(several, of.dims[0])
    others = [dim for dim in of.dims if dim != lead]
    rows = with_estimates(of.rows(), "t_lower_s").filter(shards=1)
    flops = pl.col("attained_flops_per_s") * pl.col("t_lower_s")
    largest = [pl.col(dim) == pl.col(dim).max() for dim in others]
    rows = rows.filter(*([pl.col("shape") == shape] if shape is not None else largest))
    wanted = list(sizes) or [8**power for power in range(14)]
    return (
        rows.filter(pl.col(lead).is_in(wanted))
        .select(
            "chip",
            "dtypes",
            kind=pl.lit("point"),
            name=pl.lit(lead),
            flops_per_s="attained_flops_per_s",
            bytes_per_s=pl.lit(None, dtype=pl.Float64),
            intensity="memory_intensity",
            B=lead,
            shape="shape",
            **{
                name: flops / pl.col(time)
                for name, time in zip(ESTIMATES, (BAND[0], BAND[2], BAND[1]), strict=True)
            },
        )
        .unique(["chip", "dtypes", "B"], keep="first", maintain_order=True)
        .collect()
    )


def roofline(
    frame: pl.DataFrame,
    *,
    first: Mapping[str, Any] | None = None,
    title: str | None = None,
    added: Sequence[str] = (),
    added_dtypes: Sequence[str] = (),
) -> alt.LayerChart:
    """The roofline of one chip, chosen among those of the frame.

    Args:
        frame: From `roofline_frame`: peaks [FLOP/s], bandwidths [byte/s], ridges [FLOP/byte] and
            operating points.
        first: The initial choices by parameter; the first of the frame by default.
        title: Replaces the finding.
        added: Chips with axes of their own; all others share theirs.
        added_dtypes: Dtype combinations in which any chip has axes of its own.

    Returns:
        A chart with the parameters `chip`, `dtypes`, and `basis` where points are calibrated.
    """
    own = pictured(frame, added, added_dtypes)
    planes = {PICTURE: plane_of(own)}
    chips = frame["chip"].unique(maintain_order=True).to_list()
    combinations = frame["dtypes"].drop_nulls().unique(maintain_order=True).to_list()
    pieces: dict[str, list[dict[str, Any]]] = {
        name: [] for name in ("roof", "slope", "ceiling", "region", "ridge", "point", "word")
    }
    labels: list[pl.DataFrame] = []
    findings = {}
    names = basis_names(frame)
    of_picture = set(own.select("chip", "dtypes").unique().iter_rows())
    for key, of_chip in _cases(frame, chips, combinations):
        name = PICTURE if key in of_picture else key[0]
        if name not in planes:
            planes[name] = plane_of(frame.filter(chip=name))
        roof = Roof(planes[name], of_chip, *key)
        for piece, rows in roof.pieces().items():
            pieces[piece] += rows
        labels.append(labels_of(roof))
        for basis in BASES if roof.calibrated else (NOMINAL,):
            named = "|".join([*key, *(basis for _ in names)])
            findings[named] = roof.finding(basis).titled(title)
    across, up = log_axes(
        planes.values(), "Arithmetic intensity (FLOP per byte moved)", "Attainable FLOP/s"
    )
    x, y = alt.X("x:Q", **across), alt.Y("y:Q", **up)
    choices = [Choice("chip", chips), Choice("dtypes", combinations), *basis_choice(frame)]
    layers = [*marks(pieces, x, y), *texts(pl.concat(labels), x, y)]
    sides = {name: sides_of(plane) for name, plane in planes.items()}
    chosen_plane = f"{in_picture(own, 'chip', 'dtypes')} ? '{PICTURE}' : chip"
    return assemble(
        layers,
        findings,
        starting(choices, first),
        MARGINS,
        plane_parameters(sides, chosen_plane),
    )


def _cases(
    frame: pl.DataFrame, chips: Sequence[str], combinations: Sequence[str]
) -> list[tuple[tuple[str, str], pl.DataFrame]]:
    """Chip, combination and their rows, for all combinations that a chip supports."""
    parts = frame.partition_by("chip", "dtypes", as_dict=True, maintain_order=True)
    cases = []
    for key in product(chips, combinations):
        rows = parts.get(key)
        if rows is not None and "memory" in rows["kind"]:
            of_all = parts.get((key[0], None))
            cases.append((key, rows if of_all is None else pl.concat([of_all, rows])))
    return cases


CHART = Chart(
    name="roofline",
    family="roofline",
    heading="Roofline of a chip",
    caption=(
        "Attainable FLOP/s over arithmetic intensity. The thick line is the roof from main "
        "memory, thin ones are other memory levels, interconnects (two chips) and compute dtypes. "
        "On one chip all left of the ridge is memory-bound, all right of it compute-bound."
    ),
    order=10,
    needs=(
        Need(
            "the vector unit for an operation of one dimension",
            lambda s: s.op.dims != ("D",) or s.unit == "vector",
            auto=True,
        ),
    ),
    reads=("memory_intensity", "attained_flops_per_s"),
    preferred=by_chips,
    fills=frozenset({"shape"}),
    frame=lambda of, spec: roofline_frame(of, spec.shape, spec.sizes),
    draw=lambda frame, _, spec: roofline(
        frame,
        first=first_shown(frame, spec, "chip", "dtypes"),
        title=spec.title,
        added=spec.added,
        added_dtypes=spec.added_dtypes,
    ),
)
