"""What titles of charts of operations claim, computed again."""

from __future__ import annotations

import math
import re

import polars as pl
import pytest
from titled import (
    Case,
    map_split,
    number,
    numbers,
    on_fewest,
    on_map,
    ridge,
    says_span,
    shown_chip,
    span,
)

import rooflines
from rooflines.basics.text import seconds, significant
from rooflines.charts.kit.text import chip_label


def a_ridge(case: Case, match: re.Match[str]) -> bool:
    """Of one chip, or of several with the same."""
    dtypes = case.choice.get("dtypes") or match["dtypes"]
    chips = [
        chip for chip in case.chart.chips if chip_label(chip) == match["chip"]
    ] or case.chart.chips
    return len(chips) in (1, len(case.chart.chips)) and {
        significant(ridge(case, chip, dtypes)) for chip in chips
    } == {match["ridge"]}


def ridges_apart(case: Case, match: re.Match[str]) -> bool:
    """How many times the intensity one chip needs."""
    more, less = (
        ridge(case, shown_chip(case, match[name]), match["dtypes"]) for name in ("more", "less")
    )
    return (
        significant(more / less) == match["times"]
        and case.choice.get("dtypes", match["dtypes"]) == match["dtypes"]
    )


def needs_at(case: Case, match: re.Match[str]) -> bool:
    """A size at one size of the matrices, and another or none at a second one."""
    other = (
        match["other"]
        if "=" in match["other"] or match["first"].count("=") == 0
        else match["first"].rpartition(" = ")[0] + " = " + match["other"]
    )
    first, second = (
        case.at(case.thresholds(), text)["critical"].to_list() for text in (match["first"], other)
    )
    return set(first) == {number(match["low"])} and set(second) == {
        number(match["more"]) if match["more"] else None
    }


def needs_first(case: Case, match: re.Match[str]) -> bool:
    """The least of the sizes that are needed, and where."""
    found = case.at(case.thresholds(), match["first"])["critical"]
    return set(found) == {number(match["low"])} and needs_least(case, match)


def needs_least(case: Case, match: re.Match[str]) -> bool:
    """The least of the sizes that are needed by the curves drawn."""
    knees = case.data("exact", "size", "series")["exact"].drop_nulls()
    least = min(case.thresholds()["critical"].drop_nulls())
    return bool(least == number(match["low"]) and math.ceil(min(knees)) == least)


def never_at_all(case: Case, _: re.Match[str]) -> bool:
    """No size is enough in any case shown."""
    found = case.thresholds()
    if case.chart.chart == "shards":
        found = case.at(found, case.subtitle.partition(", split ")[2])
    return found.height > 0 and found["critical"].null_count() == found.height


def from_on(case: Case, match: re.Match[str]) -> bool:
    """One size for every size of the matrices."""
    return says_span(match, span(case.thresholds()["critical"]))


def shapes_on_map(case: Case) -> list[int | None]:
    """The exact critical batch of every shape drawn."""
    rows = case.data("name", "D", "F", "level").drop_nulls("name")
    shapes = rows.select("name", "D", "F").to_dicts()
    if not shapes:
        return []
    named = [
        {"name": f"s-{i}", "D": int(shape["D"]), "F": int(shape["F"])}
        for i, shape in enumerate(shapes)
    ]
    sharding, shards = map_split(case)
    sweep = {
        "operation": case.config.sweeps[case.chart.sweep].config_json["operation"],
        "grid": {"B": 1},
        "shapes": named,
        "chips": [case.choice["chip"]],
        "dtypes": [case.choice["dtypes"]],
        "sharding": sharding,
        "shards": [shards],
        "thresholds": ["B"],
        "calibration": case.config.sweeps[case.chart.sweep].config.calibration,
    }
    config = rooflines.load_config({"sweeps": {"s": sweep}, "charts": []})
    critical = "critical_estimate" if case.calibrated else "critical"
    return rooflines.thresholds(config, "s")[critical].to_list()


def map_needs(case: Case, match: re.Match[str]) -> bool:
    """Of all shapes drawn the least and the most."""
    found = shapes_on_map(case)
    return (
        on_map(case, match)
        and None not in found
        and says_span(match, span(pl.Series(found)))
        and number(match["shapes"] or "1") == len(found)
    )


