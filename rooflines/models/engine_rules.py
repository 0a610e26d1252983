"""Memory rules for serving engines, by version: what they keep, and how they deal out the rest.

`config/engines.yaml` has them with their sources; a config adds engines under `engines:`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from rooflines.basics.errors import Mistakes, RooflinesError, at_path, close_to, quote
from rooflines.basics.files import CONFIG_DIR
from rooflines.basics.numbers import whole
from rooflines.basics.yaml_file import in_file, read_yaml
from rooflines.hardware.entry_cache import cached_entries
from rooflines.hardware.entry_forms import (
    Entry,
    NonNegative,
    Positive,
    PositiveInt,
    Share,
    Text,
    check_name,
    validate_entry,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

ENGINES_FILE = CONFIG_DIR / "engines.yaml"

GIB, MIB = 2**30, 2**20
"""Bytes per GiB and MiB [byte]."""

BY_CAPACITY, BY_FREE_MEMORY = "capacity", "free"
"""Base for a utilization: the capacity, or memory that is free beside the peak."""

USUAL_UTILIZATION = Fraction(9, 10)
"""Least default utilization of the catalogue's engines, for answers without an engine [1]."""

BLOCKS, POOLS, WINDOWS = "blocks", "pools", "windows"
"""Layouts of a pool; see `config/engines.yaml`."""

VERSION = re.compile(r"\d{1,4}(?:\.\d{1,4}){0,2}")


def _version(value: object) -> str:
    """Version as text; a number such as 0.19 in YAML is taken as typed."""
    text = f"{value}"
    if isinstance(value, bool) or not VERSION.fullmatch(text):
        fix = "write numbers with dots, such as '0.19'"
        raise RooflinesError("", f"is {quote(value)}, which is no version", fix, value=value)
    return text


Version = Annotated[str, BeforeValidator(_version), WithJsonSchema({"type": ["string", "number"]})]
NonNegativeInt = Annotated[
    int,
    BeforeValidator(lambda value: whole(value, minimum=0)),
    WithJsonSchema({"type": "integer", "minimum": 0}),
]


def version_key(version: str) -> tuple[int, ...]:
    """Version as numbers, without a patch: 0.19.1 is 0.19 [1]."""
    return tuple(int(part) for part in version.split("."))[:2]


class Reserve(Entry):
    """SGLang's default for memory that is not the pool, in MiB."""

    constant: NonNegative = Field(description="constant [MiB]")
    token: NonNegative = Field(description="for each token of a chunk [MiB]")
    least_tokens: PositiveInt = Field(description="tokens counted at least [1]")
    graph: NonNegative = Field(description="for each sequence of the largest graph [MiB]")
    chip: NonNegative = Field(description="for each chip of a replica [MiB]")
    least: NonNegative = Field(description="reserve at least, on chips from least_gib on [MiB]")
    least_gib: NonNegative = Field(description="capacity from which `least` counts [GiB]")
    draft: NonNegative = Field(0, description="further for drafts by layers of the model [MiB]")
    standalone_draft: NonNegative = Field(0, description="further for a draft model [MiB]")
    capacity_factor: Positive = Field(
        1, description="capacity that the engine reads over the reported one [1]"
    )

    def share(
        self, capacity: float, tokens: int, graph: int, chips: int, draft: float = 0
    ) -> float:
        """Default utilization: 1 - reserve / capacity, to three digits [1].

        Args:
            capacity: Memory that the device reports [byte].
            tokens: Tokens per chunk [1].
            graph: Sequences in the largest graph [1].
            chips: Chips per replica [1].
            draft: Further reserve for drafts [MiB].
        """
        mib = capacity * self.capacity_factor / MIB
        reserve_mib = self.constant + self.token * max(tokens, self.least_tokens)
        reserve_mib += self.graph * graph + self.chip * chips
        if capacity > self.least_gib * GIB:
            reserve_mib = max(reserve_mib, self.least)
        return max(round(1 - (reserve_mib + draft) / mib, 3), 0.0)


