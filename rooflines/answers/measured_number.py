"""A measured number judged: its share of the bound and of the estimate, rates, what is left."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rooflines.answers.phrases import Line, Section
from rooflines.basics.errors import RooflinesError, quote
from rooflines.basics.quantities import (
    FLOPS_PER_S,
    HFU,
    MBU,
    MFU,
    PER_CHIP,
    PER_USER,
    TIME,
    TOKENS_PER_S,
)
from rooflines.basics.text import count, percent, seconds, si, significant
from rooflines.evaluation.measured_times import (
    MFU_FULL,
    RateWorks,
    amount_kind,
    measured_rates,
    measured_seconds,
)
from rooflines.models.architecture import DECODE, PREFILL, TRAIN
from rooflines.theory.resources import RESOURCES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.basics.quantities import MeasuredValue

BUS_RATE, TRAFFIC_RATE = "busbw", "traffic"
"""Kinds of rates that kernels have: bus bandwidth, memory traffic."""

MIN_BUSY = 0.3
"""Busy share from which a resource counts as busy [1]: with none, the time goes elsewhere."""

PLACES = BELOW, INSIDE, ABOVE = "below", "inside", "above"
"""Places in the band of an estimate."""

SLACK = 1e-9
"""Share by which a time may be below the bound from its own computation [1]."""


@dataclass(frozen=True)
class FasterReason:
    """Reason why a measured time can be below the bound.

    Attributes:
        subject: Such as `cache`, `sparsity` or `dtypes`.
        text: What would have to hold, with the numbers.
    """

    subject: str
    text: str


@dataclass(frozen=True, kw_only=True)
class MeasuredNumber:
    """A measured number as a time, beside the bound and the estimate.

    Attributes:
        typed: Text as typed.
        kind: `time`, `tokens_per_s`, `tokens_per_s_per_chip`, `flops_per_s`, `mfu`,
            `mfu_full` and so on.
        time_s: Time that it amounts to [s].
        rounding: Half a unit in the last typed digit, over the number [1].
        bound_s: Bound [s].
        bound_share: bound / measured [1]; above 1: faster than the bound.
        estimate_ratio: measured / estimate [1]; None: no estimate.
        place: Place in the estimate's band: `below` its p10, `inside`, or `above` its p90; None: no
            band.
        estimate_s, p10_s, p90_s: Estimate and its band [s]; None: none.
        serial_s: Kernels of a step one after another [s]; None: an operation.
        upper_s: Time without any overlap [s].
        above_bound_s: measured - bound [s].
        above_estimate_s: measured - estimate [s]; None: no estimate.
        rates: Rates and utilizations at the measured time, by kind: tokens/s of all chips and of
            one, tokens/s/user, and shares of peaks [1/s or 1].
        busy: Share of the measured time that each resource needs at least, t_resource / measured
            [1].
        fits: Whether the row's footprint fits; None: unknown.
        outside_kernels: Whether no resource is busy for `MIN_BUSY` of the time.
        reasons: Reasons for a time below the bound; empty: it is none.
    """

    typed: str
    kind: str
    time_s: float
    rounding: float
    bound_s: float
    bound_share: float
    estimate_ratio: float | None
    place: str | None
    estimate_s: float | None
    p10_s: float | None
    p90_s: float | None
    serial_s: float | None
    upper_s: float
    above_bound_s: float
    above_estimate_s: float | None
    rates: Mapping[str, float]
    busy: Mapping[str, float]
    fits: bool | None
    outside_kernels: bool
    reasons: Sequence[FasterReason] = field(default=())

    @property
    def beats_bound(self) -> bool:
        """True for a time below the bound by more than the rounding of the typed number."""
        return self.time_s * (1 + self.rounding) * (1 + SLACK) < self.bound_s

    def columns(self) -> dict[str, float | None]:
        """Columns in a row of a table."""
        return {
            "measured_s": self.time_s,
            "measured_over_bound": 1 / self.bound_share,
            "measured_over_estimate": self.estimate_ratio,
            **{f"measured_{kind}": value for kind, value in self.rates.items()},
        }

    def rate_texts(self) -> Iterator[str]:
        """FLOP/s of an operation, or rates in tokens, the user's first."""
        rates = self.rates
        if FLOPS_PER_S in rates:
            yield si(rates[FLOPS_PER_S], "FLOP/s")
        if BUS_RATE in rates:
            yield f"busbw {si(rates[BUS_RATE], 'B/s')}"
        if TRAFFIC_RATE in rates:
            yield f"{si(rates[TRAFFIC_RATE], 'B/s')} of memory traffic"
        if PER_USER in rates:
            yield f"{significant(rates[PER_USER])} tokens/s/user"
        if PER_CHIP in rates:
            if rates[PER_CHIP] < rates[TOKENS_PER_S]:
                yield f"{count(rates[PER_CHIP])} tokens/s/chip"
            yield f"{count(rates[TOKENS_PER_S])} tokens/s"

    def utilization_texts(self, *, trains: bool) -> Iterator[str]:
        """MFU by each convention, MBU.

        Args:
            trains: True for training, whose recomputation HFU counts.
        """
        rates = self.rates
        if MFU in rates:
            mfu, full = percent(rates[MFU]), percent(rates.get(MFU_FULL, rates[MFU]))
            yield f"MFU {mfu}" if mfu == full else f"MFU {mfu}, {full} counting all token pairs"
        if trains:
            yield f"HFU {percent(rates[HFU])}, including recomputation"
        if MBU in rates:
            yield f"MBU {percent(rates[MBU])}"
        if rates.keys() & {MFU, MBU}:
            yield "peaks nominal and dense"


