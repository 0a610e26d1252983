"""Steps, by engines' and profilers' annotations, and the tokens that these name."""

from __future__ import annotations

import re
from bisect import bisect_right
from operator import attrgetter
from typing import TYPE_CHECKING

from rooflines.traces.trace_records import StepTokens, TokenSums

if TYPE_CHECKING:
    from rooflines.traces.trace_records import Trace

STEP_PATTERNS = tuple(
    re.compile(pattern)
    for pattern in (
        r"execute_\d+_context_\d+\(",
        r"(prefill|decode)\[.*sqsq=",
        r"step\[.*sqsq=",
        r"execute_(new|context)_\d+",
        r"step\[(EXTEND|DECODE|MIXED)",
        r"^(prefill|decode)\[bs=",
        r"execute_diffusion_",
        r"ProfilerStep#\d+",
        r"^(Iteration|iteration|step|Step)\W?\s?\d+$",
    )
)
"""Annotations that are steps; the first pattern that occurs in a file counts, alone."""

SUMS = re.compile(
    r"context_(\d+)\(sq(\d+)sk(\d+)sqsq(\d+)sqsk(\d+)\)"
    r"_generation_(\d+)\(sq(\d+)sk(\d+)sqsq(\d+)sqsk(\d+)\)"
)
SQUARES = re.compile(r"context_(\d+)\((\d+)(?:_(\d+))?\)_generation_(\d+)\((\d+)(?:_(\d+))?\)")
FIELDS = re.compile(r"(\w+)=(\d+)")
"""Numbers in engines' annotations."""


def mark_steps(trace: Trace) -> None:
    """Set a trace's steps, and each activity's: that in which its launch began.

    Without a launch, its operator counts.

    Args:
        trace: Changed; its activities have their launches.
    """
    for pattern in STEP_PATTERNS:
        steps = [note for note in trace.annotations if pattern.search(note.name)]
        if steps:
            break
    else:
        return
    trace.steps = sorted(steps, key=attrgetter("begin_ns"))
    begins = [step.begin_ns for step in trace.steps]
    for activity in trace.activities:
        event = activity.launch or activity.operator
        if event is not None:
            index = bisect_right(begins, event.begin_ns) - 1
            if index >= 0 and event.begin_ns <= trace.steps[index].end_ns:
                activity.step = index


def step_tokens(name: str) -> StepTokens | None:
    """Tokens that an engine's annotation names; None: it names none.

    vLLM and SGLang write the sums over prompts and decodes: new tokens q, keys s, q^2 and q s.

    Args:
        name: The annotation.
    """
    if match := SUMS.search(name):
        numbers = [int(number) for number in match.groups()]
        return StepTokens(TokenSums(*numbers[:5]), TokenSums(*numbers[5:]))
    if match := SQUARES.search(name):
        prompts, tokens, squares, decodes, queries, pairs = (int(n or 0) for n in match.groups())
        # The second number is the sum of squared prompt lengths: each prompt is its own context.
        keys = tokens if squares else 0
        first = TokenSums(prompts, tokens, keys, squares, squares)
        return StepTokens(first, TokenSums(decodes, queries, 0, 0, pairs))
    if name.startswith(("step[", "prefill[", "decode[")):
        fields = {key: int(number) for key, number in FIELDS.findall(name)}
        sequences = fields.get("bs", 0)
        if name.startswith(("step[DECODE", "decode[")):
            sums = _bracketed(fields, sequences, fields.get("tok", sequences))
            return StepTokens(decodes=sums)
        tokens = fields.get("toks", fields.get("tok", 0))
        return StepTokens(prompts=_bracketed(fields, sequences, tokens))
    return None


def _bracketed(fields: dict[str, int], sequences: int, tokens: int) -> TokenSums:
    """Sums in brackets, such as decode[bs=32 tok=32]."""
    names = ("sk", "sqsq", "sqsk")
    return TokenSums(sequences, fields.get("sq", tokens), *(fields.get(name, 0) for name in names))


def traced_step_title(name: str) -> str:
    """Words for a step: decode, 32 sequences, 32,785 tokens of context; or its name.

    Args:
        name: The annotation.
    """
    tokens = step_tokens(name)
    if tokens is None:
        return name[:60]
    parts = []
    for phase, sums in (("prefill", tokens.prompts), ("decode", tokens.decodes)):
        if sums.sequences:
            noun = "sequence" if sums.sequences == 1 else "sequences"
            new = f", {sums.queries:,} tokens" if sums.queries != sums.sequences else ""
            context = f", {sums.keys:,} tokens of context" if sums.keys > sums.queries else ""
            parts.append(f"{phase}, {sums.sequences:,} {noun}{new}{context}")
    return "; ".join(parts) or name[:60]
