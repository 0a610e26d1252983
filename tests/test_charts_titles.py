"""No title is false: what each says is worked out again from tables, thresholds and the catalogue, for every choice of a reader."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import rooflines
from rooflines import charts
from rooflines.basics.text import seconds, significant
from rooflines.charts.comparing import EVERY
from rooflines.charts.families import fitted, unchecked
from rooflines.charts.kit.text import chip_label

if TYPE_CHECKING:
    from collections.abc import Callable

    from rooflines.charts.chart import Spec

    Claim = tuple[str, Callable[["Case", re.Match[str]], bool]]

B = {"from": 1, "to": 65536, "factor": 8}
LONG = {"from": 1, "to": 4096, "factor": 2}
MATMUL = {"operation": "matmul", "dtypes": ["bf16"], "chips": ["tpu-v5e", "h100-sxm", "b200"]}
BLOCK = [{"name": "m-up", "D": 4096, "F": 14336}, {"name": "m-down", "D": 14336, "F": 4096}]
SPLITS = ["batch", "batch/gather-w", "column", "column/gather-x", "contracting/all-reduce"]
TWINS = {name: {"base": "h100-sxm", "source": "a test"} for name in ("one", "two")}

CONFIGS: dict[str, dict[str, Any]] = {
    "one chip": {
        "sweeps": {
            "s": {
                **MATMUL,
                "chips": ["tpu-v5e"],
                "grid": {"B": B},
                "shapes": BLOCK,
                "sharding": SPLITS,
                "shards": [1, 2, 16],
            }
        }
    },
    "ties": {
        "sweeps": {
            "s": {**MATMUL, "chips": list(TWINS), "grid": {"B": LONG, "D": [1024, 2048], "F": "D"}}
        },
        "chips": TWINS,
        "charts": [
            {"chart": chart, "sweep": "s"}
            for chart in ("chips", "ridges", "per-dollar", "per-watt", "attained")
        ],
    },
    "all never": {
        "sweeps": {"s": {**MATMUL, "grid": {"B": LONG, "D": [64, 128], "F": "D"}}},
        "charts": [{"chart": "attained", "sweep": "s"}],
    },
    "all never, split": {
        "sweeps": {
            "s": {
                **MATMUL,
                "grid": {"B": LONG},
                "shapes": [{"name": "x", "D": 64, "F": 64}],
                "sharding": ["none", *SPLITS],
                "shards": [1, 2, 4],
            }
        }
    },
    "one size": {
        "sweeps": {"s": {**MATMUL, "grid": {"B": LONG, "D": 4096, "F": 4096}}},
        "charts": [{"chart": "attained", "sweep": "s"}],
    },
    "every size found": {
        "sweeps": {
            "s": {
                **MATMUL,
                "chips": ["tpu-v5e"],
                "grid": {"B": LONG, "D": [4096, 8192, 16384, 32768], "F": [4096, 8192, 16384]},
            }
        }
    },
    "few chips": {
        "sweeps": {
            "s": {
                **MATMUL,
                "grid": {"B": LONG, "D": [1024, 4096, 8192, 16384], "F": [1024, 8192, 16384]},
                "sharding": ["contracting/all-reduce", "column"],
                "shards": [4],
            }
        },
        "charts": [
            {"chart": "critical", "sweep": "s"},
            {"chart": "bounds", "sweep": "s", "up": "D"},
        ],
    },
    "no thresholds": {
        "sweeps": {
            "s": {
                **MATMUL,
                "grid": {"B": LONG},
                "shapes": BLOCK,
                "sharding": SPLITS,
                "shards": [1, 2, 4],
                "thresholds": [],
            }
        },
        "charts": [{"chart": "bounds", "sweep": "s"}, {"chart": "time", "sweep": "s"}],
    },
    "too large": {
        "sweeps": {
            "s": {
                **MATMUL,
                "grid": {"B": B},
                "shapes": [{"name": "m-up", "D": 2**18, "F": 2**18}, *BLOCK[1:]],
            }
        },
        "charts": [{"chart": "time", "sweep": "s"}, {"chart": "layers", "sweep": "s"}],
    },
    "on-chip memory first": {
        "sweeps": {
            "s": {
                **MATMUL,
                "chips": ["tpu-v5e"],
                "memory": ["vmem", "hbm"],
                "grid": {"B": LONG, "D": 1024, "F": 1024},
            }
        },
        "charts": [{"chart": "roofline", "sweep": "s"}],
    },
}


@dataclass
class Case:
    """What a chart says for one choice of a reader.

    Attributes:
        config, chart: The config, and which of its charts.
        choice: The reader's choice by parameter.
        title, subtitle: What is said.
        spec: The chart.
    """

    config: rooflines.Config
    chart: Any
    choice: dict[str, str]
    title: str
    subtitle: str
    spec: dict[str, Any]

    @property
    def dims(self) -> tuple[str, ...]:
        """The dimensions of the sweep's operation."""
        return tuple(self.config.sweeps[self.chart.sweep].op.dims)

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

    def thresholds(self) -> pl.DataFrame:
        """Of the first dimension, or of the one that the sweep solves for."""
        found = self._chosen(known_thresholds(self.config, self.chart))
        axis = (
            self.dims[0]
            if self.chart.chart != "shards"
            else next(a for a in found["axis"].unique(maintain_order=True) if a in self.dims)
        )
        return found.filter(pl.col("axis") == axis)

    def rows(self) -> pl.DataFrame:
        """Of the table."""
        return self._chosen(known_rows(self.config, self.chart))

    def at(self, frame: pl.DataFrame, text: str) -> pl.DataFrame:
        """The rows at the sizes that a text names: `D = F = 8,192`, `m-down, D = 4,096`."""
        shapes = [name for name in frame["shape"].drop_nulls().unique() if name in text.split(", ")]
        frame = frame.filter(pl.col("shape").is_in(shapes)) if shapes else frame
        for names, value in re.findall(r"((?:\b[A-Z] = )+)([\d,]*\d)", text):
            for dim in names.replace("=", " ").split():
                frame = frame.filter(pl.col(dim) == number(value)) if dim in self.dims else frame
        return frame


