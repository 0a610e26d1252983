"""Texts about changes: groups as rows of a table, inputs, and rows that only one side has."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rooflines.basics.text import counted, seconds, si, significant, usd
from rooflines.results.table_changes import LABELS, ROW_KIND, THRESHOLD_KIND, WORDS, unit_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.results.run_changes import InputChange, RunChanges
    from rooflines.results.table_changes import ChangeGroup, TableChanges

MAX_VALUES = 4
"""Maximum values of a key that are named [1]."""

MAX_INPUTS = 12
"""Maximum inputs that are named [1]."""

MAX_TEXT = 60
"""Maximum characters of an input's value [1]."""

MAX_LABELS = 3
"""Maximum changes of a label that are named [1]."""

FACTOR_DIGITS = range(3, 10)
"""Significant digits of a ratio, the fewest first [1]."""

NO_NUMBER = "none"
"""Text in place of a number that a row lacks."""

ALL_ROWS = "all"
"""Text for a group without keys."""

COLUMNS = ("sweep", "quantity", "rows of", "changed", "ratio", "largest change")
"""Columns of `group_row`."""


def number_text(quantity: str, value: float | str | None) -> str:
    """Format a compared number in its unit; an outcome stays."""
    if value is None or isinstance(value, str):
        return value or NO_NUMBER
    match unit_of(quantity):
        case "s":
            return seconds(value)
        case "USD":
            return usd(value)
        case "byte":
            return si(value, "B")
        case _:
            return significant(value)


def factor_text(ratio: float) -> str:
    """Format a ratio; near 1 with as many digits as tell it from 1."""
    digits = next((n for n in FACTOR_DIGITS if float(f"{ratio:.{n}g}") != 1), FACTOR_DIGITS[-1])
    return significant(ratio, digits)


def ratio_text(group: ChangeGroup) -> str:
    """Format a group's ratio in changed rows: a number, a range, or a dash."""
    if group.least is None or group.most is None:
        return "-"
    ends = dict.fromkeys(map(factor_text, (group.least, group.most)))
    return f"× {' to '.join(ends)}"


def where_text(group: ChangeGroup) -> str:
    """Format a group's keys."""
    return ", ".join(str(value) for value in group.keys.values() if value is not None) or ALL_ROWS


def largest_change_text(group: ChangeGroup) -> str:
    """Format a group's largest change: two numbers, and the row's sizes."""
    numbers = [number_text(group.quantity, value) for value in (group.before, group.after)]
    sizes = ", ".join(_size_text(name, value) for name, value in group.sizes.items())
    return f"{' -> '.join(numbers)}{' at ' if sizes else ''}{sizes}"


def _size_text(name: str, value: Any) -> str:  # noqa: ANN401, a key of a row
    """Size with its name; a shape is its name."""
    if name == "shape":
        return str(value)
    return f"{name} {_value_text(value)}"


def _value_text(value: Any) -> str:  # noqa: ANN401, as above
    """Format a row's key."""
    if value is None:
        return NO_NUMBER
    return f"{value:,}" if isinstance(value, int) else str(value)


def group_row(group: ChangeGroup) -> dict[str, str]:
    """Texts by `COLUMNS`."""
    texts = (
        group.sweep,
        WORDS[group.quantity],
        where_text(group),
        f"{group.changed:,} of {group.rows:,}",
        ratio_text(group),
        largest_change_text(group),
    )
    return dict(zip(COLUMNS, texts, strict=True))


def input_lines(changes: RunChanges) -> Iterator[str]:
    """Inputs that differ, a line apiece; versions of the package first."""
    before, after = changes.versions
    if before != after:
        yield f"rooflines: {before} -> {after}"
    for change in changes.inputs[:MAX_INPUTS]:
        yield _input_text(change)
    if rest := changes.inputs[MAX_INPUTS:]:
        yield f"{counted(len(rest), 'more input')}"


def _input_text(change: InputChange) -> str:
    """Input with both values."""
    values = [_input_value(text) for text in (change.before, change.after)]
    return f"{change.path}: {' -> '.join(values)}"


def _input_value(text: str) -> str:
    """Format an input's value: numbers short but exact, long texts cut."""
    if not text:
        return NO_NUMBER
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    if isinstance(value, float):
        text = f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 2]}.."


def table_lines(changes: RunChanges) -> Iterator[str]:
    """Rows by table: unchanged, changed, and those that only one side has; then labels."""
    names = changes.names
    for words, sweeps in zip(names, (changes.removed, changes.added), strict=True):
        if sweeps:
            yield f"only in {words}: {', '.join(sweeps)}"
    for table in changes.tables:
        yield _rows_text(table, names)
        yield from _label_texts(table)


def _rows_text(table: TableChanges, names: Sequence[str]) -> str:
    """Count a table's rows."""
    kind = {ROW_KIND: "row", THRESHOLD_KIND: "threshold"}[table.kind]
    parts = [f"{counted(table.shared, kind)} in both, {table.unchanged:,} unchanged"]
    for side, count in enumerate((table.removed, table.added)):
        if count:
            keys = _key_texts({name: values[side] for name, values in table.unshared.items()})
            parts.append(f"{count:,} only in {names[side]}{f' ({keys})' if keys else ''}")
    text = f"{table.sweep}: {'; '.join(parts)}"
    if table.paired:
        paired = (
            f"{name} {' -> '.join(map(_value_text, values))}"
            for name, values in table.paired.items()
        )
        text += f"; compared across {', '.join(paired)}"
    return text


def _key_texts(values: Mapping[str, Sequence[Any]]) -> str:
    """Values by key, without empty lists."""
    return "; ".join(
        f"{name} {', '.join(map(_value_text, listed[:MAX_VALUES]))}"
        f"{f' and {len(listed) - MAX_VALUES} more' if len(listed) > MAX_VALUES else ''}"
        for name, listed in values.items()
        if listed
    )


def _label_texts(table: TableChanges) -> Iterator[str]:
    """Label changes, a line for each column."""
    for column, words in LABELS.items():
        listed = [change for change in table.labels if change.quantity == column]
        if listed:
            parts = [f"{c.before} -> {c.after} in {c.rows:,}" for c in listed[:MAX_LABELS]]
            if rest := sum(change.rows for change in listed[MAX_LABELS:]):
                parts.append(f"others in {rest:,}")
            yield f"{table.sweep}: {words} {', '.join(parts)}"
