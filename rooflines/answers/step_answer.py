"""Answer about a step of a model: what serving and training have in common."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from rooflines.answers.answer import Answer
from rooflines.answers.basis import BOUND_BASIS, ESTIMATE_BASIS, SERIALIZED_BASIS
from rooflines.answers.payoff_lines import payoff_section
from rooflines.answers.phrases import BEYOND, MAX_DTYPES, Line, Section, step_title
from rooflines.basics.text import count, month, percent, seconds, si

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.answers.answer_values import Estimate

LEFT_OUT = "models left out"
"""Basis of a band from runs that no fit has seen."""

ELSEWHERE = {
    "chip's kin and engine": "runs on {kin}",
    "engine": "the engine's runs on other chips",
    "all engines": "all engines' runs on other chips",
}
"""Runs behind a band where none are of the chip, by scope."""

MIN_TERM_SHARE = 0.05
"""Share of an estimate from which on a term is named [1]."""


@dataclass(frozen=True, repr=False, kw_only=True)
class StepAnswer(Answer):
    """A step's answer.

    Attributes:
        groups: Kernels by column, in the order in which they run; values of one layer.
        fits: Calibrations behind the estimate by name: `source`, `n`, the timings held out [1], and
            `median`, the median error there [1]; of steps the runs of models that were left out.
        products: FLOPs, rate and time in every compute dtype: `compute`, `flops` [FLOP], `per_s`
            [FLOP/s], `time_s` [s].
        context: Longest context that the model is made for [1]; None: not stated.
        terms: Parts of the estimate: `group`, `count`, `t_estimate_s` of one layer and
            `collectives_estimate_s` of its collectives alone [s], `estimate_bound`,
            `estimate_extrapolated` and `calibration`, the names of its fits; empty: no estimate.
        band: Basis for the band of the estimate, as in `EstimateBand`; None: no band.
        payoffs: Thresholds of the levers that the question asks about.
        lever_keys: What they need besides the step; None: nothing is typed.
    """

    judged: ClassVar[str]
    """Measurements that a band rests on, in the plural."""

    footprint: ClassVar[str]
    """Contents of a chip's memory."""

    groups: Sequence[Mapping[str, Any]]
    fits: Mapping[str, Mapping[str, Any]]
    products: Sequence[Mapping[str, Any]]
    context: int | None
    terms: Sequence[Mapping[str, Any]] = ()
    band: Mapping[str, Any] | None = None
    payoffs: Sequence[Mapping[str, Any]] = ()
    lever_keys: Mapping[str, Any] | None = None

    @property
    def chips(self) -> int:
        """Number of chips that share the model [1]."""
        return int(self.row["chips"])

    @property
    def title(self) -> str:
        """Question in words: chip, model and phase, sizes, dtypes, split."""
        return step_title(self.row, self.sizes).text()

    @property
    def price_text(self) -> str:
        """Price of a chip-hour behind the costs, as `Price` writes it; needs one."""
        (number,) = (number for number in self.numbers if number["path"].startswith("prices."))
        seller = f"{self.row['price_provider']}, {month(self.row['price_date'])}"
        return f"${number['value']:,.10g}/h, {seller}"

    def table_row(self) -> Mapping[str, Any]:
        """Row with its assumptions, `note`, as a table of cases has them."""
        return {**super().table_row(), "note": " ".join(self.notes) or None}

    def verdict(self) -> str:
        """Time on the basis, its band and rates, bound and bottleneck; or that it does not fit."""
        row, capacity = self.row, self.capacity_bytes
        if row["fits"] is False and capacity is not None:
            if (shortage := self._pool_shortage()) is not None:
                return f"does not fit: {shortage}; {self._fitting()}"
            needs = f"{si(row['footprint_bytes'], 'B')} of {self.footprint}{self.per_chip}"
            room = f"{si(capacity, 'B')} of {row['memory']}"
            return f"does not fit: {needs}, {room}; {self._fitting()}"
        return self._timed_verdict()

    def _pool_shortage(self) -> str | None:
        """Requests in an engine's pool, where it is too small; None: the exact need decides."""
        return None

    def _timed_verdict(self) -> str:
        """Time of a step that fits, its band, its bound, and its rates.

        A serialized time is no forecast: it and its rates are those of kernels at their bounds.
        """
        if self.basis is BOUND_BASIS:
            least = self._least(f" {self._per()}, {self.bound}-bound")
            return f"{least}; {self._most}{self._rates()}"
        time = f"{seconds(self.time_s)} {self._per()}{self._band()}"
        bound = f"{self.bounded}{self._least(f', {self.bound}-bound')}"
        if self.basis is SERIALIZED_BASIS:
            return (
                f"{time} if every kernel ran at its bound, one after another: "
                f"{self.serial_rates}{self._rates()}; {bound}"
            )
        return f"{time}; {bound}; {self._rates()}"

    def _least(self, behind: str) -> str:
        """Bound in words, with words behind it."""
        return f"at least {seconds(self.bound_s)}{behind}"

    @property
    def _most(self) -> str:
        """Words before rates at the bound."""
        return "at most "

    @property
    def serial_rates(self) -> str:
        """Words before the rates of kernels one after another."""
        return self._most

    def rate(self, name: str) -> float | None:
        """Rate or cost at the time of the basis, by its column without a suffix."""
        value: float | None = self.row[f"{name}{self.basis.suffix}"]
        return value

    def _rates(self) -> str:
        """Tokens/s/chip and MFU on the basis."""
        rate, mfu = self.rate("tokens_per_s_per_chip"), self.rate("mfu")
        return f"{count(rate or 0.0)} tokens/s/chip, {percent(mfu or 0.0)} MFU"

    @property
    def bounded(self) -> str:
        """Name of the bounded time, where it is not the time beside it; with a space behind."""
        return ""

    def _per(self) -> str:
        """Phrase for one step."""
        return "a step"

    def _band_share(self) -> str:
        """Share of measured runs in the band: held out by model, or seen by the fit."""
        band = self.band
        kind = "held-out" if band is not None and band["basis"] == LEFT_OUT else "fitted"
        return f"80% of {kind} {self.judged}"

    def _outside_timings(self, estimate: Estimate) -> Iterator[str]:
        """Kernels beyond the timed sizes or engines, and what the band's runs do not share."""
        band, texts = self.band, []
        for extrapolated, beyond in BEYOND.items():
            terms_s = {
                term["group"]: term["count"] * term["t_estimate_s"]
                for term in self.terms
                if term["estimate_extrapolated"] == extrapolated
            }
            least_s = MIN_TERM_SHARE * estimate.time_s
            large = [group for group, time_s in terms_s.items() if time_s >= least_s]
            if sum(terms_s.values()) >= least_s:
                small = "small kernels" if len(large) < len(terms_s) else ""
                texts.append(f"{', '.join(filter(None, [*large, small]))} {beyond}")
        if band is not None:
            if band["scope"] in ELSEWHERE:
                runs = ELSEWHERE[band["scope"]].format(kin=self.kin or "its kin")
                yield f"no runs on {self.chip}, the band is of {runs}"
            if band["chips"]:
                release = f", releases to {band['release']}" if band["release"] else ""
                yield f"{band['runs']} steps on {', '.join(band['chips'])}{release}"
            if band["models"] and self.row["model"] not in band["models"]:
                texts.append(f"steps of {', '.join(band['models'])}, not of this model")
            if band["untimed"]:
                texts.append(f"no matmuls timed in {', '.join(band['untimed'])}")
        for text in texts:
            yield text if band is None else f"{text}, so the band may not hold"

    def _computes(self) -> str:
        return ", ".join(product["compute"] for product in self.products)

    def _no_estimate(self) -> str:
        """Absence of a calibration; the basis is said in the headline."""
        return f"no calibration of {self.chip} in {self._computes()}"

    @abstractmethod
    def _fitting(self) -> str:
        """Chips or sizes with which the step fits."""

    def _facts(self) -> Iterator[tuple[str, str]]:
        yield "route", "; ".join(self.routes)
        if self.context is not None and self.sizes["S"] > self.context:
            yield "context", f"S exceeds the model's context of {self.context:,} tokens"
        yield from self.assumptions.items()
        if len(self.products) > 1:
            yield "peaks", ", ".join(map(_product, self.products))
        yield from self._step_facts()
        yield "bound", self._times()
        if self.basis is not ESTIMATE_BASIS:
            yield "measured", self._timings("served steps")

    @abstractmethod
    def _step_facts(self) -> Iterator[tuple[str, str]]:
        """Facts about throughput, memory and cost."""

    def _times(self) -> str:
        """Times with full overlap, kernels one after another, and without overlap."""
        row = self.row
        serial, bound, upper = (
            seconds(row[f"t_{name}_s"]) for name in ("serial", "lower", "upper")
        )
        return (
            f"{bound} with full overlap, {serial} kernels one after another, "
            f"{upper} without overlap{self._hops()}"
        )

    def _faster_formats(self) -> str:
        """Formats with the shortest bounds, where these beat the question's dtypes."""
        texts = []
        for dtypes in self._faster_dtypes()[:MAX_DTYPES]:
            fits = "; fits" if dtypes["fits"] and not self.row["fits"] else ""
            bound = f"bound {seconds(dtypes['t_lower_s'])}, {dtypes['bound']}{fits}"
            texts.append(f"{dtypes['dtypes']} ({bound})")
        return ", ".join(texts)

    def _kernel_sections(self) -> Iterator[Section]:
        yield Section(self._kernels_title(), list(self._kernel_lines()))
        if self.fits and self.basis is ESTIMATE_BASIS:
            yield Section("Calibrations (median held-out error):", [*self._calibration_lines()])

    def _sections(self) -> Iterator[Section]:
        """Sections of every answer, and when levers pay."""
        yield from super()._sections()
        if (section := payoff_section(self.payoffs, self.lever_keys)) is not None:
            yield section

    @abstractmethod
    def _kernel_lines(self) -> Iterator[Line]:
        """Longest kernels, each with its share in the time."""

    def _kernels_title(self) -> str:
        """Title of the kernels, with the time that is shown."""
        return "Time by kernel, one after another (softmax, norms and rotary excluded):"

    def _calibration_lines(self) -> Iterator[Line]:
        """Fits behind an estimate with their held-out errors, grouped by source."""
        by_source: dict[tuple[str, str], list[str]] = {}
        for name, fit in self.fits.items():
            software, _, fit_name = name.partition(" ")
            error = "" if fit["median"] is None else f" {percent(fit['median'])}"
            by_source.setdefault((software, fit["source"]), []).append(f"{fit_name}{error}")
        for (software, source), names in by_source.items():
            yield Line(software, "", f"{', '.join(names)}: {source}")

    def _is_unsaid(self, threshold: Mapping[str, Any]) -> bool:
        """True for the fewest chips, which a fact names."""
        return bool(threshold["axis"] == "chips")

    def _size_word(self, axis: str) -> str:
        return "batch" if axis == "B" else super()._size_word(axis)


def _product(product: Mapping[str, Any]) -> str:
    """FLOPs in one compute dtype, at their rate."""
    rate = si(product["per_s"], "FLOP/s")
    return f"{si(product['flops'], 'FLOP')} in {product['compute']} at {rate}"