@cache
def _drawn(name: str) -> tuple[Case, ...]:
    """Everything that the charts of a config say."""
    config = rooflines.load_config(None if name == "default" else CONFIGS[name])
    results = charts.of_config(config)
    found = []
    for chart in config.charts:
        with unchecked():
            spec = fitted(results, chart)[1]
        findings = next(p["value"] for p in spec["params"] if p["name"] == "findings")
        names = list(spec["usermeta"]["choices"])
        for key, said in findings.items():
            choice = dict(zip(names, key.split("|"), strict=True))
            if EVERY in key.split("|"):
                del choice["chip"]  # all are shown; any other choice highlights one of them
            elif any(other.startswith(EVERY) for other in findings):
                continue
            found.append(
                Case(config, chart, choice, said["title"], " ".join(said["subtitle"]), spec)
            )
    return tuple(found)


KNOWN: dict[tuple[int, str, str], pl.DataFrame] = {}
TEXTS = ("chip", "dtypes", "sharding", "shape", "network", "memory")


def known_thresholds(config: rooflines.Config, chart: Any) -> pl.DataFrame:  # noqa: ANN401, a chart's specification
    """The thresholds of a chart's chips and dtypes, from the first memory level, computed once."""
    return _known(
        config, chart, "thresholds", lambda: rooflines.thresholds(config, chart.sweep).lazy()
    )


def known_rows(config: rooflines.Config, chart: Any) -> pl.DataFrame:  # noqa: ANN401, a chart's specification
    """Their rows."""
    return _known(config, chart, "rows", lambda: rooflines.rows(config, chart.sweep))


def _known(
    config: rooflines.Config,
    chart: Spec,
    what: str,
    computed: Callable[[], pl.LazyFrame],
) -> pl.DataFrame:
    key = (id(config), chart.id, what)
    if key not in KNOWN:
        frame = computed().with_columns(pl.col(TEXTS).cast(pl.String))
        mine = pl.col("chip").is_in(chart.chips) & pl.col("dtypes").is_in(chart.dtypes)
        KNOWN[key] = frame.filter(
            mine, memory=config.sweeps[chart.sweep].config.memory[0]
        ).collect()
    return KNOWN[key]


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


