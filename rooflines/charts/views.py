"""Kinds of charts, and views: the picture for one choice in a kind's menus."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.answers.claims import Sentence
from rooflines.basics.errors import Mistakes, RooflinesError, check_choices, quote
from rooflines.basics.lazy import pl
from rooflines.charts.kit.layers import SUBTITLE, expr
from rooflines.charts.kit.themes import plot_sizes
from rooflines.charts.kit.titles import fitted_subtitle, fitted_title
from rooflines.charts.options import Option  # noqa: TC001, pydantic reads the types of `Spec`

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rooflines.charts.chart_data import Results
    from rooflines.charts.kit.layers import Layer
    from rooflines.charts.kit.themes import Margins
    from rooflines.charts.options import Menu

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"


@dataclass(frozen=True)
class View:
    """Picture as data.

    Attributes:
        claim: The title, with the rows behind it.
        subtitle: Setting: chip, dtypes, sizes.
        layers: Layers, which read rows and parameters by name.
        data: Rows by name.
        margins: Room around the plot.
        rows: The numbers behind the picture; columns are named as in the tables.
        params: Values that layers read.
        names: Names in the title, which are shortened if it is too long.
    """

    claim: Sentence
    subtitle: str
    layers: Sequence[Layer]
    data: Mapping[str, pl.DataFrame]
    margins: Margins
    rows: pl.DataFrame
    params: Mapping[str, Any] = field(default_factory=dict)
    names: Sequence[str] = ()

    @property
    def title(self) -> str:
        """The title."""
        return self.claim.text

    def datasets(self) -> dict[str, list[dict[str, Any]]]:
        """Rows of the marks for JSON: floats to seven significant digits."""
        return {name: _rows(frame) for name, frame in self.data.items()}

    def marks(self) -> list[Layer]:
        """The marks, with the subtitle."""
        return [*self.layers, SUBTITLE]

    def spec(self) -> Layer:
        """Vega-Lite specification without a theme; `usermeta.looks` has dimensions by size."""
        sizes = plot_sizes(self.margins)
        web = sizes["web"]
        values = {"em": web["em"], "narrow": False, **self._lines(), **self.params}
        texts = (self.title, self.subtitle)
        return {
            "$schema": SCHEMA,
            "description": ". ".join(part.rstrip(".") for part in texts if part) + ".",
            "title": {"text": expr("headline")},
            "autosize": "none",
            **{key: web[key] for key in ("padding", "width", "height")},
            "params": [{"name": name, "value": value} for name, value in values.items()],
            "datasets": self.datasets(),
            "layer": self.marks(),
            "usermeta": {"looks": sizes},
        }

    def delta(self) -> dict[str, Any]:
        """Parts that differ between views of a chart, except layers."""
        lines = self._lines()
        return {
            "title": lines["headline"],
            "subtitle": lines["subline"],
            "datasets": self.datasets(),
            "params": {**lines, **self.params},
            "looks": plot_sizes(self.margins),
        }

    def _lines(self) -> dict[str, Any]:
        """Title and subtitle as parameters, fitted to a slide."""
        return {
            "headline": fitted_title(self.title, self.margins, self.names),
            "subline": fitted_subtitle(self.subtitle, self.margins),
        }


def _rows(frame: pl.DataFrame) -> list[dict[str, Any]]:
    floats = pl.selectors.float()
    whole = frame.with_columns(
        pl.when(floats.is_finite()).then(floats.round_sig_figs(7)), pl.selectors.enum().cast(str)
    )
    return whole.to_dicts()


@dataclass(frozen=True)
class Spec:
    """Chart in a config.

    Attributes:
        chart, id: Kind, which is also the folder of its files, and their name.
        sweep: The sweep or timing set that it shows.
        chips, dtypes: Chips and dtypes that it compares, or offers in menus.
        given: Options in further menus that the config names.
        title: Replaces the generated title.
        auto: Chosen by `auto`, and then left out if there is nothing to say.
    """

    chart: str
    id: str
    sweep: str
    chips: tuple[str, ...]
    dtypes: tuple[str, ...]
    given: tuple[tuple[str, tuple[Option, ...]], ...] = ()
    title: str | None = None
    auto: bool = False

    def plain(self) -> dict[str, Any]:
        """The spec as plain data, for JSON."""
        return asdict(self)


class Need(NamedTuple):
    """A condition on a sweep.

    Attributes:
        condition: The condition, as a message names it after "needs".
        met: Predicate of a sweep.
        auto: Required by `auto` only: without it a chart shows little.
    """

    condition: str
    met: Callable[[Any], bool]
    auto: bool = False


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Chart kind; its file defines it as `KIND`.

    Attributes:
        name: Its name in configs.
        heading: Its heading on the site, from `kinds.json`.
        caption: Reading guide, from `kinds.json` too.
        source: Source kind: `sweeps`, `kernel_sweeps`, `model_sweeps` or `measurements`.
        menus: Menus for a sweep, given the options already chosen.
        view: Draws one choice, from the results, the sweep or set of timings, the chips to compare,
            and an option for each menu.
        needs: Conditions on the sweep; the first unmet one is reported.
        reads: Columns that it reads in the sweep's table; empty if thresholds are enough.
        preferred: Sort key of sweeps, best first, for `auto`.
        multi_chip: Several chips share one picture.
        each_sweep: `auto` draws every sweep that fits, each a question, not the preferred one.
        most_chips: Maximum number of chips compared [1].
    """

    name: str
    menus: Callable[[Any, Mapping[str, Option]], Sequence[Menu]]
    view: Callable[[Results, str, Sequence[str], Mapping[str, Any]], View]
    heading: str = ""
    caption: str = ""
    source: str = "sweeps"
    needs: tuple[Need, ...] = ()
    reads: tuple[str, ...] = ()
    preferred: Callable[[Any], tuple[int, ...]] = lambda _: ()
    multi_chip: bool = False
    each_sweep: bool = False
    max_chips: int = 6

    def unmet_need(self, sweep: Any, *, auto: bool = False) -> str | None:  # noqa: ANN401, of any kind
        """First unmet need of a sweep, as a message names it after "needs"; None: all met."""
        unmet = (need for need in self.needs if not need.met(sweep) and (auto or not need.auto))
        return next((need.condition for need in unmet), None)

    def check(self, sweep: Any, key: str) -> None:  # noqa: ANN401, of any kind
        """Refuse a sweep that does not meet the kind's needs.

        Raises:
            RooflinesError: A need is not met.
        """
        if condition := self.unmet_need(sweep):
            raise RooflinesError(
                key,
                f"is {self.name}, which needs {condition}; {sweep.name} lacks that",
                "choose another sweep or chart, or give the sweep what it needs",
            )

    def complete(self, sweep: Any, choice: Mapping[str, Option]) -> dict[str, Option]:  # noqa: ANN401
        """Complete a choice with the first option of every other menu.

        Raises:
            RooflinesError: There is no such menu or option.
        """
        menus = {menu.name: menu.options for menu in self.menus(sweep, choice)}
        with Mistakes() as mistakes:
            for name, option in choice.items():
                with mistakes.at(name):
                    check_menu(self, name, menus)
                    check_choices([option], list(menus[name]), f"not to choose in {self.name}")
        empty = next((name for name, options in menus.items() if not options), None)
        if empty:
            problem = f"has nothing to choose for {self.name} of {sweep.name}"
            raise RooflinesError(empty, problem, "choose other chips, dtypes or another sweep")
        return {name: choice.get(name, options[0]) for name, options in menus.items()}


def check_menu(kind: Kind, name: str, menus: Mapping[str, object]) -> None:
    """Refuse a choice without a menu.

    Raises:
        RooflinesError: The kind has no such menu.
    """
    if name not in menus:
        problem = f"is no choice of {quote(kind.name)}"
        raise RooflinesError("", problem, f"choose some of {', '.join(menus)}")


def titled(view: View, title: str | None) -> View:
    """Replace the title by the config's, which claims nothing; unchanged for None."""
    return view if title is None else replace(view, claim=Sentence(text=title))
