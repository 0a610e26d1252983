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

__all__ = ["EVERY_CHIP", "columns_text", "in_parts", "packed_text"]

EVERY_CHIP = "-every-chip.json"
"""The ending of the file with a chart of all chips and dtypes of its sweep, for the site."""

CHIP, DTYPES = "chip", "dtypes"

LEVEL = 6
"""Of compression: 9 saves a hundredth of the bytes and takes twice the time."""


def in_parts(frame: pl.DataFrame, chart: alt.LayerChart, spec: Spec) -> dict[str, Any]:
    """A chart of all chips and dtype combinations, in parts that a page loads one at a time.

    Args:
        frame: What the chart shows.
        chart: What is drawn of `spec.all_chips` in `spec.all_dtypes`; its menu of chips is first.
        spec: The chart; its own chips and dtypes are in no part. Where it shows chips together, all
            dtypes are its own.

    Returns:
        `spec`, the specification with the rows and findings of its own chips and dtypes; `rows`,
        those of the frame as `packed_text`; `cases`, the choices that have a finding, as lists of
        chips and of the rest of their keys; `claims` of all titles; `parts`, by chip as
        `packed_text`: the other `findings`, the other `rows`, and those of each dataset, which are
        "rows" where a dataset is the frame itself.
    """
    frames: dict[str, pl.DataFrame] = {}
    findings, claims = _taken(chart)
    whole = _spec_with(chart, frames)
    texts: dict[str, dict[str, str]] = {}
    own = {CHIP: spec.chips, DTYPES: spec.dtypes}
    if any(key.startswith(f"{EVERY}|") or key == EVERY for key in findings):
        own = {CHIP: (EVERY, *spec.chips), DTYPES: spec.all_dtypes}  # chips are shown together
    whole["datasets"] = {
        name: json.loads(each.filter(_is_own(each, own)).write_json())
        for name, each in frames.items()
    }
    rows = frame.filter(_is_own(frame, own))
    same = {name: '"rows"' for name, each in frames.items() if each is frame}
    for name, each in {"rows": frame, **frames}.items():
        if CHIP in each.columns and name not in same:
            others_of = each.filter(~_is_own(each, own))
            for (chip,), of_chip in others_of.group_by(CHIP, maintain_order=True):
                part = texts.setdefault(str(chip), {**same})
                part[name] = columns_text(of_chip)
    first, others = _first(findings, list(whole["usermeta"]["choices"]), own)
    next(each for each in whole["params"] if each["name"] == "findings")["value"] = first
    parts = {
        chip: packed_text(
            '{"findings":'
            + json.dumps(others.get(chip, {}), ensure_ascii=False)
            # the rows are JSON already
            + "".join(f",{json.dumps(name)}:{text}" for name, text in texts.get(chip, {}).items())
            + "}"
        )
        for chip in dict.fromkeys([*others, *texts])
    }
    return {
        "spec": whole,
        "rows": packed_text(columns_text(rows)),
        "cases": _cases(findings),
        "claims": claims,
        "parts": parts,
    }


def columns_text(frame: pl.DataFrame) -> str:
    """A frame as JSON: a list for each column, null for NaN and infinite numbers."""
    return frame.select(pl.all().implode()).write_json().removeprefix("[").removesuffix("]")


def packed_text(text: str) -> str:
    """JSON as a page loads it: compressed with zlib, in Base64."""
    return base64.b64encode(zlib.compress(text.encode(), LEVEL)).decode()


def _taken(chart: alt.LayerChart) -> tuple[dict[str, Any], dict[str, Any]]:
    """Take findings and claims out of a chart: its specification is made ten times faster."""
    parameters: Any = chart.params
    parameter = next(each for each in parameters if each.name == "findings")
    findings, parameter.value = parameter.value, {}
    return findings, chart.usermeta.pop("claims")


def _spec_with(chart: alt.LayerChart, frames: dict[str, pl.DataFrame]) -> dict[str, Any]:
    """The specification, its data by name only; the frames go into a dictionary."""
    names: dict[int, str] = {}

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


def _is_own(frame: pl.DataFrame, own: Mapping[str, Sequence[str]]) -> pl.Expr:
    """Whether a row is of the chart's own chips and dtypes, or of none."""
    conditions = [
        pl.col(name).is_null() | pl.col(name).is_in(values)
        for name, values in own.items()
        if name in frame.columns
    ]
    return pl.all_horizontal(pl.lit(value=True), *conditions)


def _first(
    findings: Mapping[str, Any], names: Sequence[str], own: Mapping[str, Sequence[str]]
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The findings of the chart's own chips and dtypes, and by chip all others."""
    first: dict[str, Any] = {}
    others: dict[str, dict[str, Any]] = {}
    for key, finding in findings.items():
        values = dict(zip(names, key.split("|"), strict=True))
        if all(values[name] in own[name] for name in own if name in values):
            first[key] = finding
        else:
            others.setdefault(values[CHIP], {})[key] = finding
    return first, others


def _cases(keys: Iterable[str]) -> list[tuple[list[str], list[str]]]:
    """Keys by their chips, which come first in them: chips with equal rests are one entry."""
    rests: dict[str, list[str]] = {}
    for key in keys:
        chip, bar, rest = key.partition("|")
        rests.setdefault(chip, []).append(bar + rest)
    cases: dict[tuple[str, ...], list[str]] = {}
    for chip, of_chip in rests.items():
        cases.setdefault(tuple(of_chip), []).append(chip)
    return [(chips, list(of_chip)) for of_chip, chips in cases.items()]
