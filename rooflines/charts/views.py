"""What a chart is: a kind with menus, of which one choice is drawn as one view."""

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
    """One picture as data.

    Attributes:
        says: The title, with the rows behind it.
        subtitle: The setting.
        layers: The marks, which read rows and parameters by name.
        data: Rows by name.
        margins: Room around the plot.
        rows: The numbers behind the picture; columns are named as in the tables.
        params: Values that layers read.
        names: Names in the title, which are shortened where it is too long.
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
        """The rows of the marks, as JSON has them: floats to seven significant digits."""
        return {name: _rows(frame) for name, frame in self.data.items()}

    def marks(self) -> list[Layer]:
        """The marks, with the subtitle."""
        return [*self.layers, SUBTITLE]

    def spec(self) -> Layer:
        """Its Vega-Lite specification, without a theme: dimensions in every size are `looks`."""
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
        """What differs from the specification of another view of the chart, but for layers."""
        lines = self._lines()
        return {
            "title": lines["headline"],
            "subtitle": lines["subline"],
            "datasets": self.datasets(),
            "params": {**lines, **self.params},
            "looks": plot_sizes(self.margins),
        }

    def _lines(self) -> dict[str, Any]:
        """Title and subtitle as parameters, as wide as a slide at most."""
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
    """One chart of a config.

    Attributes:
        chart, id: Which kind, which is the folder of its files too, and their name.
        sweep: The sweep, or the set of timings, that it shows.
        chips, dtypes: What it compares, or offers in menus.
        given: Options of further menus, where the config names some.
        title: Replaces the finding.
        auto: Whether `auto` chose it: then it is left out where there is nothing to say.
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
        what: The condition, as a message names it after "needs".
        met: Whether a sweep meets it.
        auto: Whether only `auto` asks for it: without it a chart shows little.
    """

    condition: str
    met: Callable[[Any], bool]
    auto: bool = False


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of chart; its file defines it as `KIND`.

    Attributes:
        name: What a config calls it.
        heading: What the site calls it, from `kinds.json`.
        caption: How to read it, from there too.
        source: What it is of: `sweeps`, `model_sweeps` or `measurements`.
        menus: What can be chosen of a sweep, given what has been chosen.
        view: The picture of one choice, from the results, the sweep or set of timings, the chips
            that are compared by kinds that compare some, and an option of each menu.
        needs: Conditions on the sweep; the first unmet one is reported.
        reads: Columns of the sweep's table that it reads; empty if thresholds are enough.
        preferred: Sort key of sweeps, best first, for `auto`.
        compares: Whether several chips are in one picture.
        most_chips: Chips compared of a sweep with more [1].
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
    most_chips: int = 6

    def unmet_need(self, sweep: Any, *, auto: bool = False) -> str | None:  # noqa: ANN401, of any kind
        """What a sweep lacks for this kind, as a message names it after "needs"; None: nothing."""
        unmet = (need for need in self.needs if not need.met(sweep) and (auto or not need.auto))
        return next((need.condition for need in unmet), None)

    def check(self, sweep: Any, key: str) -> None:  # noqa: ANN401, of any kind
        """Refuse a sweep that lacks what the kind needs.

        Raises:
            RooflinesError: It lacks something.
        """
        if condition := self.unmet_need(sweep):
            raise RooflinesError(
                key,
                f"is {self.name}, which needs {condition}; {sweep.name} lacks that",
                "choose another sweep or chart, or give the sweep what it needs",
            )

    def complete(self, sweep: Any, choice: Mapping[str, Option]) -> dict[str, Option]:  # noqa: ANN401
        """A choice with the first option of every menu that nothing is chosen in.

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
    """Refuse a choice that a kind has no menu for.

    Raises:
        RooflinesError: There is none.
    """
    if name not in menus:
        problem = f"is no choice of {quote(kind.name)}"
        raise RooflinesError("", problem, f"choose some of {', '.join(menus)}")


def titled(view: View, title: str | None) -> View:
    """A view with a title of the config's own, which claims nothing; unchanged for None."""
    return view if title is None else replace(view, claim=Sentence(text=title))
