"""Changes between two sweep tables: thresholds, times and costs in rows with equal keys.

A key column with one value in both tables, such as dtypes in two sweeps with one combination
apiece, is no join condition: its two values are what differs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.basics.lazy import pl
from rooflines.dictionary.columns import SECTIONS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

TIE = 1e-9
"""Relative difference of two real thresholds that is rounding [1]."""

ORDER_DIGITS = 9
"""Significant digits by which changes are ordered [1]: others are rounding."""

TIMES = {
    "t_estimate_s": "time, estimate",
    "t_serial_s": "time, serialized",
    "t_lower_s": "time, bound",
}
"""Times with their words, the leading basis first."""

QUANTITIES: Mapping[str, Sequence[Mapping[str, str]]] = {
    "thresholds": (
        {"critical": "critical size"},
        {"critical_exact": "critical factor"},
        {"max_B_latency": "largest batch in the latency"},
        {"max_fit": "largest size that fits"},
    ),
    "rows": (
        TIMES,
        {"prefill_estimate_s": "prefill, estimate"},
        {"ttft_serial_s": "TTFT, serialized", "ttft_s": "TTFT, bound"},
        {"tpot_serial_s": "TPOT, serialized", "tpot_s": "TPOT, bound"},
        {
            "usd_per_mtok_estimate": "USD/Mtok, estimate",
            "usd_per_mtok_serial": "USD/Mtok, serialized",
            "usd_per_mtok": "USD/Mtok, bound",
        },
        {"usd_estimate": "USD in all, estimate", "usd": "USD in all, serialized"},
        {"max_B": "largest batch that fits"},
        {"footprint_bytes": "memory footprint"},
    ),
}
"""Compared columns with their words by kind of table; columns of one quantity by basis together."""

ROW_KIND, THRESHOLD_KIND = "rows", "thresholds"
"""Kinds of tables."""

WORDS = dict(chain(*(basis.items() for kind in QUANTITIES.values() for basis in kind)))
"""Words by compared column."""

LABELS = {"bound": "bottleneck", "fits": "fits in memory", "outcome": "outcome"}
"""Compared columns with labels, with their words."""

KEY_SECTIONS = (
    *("keys", "step-keys", "engine-keys", "training-keys", "solved", "step-solved"),
    *("step-sizes", "request-sizes", "lever-sizes"),
)
"""Sections in the dictionary with keys of rows."""

KEYS = {
    *chain(*(SECTIONS[section] for section in KEY_SECTIONS)),
    *("share", "target_s", "time", "group"),
}
"""Keys of rows, besides the dimensions of an operation."""

GROUP_KEYS = (
    *("operation", "options", "model", "phase", "chip", "unit", "memory", "network", "dtypes"),
    *("sharding", "split", "engine", "engine_version", "axis", "time", "shard", "recompute"),
)
"""Keys that group changes; the others are sizes."""

SUBJECT_KEYS = {"operation", "phase", "axis", "time", "share", "target_s", "offload", "zero_stage"}
"""Keys that say what a number means: rows with other values are not compared."""

IMPLIED_KEYS = ("unit", "memory", "network", "engine_version")
"""Keys that are left out of groups if the others tell the groups apart."""

OCCURRENCE = "occurrence"
"""Number of a row among rows with equal keys."""

AFTER = "_after"
"""Suffix of columns from the second table."""


class ChangeGroup(NamedTuple):
    """Rows with equal group keys, and a quantity in them.

    Attributes:
        sweep: Sweep in the first table.
        quantity: Compared column.
        keys: Group keys that vary in the table, with their values.
        rows: Rows in both tables with a number on either side [1].
        changed: Rows that differ [1].
        least: Smallest ratio, second / first, in changed rows [1]; None: one number is missing.
        most: Largest ratio [1]; None as above.
        sizes: Sizes in the row that changed most.
        before: Its number, or the outcome in its place, in the first table.
        after: The same in the second table.
    """

    sweep: str
    quantity: str
    keys: Mapping[str, Any]
    rows: int
    changed: int
    least: float | None
    most: float | None
    sizes: Mapping[str, Any]
    before: float | str | None
    after: float | str | None

    @property
    def factor(self) -> float:
        """Largest change as a factor, up or down [1]; infinite if a number is missing."""
        if self.least is None or self.most is None:
            return math.inf
        return max(self.most, 1 / self.least if self.least else math.inf)


class LabelChange(NamedTuple):
    """Rows in which a label changed.

    Attributes:
        quantity: Column with the label.
        before: Label in the first table.
        after: Label in the second table.
        rows: Rows [1].
    """

    quantity: str
    before: str
    after: str
    rows: int


@dataclass(frozen=True)
class TableChanges:
    """Changes between two tables.

    Attributes:
        sweep: Sweep in the first table.
        kind: `ROW_KIND` or `THRESHOLD_KIND`.
        shared: Rows with equal keys in both tables [1].
        unchanged: Shared rows in which no compared number and no label differs [1].
        removed: Rows in the first table alone [1].
        added: Rows in the second table alone [1].
        paired: Keys with one value in both tables, which differs: the two values.
        unshared: By key, values in the first table alone, and in the second alone.
        labels: Label changes, the most frequent first.
        groups: Groups by leading quantity.
        frame: Changed numbers, a row apiece: `sweep`, `table`, `quantity`, the keys,
            `quantity_unit`, `before`, `after` and `ratio`.
    """

    sweep: str
    kind: str
    shared: int
    unchanged: int
    removed: int
    added: int
    paired: Mapping[str, tuple[Any, Any]]
    unshared: Mapping[str, tuple[Sequence[Any], Sequence[Any]]]
    labels: Sequence[LabelChange]
    groups: Sequence[ChangeGroup]
    frame: pl.DataFrame


def unit_of(column: str) -> str:
    """Look up a column's unit in the dictionary."""
    return next(section[column].unit for section in SECTIONS.values() if column in section)


