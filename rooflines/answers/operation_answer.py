"""Answer about a single operation on one chip, or sharded over several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from rooflines.answers.answer import Answer
from rooflines.answers.answer_values import ONE_AXIS
from rooflines.answers.basis import ESTIMATE_BASIS
from rooflines.answers.claims import MIN_FACTOR
from rooflines.answers.phrases import (
    DIGITS,
    MAX_DTYPES,
    Line,
    Section,
    distinguishable,
    operation_title,
    rounded_bound,
)
from rooflines.basics.text import percent, seconds, si, significant
from rooflines.dictionary.columns import ALWAYS, FOUND, NEVER, WITHOUT_END
from rooflines.solvers.required_rates import LATENCY
from rooflines.theory.resources import MATH
from rooflines.theory.sharding import SHARDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


@dataclass(frozen=True, repr=False, kw_only=True)
class OperationAnswer(Answer):
    """An operation's answer.

    `thresholds` are along every dimension and, of a sharding, along `shards`: compute-bound (share
    1), then attaining a share of the peak.

    Attributes:
        compute: Compute dtype.
        limit_shares: For every dimension along which it is never compute-bound: the share of the
            attainable peak that it tends to [1].
    """

    kind: ClassVar[str] = "operation"

    upper_limits: ClassVar[Mapping[str, Mapping[str, tuple[str, str]]]] = {
        SHARDS: {
            FOUND: ("≤ {critical}", "then {limit}-bound"),
            ALWAYS: ("≤ {critical}", "all chips on the network"),
            WITHOUT_END: ("any", "no upper limit"),
            NEVER: ("never", "{limit}-bound on one chip already"),
        }
    }

    compute: str
    limit_shares: Mapping[str, float]

    @property
    def chips(self) -> int:
        """Number of chips that share it [1]."""
        return int(self.row[SHARDS])

    @property
    def title(self) -> str:
        """Question in words: chip, operation, sizes, dtypes, sharding."""
        return operation_title(self.row, self.sizes).text()

    def verdict(self) -> str:
        """Estimate where there is one, its rate and share of peak; bound and bottleneck."""
        row, least = self.row, f"at least {seconds(self.bound_s)}"
        peak_rate, share = row["attained_flops_per_s"], row["utilization"]
        if self.basis is not ESTIMATE_BASIS:
            attained = f"at most {si(peak_rate, 'FLOP/s')}, {percent(share)} of peak"
            return f"{least}, {self.bound}-bound; {attained}"
        slower = self.bound_s / self.time_s
        rate = f"{si(peak_rate * slower, 'FLOP/s')}, {percent(share * slower)} of peak"
        most = f"at most {percent(share)}"
        return f"{seconds(self.time_s)}{self._band()}; {least}, {self.bound}-bound; {rate}, {most}"

    def _band_share(self) -> str:
        return "80% of the timings"

    def _no_estimate(self) -> str:
        return f"no calibration of {self.chip} in {self._computes()}: the bound alone"

    def _computes(self) -> str:
        return self.compute

    def _facts(self) -> Iterator[tuple[str, str]]:
        yield "route", "; ".join(self.routes)
        yield "time", self._times()
        if self.basis is not ESTIMATE_BASIS:
            yield "measured", self._timings("kernels")
        for resource in self.resources:
            if resource.intensity is not None and resource.needed_intensity is not None:
                have, need = distinguishable(resource.intensity, resource.needed_intensity)
                text = f"{have} FLOP/B of {resource.bound} traffic; compute-bound from {need}"
                yield "intensity", text
        yield "fits", self._fit(f"{si(self.row['footprint_bytes'], 'B')} of operands and result")

    def _times(self) -> str:
        """Times with and without overlap; one time where one resource works."""
        text, upper_s = seconds(self.bound_s), self.row["t_upper_s"]
        if self.bound_s != upper_s:
            text = f"{text} with full overlap, {seconds(upper_s)} with none"
        return f"{text}{self._hops()}"

    def _upper(self, threshold: Mapping[str, Any]) -> tuple[str, str]:
        """Short answer and text for a largest number of chips."""
        outcome, critical = threshold["outcome"], threshold["critical"]
        if outcome in self.upper_limits[SHARDS]:
            value, text = super()._upper(threshold)
        else:
            value = "" if critical is None else f"≥ {critical}"
            text = f"unknown: {outcome}"
        along_axis = any(ONE_AXIS in route for route in self.routes)
        return value, f"along one axis, {text}" if along_axis else text

    def _never(self, threshold: Mapping[str, Any]) -> str:
        """Limit that the intensity tends to, against the intensity that compute needs."""
        limit = threshold["limit"]
        needed = next(
            (resource.needed_intensity for resource in self.resources if resource.bound == limit),
            None,
        )
        share = self.limit_shares.get(threshold["axis"])
        if needed is None or share is None:
            return super()._never(threshold)
        if share == 1:
            text = f"tends to {significant(needed, DIGITS)} FLOP/B, but stays below"
            return f"{limit} intensity {text}"
        have, need = distinguishable(threshold["limit_intensity"], needed)
        attained = f"{percent(share)} of {self._peak()}"
        return f"{limit} intensity tends to {have} of {need} FLOP/B: {attained}"

    def _share_texts(
        self, whole: Mapping[str, Any], shares: Sequence[Mapping[str, Any]]
    ) -> Iterator[str]:
        """Sizes that attain a share of peak, where these are not the critical size."""
        for threshold in shares:
            outcome, critical = threshold["outcome"], threshold["critical"]
            if (outcome, critical) == (whole["outcome"], whole["critical"]):
                continue
            place = {WITHOUT_END: "on any number of chips", ALWAYS: "at every size"}.get(outcome)
            if critical is not None and threshold["axis"] == SHARDS:
                place = f"up to {critical}"
            elif outcome == FOUND:
                place = f"from {critical}"
            if place:
                yield f"{percent(threshold['share'])} of {self._peak()} {place}"

    def _peak(self) -> str:
        """Name for the peak in shares: nominal unless an efficiency lowers it."""
        lowered = any(number["path"] == "efficiency.math" for number in self.numbers)
        return "attainable peak" if lowered else "peak"

    def _change_sections(self) -> Iterator[Section]:
        """Bandwidths and dtypes that make it compute-bound, each alone."""
        if all(change.outcome == ALWAYS for change in self.required_rates):
            yield Section("Already compute-bound at these sizes.", [])
            return
        yield Section("Alternatives, each alone:", [*self._rate_lines(), *self._dtype_lines()])

    def _rate_lines(self) -> Iterator[Line]:
        """Bandwidths that make it compute-bound, each alone; a lower peak is no alternative."""
        latencies = {resource.resource: resource.latency_s for resource in self.resources}
        for change in self.required_rates:
            label, factor = f"{change.resource} bandwidth", change.factor
            if factor is None or change.needed_per_s is None:
                text = f"the {change.limit} takes longer than the math"
                if change.outcome == LATENCY:
                    hops = seconds(latencies[change.resource])
                    text = f"hop latency alone, {hops}, exceeds the math"
                if change.resource != MATH.name:
                    yield Line(label, "no", text)
            elif factor > 1:
                needed = si(rounded_bound(change.needed_per_s, DIGITS, up=True), "B/s", DIGITS)
                times = significant(rounded_bound(factor, DIGITS, up=True), DIGITS)
                yield Line(label, f"× {times}", f"at least {needed}")

    def _dtype_lines(self) -> Iterator[Line]:
        """Fastest dtype combinations that are compute-bound at these sizes and faster."""
        if not self.dtypes:
            yield Line("dtypes", "no", "no other supported dtype")
            return
        bound = [dtypes for dtypes in self._faster_dtypes() if dtypes["bound"] == MATH.bound]
        if not bound:
            faster = f"compute-bound and more than {MIN_FACTOR}× faster"
            yield Line("dtypes", "no", f"no other supported dtype is {faster}")
            return
        more = f", {len(bound) - MAX_DTYPES} more" if len(bound) > MAX_DTYPES else ""
        names = (
            f"{dtypes['dtypes']} (bound {seconds(dtypes['t_lower_s'])})"
            for dtypes in bound[:MAX_DTYPES]
        )
        yield Line("dtypes", "", f"{', '.join(names)}{more}")
