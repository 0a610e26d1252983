"""What a chart is: one value with its name and caption, its needs, its frame and its drawing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable

    import altair as alt
    import polars as pl

    from rooflines.catalogue.entries import Chip
    from rooflines.charts.measured_results import MeasuredSelection
    from rooflines.charts.results import ModelSelection, Results, Selection
    from rooflines.measured.sets import MeasuredSet
    from rooflines.serving.sweep import ModelSweep
    from rooflines.sweep.sweep import Sweep

SweepType = TypeVar("SweepType", "Sweep", "ModelSweep", "MeasuredSet")


class Need(NamedTuple, Generic[SweepType]):
    """A condition that a sweep, or a set of timings, meets or not.

    Attributes:
        what: The condition, as a message names it after "needs".
        met: Whether a sweep meets it.
        auto: Whether only `auto` asks for it: without it the chart can be drawn, but shows little.
    """

    what: str
    met: Callable[[SweepType], bool]
    auto: bool = False


@dataclass(frozen=True)
class Spec:
    """One chart to draw, with every choice made.

    Attributes:
        chart, id, family: Which chart, the name of its files, and their folder.
        sweep: The sweep that it shows; "" for a chart of timings.
        chips, dtypes: What it shows of the sweep or the timings.
        more_chips, more_dtypes, more_models, more_sizes: What a reader of the site can choose
            beside these.
        others: Further sweeps, which the reader can choose; they have some of the chips and dtypes.
        title: Replaces the finding.
        shape, model, sharding, up, sizes, shards: Choices that only some charts have.
        models: Whole models; `sizes` are then contexts.
        measurements: The set of timings that it shows.
        added, added_dtypes: Of its chips and dtypes, those that only the site has: it shows them
            where a reader chooses them.
        shapes: Named shapes with their D and F, for the map.
        auto: Whether `auto` chose it; then it may show fewer chips where all are too many.
    """

    chart: str
    id: str
    family: str
    sweep: str
    chips: tuple[str, ...]
    dtypes: tuple[str, ...]
    more_chips: tuple[str, ...] = ()
    more_dtypes: tuple[str, ...] = ()
    more_models: tuple[str, ...] = ()
    more_sizes: tuple[int, ...] = ()
    others: tuple[str, ...] = ()
    title: str | None = None
    shape: str | None = None
    model: str | None = None
    sharding: str | None = None
    up: str | None = None
    sizes: tuple[int, ...] = ()
    shards: tuple[int, ...] = ()
    models: tuple[str, ...] = ()
    measurements: str | None = None
    added: tuple[str, ...] = ()
    added_dtypes: tuple[str, ...] = ()
    shapes: tuple[tuple[str, int, int], ...] = ()
    auto: bool = False

    def plain(self) -> dict[str, Any]:
        """The spec as plain data, for JSON."""
        return asdict(self)

    @property
    def all_chips(self) -> tuple[str, ...]:
        """The chips that it shows, then those that a reader of the site can choose."""
        return self.chips + self.more_chips

    @property
    def all_dtypes(self) -> tuple[str, ...]:
        """The dtype combinations, as `all_chips`."""
        return self.dtypes + self.more_dtypes

    @property
    def all_models(self) -> tuple[str, ...]:
        """The whole models, as `all_chips`."""
        return self.models + self.more_models

    @property
    def all_sizes(self) -> tuple[int, ...]:
        """The sizes, as `all_chips`."""
        return self.sizes + self.more_sizes

    @property
    def has_more(self) -> bool:
        """Whether the site offers more than the picture shows."""
        return bool(self.more_chips or self.more_dtypes or self.more_models or self.more_sizes)


@dataclass(frozen=True, kw_only=True)
class AnyChart(ABC, Generic[SweepType]):
    """What all charts have, of operations, of whole models and of timings.

    Attributes:
        name: What a config calls it.
        family: The charts that share a folder.
        caption: What it shows, in a sentence or two below the picture.
        order: Its position among all charts, lowest first.
        heading: What the site calls the family; only its first chart has one.
        needs: Conditions on the sweep, the first unmet one is reported.
        reads: Columns of the sweep's table that it reads, beside the keys; empty if thresholds and
            the catalogue are enough.
        most: Charts of this kind that `auto` draws.
        most_chips, most_dtypes: Chips and dtype combinations shown of a sweep with more. The site
            has all of them: a chart shows one chip at a time, or `added` chips beside others.
        parts_by: The menus for whose values the site loads a part of the chart.
    """

    name: str
    family: str
    caption: str
    order: int = 1000
    heading: str = ""
    needs: tuple[Need[SweepType], ...] = ()
    reads: tuple[str, ...] = ()
    most: int = 1
    most_chips: int = 7
    most_dtypes: int = 3
    parts_by: tuple[str, ...] = ("chip",)

    @abstractmethod
    def of(self, results: Results, spec: Spec) -> tuple[pl.DataFrame, alt.LayerChart]:
        """Its frame and its picture.

        Args:
            results: Where numbers come from.
            spec: What it shows.
        """


@dataclass(frozen=True, kw_only=True)
class Chart(AnyChart["Sweep"]):
    """A chart of a sweep of operations; its file defines it as `CHART`.

    Attributes:
        frame: Its rows, from the selected chips and dtypes of a sweep.
        draw: The picture of that frame.
        compares: Whether a chip has the numbers that the chart compares; None if any chip has.
        only: The chips of a sweep with the dtypes that the chart shows; None for all.
        preferred: Sort key of sweeps, best first, for `auto`; None keeps the config's order.
        merges: Sweeps with equal keys are one chart of `auto`, with a menu; None: none are.
        fills: The fields of `Spec` that get a value where the config gives none.
    """

    frame: Callable[[Selection, Spec], pl.DataFrame]
    draw: Callable[[pl.DataFrame, Selection, Spec], alt.LayerChart]
    compares: Callable[[Chip], bool] | None = None
    only: Callable[[Sweep], Collection[tuple[str, str]]] | None = None
    preferred: Callable[[Sweep], tuple[int, ...]] | None = None
    merges: Callable[[Sweep], Hashable] | None = None
    fills: frozenset[str] = frozenset()

    def of(self, results: Results, spec: Spec) -> tuple[pl.DataFrame, alt.LayerChart]:
        """Its frame and its picture."""
        shown = spec.chips, spec.dtypes
        selection = (
            results.of_several((spec.sweep, *spec.others), *shown)[0]
            if spec.others
            else results.of(spec.sweep, *shown)
        )
        frame = self.frame(selection, spec)
        return frame, self.draw(frame, selection, spec)


@dataclass(frozen=True, kw_only=True)
class ModelChart(AnyChart["ModelSweep"]):
    """A chart of a sweep of whole models; its file defines it as `CHART`.

    Attributes:
        frame: Its rows, from the selected chips and dtypes of a sweep.
        draw: The picture of that frame.
        most_models, most_contexts: Models and contexts shown of a sweep with more.
    """

    frame: Callable[[ModelSelection, Spec], pl.DataFrame]
    draw: Callable[[pl.DataFrame, ModelSelection, Spec], alt.LayerChart]
    most_models: int = 6
    most_contexts: int = 2

    def of(self, results: Results, spec: Spec) -> tuple[pl.DataFrame, alt.LayerChart]:
        """Its frame and its picture."""
        selection = results.of_models(spec.sweep, spec.chips, spec.dtypes)
        frame = self.frame(selection, spec)
        return frame, self.draw(frame, selection, spec)


@dataclass(frozen=True, kw_only=True)
class MeasuredChart(AnyChart["MeasuredSet"]):
    """A chart of a set of timings; its file defines it as `CHART`.

    Attributes:
        frame: Its rows, from the selected chips and dtypes of a set.
        draw: The picture of that frame.
    """

    frame: Callable[[MeasuredSelection, Spec], pl.DataFrame]
    draw: Callable[[pl.DataFrame, Spec], alt.LayerChart]

    def of(self, results: Results, spec: Spec) -> tuple[pl.DataFrame, alt.LayerChart]:
        """Its frame and its picture."""
        selection = results.of_measured(str(spec.measurements), spec.chips, spec.dtypes)
        frame = self.frame(selection, spec)
        return frame, self.draw(frame, spec)