def changes_between(
    sweep: str, kind: str, before: pl.LazyFrame, after: pl.LazyFrame
) -> TableChanges:
    """Compare two tables.

    Args:
        sweep: The sweep's name.
        kind: `ROW_KIND` or `THRESHOLD_KIND`.
        before: The first table, with dictionary columns.
        after: The second table.
    """
    frames = [_compared(frame, kind) for frame in (before, after)]
    keys = _keys(frames)
    constants = [_constants(frame, keys) for frame in frames]
    paired = {
        name: (constants[0][name], constants[1][name])
        for name in keys
        if name in constants[0] and name in constants[1] and name not in SUBJECT_KEYS
        if constants[0][name] != constants[1][name]
    }
    joined = [name for name in keys if name not in paired]
    first, second = _numbered([_with_keys(frame, joined) for frame in frames], joined)
    conditions = [*joined, *({OCCURRENCE} & {*first.columns})]
    # A table without keys has one row.
    conditions = conditions or [OCCURRENCE]
    pairs = first.join(
        second,
        on=conditions,
        suffix=AFTER,
        nulls_equal=True,
        maintain_order="left",
    )
    quantities = [name for name in _columns(kind) if name in first and name in second]
    labels = [name for name in LABELS if name in first and name in second]
    differs = {name: _differs(name) for name in (*quantities, *labels)}
    groups_by = _group_keys(pairs, joined)
    sizes = _size_keys(pairs, [name for name in joined if name not in groups_by], groups_by)
    shown = ([name for name in bases if name in quantities] for bases in QUANTITIES[kind])
    return TableChanges(
        sweep,
        kind,
        pairs.height,
        pairs.filter(~pl.any_horizontal(*differs.values())).height if differs else pairs.height,
        first.height - pairs.height,
        second.height - pairs.height,
        paired,
        _unshared(first, second, joined),
        [*_label_changes(pairs, labels)],
        [*chain(*(_leading_groups(pairs, sweep, bases, groups_by, sizes) for bases in shown))],
        _changed_numbers(pairs, sweep, kind, quantities, joined),
    )


def _columns(kind: str) -> list[str]:
    """Compared columns with numbers."""
    return [*chain(*QUANTITIES[kind])]


def _is_key(name: str) -> bool:
    """Tell whether a column is a key: a dimension is a capital letter."""
    return name in KEYS or (len(name) == 1 and name.isupper())


def _compared(frame: pl.LazyFrame, kind: str) -> pl.DataFrame:
    """Keys and compared columns; labels as text."""
    schema = frame.collect_schema()
    wanted = [name for name in schema if _is_key(name) or name in (*_columns(kind), *LABELS)]
    labels = [pl.col(name).cast(pl.String) for name in wanted if name in LABELS]
    texts = [
        pl.col(name).cast(pl.Categorical)
        for name in wanted
        if name not in LABELS and (schema[name] == pl.String or isinstance(schema[name], pl.Enum))
    ]
    return frame.select(wanted).with_columns(*labels, *texts).collect()


