"""Charts with what a reader chose: what their titles say, and the tables to check it against."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import polars as pl
from scenes import written
from titled_configs import CONFIGS

import rooflines
from rooflines import charts
from rooflines.charts.comparing import EVERY
from rooflines.charts.families import fitted, unchecked
from rooflines.charts.kit.text import chip_label
from rooflines.charts.offers import pair_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from rooflines.charts.chart import Spec


@dataclass
class Case:
    """What a chart says for one choice of a reader.

    Attributes:
        config, results, chart: The config, its tables and thresholds, and which of its charts.
        choice: The reader's choice by parameter.
        title, subtitle: What is said.
        spec: The chart.
        claim: What the title claims; empty if it claims nothing.
        known: Rows and thresholds that were read for the chart, by sweep.
    """

    config: rooflines.Config
    results: charts.Results
    chart: Any
    choice: dict[str, str]
    title: str
    subtitle: str
    spec: dict[str, Any]
    claim: dict[str, Any]
    known: dict[tuple[str, str], pl.DataFrame] = field(default_factory=dict, repr=False)

    @property
    def dims(self) -> tuple[str, ...]:
        """The dimensions of the sweep's operation."""
        return tuple(self.config.sweeps[self.chart.sweep].op.dims)

    @property
    def across(self) -> str:
        """The dimension that the horizontal axis is named after."""
        encodings = (layer.get("encoding", {}).get("x", {}) for layer in self.spec["layer"])
        titles = [x["axis"]["title"] for x in encodings if x.get("axis", {}).get("title")]
        (letter,) = re.findall(r"\b[A-Z]\b", titles[0])
        return str(letter)

    def data(self, *columns: str) -> pl.DataFrame:
        """The chart's rows that have these columns, of the reader's choice."""
        rows: list[dict[str, Any]] = next(
            (
                rows
                for rows in self.spec["datasets"].values()
                if rows and set(columns) <= set(rows[0])
            ),
            [],
        )
        data = pl.DataFrame(rows, infer_schema_length=None, schema=None if rows else columns)
        kept = {name: value for name, value in self.choice.items() if name in data.columns}
        return data.filter(*(pl.col(name).cast(pl.String) == value for name, value in kept.items()))

    def _chosen(self, frame: pl.DataFrame) -> pl.DataFrame:
        names = ("chip", "dtypes", "sharding")
        return frame.filter(
            *(pl.col(name) == self.choice[name] for name in names if name in self.choice)
        )

    @property
    def calibrated(self) -> bool:
        """Whether calibrated numbers are chosen."""
        return self.choice.get("basis") == "calibrated"

    def fitted(self) -> pl.DataFrame:
        """The chips and dtypes that have estimates in the table."""
        rows = known_rows(self)
        return rows.filter(pl.col("t_estimate_s").is_not_null()).select("chip", "dtypes").unique()

    def thresholds(self) -> pl.DataFrame:
        """Of the first dimension, that across, or the one solved for; as the reader chose."""
        found = self._chosen(known_thresholds(self))
        if self.calibrated:
            found = found.join(
                self.fitted().with_columns(fitted=True), on=["chip", "dtypes"], how="left"
            ).with_columns(
                critical=pl.when("fitted").then("critical_estimate").otherwise("critical")
            )
        axis = self.dims[0]
        if self.chart.chart in ("attained", "bounds"):
            axis = self.across
        elif self.chart.chart == "shards":
            axis = next(a for a in found["axis"].unique(maintain_order=True) if a in self.dims)
        return found.filter(pl.col("axis") == axis)

    def rows(self) -> pl.DataFrame:
        """Of the table; bottleneck and time as the reader chose."""
        rows = self._chosen(known_rows(self))
        if self.calibrated:
            rows = rows.with_columns(bound="estimate_bound", t_lower_s="t_estimate_s")
        return rows

    def at(self, frame: pl.DataFrame, text: str) -> pl.DataFrame:
        """The rows at the sizes that a text names: `D = F = 8,192`, `m-down, D = 4,096`."""
        shapes = [name for name in frame["shape"].drop_nulls().unique() if name in text.split(", ")]
        frame = frame.filter(pl.col("shape").is_in(shapes)) if shapes else frame
        for names, value in re.findall(r"((?:\b[A-Z] = )+)([\d,]*\d)", text):
            for dim in names.replace("=", " ").split():
                frame = frame.filter(pl.col(dim) == number(value)) if dim in self.dims else frame
        return frame


