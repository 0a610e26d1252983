"""Assumptions behind an answer about a model, one sentence each.

What its shape leaves out, copies under tensor parallelism, formats of tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.text import significant
from rooflines.models.architecture import TRAIN
from rooflines.models.groups import DRAFT
from rooflines.sweep.operation_sweep import Sweep

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rooflines.models.architecture import Shape
    from rooflines.models.step_kernels import Copies
    from rooflines.models.tensor_dtypes import StepDtypes
    from rooflines.sweep.step_sweep import ModelSweep

MODEL, SPLIT, DTYPES = "model", "split", "dtypes"
"""Subjects of assumptions."""


def assumptions_of(sweep: Sweep | ModelSweep) -> dict[str, str]:
    """Assumptions in a sweep's cases, by subject.

    Returns:
        `model`: what its shape leaves out, and what is assumed of it; `split`: which kernels, or
        parts of them, the chips of tensor parallelism have in copies; `dtypes`: classes of tensors
        in several formats, or what is in the one that was typed. Without those that do not hold;
        none of an operation.
    """
    if isinstance(sweep, Sweep):
        return {}
    cases = [case for block in sweep.blocks for case in block.cases]
    copies = dict.fromkeys(copy for case in cases for copy in case.workload.copies)
    formats = dict.fromkeys(
        text for case in cases for text in (*case.dtypes.mixed_notes(), format_text(case.dtypes))
    )
    drafts = sweep.config.draft is not None
    notes = [note for model in sweep.models.values() for note in model.notes(drafts=drafts)]
    if TRAIN in sweep.config.phase:
        several_stages = any(case.split.stages > 1 for case in cases)
        for model in sweep.models.values():
            notes += training_notes(model.shape, several_stages=several_stages)
    texts = {
        MODEL: "; ".join(note for note in dict.fromkeys(notes) if note not in formats),
        SPLIT: copies_text(copies, several=len({case.split.name for case in cases}) > 1),
        DTYPES: "; ".join(filter(None, formats)),
    }
    return {about: text for about, text in texts.items() if text}


def training_notes(shape: Shape, *, several_stages: bool) -> Iterator[str]:
    """Conventions that a training step of a model with states or indexers follows.

    Args:
        shape: The model.
        several_stages: Whether there are pipeline stages.
    """
    if shape.state is not None:
        yield "recurrences count their least FLOPs, chunked kernels do more"
        if several_stages:
            yield "every stage has the same mix of layers"
    if shape.sparse is not None:
        yield "indexers learn from the tokens that they choose, their loss is not counted"


def as_note(assumption: tuple[str, str]) -> str:
    """An assumption as a note of a table."""
    about, text = assumption
    return f"{about.capitalize()}: {text}."


def as_column(sweep: Sweep | ModelSweep) -> pl.Expr:
    """Column `note` with all assumptions in a sweep; null without any."""
    notes = " ".join(map(as_note, assumptions_of(sweep).items()))
    return pl.lit(notes or None, pl.String).alias("note")


def copies_text(copies: Iterable[Copies], *, several: bool = False) -> str:
    """Kernels replicated on each chip, and the number of copies of kernel parts.

    Args:
        copies: Those of one split, or of several.
        several: Whether they are of several splits.
    """
    whole: list[str] = []
    parts: dict[str, list[str]] = {}
    for copy in copies:
        name = copy.group.removeprefix(DRAFT)
        name = f"{copy.part} of {name}" if copy.part else name
        if copy.shards == 1:
            whole.append(name)
        else:
            beyond = f"copies beyond tp{copy.shards}"
            number = beyond if several else f"{significant(copy.copies)} copies"
            parts.setdefault(number, []).append(name)
    texts = [f"{_listed(whole)} replicated on each chip"] if whole else []
    texts += [f"{_listed(names)} in {number}" for number, names in parts.items()]
    return "; ".join(texts)


def _listed(names: Iterable[str]) -> str:
    """Names with a comma between them, the last two with `and`."""
    *head, last = dict.fromkeys(names)
    return f"{', '.join(head)} and {last}" if head else last


def format_text(dtypes: StepDtypes) -> str:
    """Tensors in a narrow format that was typed for a model, and in others; else empty."""
    narrow = dtypes.weights
    is_typed = (dtypes.name or "").partition(" ")[0] == narrow
    if not is_typed or not dtypes.is_narrow or dtypes.gradients is not None:
        return ""
    compute, attention = dtypes.compute_dtypes
    by_class = {
        "experts": dtypes.dtype_of("experts"),
        "embedding": dtypes.dtype_of("head"),
        "LM head": dtypes.lm_head or dtypes.dtype_of("head"),
        "KV cache": dtypes.cache,
        "activations": dtypes.activations,
        "attention": attention,
    }
    by_format: dict[str, list[str]] = {}
    for tensors, form in by_class.items():
        by_format.setdefault(form, []).append(tensors)
    same = [name for name in by_format.pop(narrow, []) if name != "experts"]
    texts = [f"{_listed(names)} in {form}" for form, names in by_format.items()]
    typed = f"{_listed(['linear weights', *same])} in {narrow}, computed in {compute}"
    return "; ".join([typed, *texts])
