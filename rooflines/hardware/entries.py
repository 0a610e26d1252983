"""Typed catalogue entries: every number with a place for its source.

Formulas read exact numbers from them, as types of `theory`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import BeforeValidator, Field, model_validator

from rooflines.basics.errors import RooflinesError, check_choice, quote
from rooflines.basics.numbers import exact
from rooflines.basics.text import month, significant
from rooflines.hardware.dtype_catalogue import Dtype  # noqa: TC001, pydantic reads it at run time
from rooflines.hardware.entry_forms import (
    UNLIMITED,
    Domain,
    Entry,
    MeasuredShare,
    Name,
    NonNegative,
    Positive,
    PositiveInt,
    Share,
    Source,
    Text,
)
from rooflines.theory.network import PAIR, Link
from rooflines.theory.operation import Unit  # noqa: TC001, pydantic reads it at run time
from rooflines.theory.resources import RESOURCES, ChipRates, MemoryLevel

if TYPE_CHECKING:
    from collections.abc import Mapping

MAIN_MEMORY = "hbm"
"""Name for every chip's main memory, HBM or not."""


Confidence = Literal["vendor", "vendor-quoted", "book", "secondary", "derived", "measured"]


def _confidence(value: object) -> object:
    for confidence in value.values() if isinstance(value, dict) else [value]:
        check_choice(
            confidence, get_args(Confidence), "no confidence", "write one, or one for each number"
        )
    return value


def _estimate(value: object) -> object:
    is_key_list = isinstance(value, list) and all(isinstance(key, str) for key in value)
    if not (isinstance(value, bool) or is_key_list):
        fix = "write true or false, or a list of the numbers that are, such as [capacity_bytes]"
        raise RooflinesError("", f"is {quote(value)}, which is not true or false", fix, value=value)
    return value


class Sourced(Entry):
    """An entry with numbers, their source and confidence."""

    source: Source | None = Field(
        None,
        description=(
            "ids in `sources:`, or free text in a config; for all numbers, or a mapping by key"
        ),
    )
    confidence: (
        Annotated[Confidence | dict[str, Confidence], BeforeValidator(_confidence)] | None
    ) = Field(
        None,
        description="how the number was read; or a mapping by key",
    )
    estimate: Annotated[bool | list[str], BeforeValidator(_estimate)] = Field(
        default=False, description="whether it is an estimate; or a list with the keys of estimates"
    )
    note: Text | None = Field(None, description="note, such as other sources' figures")


class Peak(Sourced):
    """Dense peak of a compute unit in one compute dtype."""

    flops_per_s: Positive = Field(description="dense peak, a multiply-add counted as two [FLOP/s]")
    printed_with_sparsity: Positive | None = Field(
        None, description="printed figure with sparsity, never used [FLOP/s]"
    )
    halved: bool = Field(
        default=False, description="whether flops_per_s is half of the printed with-sparsity figure"
    )

    @cached_property
    def exact(self) -> Fraction:
        """Exact peak, for formulas [FLOP/s]."""
        return exact(self.flops_per_s)


class Level(Sourced):
    """A memory level."""

    bytes_per_s: Positive | None = Field(
        None, description="bandwidth to the compute units, decimal; null: not published [byte/s]"
    )
    capacity_bytes: Positive | None = Field(
        None,
        description=(
            "capacity that the device reports to a program, such as totalGlobalMem in CUDA and HIP "
            "or bytes_limit in JAX; `fits` and largest batches use it [byte]"
        ),
    )
    label: Text | None = Field(None, description="printed capacity, such as 80 GB")
    driver_reserved_bytes: Positive | None = Field(
        None,
        description=(
            "label, read as GiB, less capacity_bytes: what driver and firmware keep, and the ECC "
            "of GDDR [byte]"
        ),
    )
    bus_bits: PositiveInt | None = Field(None, description="bus width [bit]")
    pin_bits_per_s: Positive | None = Field(
        None, description="rate per bus pin; bus_bits pins bound bytes_per_s [bit/s]"
    )
    technology: Text | None = Field(None, description="memory technology, such as HBM3e or GDDR7")

    @cached_property
    def exact(self) -> MemoryLevel:
        """Exact bandwidth and capacity, for formulas; requires a published bandwidth."""
        capacity = self.capacity_bytes
        return MemoryLevel(exact(self.bytes_per_s), None if capacity is None else exact(capacity))


