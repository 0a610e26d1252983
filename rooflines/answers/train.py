"""Explain a training step in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflines.answers.explain import single_answer
from rooflines.answers.question import NO_ESTIMATE, catalogues_in, model_question
from rooflines.answers.training_answer import TrainingAnswer
from rooflines.fits.calibration_files import AUTO_CALIBRATION
from rooflines.models.architecture import TRAIN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.answers.question import HasCatalogues
    from rooflines.models.model import Model


def train(  # noqa: PLR0913, the parts of a question
    chip: str,
    model: str | Model,
    *,
    B: int,  # noqa: N803, the letters of the docs
    S: int,  # noqa: N803, the same
    dtypes: str | Mapping[str, object] | None = None,
    split: str | Mapping[str, object] | None = None,
    micro_batch: int | None = None,
    shard: str | None = None,
    recompute: str | None = None,
    save: str | None = None,
    context: str | None = None,
    optimizer: str | float | None = None,
    gradients: str | None = None,
    loss: str | int | Mapping[str, int] | None = None,
    lora: int | Mapping[str, object] | None = None,
    base: str | None = None,
    offload: str | Sequence[str] | None = None,
    topology: str | None = None,
    group: int | None = None,
    stage_layers: str | Sequence[int] | None = None,
    first: int | None = None,
    last: int | None = None,
    stack: str | float | None = None,
    tokens: float | None = None,
    routing: str = "uniform",
    host_link: str | None = None,
    pays: str | None = None,
    slowdown: float | None = None,
    network: str | Sequence[str] | None = None,
    memory: str | None = None,
    calibration: str | Sequence[str] | None = AUTO_CALIBRATION,
    bound: bool = False,
    measured: str | None = None,
    config: HasCatalogues | None = None,
) -> TrainingAnswer:
    """Explain a training step of a model on chips: its time, what binds it, and whether it fits.

    `best_splits` with `phase="train"` compares all splits over a number of chips.

    Args:
        chip: As in `explain_model`.
        model: As in `explain_model`.
        B: Sequences in the step, of all replicas together [1].
        S: Tokens of each sequence [1].
        dtypes: A format, or dtypes by class of tensors; None: bf16.
        split: `{"tp": 2, "dp": 4}`, also `pp`, `cp`, `ep` and `interleave`, or its name,
            `tp2-dp4`; None: one chip.
        micro_batch: Sequences that a replica computes at once; None: 1 [1].
        shard: States sharded over replicas: `none`, `optimizer`, `gradients` or `weights`; None:
            `optimizer`.
        recompute: `none`, `selective` or `full`; None: `none`.
        save: Saved activations: `split` or `gathered` over tp; None: `split`.
        context: Attention over cp: `ring` or `heads`; None: `ring`.
        optimizer: `adam`, `adam-bf16`, `adam-8bit`, `adafactor`, `muon`, `sgd`, `sgd-momentum`, or
            bytes per parameter [byte]; None: `adam`.
        gradients: `kept`, or `freed`: the optimizer runs in the backward pass; None: `kept`.
        loss: `logits`, `fused`, or `{"chunks": 8}`; None: `logits`, which are saved.
        lora: Rank of adapters on frozen weights, or `{"rank": 16, "on": ["q", "v"]}`; None: all
            weights are trained.
        base: Format of frozen weights, such as `nf4`; None: that of the weights.
        offload: `saved` tensors, `states` of the optimizer, or both, in the memory of the host;
            None: neither.
        topology: Shape of the slice of a torus, such as `4x4x8`; None: the first for its chips.
        group: Chips in a group on the inner network; None: the most that divide all [1].
        stage_layers: Layers per chunk, `pp * interleave` numbers; None: as Megatron deals them.
        first: Layers in the first stage, the rest even; None: as above [1].
        last: Layers in the last stage [1].
        stack: Stack whose working memory counts in `fits`, `megatron`, or its factor on states and
            saved tensors [1]; None: none counts.
        tokens: Tokens of the whole training, for days and cost; None: no training [1].
        routing: As in `explain_model`.
        host_link: Bandwidth to the host, such as `64GB/s`, or `auto`, the chip's own, for
            `payoffs`; None: not asked.
        pays: `zero`, `recompute` or both with a comma: from which sizes they pay, in `payoffs`.
        slowdown: Real time over the math at peak for `payoffs`; None: the training fit's [1].
        network: The interconnect, or two, inner first; None: those that join the chips.
        memory: As in `explain_model`.
        calibration: As in `explain`; `auto` takes the first software with a fit of training.
        bound: As in `explain`.
        measured: A number such as `9500tok/s/gpu`, tokens trained, `41%mfu`, `'41%mfu full'` or
            `2.1s` a step; None: none.
        config: As in `explain`.

    Raises:
        RooflinesError: Something is invalid, several sizes are given, or the chips cannot do it.
    """
    catalogues = catalogues_in(config)
    return single_answer(
        TrainingAnswer,
        model_question(chip, model, {"B": B, "S": S}, dtypes, catalogues),
        catalogues,
        split=split,
        phase=TRAIN,
        micro_batch=micro_batch,
        shard=shard,
        recompute=recompute,
        save=save,
        context=context,
        optimizer=optimizer,
        gradients=gradients,
        loss=loss,
        lora=lora,
        base=base,
        offload=offload,
        topology=topology,
        group=group,
        stage_layers=stage_layers,
        first=first,
        last=last,
        stack=stack,
        tokens=tokens,
        routing=routing,
        host_link=host_link,
        pays=pays,
        slowdown=slowdown,
        network=network,
        memory=memory,
        calibration=NO_ESTIMATE if calibration is None else calibration,
        bound=bound,
        measured=measured,
    )
