"""How much of a sweep of whole models one chart of the site offers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import pl

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rooflines.charts.chart import Spec
    from rooflines.charts.results import Results

MOST_OFFERED = 200_000
"""Cases of whole models that one chart of the site offers [1]: about 4 MB."""

MENUS = {
    "chips": ("chip", "chips"),
    "data types": ("dtypes", "dtypes"),
    "models": ("model", "models"),
    "contexts": ("S", "sizes"),
}
"""The menus whose lists are halved: the column, and the field of a spec."""


def with_room(results: Results, chart: Spec) -> Spec:
    """A chart that offers no more than the site has room for.

    While a chart of whole models offers too many cases, the longest list of further chips, dtypes,
    models and contexts is halved; what the picture shows stays.

    Args:
        results: Where numbers come from.
        chart: The chart, with all that the sweep has.
    """
    if not chart.models or not chart.has_more:
        return chart
    selection = results.of_models(chart.sweep, chart.all_chips, chart.all_dtypes)
    rows = selection.rows(chart.all_models, chart.all_sizes)
    rows = rows.filter(phase=selection.sweep.config.phase[0])
    counts = rows.group_by(column for column, _ in MENUS.values()).len().collect()
    while _cases(counts, chart) > MOST_OFFERED:
        lists = {name: getattr(chart, f"more_{name}") for _, name in MENUS.values()}
        name, longest = max(lists.items(), key=lambda item: len(item[1]))
        if not longest:
            break
        halved: dict[str, Any] = {f"more_{name}": longest[: len(longest) // 2]}
        chart = replace(chart, **halved)
    return chart


def _cases(counts: pl.DataFrame, chart: Spec) -> int:
    """The cases that a chart offers [1]."""
    offered = [
        pl.col(column).is_in(getattr(chart, f"all_{name}")) for column, name in MENUS.values()
    ]
    return int(counts.filter(offered)["len"].sum())


def offered_text(offered: Spec, chart: Spec) -> str:
    """What is added to a caption if the site does not offer all of a chart; "" if it does."""
    few = [
        f"{len(shown):,} of {len(every):,} {menu}"
        for menu, shown, every in _lists(offered, chart)
        if len(shown) < len(every)
    ]
    return f" The menus have {', '.join(few)}." if few else ""


def left_out_of(offered: Spec, chart: Spec) -> list[str]:
    """The chips, dtypes, models and contexts of a chart that the site does not offer."""
    return [
        f"S = {value:,}" if menu == "contexts" else str(value)
        for menu, shown, every in _lists(offered, chart)
        for value in every
        if value not in shown
    ]


def _lists(offered: Spec, chart: Spec) -> Iterator[tuple[str, Sequence[Any], Sequence[Any]]]:
    """Each menu, what the site offers in it, and what the sweep has."""
    for menu, (_, name) in MENUS.items():
        yield menu, getattr(offered, f"all_{name}"), getattr(chart, f"all_{name}")
