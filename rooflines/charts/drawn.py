"""The charts as functions: each returns an Altair chart of one choice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import check_known
from rooflines.charts.kinds.measured import kernels_view
from rooflines.charts.kit.render import chart_of
from rooflines.charts.options import ALL
from rooflines.charts.registry import kinds
from rooflines.charts.views import titled, view_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import altair as alt
    import polars as pl

    from rooflines.catalogue.entries import Chip
    from rooflines.charts.options import Menu, Option
    from rooflines.charts.results import Results
    from rooflines.charts.views import View


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


def _drawing(kind: str, summary: str, choices: str) -> Callable[..., alt.LayerChart]:
    """The function that draws a kind of chart."""

    def draw(
        results: Results,
        sweep: str,
        **choices: Any,  # noqa: ANN401, options, and names of chips
    ) -> alt.LayerChart:
        return chart_of(view(kind, results, sweep, **choices).spec())

    draw.__name__ = draw.__qualname__ = kind.replace("-", "_")
    draw.__doc__ = f"""{summary}

    Args:
        results: Where numbers come from.
        sweep: The sweep, or the set of timings.
        choices: As of `view`: {choices}.
    """
    return draw


roofline = _drawing(
    "roofline",
    "The roofline of a chip with memory levels, links and peaks, or of several chips together.",
    "`chip` (or `all`, with `chips`), `dtypes`, `shape`, `basis`",
)
chips = _drawing(
    "chips",
    "Chips compared by their ridge, or by the peak that a dollar or a watt buys.",
    "`by` (`ridge`, `dollar`, `watt`), `seller`, `dtypes`, `chips`",
)
attained = _drawing(
    "attained",
    "Attained FLOP/s over a size, with the first compute-bound sizes, and bands where calibrated.",
    "`chip`, `dtypes`, `model`, `basis`",
)
critical = _drawing(
    "critical",
    "Critical sizes as a table: over two sizes, layers and chips, dtypes, or numbers of chips.",
    "`by` (such as `D x F`, `layer x chip`), `chip`, `dtypes`, `model`, `shape`, `split`, `chips`",
)
who_binds = _drawing(
    "who-binds",
    "The bottleneck over a size and numbers of chips, another size, or several chips.",
    "`by` (`shards`, a dimension, `chip`), `chip`, `dtypes`, `split`, `shape`, `basis`, `chips`",
)
time = _drawing(
    "time",
    "Where the time of a model's step goes, by kernel over the batch or by resource.",
    "`by` (`kernel`, `resource`), `model`, `chip`, `dtypes`, `split`, `phase`, `S`, `basis`, `B`",
)
front = _drawing(
    "front",
    "Throughput against interactivity of decoding: the best batches and splits of each chip.",
    "`model`, `dtypes`, `S`, `basis`, `chips`",
)
measured = _drawing(
    "measured",
    "Timings beside the model: measured over predicted time, or dots under the roof.",
    "`by` (`ratio`, `roof`), `chip`, `dtypes`, `software`",
)


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
