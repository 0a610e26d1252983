"""Charts of every chip and dtype combination of a sweep, for the site: specification and parts."""

from __future__ import annotations

import base64
import json
import zlib
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import alt, pl
from rooflines.charts.comparing import EVERY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rooflines.charts.chart import Spec

    Values = Sequence[str] | Sequence[int]  # of a menu

EVERY_CHIP = "-every-chip.json"
"""The ending of the file with a chart of all chips and dtypes of its sweep, for the site."""

CHIP = "chip"

BY_CHOICE = ("findings", "edges", "tops")
"""Parameters that have a value for each of the reader's choices, by the values joined by `|`."""

LEVEL = 6
"""Of compression: 9 saves a hundredth of the bytes and takes twice the time."""


def in_parts(
    frame: pl.DataFrame, chart: alt.LayerChart, spec: Spec, by: Sequence[str] = (CHIP,)
) -> dict[str, Any]:
    """A chart of all chips and dtype combinations, in parts that a page loads one at a time.

    Args:
        frame: What the chart shows.
        chart: What is drawn of all that the site offers; a menu of chips is first.
        spec: The chart; what it shows is in no part. Chips that it shows together are in parts only
            if these are by a menu besides that of chips.
        by: The menus that parts are by.

    Returns:
        `spec`, the specification with the rows and findings of what the chart shows; `rows`, those
        of the frame as `packed_text`; `cases`, the choices that have a finding, as lists of chips
        and of the rest of their keys; `claims` of all titles; `by`; `parts`, by its values joined
        by `|`, as `packed_text`: `params` with the other values of `BY_CHOICE`, the other `rows`,
        and those of each dataset, once if it is the frame.
    """
    frames: dict[str, pl.DataFrame] = {}
    by_choice, claims = _taken(chart)
    findings = by_choice["findings"]
    whole = _spec_with(chart, frame, frames)
    texts: dict[str, dict[str, str]] = {}
    menus = list(whole["usermeta"]["choices"])
    own = _own(spec, menus, findings, by)
    whole["datasets"] = {
        name: json.loads(each.filter(_is_own(each, own)).write_json())
        for name, each in frames.items()
    }
    rows = frame.filter(_is_own(frame, own))
    for name, each in {"rows": frame, **frames}.items():
        if {*by} <= {*each.columns}:
            others_of = each.filter(~_is_own(each, own))
            for chosen, part in others_of.group_by(by, maintain_order=True):
                texts.setdefault(_key(chosen), {})[name] = columns_text(part)
    others: dict[str, dict[str, dict[str, Any]]] = {}
    for name, values in by_choice.items():
        first, of_others = _first(values, menus, own, by)
        next(each for each in whole["params"] if each["name"] == name)["value"] = first
        for value, more in of_others.items():
            others.setdefault(value, {})[name] = more
    return {
        "spec": whole,
        "rows": packed_text(columns_text(rows)),
        "cases": _cases(findings),
        "claims": claims,
        "by": list(by),
        "parts": {
            value: _part(others.get(value, {}), texts.get(value, {}))
            for value in dict.fromkeys([*others, *texts])
        },
    }


def _own(
    spec: Spec, menus: Sequence[str], findings: Iterable[str], by: Sequence[str]
) -> dict[str, Values]:
    """The values of menus that are in no part."""
    own: dict[str, Values] = {CHIP: spec.chips, "dtypes": spec.dtypes}
    if spec.models:
        own |= {"model": spec.models, "S": spec.sizes}
    if CHIP not in menus:
        return {}  # all chips are shown together
    if any(key.partition("|")[0] == EVERY for key in findings):  # others are added to these
        return {CHIP: (EVERY, *spec.chips), **{name: own[name] for name in by if name != CHIP}}
    return own


def _key(values: Iterable[object]) -> str:
    """Values of menus as a key."""
    return "|".join(map(str, values))


def _part(params: Mapping[str, Any], texts: Mapping[str, str]) -> str:
    """What a page loads for a value of the menu: `params`, and rows that are JSON already."""
    fields = {"params": json.dumps(params, ensure_ascii=False), **texts}
    return packed_text(
        "{" + ",".join(f"{json.dumps(name)}:{text}" for name, text in fields.items()) + "}"
    )


def columns_text(frame: pl.DataFrame) -> str:
    """A frame as JSON: a list for each column, null for NaN and infinite numbers."""
    return frame.select(pl.all().implode()).write_json().removeprefix("[").removesuffix("]")


def packed_text(text: str) -> str:
    """JSON as a page loads it: compressed with zlib, in Base64."""
    return base64.b64encode(zlib.compress(text.encode(), LEVEL)).decode()


def _taken(chart: alt.LayerChart) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Take values and claims of choices out of a chart: it is then written ten times faster."""
    parameters: Any = chart.params
    taken = {}
    for parameter in parameters:
        if parameter.name in BY_CHOICE:
            taken[parameter.name], parameter.value = parameter.value, {}
    return taken, chart.usermeta.pop("claims")


def _spec_with(
    chart: alt.LayerChart, frame: pl.DataFrame, frames: dict[str, pl.DataFrame]
) -> dict[str, Any]:
    """The specification, its data by name only; the frames go into a dictionary.

    The frame of the chart is `rows`.
    """
    names = {id(frame): "rows"}

    def named(frame: Any, *_: object, **__: object) -> dict[str, str]:  # noqa: ANN401, any data
        name = names.setdefault(id(frame), f"data-{len(names)}")
        frames[name] = frame
        return {"name": name}

    registry, name = alt.data_transformers, f"{__name__}.named"
    registry.register(name, named)
    try:
        with alt.theme.enable("none"), registry.enable(name):
            spec: dict[str, Any] = chart.to_dict(validate=False)
    finally:
        registry.register(name, None)
    return spec


def _is_own(frame: pl.DataFrame, own: Mapping[str, Values]) -> pl.Expr:
    """Whether a row is of what the chart shows, or of none of it."""
    conditions = [
        pl.col(name).is_null() | pl.col(name).is_in(values)
        for name, values in own.items()
        if name in frame.columns
    ]
    return pl.all_horizontal(pl.lit(value=True), *conditions)


def _first(
    by_key: Mapping[str, Any],
    names: Sequence[str],
    own: Mapping[str, Values],
    by: Sequence[str],
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The values of what the chart shows, and all others by their part."""
    known = {name: set(map(str, values)) for name, values in own.items()}
    first: dict[str, Any] = {}
    others: dict[str, dict[str, Any]] = {}
    for key, value in by_key.items():
        values = dict(zip(names, key.split("|"), strict=True))
        if all(values[name] in known[name] for name in known if name in values):
            first[key] = value
        else:
            others.setdefault(_key(values[name] for name in by), {})[key] = value
    return first, others


def _cases(keys: Iterable[str]) -> list[tuple[list[str], list[str]]]:
    """Keys by their chips, if these come first: chips with equal rests are one entry."""
    rests: dict[str, list[str]] = {}
    for key in keys:
        chip, bar, rest = key.partition("|")
        rests.setdefault(chip, []).append(bar + rest)
    cases: dict[tuple[str, ...], list[str]] = {}
    for chip, of_chip in rests.items():
        cases.setdefault(tuple(of_chip), []).append(chip)
    return [(chips, list(of_chip)) for of_chip, chips in cases.items()]