class Network(Sourced):
    """An interconnect."""

    bytes_per_s: Positive = Field(description="bandwidth of one link, one way [byte/s]")
    links: PositiveInt = Field(1, description="links per chip [1]")
    topology: Literal["switch", "mesh", "torus"] = Field(
        description=(
            "switch: all links usable at once; mesh: one link to every other chip; "
            "torus: a line, or a ring where it closes"
        )
    )
    domain: Domain | None = Field(
        None,
        description=(
            "most chips that it joins (torus: along one axis) [1]; unlimited: a routed network, "
            "such as InfiniBand, RoCE between boxes, EFA, DCN; null: not published, more than two "
            "chips are skipped, and in a variant the base's value is removed"
        ),
    )
    ring_multiple: PositiveInt | None = Field(
        None, description="torus: the axis closes into a ring where N is a multiple of this [1]"
    )
    pod: PositiveInt | None = Field(
        None, description="torus: chips of a pod, so of the largest slice [1]"
    )
    reduces: bool = Field(
        default=False,
        description="whether a switch adds up payloads, so that an all-reduce sends less",
    )
    hop_latency_s: NonNegative = Field(
        0,
        description="least hop latency, in `t_network_s`: a constant in the vendor's library or "
        "documentation [s]",
    )
    typical_hop_latency_s: NonNegative | None = Field(
        None, description="usual hop latency, measured or another such constant; in estimates [s]"
    )

    @model_validator(mode="after")
    def _fits_topology(self) -> Self:
        max_chips = math.inf if self.domain == UNLIMITED else int(self.domain or 1)
        if self.topology == "mesh" and max_chips > self.links + 1:
            limit = f"a mesh of {self.links} links joins {self.links + 1} chips at most"
            fix = "give as many links as there are other chips, or a smaller domain"
            raise RooflinesError("domain", f"is {self.domain}, but {limit}", fix)
        if self.topology != "torus" and self.ring_multiple is not None:
            fix = "leave it out: only a torus closes into rings"
            raise RooflinesError("ring_multiple", f"is set for a {self.topology}", fix)
        typical = self.typical_hop_latency_s
        if typical is not None and typical < self.hop_latency_s:
            problem = f"is {typical:g}, less than hop_latency_s, {self.hop_latency_s:g}"
            fix = "give the least time of a hop as hop_latency_s, the usual one as typical"
            raise RooflinesError("typical_hop_latency_s", problem, fix)
        return self

    @cached_property
    def exact(self) -> Link:
        """Exact link, for formulas; an unpublished domain becomes a pair."""
        mesh = self.links + 1 if self.topology == "mesh" else None
        domain = mesh if self.domain is None else self.domain
        typical = self.typical_hop_latency_s
        return Link(
            exact(self.bytes_per_s),
            self.topology,
            self.links,
            PAIR if domain is None else None if domain == UNLIMITED else int(domain),
            self.ring_multiple,
            exact(self.hop_latency_s),
            domain_known=domain is not None,
            typical_hop_latency_s=None if typical is None else exact(typical),
            pod=self.pod,
        )


class SpecialUnit(Sourced):
    """The unit for exponentials and other special functions."""

    exp_per_s: Positive = Field(description="exponentials per second, all units together [1/s]")

    @cached_property
    def exact(self) -> Fraction:
        """Exact rate, for formulas [1/s]."""
        return exact(self.exp_per_s)


class Power(Sourced):
    """Electrical power of a chip."""

    watts: Positive = Field(description="design power [W]")


class Price(Sourced):
    """Price of a chip-hour."""

    usd_per_hour: Positive = Field(description="price per chip and hour [USD/h]")
    provider: Text = Field(description="seller")
    sku: Text | None = Field(None, description="product")
    date: Text = Field(description="date of the price")

    def __str__(self) -> str:
        """Price with provider and month, such as `$3.85/h, Nebius, August 2026`."""
        return f"${significant(self.usd_per_hour, 4)}/h, {self.provider}, {month(self.date)}"


class Measured(Sourced):
    """Measured share of a peak; for information, never applied."""

    renamed_keys: ClassVar[Mapping[str, str]] = {"what": "quantity"}

    quantity: Text = Field(description="measured quantity, such as a bf16 matmul")
    fraction_of_peak: MeasuredShare = Field(
        description="share of the nominal peak or rate; above 1, at most 2, beyond the peak's "
        "clock [1]"
    )


class Efficiency(Entry):
    """Shares of nominal rates reached."""

    math: Share | None = Field(None, description="share of the compute unit's peak [1]")
    memory: Share | None = Field(None, description="share of the memory level's bandwidth [1]")
    network: Share | None = Field(None, description="share of the interconnect's bandwidth [1]")


def shares_of(efficiency: Efficiency | None) -> dict[str, Fraction]:
    """Exact shares that are set, by resource name [1]."""
    shares = ((r.name, getattr(efficiency, r.name, None)) for r in RESOURCES)
    return {name: exact(share) for name, share in shares if share is not None}