def judged_number(
    measured: MeasuredValue, row: Mapping[str, Any], works: RateWorks
) -> MeasuredNumber:
    """Judge a measured number of a row.

    bound_share = t_lower / t; estimate_ratio = t / t_estimate; busy = t_resource / t.

    Args:
        measured: The number.
        row: Row of an operation, a step or a request.
        works: Works behind its rates.

    Raises:
        RooflinesError: The row has no such rate.
    """
    time_s = measured_seconds(measured, works)
    if time_s is None:
        raise RooflinesError("measured", *_no_such_rate(measured, row))
    bound_s, estimate_s = row["t_lower_s"], row.get("t_estimate_s")
    p10_s, p90_s = row.get("t_estimate_p10_s"), row.get("t_estimate_p90_s")
    busy = {resource.name: row[f"t_{resource.name}_s"] / time_s for resource in RESOURCES}
    return MeasuredNumber(
        typed=measured.text,
        kind=amount_kind(measured),
        time_s=time_s,
        rounding=measured.rounding,
        bound_s=bound_s,
        bound_share=bound_s / time_s,
        estimate_ratio=None if estimate_s is None else time_s / estimate_s,
        place=place_in_band(time_s, p10_s, p90_s),
        estimate_s=estimate_s,
        p10_s=p10_s,
        p90_s=p90_s,
        serial_s=row.get("t_serial_s"),
        upper_s=row["t_upper_s"],
        above_bound_s=time_s - bound_s,
        above_estimate_s=None if estimate_s is None else time_s - estimate_s,
        rates=measured_rates(time_s, works),
        busy=busy,
        fits=row["fits"],
        outside_kernels=max(bound_s / time_s, *busy.values()) < MIN_BUSY,
    )


def several_measured(measured: MeasuredValue, cases: str) -> RooflinesError:
    """Refusal of a measured number where there is not one case."""
    problem = f"is {quote(measured.text)}, one number, but {cases}"
    return RooflinesError("measured", problem, "ask for one case, with all sizes and one split")


def dtypes_order(dtypes: Mapping[str, Any], *, slowest: bool = False) -> tuple[float, bool]:
    """Order by bound to two digits; floating point is first, or last where the slowest is asked."""
    integers = str(dtypes["dtypes"]).startswith("int")
    return float(f"{dtypes['t_lower_s']:.2g}"), integers != slowest


def place_in_band(time_s: float, p10_s: float | None, p90_s: float | None) -> str | None:
    """Place of a time in a band; None: no band."""
    if p10_s is None or p90_s is None:
        return None
    if time_s < p10_s:
        return BELOW
    return ABOVE if time_s > p90_s else INSIDE


def _no_such_rate(measured: MeasuredValue, row: Mapping[str, Any]) -> tuple[str, str]:
    """Problem and fix for a rate that an answer does not have."""
    typed = quote(measured.text)
    if "tokens_per_s" not in row:
        if measured.kind in (TOKENS_PER_S, PER_CHIP, PER_USER):
            problem = f"is {typed}, a rate of tokens, but an operation has no tokens"
            return problem, "write its time, such as 250us, or its share of peak, such as 41%mfu"
        problem = f"is {typed}, but an operation has no causal mask and no recomputation"
        return problem, "write its time, such as 250us, or its share of peak, such as 41%mfu"
    if measured.kind == FLOPS_PER_S:
        problem = f"is {typed}, but FLOPs of a step are counted in several ways"
        return problem, "write the share of peak: 41%mfu, '41%mfu full' or 41%hfu"
    if measured.kind == PER_USER:
        phase = "training has no users" if row["phase"] == TRAIN else "prefill has no TPOT"
        problem = f"is {typed}, a rate of one user's tokens, but {phase}"
        return problem, "write tokens/s of all chips, such as 1397tok/s, of one, or the step's time"
    problem = f"is {typed}, but the token pairs of requests differ"
    return problem, "write 41%mfu, a rate of tokens, or a time such as 30ms"


# ---------------------------------------------------------------- in words


