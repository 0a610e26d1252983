"""The config, typed: every key of `config/config.yaml`, what it means, and its default.

The JSON Schema for editors is made from these types. Keys and forms are checked here; whether they make sense together is checked
where they come together, in `sweep`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema

from rooflines.catalogue import CONFIG_DIR, base_chips, chip_entries, dtype_entries, resolve_chips
from rooflines.charts.choice import choose
from rooflines.charts.config import ChartConfig, Charts, understood_chart
from rooflines.dictionary import METRICS
from rooflines.entries import Efficiency, Entry, Name, NamedCombination, Text, checked_name, understood
from rooflines.errors import Mistakes, Partial, PlausibilityWarning, RooflinesError, close_to, placed, quote
from rooflines.numbers import counted, whole
from rooflines.operation import NAMED as OPERATIONS
from rooflines.plausibility import doubts
from rooflines.sharding import NAMED as SHARDINGS
from rooflines.spreadsheet import is_formula
from rooflines.sweep import SHARDS, Sweep
from rooflines.yaml_file import Lines, in_file, read_yaml

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rooflines.charts.choice import Spec
    from rooflines.resources import Plain

__all__ = ["DEFAULT_CONFIG", "Config", "ConfigFile", "SweepConfig", "load_config"]

DEFAULT_CONFIG = CONFIG_DIR / "config.yaml"

LONGEST_LIST = 100_000
MOST_THRESHOLDS = 5_000_000
"""Thresholds of all sweeps of a config [1]: they stand in one file."""

LARGEST_PART = 2**31

MOST_SHOWN = 10
"""Things of a kind that a `repr` shows [1]."""


def _listed(value: object) -> object:
    """One value as a list of one; a list with something in it, nothing twice."""
    values = value if isinstance(value, list) else [value]
    if not values:
        raise RooflinesError("", "is an empty list, so the grid is empty", "name at least one, or leave the key out where it has a default")
    if len(values) > LONGEST_LIST:
        raise RooflinesError("", f"has {len(values):,} entries", f"name at most {LONGEST_LIST:,}")
    return _unique(values)


def _unique(values: object) -> object:
    if isinstance(values, list):
        seen: set[str] = set()
        with Mistakes() as mistakes:
            for index, value in enumerate(values):
                if repr(value) in seen:
                    mistakes.add(RooflinesError(f"[{index}]", f"is {quote(value)}, which stands there twice", "name it once"))
                seen.add(repr(value))
    return values


def _numbers_of_chips(value: object) -> object:
    counts = []
    with Mistakes() as mistakes:
        for index, given in enumerate(value if isinstance(value, list) else [value]):
            with mistakes.at(f"[{index}]" if isinstance(value, list) else ""):
                counts.append(whole(given))
    return _listed(counts)


def _names(value: object) -> object:
    fix = "write a name, in quotes if it looks like a number"
    with Mistakes() as mistakes:
        for index, name in enumerate(value if isinstance(value, list) else []):
            if not isinstance(name, str):
                mistakes.add(RooflinesError(f"[{index}]", f"is {quote(name)}, which is no name", fix))
    return value


def _chips(value: object) -> object:
    return value if value == "all" else _names(_listed(value))


def _solved(value: object) -> object:
    if value is not None and not isinstance(value, list):
        raise RooflinesError("", f"is {quote(value)}, which is no list", "write a list such as [B], or [] for nothing")
    return _unique(_names(value))


def _sweeps(value: object) -> object:
    if isinstance(value, Mapping) and not value:
        raise RooflinesError("", "is empty, so there is nothing to compute", "describe at least one sweep")
    return value


def _grid(value: object) -> object:
    if value is not None and not isinstance(value, Mapping):
        raise RooflinesError("", f"is {quote(value)}, which is no mapping", "write each dimension with its sizes, such as B: [1, 2, 4]")
    return value


def _combination(value: object) -> object:
    if not isinstance(value, str | Mapping):
        fix = "write a name of the dtype catalogue, or {x: , w: , out: , compute: }"
        raise RooflinesError("", f"is {quote(value)}, which is no dtype combination", fix)
    return value if isinstance(value, str) else Combination.model_validate(value).model_dump(exclude={"note"})


def _sharding(value: object) -> object:
    if isinstance(value, str):
        return value
    if not isinstance(value, Mapping):
        fix = f"use one of {', '.join(SHARDINGS)}, or {{split: , first: , then: }}"
        raise RooflinesError("", f"is {quote(value)}, which is no sharding", fix)
    return LongSharding.model_validate(value).model_dump()


def _shape_name(value: object) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= 200 or not value.isprintable():  # noqa: PLR2004, a line of text
        raise RooflinesError("", f"is {quote(value)}, which is no name of a shape", "write a line of text of at most 200 characters")
    if is_formula(value):
        raise RooflinesError("", f"is {quote(value)}, which a spreadsheet would run as a formula", "begin it with another character")
    return value


def _metrics(value: object) -> object:
    names = [column.name for column in METRICS]
    if value == "all":
        return value
    if isinstance(value, str):
        raise RooflinesError(
            "", f"is {quote(value)}", f"write all, or a list of {', '.join(names)}", close=close_to(value, ["all", *names])
        )
    if not isinstance(value, list):
        raise RooflinesError("", f"is {quote(value)}", f"write all, or a list of {', '.join(names)}")
    with Mistakes() as mistakes:
        for index, name in enumerate(value):
            if name not in names:
                problem = f"is {quote(name)}, which is no metric of a table"
                mistakes.add(RooflinesError(f"[{index}]", problem, f"use some of {', '.join(names)}", close=close_to(name, names)))
    return _unique(value)


def _part(value: object) -> int:
    return whole(value, largest=LARGEST_PART)


class Combination(NamedCombination):
    """A dtype combination written out."""

    note: None = None


class LongSharding(Entry):
    """A sharding written out."""

    split: Text = Field(description="the dimension that is split")
    first: Text | None = Field(None, description="all-gather x or all-gather w: the operand gathered before")
    then: Text | None = Field(None, description="all-reduce or reduce-scatter: what follows for partial sums")


class Shape(Entry):
    """A named point: sizes for some of the dimensions."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: Annotated[str, BeforeValidator(_shape_name), WithJsonSchema({"type": "string", "minLength": 1, "maxLength": 200})]