def _keys(frames: Sequence[pl.DataFrame]) -> list[str]:
    """Keys in either table, in order."""
    names = dict.fromkeys(name for frame in frames for name in frame.columns if _is_key(name))
    return [*names]


def _constants(frame: pl.DataFrame, keys: Collection[str]) -> dict[str, Any]:
    """Value by key, where all rows have the same; a key that the table lacks is None."""
    present = [name for name in keys if name in frame]
    counts = frame.select(pl.col(present).n_unique()).row(0) if present and frame.height else ()
    constant = [name for name, count in zip(present, counts, strict=False) if count == 1]
    values = frame.select(constant).row(0) if constant else ()
    lacking = dict.fromkeys(name for name in keys if name not in frame)
    return lacking | dict(zip(constant, values, strict=True))


def _with_keys(frame: pl.DataFrame, keys: Collection[str]) -> pl.DataFrame:
    """Table with null in keys that it lacks."""
    return frame.with_columns(pl.lit(None).alias(name) for name in keys if name not in frame)


def _numbered(frames: Sequence[pl.DataFrame], keys: Sequence[str]) -> list[pl.DataFrame]:
    """Tables with rows numbered where keys are equal, if any are."""
    if keys and all(frame.select(keys).n_unique() == frame.height for frame in frames):
        return [*frames]
    number = pl.int_range(pl.len(), dtype=pl.Int64)
    return [
        frame.with_columns((number.over(keys) if keys else number).alias(OCCURRENCE))
        for frame in frames
    ]


def _differs(name: str) -> pl.Expr:
    """Expression: a compared column differs, exactly but for real thresholds, which are rounded."""
    before, after = pl.col(name), pl.col(f"{name}{AFTER}")
    if name != "critical_exact":
        return before.ne_missing(after)
    near = (after - before).abs() <= TIE * before.abs()
    is_size = pl.col("critical").is_not_null() | pl.col(f"critical{AFTER}").is_not_null()
    return before.ne_missing(after) & ~near.fill_null(value=False) & ~is_size


def _ratio(name: str) -> pl.Expr:
    """Second number over the first; null where one is missing, or the first is 0."""
    before, after = pl.col(name), pl.col(f"{name}{AFTER}")
    return pl.when(before != 0).then(after.cast(pl.Float64) / before)


def _has_number(name: str) -> pl.Expr:
    """Expression: one table or both have a number."""
    either = pl.col(name).is_not_null() | pl.col(f"{name}{AFTER}").is_not_null()
    if name != "critical_exact":
        return either
    return either & pl.col("critical").is_null() & pl.col(f"critical{AFTER}").is_null()


def _leading_groups(
    pairs: pl.DataFrame,
    sweep: str,
    bases: Sequence[str],
    groups_by: Sequence[str],
    sizes: Sequence[str],
) -> Iterator[ChangeGroup]:
    """One quantity's groups, by the leading basis in each; for times the bound, too."""
    leading = set[tuple[Any, ...]]()
    for name in bases:
        for group in _groups(pairs, sweep, name, groups_by, sizes):
            key = tuple(group.keys.values())
            if key not in leading or name == "t_lower_s":
                yield group
            leading.add(key)


def _group_keys(pairs: pl.DataFrame, joined: Sequence[str]) -> list[str]:
    """Group keys that vary, without those that the others imply."""
    varying = [name for name in GROUP_KEYS if name in joined and pairs[name].n_unique() > 1]
    return _without_implied(pairs, varying, [name for name in IMPLIED_KEYS if name in varying])


def _size_keys(pairs: pl.DataFrame, names: Sequence[str], groups_by: Sequence[str]) -> list[str]:
    """Sizes that vary, without those that a shape or a split implies."""
    varying = [name for name in names if pairs[name].n_unique() > 1]
    named = [name for name in ("shape",) if name in varying]
    implied = [name for name in varying if name not in ("shape", "B", "S")]
    order = [*named, *(name for name in varying if name not in named)]
    remaining = _without_implied(pairs, [*groups_by, *order], implied[::-1])
    return [name for name in remaining if name not in groups_by]