def split_cases(case: Case) -> pl.DataFrame:
    """The thresholds over chips at the sizes that the subtitle names."""
    found = case.at(case.thresholds(), case.subtitle)
    return (
        found.filter(pl.col("shards") > 1)
        if 1 not in case.config.sweeps[case.chart.sweep].config.shards
        else found
    )


def never_on(case: Case, match: re.Match[str]) -> bool:
    """No size is enough on these numbers of these chips; on the chip's other numbers some is."""
    said = match.groupdict()
    found = split_cases(case).filter(
        chip=shown_chip(case, said["chip"]), sharding=said.get("split") or case.choice["sharding"]
    )
    never = (
        found.group_by("shards")
        .agg(pl.col("critical").is_null().all())
        .filter("critical")["shards"]
        .sort()
        .to_list()
    )
    return numbers(said.get("shards") or "1") == never


def chips_need(case: Case, match: re.Match[str]) -> bool:
    """The least and the most that the largest number of chips needs, and the chips that need it."""
    found = split_cases(case)
    found = found.filter(pl.col("shards") == pl.col("shards").max())
    if number(match["shards"]) != found["shards"][0] or not says_span(
        match, span(found["critical"])
    ):
        return False
    if match["by"]:
        return (match["by"] == "chip") == (found["chip"].n_unique() > 1)
    at = {"least": found["critical"].min(), "most": found["critical"].max()}
    named = {end: found.filter(critical=size)["chip"].to_list() for end, size in at.items()}
    return all(
        match[end] is None or [match[end]] == [*map(chip_label, chips)]
        for end, chips in named.items()
    ) and (match["high"] is None or match["most"] is not None)


def last_needs(case: Case, match: re.Match[str]) -> bool:
    """What the last row of a map needs, every other being compute-bound at some size."""
    up = "shards" if match["shards"] else match["up"]
    found = (
        split_cases(case)
        if up == "shards"
        else on_fewest(case.at(case.thresholds(), case.subtitle))
    )
    last = found.filter(pl.col(up) == number(match["shards"] or match["value"]))
    return (
        found[up].max() == last[up][0]
        and found["critical"].null_count() == 0
        and says_span(match, span(last["critical"]))
    )


def never_along(case: Case, match: re.Match[str]) -> bool:
    """No size is enough at these sizes of another dimension."""
    found = on_fewest(case.at(case.thresholds(), case.subtitle))
    never = found.filter(pl.col("critical").is_null())[match["up"]].unique().sort().to_list()
    return [number(value) for value in re.findall(r"[\d,]*\d", match["values"])] == never


def counted(case: Case, match: re.Match[str]) -> bool:
    """So many cells of a map."""
    drawn = case.data("utilization", "bound")
    bound = "bound_estimate" if case.calibrated else "bound"
    return (number(match["some"]), number(match["all"])) == (
        drawn.filter(pl.col(bound) == "compute").height,
        drawn.height,
    )


def layer_thresholds(case: Case) -> pl.DataFrame:
    """The thresholds of the chips and layers drawn."""
    drawn = case.data("layer", "critical")
    shapes = [
        f"{case.chart.model}-{layer}" if case.chart.model else layer
        for layer in drawn["layer"].unique()
    ]
    found = case.thresholds().filter(
        pl.col("shape").is_in(shapes), pl.col("chip").is_in(drawn["chip"].unique().to_list())
    )
    chips = [chip_label(chip) for chip in found["chip"].unique()]
    assert re.findall(r" on ([^,]+)", case.title) == (chips if len(chips) == 1 else [])
    return found.filter(pl.col("shards") == pl.col("shards").min())


def layers_never(case: Case, match: re.Match[str]) -> bool:
    """So many pairs of chip and layer."""
    found = layer_thresholds(case)["critical"]
    return (number(match["some"]), number(match["all"])) == (found.null_count(), len(found))


def most_per(case: Case, match: re.Match[str]) -> bool:
    """The best of all chips that are drawn, by the catalogue's entries."""
    worth = bought(case)
    best = worth.pop(shown_chip(case, match["chip"]))
    return (
        (f"{len(worth) + 1} chips" in (case.subtitle if match["seller"] else case.title))
        and match["seller"] in (None, case.choice.get("seller"))
        and all(best > other for other in worth.values())
        and match["dtypes"] == case.choice["dtypes"]
    )


