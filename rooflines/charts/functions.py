"""Charts as functions that return an Altair chart."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import check_choices
from rooflines.charts.frames import dtypes_by_chip
from rooflines.charts.kinds.measured import kernels_view
from rooflines.charts.kit.render import chart_of
from rooflines.charts.lever_lines import lever_view
from rooflines.charts.lever_ranges import RANGES, range_view
from rooflines.charts.options import ALL
from rooflines.charts.registry import kinds
from rooflines.charts.views import titled
from rooflines.solvers.payoffs import LOWER_TIME

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import altair as alt
    import polars as pl

    from rooflines.charts.chart_data import Results
    from rooflines.charts.options import Menu, Option
    from rooflines.charts.views import View
    from rooflines.hardware.entries import Chip


def menus(kind: str, results: Results, sweep: str, **choices: Option) -> list[Menu]:
    """Menus for a chart; each one's first option is the default.

    Args:
        kind: The chart kind, such as `roofline`.
        results: Source of numbers.
        sweep: The sweep, or the timing set.
        choices: Options already chosen.
    """
    check_choices(kind, kinds(), "no kind of chart")
    chart_kind = kinds()[kind]
    return list(chart_kind.menus(results.source(chart_kind.source, sweep), choices))


def view(
    kind: str,
    results: Results,
    sweep: str,
    *,
    chips: Sequence[str] = (),
    title: str | None = None,
    **choices: Option,
) -> View:
    """One chart view: title, rows behind it, and marks.

    Args:
        kind: The chart kind, such as `roofline`.
        results: Source of numbers.
        sweep: The sweep, or the timing set.
        chips: Chips to compare, for kinds that compare several; default: the sweep's first.
        title: Replaces the generated title.
        choices: Options by menu; a missing menu takes its first.

    Raises:
        RooflinesError: There is no such kind, sweep, menu or option.
    """
    check_choices(kind, kinds(), "no kind of chart")
    chart_kind = kinds()[kind]
    source = results.source(chart_kind.source, sweep)
    chart_kind.check(source, "chart")
    if chart_kind.name == "roofline" and chips and "chip" not in choices:
        choices["chip"] = ALL if len(chips) > 1 else chips[0]
    case = chart_kind.complete(source, choices)
    compared = list(chips) or list(dtypes_by_chip(source))[: chart_kind.max_chips]
    return titled(chart_kind.view(results, sweep, compared, case), title)


def _drawing(kind: str) -> Callable[..., alt.LayerChart]:
    """Build the function that draws a kind of chart."""

    def draw(
        results: Results,
        sweep: str,
        **choices: Any,  # noqa: ANN401, options, and names of chips
    ) -> alt.LayerChart:
        return chart_of(view(kind, results, sweep, **choices).spec())

    draw.__name__ = draw.__qualname__ = kind.replace("-", "_")
    summary, *_ = str(import_module(kinds()[kind].view.__module__).__doc__).splitlines()
    draw.__doc__ = f"""{summary}

    Args:
        results: Source of numbers.
        sweep: The sweep, or the set of timings.
        choices: As in `view`; `menus` lists a sweep's options.
    """
    return draw


roofline, chips, attained = _drawing("roofline"), _drawing("chips"), _drawing("attained")
critical, who_binds, time = _drawing("critical"), _drawing("who-binds"), _drawing("time")
front, measured = _drawing("front"), _drawing("measured")
requests = _drawing("requests")


def levers(
    thresholds: pl.DataFrame,
    axis: str,
    *,
    time: str = LOWER_TIME,
    chips: Mapping[str, Chip] | None = None,
    title: str | None = None,
) -> alt.LayerChart:
    """Thresholds of a lever over the batch, the context or the step time, or ranges by chip.

    Args:
        thresholds: A table from `rooflines.thresholds`, of one model, split and dtypes.
        axis: `B_draft`, `accepted_draft`, `B_pools` or `chunk`, as lines over a size; `S_pull`,
            `S_offload` or `X_offload`, as bars where the lever pays.
        time: Time that lines are by, such as `t_estimate_s`; bars have every time.
        chips: Chips by id, such as `Config.chips`; default: the catalogue's.
        title: Replaces the generated title.

    Raises:
        RooflinesError: There are too few numbers for a line, or several models, splits or dtypes.
    """
    if axis in RANGES:
        return chart_of(range_view(thresholds, axis, chips=chips, title=title).spec())
    return chart_of(lever_view(thresholds, axis, time=time, chips=chips, title=title).spec())


kernel = _drawing("kernel")


def kernels(
    kernels: pl.DataFrame,
    chip: str,
    chips: Mapping[str, Chip] | None = None,
    title: str | None = None,
) -> alt.LayerChart:
    """Profiled kernels under the roofs of their chip, with areas by their time.

    Args:
        kernels: A table from `rooflines.profiled_kernels`.
        chip: The chip that ran them.
        chips: Chips by id, such as `Config.chips`; default: the catalogue's.
        title: Replaces the generated title.

    Raises:
        RooflinesError: No kernel has both operations and memory traffic.
    """
    return chart_of(kernels_view(kernels, chip, chips, title).spec())