class Calibration(Efficiency):
    """Calibration in one compute dtype, fitted to measurements; gives `t_estimate_s` only."""

    overhead_s: NonNegative = Field(
        0, description="fixed time that every operation takes in addition [s]"
    )


class Chip(Sourced):
    """A chip: compute units, memory levels and networks."""

    name: Text | None = Field(None, description="full name")
    short: Text | None = Field(None, description="short name, such as H100 SXM")
    vendor: Text | None = Field(None, description="maker")
    generation: Text | None = Field(None, description="architecture of its maker, such as Hopper")
    year: PositiveInt | None = Field(None, description="year of release")
    status: Text | None = Field(None, description="availability")
    clock: Literal["boost"] | None = Field(
        None,
        description=(
            "boost: the peaks are for the printed boost clock, which the chip may exceed, so a "
            "time below the bound is possible"
        ),
    )
    aliases: list[Text] | None = Field(
        None,
        description="other names, such as the driver's, by which `rooflines measured measure` "
        "finds it",
    )
    usual: Text | None = Field(
        None, description="family name that stands for it, such as h100 for h100-sxm"
    )
    base: Name | None = Field(None, description="base chip of a variant")
    plausible: list[Text] | None = Field(
        None,
        exclude=True,
        description=(
            "dotted paths of numbers that are intended although they resemble a slip; "
            "for a config's own chips"
        ),
    )
    units: dict[Unit, dict[Dtype, Peak]] = Field(
        description="dense peaks by compute unit and compute dtype"
    )
    memory: dict[Name, Level] = Field(
        description="memory levels; hbm is the main memory of any technology"
    )
    special: SpecialUnit | None = Field(
        None,
        description="unit for exponentials; never in a bound, since kernels compute some as "
        "polynomials",
    )
    networks: dict[Name, Network] = Field({}, description="interconnects; the first is the default")
    power: Power | None = Field(None, description="power")
    prices: list[Price] | None = Field(None, description="dated prices")
    measured: list[Measured] | None = Field(
        None, description="achieved shares of peak, for information"
    )
    efficiency: Efficiency | None = Field(
        None,
        description="shares of the nominal rates that are reached, for every dtype, in sweeps "
        "without their own",
    )
    calibration: dict[Dtype, Calibration] | None = Field(
        None, description="fitted efficiencies and overhead by compute dtype"
    )

    @property
    def last_level_cache(self) -> Level | None:
        """Largest memory level below the main memory; None: no capacity known."""
        main = self.memory[MAIN_MEMORY].capacity_bytes if MAIN_MEMORY in self.memory else None
        caches = [
            level
            for name, level in self.memory.items()
            if name != MAIN_MEMORY and 0 < (level.capacity_bytes or 0) < (main or math.inf)
        ]
        return max(caches, key=lambda level: level.capacity_bytes or 0, default=None)

    def lowest_price(self, provider: str | None = None, kind: str | None = None) -> Price | None:
        """Lowest dated price, the latest among equals; None without a price.

        Commands, tables, charts and the explorer all take this price.

        Args:
            provider: The seller; None: any.
            kind: Words in the product name, such as `on demand`; None: any.
        """
        matching = [
            price
            for price in self.prices or []
            if provider in (None, price.provider) and (kind or "") in (price.sku or "")
        ]
        by_date = sorted(matching, key=attrgetter("date"), reverse=True)
        return min(by_date, key=attrgetter("usd_per_hour"), default=None)

    def chip_rates(self, unit: Unit, memory: str, *efficiencies: Efficiency | None) -> ChipRates:
        """Rates from which times are computed.

        Args:
            unit: The compute unit.
            memory: The memory level that feeds the unit.
            efficiencies: Shares of nominal rates reached; the last one that states a share wins, 1
                where none does.
        """
        shares = {resource.name: Fraction(1) for resource in RESOURCES}
        for efficiency in efficiencies:
            shares |= shares_of(efficiency)
        peaks = {dtype: peak.exact for dtype, peak in self.units.get(unit, {}).items()}
        return ChipRates(peaks, self.memory[memory].exact, shares)

    @cached_property
    def plain(self) -> dict[str, Any]:
        """This entry as JSON, without defaults."""
        plain: dict[str, Any] = self.model_dump(exclude_none=True, exclude_defaults=True)
        plain.setdefault("networks", {})
        return plain


ENTRY_TYPES = (
    Chip,
    Peak,
    Level,
    Network,
    SpecialUnit,
    Power,
    Price,
    Measured,
    Efficiency,
    Calibration,
)
"""Entry types in the chip catalogue."""
