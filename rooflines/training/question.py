"""Questions about a step of training: the step on a chip, possible plans, rows of a table."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.basics.errors import RooflinesError, one_of, placed, quote
from rooflines.basics.numbers import whole
from rooflines.catalogue.chips import chip_entries, dtype_entries
from rooflines.catalogue.entries import MAIN_MEMORY, Chip
from rooflines.catalogue.forms import checked
from rooflines.catalogue.unsupported import (
    fewer_or,
    interconnects,
    missing_level_reason,
    missing_peak_reason,
    not_joined,
    route_for,
)
from rooflines.model.network import ALL_TO_ALL
from rooflines.model.operation import MATRIX
from rooflines.model.resources import RESOURCES
from rooflines.models.model import Model
from rooflines.models.resolve import model_named
from rooflines.training.kernels import Setting
from rooflines.training.plan import TrainingDtypes, TrainingPlan
from rooflines.training.step import TrainingStep

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.model.network import Link
    from rooflines.models.shape import Shape

WIDE_BITS = 16
"""Formats of fewer bits are of linear kernels, not of attention, unembedding or activations [1]."""


def training_dtypes(form: str | Mapping[str, object]) -> TrainingDtypes:
    """Dtypes of a step from a format, or by class.

    Args:
        form: A format, which weights are read and multiplied in; embedding, unembedding, attention
            and activations are then bf16 where it is narrower. Or fields of `TrainingDtypes`.

    Raises:
        RooflinesError: A format is unknown.
    """
    formats = dtype_entries().formats
    if isinstance(form, str):
        one_of(form, formats, "no dtype")
        wide = "bf16" if formats[form].bits < WIDE_BITS else form
        form = {"weights": form, "compute": form, "head": wide, "attention": wide}
        form["activations"] = wide
    dtypes = checked(TrainingDtypes, form)
    for name, dtype in dtypes.model_dump().items():
        with placed(name):
            one_of(dtype, formats, "no dtype")
    return dtypes


def training_step(  # noqa: PLR0913, the parts of a question
    model: Model,
    chip: Chip,
    sequences: int,
    tokens: int,
    plan: TrainingPlan | Mapping[str, object],
    *,
    dtypes: str | Mapping[str, object] = "bf16",
    network: Sequence[str] | None = None,
) -> TrainingStep:
    """A step of training on chips of one kind.

    Args:
        model: The model.
        chip: The chip.
        sequences: B, sequences of the step over all replicas [1].
        tokens: S, tokens of each [1].
        plan: How chips share it.
        dtypes: A format, or fields of `TrainingDtypes`.
        network: Interconnects, inner first; None: the chip's first, with the one around it where
            the first does not join all chips.

    Raises:
        RooflinesError: Something is invalid, or the chip does not support it.
    """
    if not isinstance(plan, TrainingPlan):
        with placed("split"):
            plan = checked(TrainingPlan, plan)
    with placed("B"):
        whole(sequences)
    with placed("S"):
        whole(tokens)
    with placed("dtypes"):
        formats = training_dtypes(dtypes)
        for compute in (formats.compute, formats.attention):
            if reason := missing_peak_reason(chip, MATRIX, compute):
                raise RooflinesError("", f"cannot be computed: {reason}", "choose other dtypes")
    if reason := missing_level_reason(chip, MAIN_MEMORY):
        raise RooflinesError("chip", f"cannot train: {reason}", "choose another chip")
    plan.check(model.shape, tokens)
    plan.micro_batches(sequences)
    sizes = formats.sizes(dtype_entries().formats)
    setting = Setting(model.shape, plan, formats, sizes, _links(chip, plan, network))
    return TrainingStep(
        setting, chip.machine(MATRIX, MAIN_MEMORY, chip.efficiency), sequences, tokens
    )


def _entry(name: str) -> Chip:
    """A chip of the catalogue."""
    known = chip_entries()
    with placed("chip"):
        one_of(name, known, "no chip", "see `rooflines list chips`")
    return known[name]


def _links(chip: Chip, plan: TrainingPlan, network: Sequence[str] | None) -> tuple[Link, ...]:
    """The interconnects that join the chips of a plan."""
    if plan.chips == 1:
        return ()
    chips = (plan.chips,)
    names = network or route_for(chip, plan.chips)
    _, links, missing = interconnects(chip, names)
    if reason := missing or not_joined(names, links, chips):
        problem = f"cannot be split over {plan.chips:,} chips: {reason}"
        raise RooflinesError("split", problem, fewer_or(chip, "fewer chips", chips))
    if links[0].topology == "torus" and plan.ep > 1:
        problem = (
            f"has ep={plan.ep}: an {ALL_TO_ALL} over the chips of a torus is not modelled here"
        )
        raise RooflinesError("split", problem, "use ep=1")
    return links


def plans(
    shape: Shape, chips: int, sequences: int, tokens: int, fixed: TrainingPlan
) -> Iterator[TrainingPlan]:
    """Every plan over a number of chips that a model and the sizes allow.

    Args:
        shape: The model.
        chips: How many [1].
        sequences: B [1].
        tokens: S [1].
        fixed: What all have in common: micro-batch, shards, recomputation, and so on.
    """
    divisors = [n for n in range(1, chips + 1) if chips % n == 0]
    experts = divisors if shape.moe is not None else [1]
    for tp, pp, cp in product(divisors, repeat=3):
        if chips % (tp * pp * cp):
            continue
        for ep in experts:
            sizes = {"tp": tp, "pp": pp, "cp": cp, "dp": chips // (tp * pp * cp), "ep": ep}
            plan = fixed.model_copy(update=sizes)
            try:
                plan.check(shape, tokens)
                plan.micro_batches(sequences)
            except RooflinesError:
                continue
            yield plan


AUTO = "auto"
"""The split that stands for every plan."""

MOST_CHIPS = 2**16
"""Of `auto` [1]."""

COLUMNS = {
    "chips": "chips [1]",
    "micro_batches": "micro-batches of a replica in a step [1]",
    "bubble": "share of a step in which a stage waits for others [1]",
    "flops": "work of a chip, repeated forward passes included [FLOP]",
    "memory_bytes": "bytes between memory and unit that no fusion saves [byte]",
    "network_bytes": "bytes that a chip sends [byte]",
    "t_math_s": "time of the work at the peak [s]",
    "t_memory_s": "time of the bytes at the bandwidth [s]",
    "t_network_s": "time of the slowest network [s]",
    "t_lower_s": "least time of a step: everything overlapped, no bubble [s]",
    "bound": "the resource that takes longest",
    "t_ops_s": "time of one kernel after another on the busiest stage, with the bubble [s]",
    "t_upper_s": "the same without any overlap [s]",
    "mfu": "FLOP of the model, causal, over what the peak does in t_ops_s [1]",
    "mfu_full": "the same with all pairs of tokens counted in attention [1]",
    "hfu": "the same with the repeated forward passes [1]",
    "tokens_per_s_per_chip": "tokens a second and chip in t_ops_s [1/s]",
    "state_bytes": "states of the fullest chip: weights, gradients, optimizer [byte]",
    "saved_bytes": "saved tensors of the fullest chip, working memory apart [byte]",
    "fits": "whether both fit into the memory of a chip; null: its capacity is unknown",
}
"""The columns of a row but those of the plan, and their meaning."""


def training_row(step: TrainingStep) -> dict[str, Any]:
    """The numbers of a step, by the names of `COLUMNS`, after those of its plan."""
    plan, held = step.setting.plan, step.footprint
    times = {f"t_{resource.name}_s": float(step.seconds[resource.bound]) for resource in RESOURCES}
    ops = step.t_ops_s
    peak = step.machine.peaks[step.setting.dtypes.compute] * ops
    tokens = step.sequences * step.tokens
    return {
        "plan": plan.name,
        **{key: getattr(plan, key) for key in ("tp", "pp", "dp", "cp", "ep", "interleave")},
        **{key: getattr(plan, key) for key in ("micro_batch", "shard", "recompute")},
        "B": step.sequences,
        "S": step.tokens,
        "chips": plan.chips,
        "micro_batches": step.micro_batches,
        "bubble": float(step.bubble),
        **{name: float(step.work(name)) for name in ("flops", "memory_bytes", "network_bytes")},
        **times,
        "t_lower_s": float(step.t_lower_s),
        "bound": step.bound,
        "t_ops_s": float(ops),
        "t_upper_s": float(step.t_upper_s),
        "mfu": float(step.model_flops() / peak),
        "mfu_full": float(step.model_flops(causal=False) / peak),
        "hfu": float(step.work("flops") / peak),
        "tokens_per_s_per_chip": float(tokens / ops / plan.chips),
        "state_bytes": float(held.states),
        "saved_bytes": float(held.saved),
        "fits": step.fits,
    }


def train(  # noqa: PLR0913, the parts of a question
    model: str | Model,
    chip: str | Chip,
    *,
    B: int,  # noqa: N803, the letter of the docs
    S: int,  # noqa: N803, the same
    split: str | Mapping[str, object] | None = None,
    chips: int | None = None,
    dtypes: str | Mapping[str, object] = "bf16",
    network: Sequence[str] | None = None,
    **options: object,
) -> pl.DataFrame:
    """A step of training, or every plan for it: works, times, memory.

    Args:
        model: A model, its id, a published name, or the path of a config.json.
        chip: A chip of the catalogue, or its id.
        B: Sequences of the step over all replicas [1].
        S: Tokens of each [1].
        split: `{"tp": 2, "dp": 4}`; `auto`: every plan over `chips`; None: one chip.
        chips: Chips of `auto` [1].
        dtypes: A format, or fields of `TrainingDtypes`.
        network: Interconnects, inner first; None: those that join the chips.
        **options: Further fields of `TrainingPlan`: `micro_batch`, `shard`, `recompute`, ...

    Returns:
        A row for each plan, those that fit first, of these the least `t_upper_s` first; the columns
        are those of `COLUMNS`, after the plan's.

    Raises:
        RooflinesError: Something is invalid, or no plan is possible.
    """
    steps = training_steps(
        model, chip, (B, S), split, chips=chips, dtypes=dtypes, network=network, options=options
    )
    return frame_of(steps)


def frame_of(steps: Sequence[TrainingStep]) -> pl.DataFrame:
    """A row for each step."""
    return pl.DataFrame([training_row(step) for step in steps], infer_schema_length=None)


def training_steps(  # noqa: PLR0913, the parts of a question
    model: str | Model,
    chip: str | Chip,
    sizes: tuple[int, int],
    split: str | Mapping[str, object] | None,
    *,
    chips: int | None = None,
    dtypes: str | Mapping[str, object] = "bf16",
    network: Sequence[str] | None = None,
    options: Mapping[str, object] | None = None,
) -> list[TrainingStep]:
    """The steps of `train`, in its order."""
    asked = model if isinstance(model, Model) else model_named(model)
    entry = chip if isinstance(chip, Chip) else _entry(chip)
    fixed, (sequences, tokens) = dict(options or {}), sizes
    if split != AUTO:
        if isinstance(split, str):
            problem = f"is {quote(split)}"
            raise RooflinesError("split", problem, "write a mapping such as {'tp': 2}, or auto")
        own = {**fixed, **(split or {})}
        return [training_step(asked, entry, sequences, tokens, own, dtypes=dtypes, network=network)]
    if chips is None:
        raise RooflinesError("chips", "is not given, but split is auto", "say how many chips")
    with placed("chips"):
        whole(chips, largest=MOST_CHIPS)
    found, reasons = [], []
    for plan in plans(asked.shape, chips, sequences, tokens, checked(TrainingPlan, fixed)):
        try:
            found.append(
                training_step(asked, entry, sequences, tokens, plan, dtypes=dtypes, network=network)
            )
        except RooflinesError as error:
            reasons.append(error)
    if reasons and not found:
        raise reasons[0]
    if not found:
        problem = (
            f"is auto, but no plan over {chips:,} chips is possible for B={sequences}, S={tokens}"
        )
        raise RooflinesError("split", problem, "use other sizes, or another number of chips")
    return sorted(found, key=lambda step: (not step.fits, step.t_upper_s, step.footprint.total))
