"""Answer about a training step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from rooflines.answers.basis import BOUND_BASIS, ESTIMATE_BASIS
from rooflines.answers.phrases import Part, Section, longest_parts
from rooflines.answers.step_answer import StepAnswer
from rooflines.basics.text import count, percent, seconds, si, usd
from rooflines.dictionary.columns import FOUND, NEVER
from rooflines.solvers.training_limits import DP_TP_MIX

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rooflines.answers.phrases import Line

PASSES = {
    "fwd": "forward",
    "again": "recomputed",
    "bwd": "backward",
    "dgrad": "dgrad",
    "wgrad": "wgrad",
}
"""Names for training passes, by kernel name suffix."""


@dataclass(frozen=True, repr=False, kw_only=True)
class TrainingAnswer(StepAnswer):
    """A training step's answer.

    `sizes` are B and S; `thresholds` are along S, tp, the mix of dp and tp, and chips. `count` in
    `groups` is how often a kernel runs on a chip, in the mean over all stages.
    """

    kind: ClassVar[str] = "training"
    footprint: ClassVar[str] = "states and activations"
    judged: ClassVar[str] = "steps"

    upper_limits: ClassVar[Mapping[str, Mapping[str, tuple[str, str]]]] = {
        "tp": {
            FOUND: ("≤ {critical}", "beyond it, all-gathers take longer than the math"),
            NEVER: ("never", "the chip has no {limit}"),
        }
    }

    def _no_estimate(self) -> str:
        """Absence of a calibration of training; the basis is said in the headline."""
        return f"no calibration of training on {self.chip} in {self._computes()}"

    def _thresholds_title(self) -> str:
        """Title of the critical sizes and the largest tp."""
        return "Compute-bound from this size on, and up to this tp:"

    def _fitting(self) -> str:
        """Sizes or chips with which a step would fit."""
        (fewest,) = (threshold for threshold in self.thresholds if threshold["axis"] == "chips")
        changes = [f"up to S = {self.row['max_S']:,}"] if self.row["max_S"] else []
        if fewest["outcome"] == FOUND:
            changes.append(f"with more replicas from {fewest['critical']:,} chips")
        return f"fits {' or '.join(changes)}" if changes else "the states alone do not fit"

    @property
    def serial_rates(self) -> str:
        """No words: the most tokens/s have a line, too."""
        return ""

    def _step_facts(self) -> Iterator[tuple[str, str]]:
        row = self.row
        rates = f"at most {count(row['tokens_per_s'])}"
        if self.basis is not BOUND_BASIS:
            rates = f"{count(self.rate('tokens_per_s') or 0.0)}, {rates}"
        yield "tokens/s", rates
        mfu, full, hfu = (percent(self.rate(name) or 0.0) for name in ("mfu", "mfu_full", "hfu"))
        most = "at most " if self.basis is BOUND_BASIS else ""
        yield (
            "MFU",
            f"{most}{mfu}, {full} counting all token pairs; HFU {hfu}, including recomputation",
        )
        runs = f"{row['micro_batches']:,} micro-batches"
        yield "pipeline", f"bubble {percent(row['bubble'])} ({runs})" if row["pp"] > 1 else ""
        yield "faster", self._faster_formats()
        yield "fits", self._fit(self._held_memory())
        yield from self._largest_sizes()

    def _held_memory(self) -> str:
        """Bytes on the fullest chip: model and optimizer states, saved activations."""
        states, saved = (si(self.row[f"{part}_bytes"], "B") for part in ("state", "saved"))
        return f"{states} of weights, gradients and optimizer states, {saved} of activations"

    def _largest_sizes(self) -> Iterator[tuple[str, str]]:
        """Largest sizes that fit, and days and cost for the whole training."""
        row = self.row
        if row["max_S"]:
            max_micro_batch = row["max_micro_batch"]
            micro_batch = f"; or micro-batch up to {max_micro_batch:,}" if max_micro_batch else ""
            yield "largest", f"S up to {row['max_S']:,}{micro_batch}"
        if "days" in row:
            is_estimate = self.basis is ESTIMATE_BASIS
            suffix = ESTIMATE_BASIS.suffix if is_estimate else ""
            days, price = row[f"days{suffix}"], row[f"usd{suffix}"]
            cost = "" if price is None else f", {usd(price)} ({self.price_text})"
            cost = cost if row["price_provider"] else ", no dated price"
            pace = "at the estimated step" if is_estimate else "kernels one after another"
            yield "training", f"{days:,.1f} days, {pace}{cost}"

    def _kernel_lines(self) -> Iterator[Line]:
        """Longest layer parts, each with forward, dgrad and wgrad times."""
        parts: dict[str, dict[str, float]] = {}
        for group in self.groups:
            name, _, ending = group["group"].removesuffix("-add").rpartition("-")
            name, label = (name, PASSES[ending]) if ending in PASSES else (group["group"], "")
            by_pass = parts.setdefault(name, {})
            by_pass[label] = by_pass.get(label, 0.0) + group["count"] * group["t_serial_s"]
        times = []
        for name, by_pass in parts.items():
            text = ", ".join(
                f"{label} {seconds(time_s)}" for label, time_s in by_pass.items() if label
            )
            times.append(Part(name, sum(by_pass.values()), text and f": {text}"))
        return longest_parts(times, sum(part.time_s for part in times))

    def _change_sections(self) -> Iterator[Section]:
        """Formats whose bound is shorter."""
        yield from ()

    def _is_unsaid(self, threshold: Mapping[str, Any]) -> bool:
        """True for the fewest chips, and for a mix of dp and tp on one chip."""
        one_chip = threshold["axis"] == DP_TP_MIX and threshold["critical"] is None
        return one_chip or super()._is_unsaid(threshold)

    def _lower(self, threshold: Mapping[str, Any]) -> tuple[str, str]:
        """Short answer and text for a smallest compute-bound size, or the best mix of dp and tp."""
        return (
            self._mixed(threshold) if threshold["axis"] == DP_TP_MIX else super()._lower(threshold)
        )

    def _max_fit(self, threshold: Mapping[str, Any]) -> int | None:
        max_size: int | None = threshold.get("max_fit")
        return max_size

    def _mixed(self, threshold: Mapping[str, Any]) -> tuple[str, str]:
        """Data parallelism that minimizes communication time, and its compute-bound batch."""
        dp, batch = threshold["critical"], threshold["critical_network"]
        text = f"minimizes communication (tp={self.row['tp'] * self.row['dp'] // dp})"
        if batch:
            text += f"; at this micro-batch count compute-bound from B = {batch}"
        return f"{dp}", text