COUNTED_TOKENS: Mapping[str | None, str] = {
    DECODE: "of output",
    PREFILL: "of prompts",
    TRAIN: "trained",
}
"""Tokens behind rates, by phase."""


def measured_section(  # noqa: PLR0913, words of several answers
    number: MeasuredNumber,
    *,
    per: str,
    band_share: str,
    levers: str,
    phase: str | None = None,
    bound_name: str = "bound",
    where: str | None = None,
) -> Section:
    """A measured number in words: shares, place in the band, utilizations, what is left.

    Args:
        number: The number.
        per: Phrase for what takes the time, such as `a step`; empty: an operation.
        band_share: Measurements inside the band.
        levers: Changes that take less time; empty: none.
        phase: Phase of a step, whose tokens are counted; None: an operation.
        bound_name: Name of the bound: `ring` where a switch may beat it.
        where: Places of the time while no resource is busy; None: those of a step or an operation.
    """
    typed = "" if number.kind == TIME else f", typed {number.typed}"
    title = " ".join(filter(None, ["Measured", seconds(number.time_s), per])) + f"{typed}:"
    lines = [Line(bound_name, "", _beside_bound(number, bound_name))]
    if number.estimate_ratio is not None:
        lines.append(Line("estimate", "", _beside_estimate(number, band_share)))
    elif number.serial_s is not None:
        times = significant(number.time_s / number.serial_s)
        text = f"{times} times {seconds(number.serial_s)}, kernels one after another"
        lines.append(Line("kernels", "", text))
    if rates := ", ".join(number.rate_texts()):
        counted_tokens = COUNTED_TOKENS.get(phase, "")
        lines.append(Line("rates", "", f"{rates} {counted_tokens}".rstrip()))
    if utilizations := "; ".join(number.utilization_texts(trains=phase == TRAIN)):
        lines.append(Line("of peak", "", utilizations))
    if number.beats_bound:
        lines += [Line(reason.subject, "", reason.text) for reason in number.reasons]
        return Section(title, lines)
    if left := "; ".join(_left(number, bound_name)):
        lines.append(Line("left", "", left))
    if number.fits is False:
        text = "what is counted here does not fit; a run holds less: shards, recomputation, offload"
        lines.append(Line("fits", "", text))
    if levers:
        lines.append(Line("faster", "", levers))
    if number.outside_kernels:
        lines.append(Line("look", "", _outside(number, where)))
    return Section(title, lines)


def _beside_bound(number: MeasuredNumber, name: str) -> str:
    """Measured time over the bound."""
    bound = f"the {name} of {seconds(number.bound_s)}"
    if number.beats_bound:
        times = significant(number.bound_share)
        return f"{times} times as fast as {bound}: by a reason below, or the number is wrong"
    if number.bound_share >= 1:
        return f"as fast as {bound}, within the digits typed"
    share = percent(number.bound_share)
    return f"{significant(1 / number.bound_share)} times {bound}, {share} of its speed"


def _beside_estimate(number: MeasuredNumber, band_share: str) -> str:
    """Measured time over the estimate, and its place in the band."""
    text = f"{significant(number.estimate_ratio or 0.0)} times the estimate of "
    text += seconds(number.estimate_s or 0.0)
    if number.p10_s is None or number.p90_s is None:
        return text
    band = f"{seconds(number.p10_s)} to {seconds(number.p90_s)} ({band_share})"
    places = {BELOW: "faster than its band", INSIDE: "inside its band", ABOVE: "above its band"}
    return f"{text}, {places[number.place or INSIDE]}, {band}"


def _left(number: MeasuredNumber, bound_name: str) -> Iterator[str]:
    """Time above the estimate, and above the bound."""
    above_s = number.above_estimate_s
    if above_s is not None and above_s > 0:
        yield f"{seconds(above_s)} above the estimate"
    if number.above_bound_s > 0:
        yield f"{seconds(number.above_bound_s)} above the {bound_name}"
    if above_s is None and number.time_s > number.upper_s:
        yield f"{seconds(number.time_s - number.upper_s)} above the time without any overlap"


def _outside(number: MeasuredNumber, where: str | None) -> str:
    """Places of the time while no resource is busy."""
    busiest = max(number.busy, key=number.busy.__getitem__)
    bottlenecks = {resource.name: resource.bound for resource in RESOURCES}
    bottleneck = bottlenecks.get(busiest, "vector unit")
    share = (
        f"{bottleneck}, the busiest resource, needs {percent(number.busy[busiest])} of this time"
    )
    if where is None:
        where = "host, launches, input pipeline, waiting for others"
        if number.serial_s is None:
            where = "launch and host in the timing, waiting, or a kernel made for other shapes"
    expected = "; expected at these sizes" if number.place in (BELOW, INSIDE) else ""
    return f"outside the kernels: {where} ({share}, less than {percent(MIN_BUSY)}){expected}"