def said_span(match: re.Match[str]) -> tuple[int, int]:
    """The sizes that a title names."""
    return number(match["low"]), number(match["high"] or match["low"])


SPAN = r"(?P<size>[A-Z]) = (?P<low>[\d,]*\d)(?: to (?P<high>[\d,]*\d))?"
ON = r"(?:(?P<shards>[\d, .or]+) × )?(?P<chip>.+)"


def ridge(case: Case, chip: str, dtypes: str) -> float:
    """The ridge of a chip, from a row of the table [FLOP/byte]."""
    row = (
        known_rows(case.config, case.chart)
        .filter(pl.col("chip") == chip, pl.col("dtypes") == dtypes)
        .row(0, named=True)
    )
    return float((row["flops"] / row["t_math_s"]) / (row["memory_bytes"] / row["t_memory_s"]))


def shown_chip(case: Case, label: str) -> str:
    """The id of a chip that a title names."""
    return str(next(chip for chip in case.chart.chips if chip_label(chip) == label))


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


def never_at_all(case: Case, _: re.Match[str]) -> bool:
    """No size is enough in any case shown."""
    found = case.thresholds()
    if case.chart.chart == "shards":
        found = case.at(found, case.subtitle.partition(", split ")[2])
    return found.height > 0 and found["critical"].null_count() == found.height


def from_on(case: Case, match: re.Match[str]) -> bool:
    """One size for every size of the matrices."""
    return span(case.thresholds()["critical"]) == said_span(match)