class Budget(Entry):
    """Defaults for chips from a capacity on."""

    least_gib: NonNegative = Field(description="capacity from which these count [GiB]")
    without: tuple[Text, ...] = Field((), description="chips that they are not for, by first part")
    max_batched_tokens: PositiveInt = Field(description="tokens of a step [1]")
    max_seqs: PositiveInt | None = Field(
        None, description="sequences of a step; null: no limit [1]"
    )
    graph_batch: NonNegativeInt = Field(0, description="sequences of the largest graph [1]")
    graph_batch_tp4: NonNegativeInt = Field(0, description="the same from four chips on [1]")

    def is_for(self, chip: str, capacity: float) -> bool:
        """Check for a chip that has these defaults.

        Args:
            chip: Its id.
            capacity: Memory that it reports [byte].
        """
        excluded = any(chip.partition("-")[0] == part for part in self.without)
        return capacity >= self.least_gib * GIB and not excluded


class Activation(Entry):
    """Fitted peak in a trial step; A, B and E as `config/engines.yaml` has them."""

    logits_bytes: NonNegative = Field(description="A: bytes a logit besides its own [byte]")
    step_widths: NonNegative = Field(description="A: tensors of width D [1]")
    constant_gib: NonNegative = Field(description="A: constant [GiB]")
    layer_mlp: NonNegative = Field(description="B: tensors of width F / tp [1]")
    layer_widths: NonNegative = Field(description="B: tensors of width D [1]")
    experts: NonNegative = Field(description="E: copies of routed tokens [1]")
    encoder_gib: NonNegative = Field(description="beside an encoder [GiB]")


class Outside(Entry):
    """Memory outside the engine's allocator, by tensor-parallel chips."""

    tp: PositiveInt = Field(description="chips of a tensor-parallel group [1]")
    gib: NonNegative = Field(description="memory [GiB]")


class Graphs(Entry):
    """Captured graphs: gib + layer_gib L."""

    gib: NonNegative = Field(description="constant [GiB]")
    layer_gib: NonNegative = Field(description="for each layer [GiB]")
    counted: bool = Field(description="whether the pool is less by it")


class EngineRules(Entry):
    """An engine's rules for a range of versions."""

    version: Version = Field(description="version where none is asked for")
    since: Version = Field(alias="from", description="first version that the rules hold for")
    until: Version | None = Field(
        None, alias="to", description="last version that the rules hold for; null: no later one"
    )
    date: Text = Field(description="month of the rules")
    share: Literal["capacity", "free"] = Field(
        description="memory that utilization divides: the capacity, or all but the peak"
    )
    utilization: Share | None = Field(None, description="default share; null: as `reserve` has it")
    reserve: Reserve | None = Field(None, description="default of what is not the pool")
    budgets: tuple[Budget, ...] = Field(description="defaults by capacity, the first that applies")
    layout: Literal["blocks", "pools", "windows"] = Field(
        description="how the pool is dealt out: blocks of equal pages, pools of tokens, or a pool "
        "for each window"
    )
    block_tokens: PositiveInt = Field(description="tokens of a block [1]")
    tokens_printed: Literal["groups", "concurrency"] = Field(
        description="how the engine counts the tokens that it prints"
    )
    activation: Activation | None = Field(None, description="peak of a trial step; null: none")
    outside_torch: tuple[Outside, ...] = Field((), description="memory outside the allocator")
    pipeline_gib: NonNegative = Field(0, description="the same with pipeline stages [GiB]")
    graphs: Graphs | None = Field(None, description="memory of captured graphs")
    swa_ratio: Positive = Field(1, description="pools: window tokens over full tokens [1]")
    state_ratio: Positive = Field(1, description="pools: memory of states over tokens' [1]")
    fitted: Version | None = Field(
        None, description="version whose starts fitted numbers are of; null: none of this engine"
    )
    error: Text = Field(description="how far fitted numbers are off, and what they rest on")
    source: Text = Field(description="document of the rules")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.utilization is None) == (self.reserve is None):
            problem = "is given beside reserve, or both are missing"
            raise RooflinesError("utilization", problem, "give one of them")
        if not self.budgets or self.budgets[-1].least_gib or self.budgets[-1].without:
            problem = "do not end with one for every chip"
            raise RooflinesError("budgets", problem, "add one with least_gib: 0 at the end")
        if self.until and version_key(self.until) < version_key(self.since):
            raise RooflinesError("to", f"is {self.until}, before {self.since}", "exchange them")
        return self

    def holds_for(self, version: str) -> bool:
        """Check for a version that these rules hold for."""
        first, last = version_key(self.since), self.until and version_key(self.until)
        key = version_key(version)
        return first <= key and (not last or key <= last)

    def budget(self, chip: str, capacity: float) -> Budget:
        """Defaults for a chip.

        Args:
            chip: Its id.
            capacity: Memory that it reports [byte].
        """
        return next(budget for budget in self.budgets if budget.is_for(chip, capacity))

    def outside_gib(self, tp: int, stages: int) -> float:
        """Memory outside the allocator, as listed for the most chips up to tp [GiB]."""
        if stages > 1 and tp == 1:
            return self.pipeline_gib
        listed = [row.gib for row in self.outside_torch if row.tp <= tp]
        return listed[-1] if listed else 0.0

    @property
    def range_text(self) -> str:
        """Versions that these rules hold for, in words."""
        if self.until is None:
            return f"{self.since} on"
        return self.since if self.until == self.since else f"{self.since} to {self.until}"