COUNT_SCHEMA: Any = {"type": "integer", "minimum": 1}
SIZES_SCHEMA: Any = {
    "description": "a number, a list, a range, tokens of a batch, or another dimension whose size it repeats row by row",
    "anyOf": [
        COUNT_SCHEMA,
        {"type": "array", "items": COUNT_SCHEMA, "minItems": 1},
        {"type": "string", "pattern": "^[A-Za-z]$"},
        *(
            {
                "type": "object",
                "properties": {key: {"type": "number", "exclusiveMinimum": 0} for key in keys},
                "required": keys,
                "additionalProperties": False,
            }
            for keys in (*(["from", "to", by] for by in ("factor", "step", "count")), ["sequences", "tokens_per_sequence", "replicas"])
        ),
    ],
}


def one_or_many(item: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a value or a list of them."""
    return {"anyOf": [item, {"type": "array", "items": item, "minItems": 1, "uniqueItems": True}]}


GridSizes = Annotated[Any, WithJsonSchema(SIZES_SCHEMA)]
Dtypes = Annotated[Any, BeforeValidator(_combination)]
Shardings = Annotated[Any, BeforeValidator(_sharding)]
COMBINATION_SCHEMA = {"anyOf": [{"type": "string"}, NamedCombination.model_json_schema()]}
SHARDING_SCHEMA = {"anyOf": [{"enum": list(SHARDINGS)}, LongSharding.model_json_schema()]}


class SweepConfig(Entry):
    """One sweep: a table of every combination of what is listed."""

    operation: Text = Field(
        description=f"{', '.join(OPERATIONS)}, or an einsum of two operands such as 'BD,DF->BF'", examples=[*OPERATIONS, "BD,DF->BF"]
    )
    grid: Annotated[dict[str, GridSizes] | None, BeforeValidator(_grid)] = Field(
        None, description="the sizes of each dimension; every combination is a row"
    )
    dtypes: Annotated[list[Dtypes], BeforeValidator(_listed), WithJsonSchema(one_or_many(COMBINATION_SCHEMA))] = Field(
        description="dtype combinations: names of the dtype catalogue, or {x: , w: , out: , compute: }"
    )
    chips: Annotated[Any, BeforeValidator(_chips), WithJsonSchema({"anyOf": [{"const": "all"}, one_or_many({"type": "string"})]})] = Field(
        description="chips of the catalogue or of `chips:`; all = every chip of the catalogue that is no variant"
    )
    shapes: Annotated[list[Shape] | None, BeforeValidator(lambda v: None if v is None else _listed(v))] = Field(
        None, description="named sizes instead of some grid axes, such as {name: llama-3-8b-up, D: 4096, F: 14336}"
    )
    sharding: Annotated[list[Shardings], BeforeValidator(_listed), WithJsonSchema(one_or_many(SHARDING_SCHEMA))] = Field(
        ["none"], description="what is split over several chips, and the collective that follows; none stands for one chip"
    )
    shards: Annotated[list[int], BeforeValidator(_numbers_of_chips), WithJsonSchema(one_or_many(COUNT_SCHEMA))] = Field(
        [1], description="numbers of chips; more than one needs a sharding [1]"
    )
    memory: Annotated[list[Name], BeforeValidator(_listed), WithJsonSchema(one_or_many({"type": "string"}))] = Field(
        ["hbm"], description="the memory level that feeds the unit, one or several"
    )
    network: Name | None = Field(None, description="the interconnect; null: each chip's first")
    unit: Literal["matrix", "vector"] | None = Field(
        None, description="the compute unit; null: the operation's, vector for dot, else matrix"
    )
    flops: Literal["leading", "exact"] | None = Field(
        None, description="how FLOPs are counted: leading is 2 * all dimensions; null: the operation's, exact for dot, else leading"
    )
    tile: dict[str, Any] | None = Field(
        None,
        description="elements of one tile by dimension: operands are read again for every tile",
        json_schema_extra={"additionalProperties": COUNT_SCHEMA},
    )
    efficiency: Efficiency | None = Field(
        None, description="shares of the nominal rates that are reached; what is left out is the chip's own, else 1"
    )
    on_unsupported: Literal["skip", "error"] = Field(
        "skip",
        description="what happens where a chip lacks the dtype, level or link: rows are listed in skipped.csv, or the run is refused",
    )
    thresholds: Annotated[list[str] | None, BeforeValidator(_solved)] = Field(
        None,
        description=f"what to solve for: dimensions, and {SHARDS}; [] for nothing; null: the operation's first dimension, B for a matmul",
    )
    columns: Annotated[
        Any,
        BeforeValidator(_metrics),
        WithJsonSchema(
            {"anyOf": [{"const": "all"}, {"type": "array", "items": {"enum": [column.name for column in METRICS]}, "uniqueItems": True}]}
        ),
    ] = Field("all", description="the metrics that the table stores; keys are always stored")
    rows_per_part: Annotated[int, BeforeValidator(_part), WithJsonSchema({**COUNT_SCHEMA, "maximum": LARGEST_PART})] = Field(
        20_000_000, description="rows of one part at most; a larger sweep is cut into parts, each a job of its own [1]"
    )
    compression: Literal["zstd", "lz4"] = Field(
        "zstd", description="of the table's files; lz4 takes a quarter less time to write and a fifth to a half more bytes"
    )
    floats: Literal["float64", "float32"] = Field(
        "float64",
        description="how the table stores metrics; float32 keeps 7 digits and takes a third less time and bytes; bounds stay exact",
    )


BY_NAME: Any = {"type": "object", "patternProperties": {"^[a-z0-9][a-z0-9-]*$": {}}}
"""Entries by name, which are checked one by one."""


class ConfigFile(Entry):
    """A config: sweeps, charts, and the user's own chips."""

    model_config = ConfigDict(title="rooflines config")

    sweeps: Annotated[dict[Any, Any], BeforeValidator(_sweeps), WithJsonSchema(BY_NAME)] = Field(
        description="sweeps by name; each makes a table"
    )
    charts: Charts = Field("auto", description="auto: those that fit the sweeps; or a list of charts; [] for none")
    pathvars: dict[str, str] = Field({}, description="where Snakemake puts files: `results` is the folder of what is made")
    chips: Annotated[dict[Any, Any], WithJsonSchema(BY_NAME)] = Field(
        {},
        description="the user's own chips, or variants with a base and dotted paths to the numbers that differ",
    )


@dataclass(frozen=True, repr=False)
class Config:
    """A config understood: its sweeps, ready to be computed.

    Attributes:
        file: What messages call it.
        sweeps: The sweeps by name.
        chips: All chips by id as plain data, those of the catalogue and the config's own.
        charts: What to draw, nothing left open.
    """

    file: str
    sweeps: Mapping[str, Sweep]
    chips: Plain
    charts: tuple[Spec, ...]

    def __repr__(self) -> str:
        """Its sweeps, a line each, and how many charts it has."""
        rows = sum(sweep.rows for sweep in self.sweeps.values())
        head = f"<Config {self.file}: {counted(len(self.sweeps), 'sweep')}, {counted(rows, 'row')}, {counted(len(self.charts), 'chart')}>"
        return abridged(head, map(repr, self.sweeps.values()))

    def sweep(self, name: str) -> Sweep:
        """One of the sweeps.

        Raises:
            RooflinesError: There is none of that name.
        """
        if name not in self.sweeps:
            fix = f"use one of {', '.join(self.sweeps)}"
            raise RooflinesError("sweeps", f"has no {quote(name)}", fix, close=close_to(name, self.sweeps), file=self.file)
        return self.sweeps[name]


def abridged(head: str, lines: Iterable[str]) -> str:
    """A heading with an indented list below it, of which the first few are shown: the `repr` of what holds many things."""
    every = list(lines)
    more = [f"... and {len(every) - MOST_SHOWN} more"] if len(every) > MOST_SHOWN else []
    return "\n  ".join([head, *every[:MOST_SHOWN], *more])


def load_config(source: str | Path | Mapping[str, Any] | None = None) -> Config:
    """The config in a file or a mapping.

    Args:
        source: A path, a mapping of the same form, or None for the default config.

    Returns:
        The config, checked down to the last key: what it describes can be computed.

    Raises:
        RooflinesError: It is wrong somewhere; the message says where, what was found and how to mend it, for each mistake.

    Warns:
        PlausibilityWarning: A number of one of its own chips looks like a slip.
    """
    line_of = None
    if isinstance(source, Mapping):
        with placed(file="config"):
            config, unlikely = _understood("config", source)
    else:
        path = DEFAULT_CONFIG if source is None else Path(source)
        given, line_of = read_yaml(path), Lines(path).of
        with in_file(path):
            config, unlikely = _understood(str(path), given)
    for doubt in unlikely:
        warnings.warn(str(doubt.within(file=config.file, line_of=line_of)), PlausibilityWarning, stacklevel=2)
    return config


def _check_thresholds(solutions: int) -> None:
    if solutions > MOST_THRESHOLDS:
        fix = "solve for fewer dimensions, for nothing with [], or choose fewer of the other sizes"
        raise RooflinesError("thresholds", f"makes {solutions:,} thresholds, more than the {MOST_THRESHOLDS:,} that one file holds", fix)


def _understood(file: str, given: object) -> tuple[Config, list[RooflinesError]]:
    """The config, and what looks like a slip in it."""
    sweeps: dict[str, Sweep] = {}
    with Mistakes() as mistakes:
        top = understood(ConfigFile, given, mistakes)
        chips, unlikely = _all_chips(top, mistakes)
        with mistakes.at("sweeps") as part:
            for name, sweep in top["sweeps"].items():
                with part.at(str(name)) as own:
                    with own.at():
                        checked_name(name)
                    plain = understood(SweepConfig, sweep, own)
                    if plain.get("chips") == "all":
                        plain["chips"] = base_chips()
                    if "chips" in top.refused:
                        plain.refuse("chips")
                    checked = Sweep.of(name, plain, chips, dtype_entries())
                    _check_thresholds(sum(known.solutions() for known in (*sweeps.values(), checked)))
                    own.check()
                    sweeps[name] = checked
        with mistakes.at("charts") as part:
            charts = _understood_charts(top["charts"], part)
            refused = [name for name in top["sweeps"] if name not in sweeps]
            specs = choose(charts, sweeps, refused)
    return Config(file, sweeps, chips, specs), unlikely


def _all_chips(top: Partial, mistakes: Mistakes) -> tuple[Partial, list[RooflinesError]]:
    """The chips of the catalogue and those of the config that are right, and what looks like a slip in the latter."""
    catalogue = chip_entries()
    own = Partial({}, ())
    unlikely: list[RooflinesError] = []
    with mistakes.at("chips") as part:
        for chip in top["chips"]:
            with part.at(str(chip)):
                if chip in catalogue:
                    raise RooflinesError(
                        "", "is a chip of the catalogue already", f"choose another id and write `base: {chip}` for a variant of it"
                    )
        own = resolve_chips(top["chips"], catalogue, part)
        for chip, entry in own.items():
            with part.at(chip):
                unlikely += [doubt.within(f"chips.{chip}") for doubt in doubts(top["chips"][chip], entry, {**catalogue, **own})]
    return Partial({**catalogue, **own}, own.refused), unlikely


def _understood_charts(charts: object, mistakes: Mistakes) -> str | list[ChartConfig | None]:
    """The charts as far as they are right; None in the place of one that cannot be checked any further."""
    if not isinstance(charts, list):
        return str(charts)
    known: list[ChartConfig | None] = [None] * len(charts)
    for index, chart in enumerate(charts):
        with mistakes.at(f"[{index}]") as part:
            known[index] = understood_chart(chart, part)
    return known