def cells(case: Case) -> pl.DataFrame:
    """The thresholds of the sizes on a map, on the fewest chips and of the first split."""
    found = case.thresholds()
    found = found.filter(pl.col("shards") == pl.col("shards").min()).filter(
        pl.col("sharding") == pl.col("sharding").first()
    )
    _, across, up = case.dims
    return found.join(
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


def shapes_on_map(case: Case) -> list[int | None]:
    """The exact critical batch of every shape drawn."""
    shapes = case.data("name", "D", "F", "level").select("name", "D", "F").to_dicts()
    if not shapes:
        return []
    named = [
        {"name": f"s-{i}", "D": int(shape["D"]), "F": int(shape["F"])}
        for i, shape in enumerate(shapes)
    ]
    sweep = {
        **case.config.sweeps[case.chart.sweep].config_json,
        "grid": {"B": 1},
        "shapes": named,
        "chips": [case.choice["chip"]],
        "thresholds": ["B"],
    }
    kept = ("operation", "grid", "shapes", "chips", "thresholds")
    config = rooflines.load_config(
        {
            "sweeps": {
                "s": {key: sweep[key] for key in kept} | {"dtypes": [case.choice["dtypes"]]}
            },
            "charts": [],
        }
    )
    return rooflines.thresholds(config, "s")["critical"].to_list()


def map_needs(case: Case, match: re.Match[str]) -> bool:
    """Of all shapes drawn the least and the most."""
    found = shapes_on_map(case)
    return (
        None not in found
        and (min(found), max(found)) == said_span(match)  # type: ignore[type-var]
        and number(match["shapes"]) == len(found)
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
    """No size is enough on these numbers of these chips with this split; on the chip's other numbers, as drawn, some is."""
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
    """The least and the most that the largest number of chips needs."""
    found = split_cases(case)
    found = found.filter(pl.col("shards") == pl.col("shards").max())
    return number(match["shards"]) == found["shards"][0] and span(found["critical"]) == said_span(
        match
    )


def last_needs(case: Case, match: re.Match[str]) -> bool:
    """What the last row of a map needs, every other being compute-bound at some size."""
    up = "shards" if match["shards"] else match["up"]
    found = split_cases(case) if up == "shards" else case.at(case.thresholds(), case.subtitle)
    if up != "shards":
        found = found.filter(pl.col("shards") == pl.col("shards").min()).filter(
            pl.col("sharding") == pl.col("sharding").first()
        )
    last = found.filter(pl.col(up) == number(match["shards"] or match["value"]))
    return (
        found[up].max() == last[up][0]
        and found["critical"].null_count() == 0
        and span(last["critical"]) == said_span(match)
    )


def never_along(case: Case, match: re.Match[str]) -> bool:
    """No size is enough at these sizes of another dimension."""
    found = case.at(case.thresholds(), case.subtitle)
    found = found.filter(pl.col("shards") == pl.col("shards").min()).filter(
        pl.col("sharding") == pl.col("sharding").first()
    )
    never = found.filter(pl.col("critical").is_null())[match["up"]].unique().sort().to_list()
    return [number(value) for value in re.findall(r"[\d,]*\d", match["values"])] == never


def counted(case: Case, match: re.Match[str]) -> bool:
    """So many cells of a map."""
    drawn = case.data("x_low", "bound")
    return (number(match["some"]), number(match["all"])) == (
        drawn.filter(bound="compute").height,
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
        number(match["shown"]) == len(worth) + 1
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
            min(price.usd_per_hour for price in entry.prices or ())
            if case.chart.chart == "per-dollar"
            else entry.power and entry.power.watts
        )
        assert cost
        found[chip] = entry.units["matrix"][compute].flops_per_s / cost
    return found


def no_best(case: Case, match: re.Match[str]) -> bool:
    """No chip is called the best where two are, or there is one."""
    worth = sorted(bought(case).values(), reverse=True)
    return match["dtypes"] == case.choice["dtypes"] and (
        len(worth) == 1 or worth[0] == pytest.approx(worth[1], rel=1e-12)
    )


def waits(case: Case, match: re.Match[str]) -> bool:
    """So many of the matmuls, of which the subtitle says that they are that, with what they take and what does not fit."""
    bound = {"are compute-bound": "compute", "is compute-bound": "compute"}.get(
        match["verb"]
    ) or match["verb"].split(" ")[-1]
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
    rows = rows.filter(pl.col("sharding") == case.chart.sharding) if case.chart.sharding else rows
    rows = rows.filter(
        pl.col("network").is_null() | (pl.col("network") == pl.col("network").drop_nulls().first())
    )
    some = rows.filter(pl.col("bound").cast(pl.String) == bound).height
    every = int(match["all"] or 1)
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


VERB = r"(?P<verb>(?:are|is) compute-bound|waits? for (?:the )?(?:memory|network))"
COMPARED: list[Claim] = [
    (
        r"In (?P<dtypes>\S+) (?P<more>.+) needs (?P<times>[\d.,]+) times the intensity of (?P<less>.+)",
        ridges_apart,
    ),
    (r"The (?P<dtypes>\S+) ridge of (?P<chip>.+) is (?P<ridge>[\d.,]+) FLOP per byte", a_ridge),
]
BOUGHT: list[Claim] = [
    (
        r"Of (?P<shown>\d+) chips shown, (?P<chip>.+) gives most (?P<dtypes>\S+) per (?:dollar|watt)",
        most_per,
    ),
    (r"Dense (?P<dtypes>\S+) peak per (?:dollar|watt)", no_best),
]
NEVER_ON: Claim = (rf"(?P<split>\S+) on {ON}: no [A-Z] is enough", never_on)
CLAIMS: dict[str, list[Claim]] = {
    "roofline": [
        (r"The (?P<level>\S+) ridge of (?P<chip>.+) is (?P<ridge>[\d.,]+) FLOP per byte", a_ridge)
    ],
    "chips": COMPARED,
    "ridges": COMPARED,
    "attained": [
        (
            rf"\S+ needs {SPAN} at (?P<first>.+?)(?:, (?P<more>[\d,]*\d)|;) at (?P<other>.+?)(?: no [A-Z] is enough)?",
            needs_at,
        ),
        (r"No [A-Z] makes \S+ compute-bound at the sizes shown", never_at_all),
        (rf"\S+ is compute-bound from {SPAN} on at (?:every size shown|.+ = .+)", from_on),
    ],
    "critical": [
        (
            rf"None of these sizes is ever compute-bound on {ON}",
            lambda c, m: fewest(c, m) and cells(c)["critical"].null_count() == cells(c).height,
        ),
        (
            rf"(?P<at>D = F = [\d,]+) is never compute-bound on {ON}",
            lambda c, m: fewest(c, m) and c.at(cells(c), m["at"])["critical"].to_list() == [None],
        ),
        (
            rf"(?P<some>\d+) of (?P<all>\d+) sizes are never compute-bound on {ON}",
            lambda c, m: (
                fewest(c, m)
                and (int(m["some"]), int(m["all"]))
                == (cells(c)["critical"].null_count(), cells(c).height)
            ),
        ),
        (
            rf"{ON} needs {SPAN}(?:, by size)?",
            lambda c, m: fewest(c, m) and span(cells(c)["critical"]) == said_span(m),
        ),
    ],
    "critical-map": [
        (rf"The (?P<shapes>\d+) shapes shown need about {SPAN} on .+", map_needs),
        (
            r"(?P<some>\d+) of the (?P<all>\d+) shapes shown are never compute-bound on .+",
            lambda c, m: (
                (int(m["some"]), int(m["all"]))
                == (shapes_on_map(c).count(None), len(shapes_on_map(c)))
            ),
        ),
        (r"Where .+ turns compute-bound", lambda c, _: not shapes_on_map(c)),
    ],
    "shards": [
        NEVER_ON,
        (r"Split \S+: no [A-Z] is enough on the chips shown", never_at_all),
        (rf"(?P<shards>\d+) chips? needs? {SPAN}(?:, by type)?", chips_need),
    ],
    "bounds": [
        NEVER_ON,
        (r"(?P<chip>(?:(?! at ).)+): no [A-Z] is enough", never_on),
        (r".+ at (?P<up>[A-Z]) = (?P<values>[\d, or]+): no [A-Z] is enough", never_along),
        (
            rf"(?:On (?P<shards>[\d,]+) chips?|At (?P<up>[A-Z]) = (?P<value>[\d,]+)) compute-bound from {SPAN} on",
            last_needs,
        ),
        (r"(?P<some>[\d,]+) of (?P<all>[\d,]+) cases shown on .+ are compute-bound", counted),
    ],
    "layers": [
        (
            r"No [A-Z] makes these layers compute-bound",
            lambda c, _: layer_thresholds(c)["critical"].null_count() == layer_thresholds(c).height,
        ),
        (
            r"(?P<some>[\d,]+) of (?P<all>[\d,]+) pairs of chip and layer are never compute-bound",
            layers_never,
        ),
        (
            rf".+ needs? {SPAN}(?:, by layer and chip)?",
            lambda c, m: span(layer_thresholds(c)["critical"]) == said_span(m),
        ),
    ],
    "per-dollar": BOUGHT,
    "per-watt": BOUGHT,
    "time": [
        (
            rf"At [A-Z] = (?P<low>[\d,]*\d), (?:(?P<some>\d+) of|all|the) (?:(?P<all>\d+) )?matmuls? {VERB}",
            waits,
        )
    ],
}
"""What the titles of each chart claim, and how that is worked out again."""


def false(case: Case) -> bool:
    """Whether a title claims what does not hold, or something that nobody checks."""
    for pattern, holds in CLAIMS[case.chart.chart]:
        match = re.fullmatch(pattern, case.title)
        if match:
            return not holds(case, match)
    return True


@pytest.mark.parametrize("config", ["default", *CONFIGS])
def test_no_title_is_false(config: str) -> None:
    """For every chart and every choice of a reader."""
    said = _drawn(config)
    assert said
    assert [
        (case.chart.id, case.choice, case.title, case.subtitle) for case in said if false(case)
    ] == []


@pytest.mark.parametrize(
    ("chart", "choice", "title"),
    [
        (
            "per-dollar-model-shapes",
            {"dtypes": "bf16"},
            "Of 5 chips shown, TPU v5e gives most bf16 per dollar",
        ),
        (
            "per-watt-model-shapes",
            {"dtypes": "bf16"},
            "Of 5 chips shown, B200 gives most bf16 per watt",
        ),
        (
            "bounds-across-nodes",
            {"chip": "h100-sxm", "sharding": "batch"},
            "On 64 chips compute-bound from B = 32,768 on",
        ),
        (
            "bounds-across-nodes",
            {"chip": "h100-sxm", "sharding": "column"},
            "column on 16, 32 or 64 × H100 SXM: no B is enough",
        ),
        (
            "shards-sharded-models",
            {"dtypes": "bf16", "sharding": "batch/gather-w"},
            "batch/gather-w on 2, 4 or 8 × MI300X: no B is enough",
        ),
        (
            "shards-across-nodes",
            {"sharding": "batch"},
            "64 chips need B = 13,627 to 19,813, by type",
        ),
        (
            "layers-model-shapes",
            {"dtypes": "bf16"},
            "Llama 3 70B needs B = 169 to 1,459, by layer and chip",
        ),
        (
            "time-sharded-models",
            {"chip": "b200", "dtypes": "bf16", "size": "4096", "shards": "8"},
            "At B = 4,096, 3 of 4 matmuls wait for the network",
        ),
        (
            "critical-map-common-sizes",
            {"chip": "tpu-v5e", "dtypes": "bf16"},
            "The 16 shapes shown need about B = 246 to 422 on TPU v5e",
        ),
        (
            "attained-book-q3-curve",
            {"dtypes": "bf16"},
            "bf16 needs B = 272 at D = F = 4,096, 453 at 1,024",
        ),
        (
            "chips-model-shapes",
            {"dtypes": "bf16"},
            "In bf16 TPU v6e needs 3.4 times the intensity of TPU v5p",
        ),
    ],
)
def test_the_check_sees_a_title_that_is_false(
    chart: str, choice: dict[str, str], title: str
) -> None:
    """Titles of earlier versions, and numbers that are one off."""
    case = next(
        case
        for case in _drawn("default")
        if case.chart.id == chart and choice.items() <= case.choice.items()
    )
    assert not false(case)
    assert false(replace(case, title=title))


def bands(spec: dict[str, Any]) -> pl.DataFrame:
    """The dots of a roofline with the band that each lies in, `region`."""
    rows = [
        pl.DataFrame(rows, infer_schema_length=None) for rows in spec["datasets"].values() if rows
    ]
    dots = next(frame for frame in rows if "at" in frame.columns)
    regions = next(frame for frame in rows if "region" in frame.columns)
    spans = regions.group_by("chip", "dtypes", "region").agg(
        left=pl.col("x").min(), right=pl.col("x").max()
    )
    return dots.join(spans, on=["chip", "dtypes"]).filter(pl.col("x").is_between("left", "right"))


def test_bands_of_a_roofline_mean_one_thing_on_every_chip() -> None:
    """Memory-bound left of the ridge and compute-bound right of it: each dot lies in the band that the table says, on all default chips."""
    config = rooflines.load_config()
    sweep = config.sweeps["model-shapes"]
    chips = [
        chip
        for chip in dict.fromkeys(chip_rows.chip for chip_rows in sweep.by_chip)
        if "bf16" in sweep.chips[chip].units["matrix"]
    ]
    frame = charts.roofline_frame(
        charts.of_config(config).of("model-shapes", chips, ["bf16"]), "llama-3-70b-down"
    )
    dots = bands(charts.spec_of(charts.roofline(frame), "roofline"))
    rows = rooflines.rows(config, "model-shapes").filter(dtypes="bf16", shape="llama-3-70b-down")
    table = rows.select(
        pl.col("chip").cast(pl.String), at="B", bound=pl.col("bound").cast(pl.String)
    ).collect()
    both = dots.join(table, on=["chip", "at"])
    assert both.height == frame.filter(kind="point").height == 6 * len(chips)
    assert set(both["bound"]) == {"memory", "compute"}
    assert both["region"].to_list() == both["bound"].to_list()


def test_bands_are_those_of_the_memory_level_that_the_dots_read_from() -> None:
    """A sweep that reads from on-chip memory has its ridge there."""
    (case,) = _drawn("on-chip memory first")
    both = bands(case.spec).join(
        case.rows().select("chip", at="B", bound=pl.col("bound").cast(pl.String)), on=["chip", "at"]
    )
    assert both.height == 5
    assert both["region"].to_list() == both["bound"].to_list()
    assert case.title.startswith("The VMEM ridge of TPU v5e")