def bought(case: Case) -> dict[str, float]:
    """The peak of every chip drawn over its lowest price or its power."""
    sweep = case.config.sweeps[case.chart.sweep]
    compute = sweep.dtypes.combinations[case.choice["dtypes"]].compute
    found = {}
    for chip in case.data("value", "about").filter(dtypes=case.choice["dtypes"])["chip"].unique():
        entry = sweep.chips[chip]
        cost = (
            min(
                price.usd_per_hour
                for price in entry.prices or ()
                if case.choice["seller"] in ("lowest of all", price.provider)
            )
            if case.chart.chart == "per-dollar"
            else entry.power.watts  # type: ignore[union-attr]  # only chips with a power are drawn
        )
        found[chip] = float(entry.units["matrix"][compute].flops_per_s) / float(cost)
    return found


def no_best(case: Case, match: re.Match[str]) -> bool:
    """No chip is called the best where two are, or there is one."""
    worth = sorted(bought(case).values(), reverse=True)
    return match["dtypes"] == case.choice["dtypes"] and (
        len(worth) == 1 or worth[0] == pytest.approx(worth[1], rel=1e-12)
    )


def as_said(case: Case, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of the split that the subtitle names: tensor parallelism pairs two."""
    shardings = list(case.config.sweeps[case.chart.sweep].shardings)
    said = re.search(r", split (\S+?)(?: over [^.]+)?\. ", case.subtitle)
    inward = [name for name in ("column", "column/gather-x") if name in shardings]
    outward = {"column": "contracting/all-reduce", "column/gather-x": "contracting/reduce-scatter"}
    pairs = [(name, outward[name]) for name in inward if outward[name] in shardings]
    back = pl.col("shape").str.contains(r"(^|-)(o|down)$")
    mixed = rows.select(back.n_unique()).item() > 1
    if case.choice["shards"] == "1":
        return rows.filter(pl.col("sharding") == pl.col("sharding").first())
    assert ("tensor parallel" in case.subtitle) == bool(pairs and mixed and not case.chart.sharding)
    if said:
        return rows.filter(sharding=said[1])
    column, contracting = pairs[0]
    expected = pl.when(back).then(pl.lit(contracting)).otherwise(pl.lit(column))
    return rows.filter(pl.col("sharding") == expected)


def waits(case: Case, match: re.Match[str]) -> bool:
    """How many matmuls have that bottleneck, their total time, and which of them do not fit."""
    ending = match["verb"].split(" ")[-1]
    bound = {"compute-bound": "compute", "imperfectly": "mixed"}.get(ending, ending)
    drawn = case.data("layer", "seconds").filter(size=int(case.choice["size"]))
    shapes = [
        f"{case.chart.model}-{layer}" if case.chart.model else layer
        for layer in drawn["layer"].unique()
    ]
    rows = case.rows().filter(
        pl.col("shape").is_in(shapes),
        pl.col(case.dims[0]) == number(match["low"]),
        pl.col("shards") == int(case.choice["shards"]),
    )
    rows = as_said(case, rows)
    rows = rows.filter(
        pl.col("network").is_null() | (pl.col("network") == pl.col("network").drop_nulls().first())
    )
    some = rows.filter(pl.col("bound").cast(pl.String) == bound).height
    every = int(match["all"] or (2 if "both" in case.title else 1))
    named = (
        f"{every} matmuls of {chip_label(case.chart.model)}, each once" in case.subtitle
        if case.chart.model
        else True
    )
    unfit = {
        shape.removeprefix(f"{case.chart.model}-")
        for shape in rows.filter(~pl.col("fits"))["shape"]
    }
    said = re.search(r"More than the memory of a chip: (.*)\.$", case.subtitle)
    total = f"adds up to {seconds(float(rows['t_lower_s'].sum()))}" in case.subtitle
    fits = unfit == (set(said[1].split(", ")) if said else set())
    return every == rows.height and some == int(match["some"] or every) and named and total and fits