@lru_cache(maxsize=4)
def drawn_cases(name: str) -> tuple[Case, ...]:
    """Everything that the charts of one of `CONFIGS` say, drawn and computed in this process."""
    return cases_of(rooflines.load_config(CONFIGS[name]))


def cases_of(config: rooflines.Config) -> tuple[Case, ...]:
    """Everything that the charts of a config say, drawn and computed in this process."""
    results = charts.of_config(config)
    specs = {}
    for chart in config.charts:
        with unchecked():
            specs[chart.id] = fitted(results, chart)[1]
    return tuple(_said(config, results, specs))


@cache
def default_cases(folder: Path) -> tuple[Case, ...]:
    """Everything that the charts of the default config say, from the results of a run."""
    return tuple(_said(rooflines.load_config(), charts.on_disk(folder), written(folder)))


def _said(
    config: rooflines.Config, results: charts.Results, specs: Mapping[str, dict[str, Any]]
) -> Iterator[Case]:
    for chart in config.charts:
        for _, case in said_by(config, results, chart, specs[chart.id]):
            yield case


def said_by(
    config: rooflines.Config, results: charts.Results, chart: Spec, spec: dict[str, Any]
) -> Iterator[tuple[str, Case]]:
    """What a chart says, by the keys of the reader's choices."""
    known: dict[tuple[str, str], pl.DataFrame] = {}
    findings = next(p["value"] for p in spec["params"] if p["name"] == "findings")
    names = [p["name"] for p in spec["params"] if p["name"] in spec["usermeta"]["choices"]]
    for key, said in findings.items():
        choice = dict(zip(names, key.split("|"), strict=True))
        if EVERY in key.split("|"):
            del choice["chip"]  # all are shown; any other choice highlights one of them
        elif any(other.startswith(EVERY) for other in findings) and chart.chart != "layers":
            continue
        subtitle = " ".join(said["subtitle"])
        one = replace(chart, sweep=choice.get("sweep", chart.sweep))
        claim = spec["usermeta"]["claims"].get(key, {})
        yield key, Case(config, results, one, choice, said["title"], subtitle, spec, claim, known)


TEXTS = ("chip", "dtypes", "sharding", "shape", "network", "memory")


def known_thresholds(case: Case) -> pl.DataFrame:
    """The thresholds of a chart's chips and dtypes, from the first memory level, read once."""
    return _known(
        case,
        "thresholds",
        lambda sweep: case.results.thresholds(sweep).filter(pl.col("share") == 1),
    )


def known_rows(case: Case) -> pl.DataFrame:
    """Their rows."""
    return _known(case, "rows", case.results.rows)


def _known(case: Case, what: str, read: Callable[[str], pl.LazyFrame]) -> pl.DataFrame:
    chart, known = case.chart, case.known
    if (what, chart.sweep) not in known:
        mine = pl.col("chip").is_in(chart.chips) & pl.col("dtypes").is_in(chart.dtypes)
        frame = read(chart.sweep).with_columns(pl.col(TEXTS).cast(pl.String))
        memory = case.config.sweeps[chart.sweep].config.memory[0]
        known[what, chart.sweep] = frame.filter(mine, memory=memory).collect()
    return known[what, chart.sweep]


def number(text: str) -> int:
    """`19,813` as a number."""
    return int(text.replace(",", ""))