class Engine(Entry):
    """A serving engine, with its rules by version."""

    name: Text = Field(description="display name")
    vendors: tuple[Text, ...] = Field(description="makers of the chips that it runs on")
    versions: tuple[EngineRules, ...] = Field(min_length=1, description="rules, oldest first")

    def rules(self, version: object = None) -> EngineRules:
        """Rules for a version.

        Args:
            version: The version; None: the first rules.

        Raises:
            RooflinesError: No rules hold for it.
        """
        if version is None:
            return self.versions[0]
        with at_path("version"):
            typed = _version(version)
            for rules in self.versions:
                if rules.holds_for(typed):
                    return rules
        ranges = ", ".join(rules.range_text for rules in self.versions)
        problem = f"is {quote(typed)}, of which {self.name} has no rules"
        fix = f"use one of {ranges}, or add rules under `engines:` of a config"
        raise RooflinesError("version", problem, fix, value=typed)

    @property
    def source(self) -> str:
        """Documents behind its rules."""
        return "; ".join(rules.source for rules in self.versions)


ENTRY_TYPES = (Engine, EngineRules, Reserve, Budget, Activation, Outside, Graphs)
"""Types in the engine catalogue."""


@cache
def engine_entries() -> dict[str, Engine]:
    """Engines in the catalogue by id.

    Raises:
        RooflinesError: The file is invalid.
    """
    return cached_entries("engines", [ENGINES_FILE], _read_engines, ENTRY_TYPES)


def _read_engines() -> dict[str, Engine]:
    content = read_yaml(ENGINES_FILE)
    with in_file(ENGINES_FILE, "engines"):
        return validated_engines(content["engines"])


def validated_engines(entries: Mapping[Any, Any]) -> dict[str, Engine]:
    """Engines by id, each checked.

    Raises:
        RooflinesError: Entries are wrong; key paths start at the engine's id.
    """
    if not isinstance(entries, Mapping):
        problem = f"is {quote(entries)}, which is no mapping"
        raise RooflinesError("", problem, "write engines by id", value=entries)
    engines = {}
    with Mistakes() as mistakes:
        for name, value in entries.items():
            with mistakes.at(str(name)):
                engines[check_name(name)] = validate_entry(Engine, value)
    return engines


def all_engines(entries: Mapping[Any, Any] | None) -> dict[str, Engine]:
    """Engines by id: the catalogue's, and further entries, which win."""
    return {**engine_entries(), **validated_engines(entries or {})}


def find_engine(name: object, engines: Mapping[str, Engine] | None = None) -> Engine:
    """Engine by id.

    Args:
        name: Its id, or its display name.
        engines: Engines by id; None: the catalogue.

    Raises:
        RooflinesError: There is none of that name.
    """
    catalogue = engine_entries() if engines is None else engines
    return catalogue[engine_id(name, catalogue)]


def engine_id(name: object, engines: Mapping[str, Engine] | None = None) -> str:
    """Id for an engine that a text names; as `find_engine`."""
    catalogue = engine_entries() if engines is None else engines
    text = str(name).strip().lower()
    for name_in_catalogue, engine in catalogue.items():
        if text in (name_in_catalogue, engine.name.lower()):
            return name_in_catalogue
    problem = f"is {quote(name)}, which has no rules of its memory"
    fix = f"use {_listed(catalogue)}, or add it under `engines:` of a config"
    close = close_to(text, catalogue)
    raise RooflinesError("", problem, fix, value=name, close=close)


def _listed(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last