def _without_implied(
    pairs: pl.DataFrame, names: Sequence[str], candidates: Sequence[str]
) -> list[str]:
    """Keys without candidates that the other keys imply."""
    remaining = [*names]
    for name in candidates:
        rest = [key for key in remaining if key != name]
        if rest and pairs.select(rest).n_unique() == pairs.select(remaining).n_unique():
            remaining = rest
    return remaining


def _groups(
    pairs: pl.DataFrame, sweep: str, name: str, groups_by: Sequence[str], sizes: Sequence[str]
) -> Iterator[ChangeGroup]:
    """A compared column's groups."""
    ratio = pl.col("ratio")
    rows = pairs.filter(_has_number(name)).with_columns(ratio=_ratio(name), differs=_differs(name))
    factor = pl.when(ratio > 0).then(pl.max_horizontal(ratio, 1 / ratio)).otherwise(math.inf)
    by: list[str | pl.Expr] = [*groups_by] or [pl.lit(0).alias("all")]
    counts = rows.group_by(by, maintain_order=True).agg(
        rows=pl.len(),
        changed=pl.col("differs").sum(),
        least=ratio.filter("differs").min(),
        most=ratio.filter("differs").max(),
        missing=(pl.col("differs") & ratio.is_null()).any(),
    )
    largest = (
        rows.filter("differs")
        .sort(factor.round_sig_figs(ORDER_DIGITS), descending=True, maintain_order=True)
        .group_by(by, maintain_order=True)
        .first()
    )
    rows_by_key = {tuple(row[key] for key in groups_by): row for row in largest.to_dicts()}
    for count in counts.filter(pl.col("rows") > 0).to_dicts():
        key = tuple(count[key] for key in groups_by)
        row = rows_by_key.get(key, {})
        numbers = [_number(row, name, side) for side in ("", AFTER)]
        yield ChangeGroup(
            sweep,
            name,
            dict(zip(groups_by, key, strict=True)),
            count["rows"],
            count["changed"],
            None if count["missing"] else count["least"],
            None if count["missing"] else count["most"],
            {size: row[size] for size in sizes if row and row[size] is not None},
            numbers[0],
            numbers[1],
        )


def _number(row: Mapping[str, Any], name: str, side: str) -> float | str | None:
    """A row's number on one side, or the outcome in its place."""
    number: float | None = row.get(f"{name}{side}")
    return row.get(f"outcome{side}") if number is None else number


def _label_changes(pairs: pl.DataFrame, labels: Sequence[str]) -> Iterator[LabelChange]:
    """Label changes by column, the most frequent first."""
    for name in labels:
        sides = [pl.col(name).fill_null("none"), pl.col(f"{name}{AFTER}").fill_null("none")]
        counts = (
            pairs.filter(_differs(name))
            .group_by(before=sides[0], after=sides[1])
            .len("rows")
            .sort("rows", "before", "after", descending=[True, False, False])
        )
        for before, after, rows in counts.iter_rows():
            yield LabelChange(name, before, after, rows)


def _unshared(
    first: pl.DataFrame, second: pl.DataFrame, joined: Sequence[str]
) -> dict[str, tuple[list[Any], list[Any]]]:
    """By key, values that one table alone has."""
    unshared = {}
    for name in joined:
        values = [
            dict.fromkeys(frame[name].unique(maintain_order=True)) for frame in (first, second)
        ]
        alone = tuple([v for v in values[side] if v not in values[1 - side]] for side in (0, 1))
        if any(alone):
            unshared[name] = (alone[0], alone[1])
    return unshared


def _changed_numbers(
    pairs: pl.DataFrame,
    sweep: str,
    kind: str,
    quantities: Sequence[str],
    joined: Sequence[str],
) -> pl.DataFrame:
    """Changed numbers, a row apiece."""
    texts = pl.selectors.categorical().cast(pl.String)
    frames = [
        pairs.filter(_differs(name)).select(
            pl.lit(sweep).alias("sweep"),
            pl.lit(kind).alias("table"),
            pl.lit(name).alias("quantity"),
            pl.lit(unit_of(name)).alias("quantity_unit"),
            *joined,
            before=pl.col(name).cast(pl.Float64),
            after=pl.col(f"{name}{AFTER}").cast(pl.Float64),
            ratio=_ratio(name),
        )
        for name in quantities
    ]
    empty = pairs.clear().select(*joined)
    return (pl.concat(frames) if frames else empty).with_columns(texts)
