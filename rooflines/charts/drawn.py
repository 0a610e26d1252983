"""The charts as functions: each returns an Altair chart of one choice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import check_known
from rooflines.charts.kit.render import chart_of
from rooflines.charts.profiled import kernels_view
from rooflines.charts.registry import kinds
from rooflines.charts.views import ALL, titled, view_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import altair as alt
    import polars as pl

    from rooflines.catalogue.entries import Chip
    from rooflines.charts.results import Results
    from rooflines.charts.views import Menu, Option, View


def menus(kind: str, results: Results, sweep: str, **choices: Option) -> list[Menu]:
    """What can be chosen in a chart of a sweep; the first option is drawn where nothing is chosen.

    Args:
        kind: The kind of chart, such as `roofline`.
        results: Where numbers come from.
        sweep: The sweep, or the set of timings.
        choices: What has been chosen.
    """
    check_known(kind, kinds(), "no kind of chart")
    found = kinds()[kind]
    return list(found.menus(results.source(found.source, sweep), choices))


def view(
    kind: str,
    results: Results,
    sweep: str,
    *,
    chips: Sequence[str] = (),
    title: str | None = None,
    **choices: Option,
) -> View:
    """One choice of a chart: its title, the rows behind it, and its marks.

    Args:
        kind: The kind of chart, such as `roofline`.
        results: Where numbers come from.
        sweep: The sweep, or the set of timings.
        chips: The chips that are compared, by kinds that compare some; the first of the sweep by
            default.
        title: Replaces the finding.
        choices: An option of some menus; the first of the others.

    Raises:
        RooflinesError: There is no such kind, sweep, menu or option.
    """
    check_known(kind, kinds(), "no kind of chart")
    found = kinds()[kind]
    source = results.source(found.source, sweep)
    found.check(source, "chart")
    if found.name == "roofline" and chips and "chip" not in choices:
        choices["chip"] = ALL if len(chips) > 1 else chips[0]
    case = found.chosen(source, choices)
    several = list(chips) or found.default_chips(source)
    return titled(view_of(found, results, sweep, several, case), title)


def roofline(results: Results, sweep: str, **choices: Option | Sequence[str]) -> alt.LayerChart:
    """The roofline of a chip with memory levels, links and peaks, or of several chips together.

    Args:
        results: Where numbers come from.
        sweep: The sweep, whose rows are operating points.
        choices: As of `view`: `chip` (or `all`, with `chips`), `dtypes`, `shape`, `basis`.
    """
    return _chart("roofline", results, sweep, choices)


def chips(results: Results, sweep: str, **choices: Option | Sequence[str]) -> alt.LayerChart:
    """Chips compared by their ridge, or by the peak that a dollar or a watt buys.

    Args:
        results: Where numbers come from.
        sweep: The sweep.
        choices: As of `view`: `by` (`ridge`, `dollar`, `watt`), `seller`, `dtypes`, `chips`.
    """
    return _chart("chips", results, sweep, choices)


def attained(results: Results, sweep: str, **choices: Option | Sequence[str]) -> alt.LayerChart:
    """Attained FLOP/s over a size, with the first compute-bound sizes, and bands where calibrated.

    Args:
        results: Where numbers come from.
        sweep: The sweep.
        choices: As of `view`: `chip`, `dtypes`, `model`, `basis`.
    """
    return _chart("attained", results, sweep, choices)


def critical(results: Results, sweep: str, **choices: Option | Sequence[str]) -> alt.LayerChart:
    """Critical sizes as a table: over two sizes, layers and chips, dtypes, or numbers of chips.

    Args:
        results: Where numbers come from.
        sweep: The sweep.
        choices: As of `view`: `by` (such as `D x F`, `layer x chip`), `chip`, `dtypes`, `model`,
            `shape`, `split`, `chips`.
    """
    return _chart("critical", results, sweep, choices)


def who_binds(results: Results, sweep: str, **choices: Option | Sequence[str]) -> alt.LayerChart:
    """The bottleneck over a size and numbers of chips, another size, or several chips.

    Args:
        results: Where numbers come from.
        sweep: The sweep.
        choices: As of `view`: `by` (`shards`, a dimension, `chip`), `chip`, `dtypes`, `split`,
            `shape`, `basis`, `chips`.
    """
    return _chart("who-binds", results, sweep, choices)


def time(results: Results, sweep: str, **choices: Option | Sequence[str]) -> alt.LayerChart:
    """Where the time of a model's layers goes, by resource or by kernel.

    Args:
        results: Where numbers come from.
        sweep: The sweep, of a model's shapes.
        choices: As of `view`: `by` (`resource`, `kernel`), `model`, `chip`, `dtypes`, `shards`, and
            the size, such as `B`.
    """
    return _chart("time", results, sweep, choices)


def front(results: Results, sweep: str, **choices: Option | Sequence[str]) -> alt.LayerChart:
    """Throughput against interactivity of decoding: the best batches and splits of each chip.

    Args:
        results: Where numbers come from.
        sweep: The sweep of whole models.
        choices: As of `view`: `model`, `dtypes`, `S`, `basis`, `chips`.
    """
    return _chart("front", results, sweep, choices)


def measured(results: Results, timings: str, **choices: Option | Sequence[str]) -> alt.LayerChart:
    """Timings beside the model: measured over predicted time, or dots under the roof.

    Args:
        results: Where numbers come from.
        timings: The set of timings.
        choices: As of `view`: `by` (`ratio`, `roof`), `chip`, `dtypes`, `software`.
    """
    return _chart("measured", results, timings, choices)


def kernels(
    kernels: pl.DataFrame,
    chip: str,
    chips: Mapping[str, Chip] | None = None,
    title: str | None = None,
) -> alt.LayerChart:
    """Profiled kernels under the roofs of their chip, with areas by their time.

    Args:
        kernels: From `rooflines.kernels`.
        chip: The chip that ran them.
        chips: The chips by id, such as `Config.chips`; by default those of the catalogue.
        title: Replaces the finding.

    Raises:
        RooflinesError: No kernel has both operations and memory traffic.
    """
    return chart_of(kernels_view(kernels, chip, chips, title).spec())


def _chart(kind: str, results: Results, sweep: str, choices: dict[str, Any]) -> alt.LayerChart:
    return chart_of(view(kind, results, sweep, **choices).spec())
