"""Options that a serving engine is started with, and defaults from its rules."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003, pydantic reads it at run time
from typing import TYPE_CHECKING, Annotated, ClassVar, NamedTuple

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from rooflines.basics.errors import RooflinesError, at_path, quote
from rooflines.basics.quantities import quantity
from rooflines.hardware.entry_forms import Entry, PositiveInt, Text
from rooflines.models.engine_pool import PoolSettings
from rooflines.models.engine_rules import (
    BY_FREE_MEMORY,
    Engine,
    EngineRules,
    Version,
    engine_entries,
    engine_id,
)

if TYPE_CHECKING:
    from fractions import Fraction

    from rooflines.models.engine_rules import Reserve
    from rooflines.models.split import Parallelism

AUTO_RESERVE = "auto"
"""Reserve that the engine's rules give."""

MANY_CHIPS = 4
"""Tensor-parallel chips from which graphs are larger by default [1]."""


def _utilization(value: object) -> float:
    """Share above 0, up to 1 [1]; also as a percentage."""
    text = str(value).strip()
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = 0.0
    if isinstance(value, bool) or not 0 < share <= 1:
        problem = f"is {quote(value)}, which is no share above 0, up to 1"
        raise RooflinesError("", problem, "write a share such as 0.9", value=value)
    return share


def _bytes(value: object) -> int:
    """Memory, such as 4.25GiB [byte]."""
    try:
        return int(quantity(value, "bytes"))
    except RooflinesError:
        problem = f"is {quote(value)}, which is no memory"
        fix = "write bytes, such as 4.25GiB or 4.5GB"
        raise RooflinesError("", problem, fix, value=value) from None


def _reserve(value: object) -> int | None:
    return None if value in (None, AUTO_RESERVE) else _bytes(value)


BYTES_SCHEMA = WithJsonSchema({"type": ["string", "number"]})
Utilization = Annotated[
    float, BeforeValidator(_utilization), WithJsonSchema({"type": ["number", "string"]})
]


class EngineStart(Entry):
    """An engine as it is started."""

    removed_keys: ClassVar[Mapping[str, str]] = {
        "cache": "is no key of an engine: dtypes of the sweep state the KV cache's"
    }

    name: Text = Field(description="engine with rules in config/engines.yaml, or in `engines:`")
    version: Version | None = Field(None, description="its version; null: that of its first rules")
    utilization: Utilization | None = Field(
        None, description="share of memory that it takes; null: its default [1]"
    )
    max_batched_tokens: PositiveInt | None = Field(
        None, description="tokens of a step; null: its default on the chip [1]"
    )
    max_seqs: PositiveInt | None = Field(
        None, description="sequences of a step; null: its default on the chip [1]"
    )
    block: PositiveInt | None = Field(None, description="tokens of a block; null: its default [1]")
    engine_reserve: Annotated[int | None, BeforeValidator(_reserve), BYTES_SCHEMA] = Field(
        None,
        description="memory that it keeps besides weights and caches, such as 4.25GiB; auto: as "
        "its rules have it [byte]",
    )
    peak: Annotated[int, BeforeValidator(_bytes), BYTES_SCHEMA] | None = Field(
        None,
        description="peak of its trial step, weights included, where it takes a share of what is "
        "free beside that; null: as its rules have it [byte]",
    )
    prefix_caching: bool = Field(
        default=False, description="whether prefixes are kept, for which a state takes two blocks"
    )
    full_windows: bool = Field(
        default=False,
        description="whether layers with a window keep every token, as without vLLM's hybrid "
        "manager of caches",
    )

    standalone_draft: bool = Field(
        default=False,
        description="whether a model of its own drafts, for which more is kept; else layers of the "
        "model do (EAGLE, MTP)",
    )

    @model_validator(mode="before")
    @classmethod
    def _named(cls, value: object) -> object:
        return {"name": value} if isinstance(value, str) else value

    @property
    def label(self) -> str:
        """Name in tables: the engine, and the given options, without its version."""
        typed = self.model_dump(exclude_defaults=True, exclude={"name", "version"})
        options = (f"{key}={value:g}" for key, value in typed.items())
        return " ".join([self.name.lower(), *options])

    def started(self, engines: Mapping[str, Engine] | None = None) -> Started:
        """Engine with its rules.

        Args:
            engines: Engines by id; None: the catalogue.

        Raises:
            RooflinesError: The engine or its version has no rules, or an option is not its own.
        """
        catalogue = engine_entries() if engines is None else engines
        with at_path("name"):
            name = engine_id(self.name, catalogue)
        rules = catalogue[name].rules(self.version)
        if self.peak is not None and rules.share != BY_FREE_MEMORY:
            problem = f"is given, but {catalogue[name].name} takes a share of the capacity"
            raise RooflinesError("peak", problem, "give engine_reserve: instead, or leave it out")
        if self.engine_reserve is not None and rules.activation is None:
            problem = f"is given, but {catalogue[name].name} keeps what utilization leaves"
            raise RooflinesError("engine_reserve", problem, "give utilization: instead")
        if self.peak is not None and self.engine_reserve is not None:
            problem = "is given beside peak, which has it"
            raise RooflinesError("engine_reserve", problem, "leave one of them out")
        return Started(name, catalogue[name], rules, self)


class Started(NamedTuple):
    """An engine with its version's rules.

    Attributes:
        name: Its id.
        engine: Its entry.
        rules: Its version's rules.
        start: Its options.
    """

    name: str
    engine: Engine
    rules: EngineRules
    start: EngineStart

    @property
    def version(self) -> str:
        """Version that is asked for, else the rules' default."""
        return self.start.version or self.rules.version

    @property
    def label(self) -> str:
        """Name in tables: its id, and the options that are given."""
        return self.start.model_copy(update={"name": self.name}).label

    @property
    def title(self) -> str:
        """Id and version."""
        return f"{self.name} {self.version}"

    def settings(
        self, chip: str, capacity: float | Fraction, split: Parallelism, drafts: int = 0
    ) -> PoolSettings:
        """Options on a chip, with defaults filled in.

        Args:
            chip: The chip's id.
            capacity: Memory that it reports [byte].
            split: Split over chips.
            drafts: Drafted tokens in a step [1].
        """
        start, rules = self.start, self.rules
        budget = rules.budget(chip, float(capacity))
        tokens = start.max_batched_tokens or budget.max_batched_tokens
        utilization = start.utilization or rules.utilization
        if utilization is None and rules.reserve is not None:
            many = split.shards >= MANY_CHIPS
            graph = budget.graph_batch_tp4 if many else budget.graph_batch
            draft = self._draft_reserve(rules.reserve) if drafts else 0
            utilization = rules.reserve.share(float(capacity), tokens, graph, split.shards, draft)
        return PoolSettings(
            utilization=utilization or 0.0,
            max_batched_tokens=tokens,
            max_seqs=start.max_seqs or budget.max_seqs,
            block_tokens=start.block or rules.block_tokens,
            reserve=start.engine_reserve,
            peak=start.peak,
            prefix_caching=start.prefix_caching,
            windows=not start.full_windows,
            drafts=drafts,
        )

    def _draft_reserve(self, reserve: Reserve) -> float:
        """Further reserve for drafts, by a model of their own or by layers of the model [MiB]."""
        return reserve.standalone_draft if self.start.standalone_draft else reserve.draft

    def runs_on(self, vendor: str) -> bool:
        """Check for a chip maker that the engine supports."""
        return vendor in self.engine.vendors
