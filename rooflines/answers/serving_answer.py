"""Answer about a serving step: decode or prefill."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from rooflines.answers.any_routing import bound_phrase
from rooflines.answers.basis import BOUND_BASIS, ESTIMATE_BASIS, SERIALIZED_BASIS, time_on
from rooflines.answers.chunked_attention import some_contexts
from rooflines.answers.head_room import head_room
from rooflines.answers.phrases import (
    DIGITS,
    Line,
    Part,
    Section,
    longest_parts,
)
from rooflines.answers.step_answer import MIN_TERM_SHARE, StepAnswer
from rooflines.basics.text import count, counted, percent, seconds, si, significant, usd
from rooflines.dictionary.columns import (
    ALWAYS,
    EXACT_BATCH,
    FOUND,
    HEADS,
    NEVER,
    UNKNOWN,
    UNTIMED_PREFIX,
    WITHOUT_END,
)
from rooflines.models.architecture import DECODE
from rooflines.models.groups import DRAFT
from rooflines.models.split import BY_BATCH
from rooflines.theory.resources import MATH

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.answers.any_routing import AnyRoutingBounds
    from rooflines.answers.engine_answer import EngineAnswer
    from rooflines.answers.levers import Lever
    from rooflines.answers.measured_number import MeasuredNumber
    from rooflines.sweep.exact_times import StepSeconds


ROUTED = ("experts", f"{DRAFT}experts")
"""Kernels whose bound is a mean under uniform routing."""


@dataclass(frozen=True, repr=False, kw_only=True)
class ServingAnswer(StepAnswer):
    """A serving step's answer.

    `sizes` are B, S and, where it was asked for, T; `thresholds` are along B, S (in decode) and
    chips. `groups` also have `outcome`, `critical_B` [1] and `limit`: from which batch on each
    kernel is compute-bound by itself.

    Attributes:
        prompt_s: Time for a prompt of S tokens that is read between decode steps [s]; None without
            an engine's fit of steps.
        first_token: In decode, times of a prompt of S tokens; its estimate is of a prompt on every
            replica, as measured waiting is. None in prefill, whose step it is.
        next_token: In prefill, times of a decode step after these prompts; None in decode.
        levers: What would change the time, each alone, on the basis of the answer.
        experts: `routing`, experts read in a layer, `touched`, and all of them, `E` [1]; None
            without experts.
        wider: Smallest `tp` that holds the model over another `network`, where those of the
            question join too few chips; None: they do not, or no network is enough.
        published: Dtypes that the model is published in, where the question has others.
        in_chunks: Where layers attend in chunks, the `number` of contexts with a compute-bound
            batch, `among` those up to the longest, or those of a chunk where no one is the longest
            [1]; None: no such layers.
        cache_split: How chips share the KV cache: `heads` or `batch`.
        draft: Tokens proposed and `accepted` in a decode step; None without a draft.
        per_sequence_s: Time that every further sequence adds to compute, to memory (by its cache)
            and to the network (by what is sent), by bottleneck [s].
        any_routing: Bounds under any routing; None: the bounds are no means over routings.
        waiting: Measured TTFT over the estimate of a prompt on idle chips with as many requests in
            flight: `engine`, `p10` and `p90` [1]; None: no run tells.
        engine: Pool of the serving engine that is asked for; None: none is.
        usual_batch: Largest batch in the memory that engines use [1]; None: an engine is asked for,
            or the capacity is unknown.
        free_bytes: A chip's capacity less weights and KV cache, at least 0 [byte]; None: unknown.
        free_share: The same over the capacity [1].
        stages: Pipeline stages: `layers` of the largest, `micro_batches` on the way, `sequences` in
            each [1], `hops_s`, what hops add to a token [s]; None: there is one stage.
    """

    kind: ClassVar[str] = "serving"
    footprint: ClassVar[str] = "weights and KV cache"
    judged: ClassVar[str] = "runs"

    upper_limits: ClassVar[Mapping[str, Mapping[str, tuple[str, str]]]] = {
        "S": {
            FOUND: ("≤ {critical}", "with a large batch; longer contexts are {limit}-bound"),
            WITHOUT_END: ("any", "long contexts are compute-bound with a large batch"),
            NEVER: ("never", "no batch is compute-bound at any context"),
        }
    }

    prompt_s: float | None
    first_token: StepSeconds | None
    next_token: StepSeconds | None
    levers: Sequence[Lever]
    experts: Mapping[str, Any] | None
    wider: Mapping[str, Any] | None
    published: str | None
    in_chunks: Mapping[str, int] | None
    cache_split: str
    draft: Mapping[str, float] | None
    per_sequence_s: Mapping[str, float]
    any_routing: AnyRoutingBounds | None
    waiting: Mapping[str, Any] | None
    engine: EngineAnswer | None = None
    usual_batch: int | None = None
    free_bytes: float | None = None
    free_share: float | None = None
    stages: Mapping[str, float] | None = None

    @property
    def decodes(self) -> bool:
        """True in decode, false in prefill."""
        return bool(self.row["phase"] == DECODE)

    @property
    def title(self) -> str:
        """Question in words: chip, model and phase, sizes, dtypes, split, KV cache."""
        caches = ["KV cache split by batch"] if self.cache_split == BY_BATCH else []
        return " · ".join([super().title, *caches])

    def _thresholds_title(self) -> str:
        """Title of the critical batch and, in decode, the longest context."""
        context = ", and up to this context" if self.decodes else ""
        return f"Compute-bound from this batch on{context}:"

    def _timed_verdict(self) -> str:
        """Time on the basis, rates and bound; formats that the model is published in."""
        published = f"; published in {self.published}" if self.published else ""
        return f"{super()._timed_verdict()}{published}"

    def _rates(self) -> str:
        """In decode tokens/s/user (of one sequence), tokens/s/chip and MFU on the basis."""
        rates = super()._rates()
        if not self.decodes:
            return rates
        per_user = (self.rate("tokens_per_s") or 0.0) / self.sizes["B"]
        return f"{significant(per_user)} tokens/s/user, {rates}"

    @property
    def is_mean(self) -> bool:
        """True if the bound is a mean over routings, which another routing may beat."""
        return self.any_routing is not None and self.any_routing.step < self.bound_s

    def _least(self, behind: str) -> str:
        """Bound in words; of a mean the bound that holds for any routing, too."""
        return bound_phrase(self.bound_s, self.any_routing and self.any_routing.step, behind)

    @property
    def _most(self) -> str:
        """Words before rates at the bound; none before a mean."""
        return "" if self.is_mean else super()._most

    @property
    def bounded(self) -> str:
        """TTFT in prefill: its bound holds with waiting too, other times of a prefill do not."""
        return "" if self.decodes else "TTFT "

    def _per(self) -> str:
        """Token of every sequence in decode, step of several, or prompts."""
        if not self.decodes:
            prompts = counted(self.sizes["B"], "prompt")
            return f"of prefill, {prompts} of {self.sizes['S']:,} tokens on an idle server"
        if self.row.get("T") in (None, 1):
            return "a token (TPOT)"
        return f"a step of {self.row['T']} tokens a sequence"

    def _fitting(self) -> str:
        """Smallest tp whose chips hold weights and KV cache."""
        (fewest,) = (threshold for threshold in self.thresholds if threshold["axis"] == "chips")
        if fewest["outcome"] == FOUND:
            return f"fits from tp={fewest['critical']}"
        if self.wider is not None:
            return f"fits from tp={self.wider['tp']} over {self.wider['network']}"
        if fewest["outcome"] == UNKNOWN:
            return "unknown whether any tp fits"
        limit = fewest["limit"]
        verb = "allow" if limit == HEADS else "allows"
        return f"no tp fits that the {limit} {verb}; more replicas, dp or ep, hold less each"

    def _faster_than(self, number: MeasuredNumber) -> Iterator[str]:
        """Calibrated software, then the fastest lever of each kind for the same work."""
        if number.estimate_s is not None and number.estimate_s < number.time_s:
            software = ", ".join(self.softwares) or "the calibration"
            yield f"as {software} runs it, {seconds(number.estimate_s)}"
        fastest_first = sorted(self.levers, key=lambda lever: lever.time_s)
        quickest = {
            lever.kind: lever
            for lever in fastest_first[::-1]
            if lever.is_same_work and lever.time_s < min(self.time_s, number.time_s)
        }
        for lever in self.levers:
            if lever is quickest.get(lever.kind):
                yield f"{lever.kind} {lever.change}, {seconds(lever.time_s)}"

    def _first_token(self) -> str:
        """Bound of TTFT; prefill of one prompt on every replica, on an idle server."""
        if self.first_token is None:
            return self._waiting()
        time_s = time_on(self.basis, self.first_token)
        prompt = f"of {self.sizes['S']:,} tokens"
        any_routing_s = self.any_routing and self.any_routing.first_token
        least = bound_phrase(self.first_token.lower, any_routing_s, f" for a prompt {prompt}")
        if time_s is None:
            return f"{least}; no estimate of prefill"
        if self.basis is BOUND_BASIS:
            return least
        dp = self.row["dp"]
        replicas = f", one on each of {dp} replicas" if dp > 1 else ""
        prefill = f"prefill {seconds(time_s)} on an idle server{replicas}"
        texts = [least, prefill, self._waiting()]
        return "; ".join(filter(None, texts))

    def _waiting(self) -> str:
        """Range of measured TTFT, which includes waiting; empty on another basis."""
        waiting = self.waiting
        if waiting is None or self.basis is not ESTIMATE_BASIS:
            return ""
        low, high = significant(waiting["p10"]), significant(waiting["p90"])
        load = f"{waiting['in_flight']} in flight a replica"
        return f"in runs of {waiting['engine']} {low} to {high} times that prefill ({load})"

    def _next_token(self) -> str:
        """Time per output token after the prompts."""
        if self.next_token is None:
            return ""
        time_s, bound = time_on(self.basis, self.next_token), seconds(self.next_token.lower)
        least = f"at least {bound}" if self.any_routing is None else f"{bound} at the mean routing"
        if time_s is None or self.basis is BOUND_BASIS:
            return f"{least} a token after these prompts"
        rate = significant(1 / time_s)
        return f"{seconds(time_s)} a token after these prompts, {rate} tokens/s/user; {least}"

    def _step_facts(self) -> Iterator[tuple[str, str]]:
        row = self.row
        yield "stages", self._stages()
        yield "TTFT", self._first_token()
        yield "TPOT", self._next_token()
        yield "tokens/s", self._throughput() + self._drafted()
        yield "experts", self._experts_read()
        parts = {part: row[f"{part}_footprint_bytes"] for part in ("weights", "kv_cache")}
        weights, caches = (si(held_bytes, "B") for held_bytes in parts.values())
        room = ""
        if self.capacity_bytes is not None:
            alone = "" if self.engine is None else "exact need alone "
            exact = row["max_B"] if self.engine is None else row[EXACT_BATCH]
            room = f"; {alone}B up to {exact:,}" if exact else "; no batch fits"
            room += f"; {self._fitting()}" if row["fits"] and row["chips"] > 1 else ""
        shortage = self._pool_shortage()
        fit = self._fit(f"{weights} of weights, {caches} of KV cache")
        yield "fits", (fit if shortage is None else f"{fit}; {shortage}") + room
        yield "head-room", self._head_room()
        if self.engine is not None:
            yield from self.engine.lines(row["dp"])
        yield "cost", "; ".join(self._costs())

    def _head_room(self) -> str:
        """Memory that a step leaves, and the batch that engines hold; empty with an engine."""
        if self.usual_batch is None or self.free_bytes is None or self.free_share is None:
            return ""
        if not self.row["fits"]:
            return ""
        return head_room(self.free_bytes, self.free_share, self.usual_batch, self.per_chip)

    def _pool_shortage(self) -> str | None:
        engine, row = self.engine, self.row
        if engine is None or row["fits"] is not False or not row[EXACT_BATCH]:
            return None
        if row[EXACT_BATCH] < row["B"]:
            return None
        replica = " a replica" if row["dp"] > 1 else ""
        sequences = f"{engine.name} {engine.version} holds {row['max_B']:,}"
        requests = f"{row['B']:,} requests of {engine.context:,} tokens"
        share = f", {significant(engine.concurrency, 3)}{replica}" if replica else ""
        return f"{sequences} of {requests}{share}"

    def _stages(self) -> str:
        """Pipeline stages and micro-batches; empty with one stage."""
        stages = self.stages
        if stages is None:
            return ""
        layers = f"up to {stages['layers']:,} layers each"
        judged = "" if self.basis is not ESTIMATE_BASIS else "; no band, no run with pp"
        hops = f"hops {seconds(stages['hops_s'])}"
        if not self.decodes:
            return f"{layers}, which a prompt passes in turn; {hops}{judged}"
        sequences = significant(stages["sequences"])
        batches = significant(stages["micro_batches"])
        return f"{layers}; micro-batches: {batches} of {sequences} sequences; {hops}{judged}"

    def _throughput(self) -> str:
        """Tokens/s on the basis, and at most."""
        row = self.row
        prompts = "" if self.decodes else " of prompts"
        room = ", if it fitted" if row["fits"] is False else ""
        at_bound = count(row["tokens_per_s"])
        most = f"{at_bound} at the mean bound" if self.is_mean else f"at most {at_bound}"
        if self.basis is BOUND_BASIS:
            return f"{most}{prompts}{room}"
        return f"{count(self.rate('tokens_per_s') or 0.0)}, {most}{prompts}{room}"

    def _drafted(self) -> str:
        """Mean tokens added per step with a draft: accepted + 1; empty without a draft."""
        if self.draft is None:
            return ""
        added, computed = self.draft["accepted"] + 1, self.row["T"]
        draft_groups = [group for group in self.groups if group["group"].startswith(DRAFT)]
        time = seconds(sum(group["count"] * group["t_serial_s"] for group in draft_groups))
        drafting = f"drafting {time}" if draft_groups else "drafting excluded"
        return f"; {significant(added)} tokens per step, {computed} computed, {drafting}"

    def _experts_read(self) -> str:
        """Experts read per layer; a rounded number stays below E unless all are read."""
        experts = self.experts
        if experts is None:
            return ""
        experts_read = significant(experts["touched"], DIGITS)
        if experts_read == f"{experts['E']}" and experts["touched"] < experts["E"]:
            experts_read = "almost all"
        share = f"{experts_read} of {experts['E']} experts read per layer"
        text = f"{experts['routing']} routing: {share}"
        if self.any_routing is None:
            return text
        unsaid = (
            self.is_mean and self.row["fits"] is False
        )  # of a step that fits, the verdict says it
        least = f"; at least {seconds(self.any_routing.step)} whatever the routing"
        return f"{text}, a mean{least if unsaid else ''}"

    def _costs(self) -> Iterator[str]:
        """Cost per million tokens and energy per token, on the basis."""
        is_least = self.basis is BOUND_BASIS and not self.is_mean
        row, least = self.row, "at least " if is_least else ""
        if (price := self.rate("usd_per_mtok")) is not None:
            yield f"{least}{usd(price)}/Mtok ({self.price_text})"
        elif row["price_provider"] is None:
            yield "no dated price"
        if (energy := self.rate("j_per_token")) is not None:
            yield f"{least}{significant(energy)} J/token"

    def _kernel_lines(self) -> Iterator[Line]:
        """Longest kernels, each with its own critical batch; of the estimate with its parts."""
        if self.basis is ESTIMATE_BASIS:
            yield from self._term_lines()
            return
        parts = []
        for group in self.groups:
            name, time_s = (
                f"{group['group']} × {group['count']}",
                group["count"] * group["t_serial_s"],
            )
            parts.append(Part(name, time_s, f", {group['bound']}-bound{_from_batch(group)}"))
        yield from longest_parts(parts, self.row["t_serial_s"])

    def _kernels_title(self) -> str:
        if self.basis is not ESTIMATE_BASIS:
            return super()._kernels_title()
        return "Time by kernel, estimated (norms, softmax and rotary are in the engine's share):"

    def _term_lines(self) -> Iterator[Line]:
        """Largest terms in an estimate, each with its fits, and the rest in one line."""
        total_s, parts = self.row["t_estimate_s"], []
        groups = {group["group"]: group for group in self.groups}
        for term in self.terms:
            layers = f" × {term['count']}" if term["count"] > 1 else ""
            group, text = groups.get(term["group"]), ""
            if group is not None:
                least_s = group["count"] * group["t_serial_s"]
                is_mean = self.any_routing is not None and group["group"] in ROUTED
                least = "in the mean" if is_mean and group["bound"] != MATH.bound else "at least"
                text = f", {least} {seconds(least_s)}, {group['bound']}-bound{_from_batch(group)}"
            if str(term["calibration"]).startswith(UNTIMED_PREFIX):
                text += f"; {UNTIMED_PREFIX}"
            name, time_s = f"{term['group']}{layers}", term["count"] * term["t_estimate_s"]
            parts.append(Part(name, time_s, text))
        large = sum(part.time_s >= MIN_TERM_SHARE * total_s for part in parts)
        yield from longest_parts(parts, total_s, large)
        untimed_s = sum(
            term["count"] * term["t_estimate_s"]
            for term in self.terms
            if str(term["calibration"]).startswith(UNTIMED_PREFIX)
        )
        if untimed_s / total_s >= MIN_TERM_SHARE:
            share = percent(untimed_s / total_s)
            text = f"{share} from kernels without timings, assumed at matmul efficiency"
            yield Line(UNTIMED_PREFIX, "", text)
        if sent_s := sum(term["count"] * term["collectives_estimate_s"] for term in self.terms):
            text = f"{seconds(sent_s)}, included in the kernels above"
            yield Line("collectives", "", text)
        if self.prompt_s is not None:
            size, time = f"{self.sizes['S']:,}", seconds(self.prompt_s)
            yield Line("prefill", "+", f"each {size}-token prefill between steps adds {time}")

    def _change_sections(self) -> Iterator[Section]:
        """Levers, each alone: a time on the basis, throughput and cost."""
        lines = [Line(lever.kind, lever.change, self._lever(lever)) for lever in self.levers]
        if lines:
            yield Section(f"What would change it, each alone{self._levers_basis()}:", lines)

    def _levers_basis(self) -> str:
        """Basis of the levers' times."""
        texts = {ESTIMATE_BASIS: " (estimates)", SERIALIZED_BASIS: " (kernels one after another)"}
        return texts.get(self.basis, " (bounds)")

    def _lever(self, lever: Lever) -> str:
        """Time with a lever, its throughput and cost."""
        if lever.accepted is not None:
            accepted = significant(max(lever.accepted, 0.0))
            return f"{seconds(lever.time_s)} a step: pays from {accepted} accepted, drafting free"
        texts = [f"{seconds(lever.time_s)} {'a token' if self.decodes else 'a step'}"]
        if lever.network not in (None, self.row["network"]):
            texts[0] += f" over {lever.network}"
        if lever.tokens_per_s_per_chip is not None:
            texts.append(f"{count(lever.tokens_per_s_per_chip)} tokens/s/chip")
        if lever.usd_per_mtok is not None:
            texts.append(f"{usd(lever.usd_per_mtok)}/Mtok")
        return ", ".join(texts)

    def _max_fit(self, threshold: Mapping[str, Any]) -> int | None:
        max_batch: int | None = threshold.get("max_B_fit")
        return max_batch

    def _upper(self, threshold: Mapping[str, Any]) -> tuple[str, str]:
        """Short answer and text for a longest compute-bound context."""
        return some_contexts(threshold, self.in_chunks) or super()._upper(threshold)

    def _never(self, threshold: Mapping[str, Any]) -> str:
        """Time that a further sequence adds to compute, and to the limit."""
        limit = threshold["limit"]
        math, limit_time = (seconds(self.per_sequence_s[bound]) for bound in (MATH.bound, limit))
        return f"each sequence adds {math} of compute, {limit_time} of {limit} time"


def _from_batch(group: Mapping[str, Any]) -> str:
    """Batch from which a kernel is compute-bound; its limit, where this is not its bottleneck."""
    outcome, limit = group["outcome"], group["limit"]
    if outcome == ALWAYS:
        return " at every batch"
    if outcome == NEVER:
        return "; never compute-bound" + ("" if limit == group["bound"] else f" ({limit})")
    return f"; compute-bound from B = {group['critical_B']}"
