"""Answer about a training step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from rooflines.answers.any_routing import AT_THE_MEAN
from rooflines.answers.basis import BOUND_BASIS, ESTIMATE_BASIS
from rooflines.answers.phrases import Line, Part, Section, longest_parts
from rooflines.answers.step_answer import StepAnswer
from rooflines.basics.text import count, percent, seconds, si, usd
from rooflines.dictionary.columns import FOUND, NEVER
from rooflines.solvers.training_limits import DP_TP_MIX

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rooflines.answers.plan_remedies import Remedies

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

    Attributes:
        memory: Parts of the memory, from `training_memory`.
        remedies: Plans that fit, each computed, where this one does not; None: not searched.
        mean_routing: True if the bound is a mean over uniform routing of tokens to experts.
        unjudged_part: Part of the model for which no fit applies; None: there is none.

    `sizes` are B and S; `thresholds` are along S, tp, the mix of dp and tp, and chips. `count` in
    `groups` is how often a kernel runs on a chip, in the mean over all stages.
    """

    memory: Mapping[str, Any]
    mean_routing: bool
    unjudged_part: str | None = None
    remedies: Remedies | None = None

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
        part = f" with {self.unjudged_part}" if self.unjudged_part else ""
        return f"no calibration of training{part} on {self.chip} in {self._computes()}"

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

    def _least(self, behind: str) -> str:
        """Bound in words; with experts it is a mean."""
        if not self.mean_routing:
            return super()._least(behind)
        return f"{AT_THE_MEAN}{seconds(self.bound_s)}{behind}"

    @property
    def _most(self) -> str:
        """Words before rates at the bound; with experts it is a mean."""
        return "" if self.mean_routing else super()._most

    @property
    def serial_rates(self) -> str:
        """No words: the most tokens/s have a line, too."""
        return ""

    def _step_facts(self) -> Iterator[tuple[str, str]]:
        row = self.row
        bound = count(row["tokens_per_s"])
        rates = f"{bound} at the mean routing" if self.mean_routing else f"at most {bound}"
        if self.basis is not BOUND_BASIS:
            rates = f"{count(self.rate('tokens_per_s') or 0.0)}, {rates}"
        fitted = ", if it fitted" if row["fits"] is False else ""
        yield "tokens/s", f"{rates}{fitted}"
        mfu, full, hfu = (percent(self.rate(name) or 0.0) for name in ("mfu", "mfu_full", "hfu"))
        most = self._most if self.basis is BOUND_BASIS else ""
        repeated = f"HFU {hfu}, including recomputation{fitted}"
        yield "MFU", f"{most}{mfu}, {full} counting all token pairs; {repeated}"
        runs = f"{row['micro_batches']:,} micro-batches"
        yield "pipeline", f"bubble {percent(row['bubble'])} ({runs})" if row["pp"] > 1 else ""
        yield "batch", self._micro_batches()
        yield "faster", self._faster_formats()
        yield "fits", self._fit(self._held_memory()) + self._full_training() + self._peak_misfit()
        yield "peak", self._peak()
        yield from self._lever_facts()
        yield from self._largest_sizes()

    def _micro_batches(self) -> str:
        """Sequences that a replica computes at once, and how often."""
        row = self.row
        size = f"micro-batch {row['micro_batch']}"
        if row["micro_batches"] == 1:
            return f"{size} on each replica"
        return f"{size}, {row['micro_batches']:,} of them accumulated a step on each replica"

    def _held_memory(self) -> str:
        """Bytes on the fullest chip: model and optimizer states, saved activations."""
        row, memory = self.row, self.memory
        states, saved = (si(row[f"{part}_bytes"], "B") for part in ("state", "saved"))
        text = f"{states} of weights, gradients and optimizer states, {saved} of activations"
        if "base_bytes" in memory:
            base, trained = (si(memory[f"{part}_bytes"], "B") for part in ("base", "trained_state"))
            number = count(row["trained_parameters"])
            text = f"{base} of base, {trained} for {number} trained, {saved} of activations"
        return f"{text}, {si(row['peak_bytes'], 'B')} at the peak" if self._counts_peak else text

    @property
    def _counts_peak(self) -> bool:
        """True if `fits` compares the peak with the capacity."""
        return bool(self.row["fits_by"] == "peak")

    def _full_training(self) -> str:
        """The same without adapters, behind `fits`."""
        memory = self.memory
        if "base_bytes" not in memory:
            return ""
        states, saved = (si(memory[f"full_{part}_bytes"], "B") for part in ("state", "saved"))
        fits = {True: ": yes", False: ": no", None: ""}[memory["full_fits"]]
        full = f"full training {states} + {saved}{fits}"
        wide = si(memory["base_16_bit_bytes"], "B")
        return f" ({full})" if memory["base"] in (None, "bf16") else f" (bf16 base {wide}; {full})"

    @property
    def _max_peak_bytes(self) -> float:
        """Largest peak that working memory can make [byte]."""
        low, high = self.memory["working"]
        return float(self.row["peak_bytes"] + (high - low) * self.row["held_bytes"])

    def _peak_misfit(self) -> str:
        """Clause on a step that fits by what it holds, while its peak may not; else empty."""
        row, capacity = self.row, self.capacity_bytes
        if self._counts_peak or not row["fits"] or capacity is None:
            return ""
        if row["peak_bytes"] > capacity:
            return "; its peak does not fit"
        return "; its peak may not fit" if self._max_peak_bytes > capacity else ""

    def _peak(self) -> str:
        """Peak with what is in flight and working memory, and whether `fits` counts it."""
        row, (low, high) = self.row, self.memory["working"]
        in_flight = si(row["in_flight_bytes"], "B")
        if self._counts_peak:
            stack = self.memory["stack"]
            name = f"{stack}, fitted" if isinstance(stack, str) else "as typed"
            working = f"working memory {percent(low - 1)} of what is held ({name})"
            return (
                f"{si(row['peak_bytes'], 'B')}, which fits counts: {in_flight} in flight, {working}"
            )
        most = si(self._max_peak_bytes, "B")
        return (
            f"{si(row['peak_bytes'], 'B')} to {most}, not counted in fits: {in_flight} in flight, "
            f"working memory 0 to {percent(high - 1)} of what is held, as no --stack is named"
        )

    def _lever_facts(self) -> Iterator[tuple[str, str]]:
        """Adapters, optimizer, loss and offload, where they are not the default."""
        row, memory = self.row, self.memory
        if "model_flops_share" in memory:
            share = f"{memory['model_flops_share']:.3f} of full training"
            yield "flop", f"{share}, without recomputation: frozen weights have no wgrad"
        if memory.get("has_plain_experts"):
            yield "experts", "frozen, without adapters; --lora-on all,experts gives each one"
        if memory["optimizer"] != "adam":
            yield "optimizer", f"{memory['optimizer']}: {memory['summary']}"
        if memory["gradients"] == "freed":
            yield "gradients", "freed: the largest tensor's alone, the optimizer runs in backward"
        if memory["loss"] != "logits":
            logits = "none" if memory["loss"] == "fused" else f"1/{memory['loss']} at a time"
            again = "FLOP unchanged (Liger), or 2 V D a token more where logits are recomputed"
            yield "loss", f"logits held: {logits}; {again}"
        if "offload" in memory:
            parts = " and ".join(memory["offload"])
            rate = f"{memory['host_link']}, {si(memory['host_bytes_per_s'], 'B/s')} each way"
            copied = f"{si(row['offload_bytes'], 'B')} a step over {rate}"
            yield "offload", f"{parts}: {copied}, a network of its own; host memory is not modelled"

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
        """Plans that fit, where this one does not."""
        remedies = self.remedies
        if remedies is None:
            return
        lines = [Line(plan.lever, f"--split {plan.split}", plan.text) for plan in remedies.plans]
        if remedies.plans[:1] and remedies.plans[0].lever == "plan":
            yield Section("What would fit, in place of the split:", lines)
            return
        misfit = (
            f"No plan of {remedies.tried} fits as it is; the leanest, {remedies.leanest_text()}."
        )
        title = f"{misfit} What would fit, in place of the split:" if lines else misfit
        yield Section(title, lines)

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