def numbers(text: str) -> list[int]:
    """`2, 4 or 8` and `2, 4 ... 64` as numbers."""
    found = [int(value) for value in re.findall(r"\d+", text)]
    while "..." in text and 2 * found[-2] < found[-1]:
        found.insert(-1, 2 * found[-2])
    return found


def span(values: pl.Series) -> tuple[int, int]:
    """The smallest and the largest of some thresholds, none of which is never."""
    assert values.null_count() == 0
    return int(values.min()), int(values.max())  # type: ignore[arg-type]


def says_span(match: re.Match[str], found: tuple[int, int]) -> bool:
    """Whether a title names these ends of a range: both, or the number that both round to."""
    if match["about"]:
        low, high = found
        return low < high and {f"{low:.2e}", f"{high:.2e}"} == {f"{number(match['low']):.2e}"}
    return found == (number(match["low"]), number(match["high"] or match["low"]))


SPAN = r"(?P<about>about )?(?P<size>[A-Z]) = (?P<low>[\d,]*\d)(?: to (?P<high>[\d,]*\d))?"
NAMED_SPAN = (
    r"(?P<about>about )?(?P<size>[A-Z]) = (?P<low>[\d,]*\d)(?: \((?P<least>.+?)\))?"
    r"(?: to (?P<high>[\d,]*\d)(?: \((?P<most>.+?)\))?)?"
)
ON = r"(?:(?P<shards>[\d, .or]+) × )?(?P<chip>.+)"


def ridge(case: Case, chip: str, dtypes: str) -> float:
    """The ridge of a chip, from a row of the table [FLOP/byte]."""
    row = (
        known_rows(case)
        .filter(pl.col("chip") == chip, pl.col("dtypes") == dtypes)
        .row(0, named=True)
    )
    return float((row["flops"] / row["t_math_s"]) / (row["memory_bytes"] / row["t_memory_s"]))


def shown_chip(case: Case, label: str) -> str:
    """The id of a chip that a title names."""
    return str(next(chip for chip in case.chart.chips if chip_label(chip) == label))


def on_fewest(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows on the fewest chips, of the first split that has as many."""
    fewest_chips = frame.filter(pl.col("shards") == pl.col("shards").min())
    return fewest_chips.filter(pl.col("sharding") == pl.col("sharding").first())


def cells(case: Case) -> pl.DataFrame:
    """The thresholds of the sizes on a map, on the fewest chips and of the first split."""
    across, up = pair_of(case.config.sweeps[case.chart.sweep])
    return on_fewest(case.thresholds()).join(
        case.data("x_low", "critical")
        .select(pl.col("x").alias(across), pl.col("y").alias(up))
        .unique(),
        on=[across, up],
    )


def fewest(case: Case, match: re.Match[str]) -> bool:
    """Whether a title names as many chips as its numbers are of."""
    shards = cells(case)["shards"].unique().to_list()
    return (
        shards == (numbers(match["shards"]) if match["shards"] else [1])
        and chip_label(case.choice["chip"]) == match["chip"]
    )


def on_map(case: Case, match: re.Match[str]) -> bool:
    """Whether title and subtitle name the chip, the number of chips, and the split."""
    sharding, shards = map_split(case)
    pattern = (
        rf" matmuls on {ON} over D and F(?:, split (?P<split>\S+?)(?: over [^,]+)?)?, every byte"
    )
    said = re.search(pattern, case.subtitle)
    return (
        said is not None
        and numbers(match["shards"] or "1") == numbers(said["shards"] or "1") == [shards]
        and match["chip"] == said["chip"] == chip_label(case.choice["chip"])
        and said["split"] == (sharding if shards > 1 else None)
    )


def map_split(case: Case) -> tuple[str, int]:
    """The split and the number of chips that a map is of."""
    return on_fewest(case.thresholds()).select("sharding", "shards").row(0)
