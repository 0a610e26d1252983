"""Fits of training steps that stacks publish: slowdown over the math, by chip, dtypes and experts.

`python -m benchmarks.calibration --write` fits them with all else; this module alone prints their
errors. It reads `training/published-steps.csv` of the folder `ROOFLINES_PUBLIC_DATA`. A step whose
model is not in the catalogue has its shape from `SHAPES`, or is left out and counted.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from math import inf
from pathlib import Path
from statistics import mean, median, quantiles
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

import rooflines
from rooflines.basics.errors import RooflinesError
from rooflines.basics.text import significant
from rooflines.cli.output import as_table
from rooflines.fits.calibration_files import FittedTraining
from rooflines.models.architecture import Shape
from rooflines.models.library import find_model, model_entries
from rooflines.models.model import Model

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

PEAKS = {"bf16": 989.4e12, "fp8": 1979e12}
"""Dense peaks of an H100 that printed shares of peak are of [FLOP/s]."""

MPT, GPT = 50_368, 51_200
"""Rows of the embedding tables of llm-foundry's and of GPT's models [1]."""

SHAPES: Mapping[str, tuple[int, int, int, int]] = {
    "MPT 70b": (8192, 80, 64, MPT),
    "MPT 30b": (7168, 48, 56, MPT),
    "MPT 13b": (5120, 40, 40, MPT),
    "MPT 7b": (4096, 32, 32, MPT),
    "MPT 3b": (2560, 32, 20, MPT),
    "MPT 1b": (2048, 24, 16, MPT),
    "GPT 1.7B": (2048, 24, 16, 131_072),
    "GPT 7.1B": (4096, 30, 32, 131_072),
    "GPT 16B": (6144, 32, 48, 131_072),
    "GPT 32B": (7168, 48, 56, 131_072),
    "GPT 70B": (8192, 84, 64, 131_072),
    "GPT 119B": (10_240, 92, 80, 131_072),
    "GPT 177B": (12_288, 96, 96, 131_072),
    "GPT 314B": (16_384, 96, 128, 131_072),
    "GPT 462B": (18_432, 112, 144, 131_072),
}
"""Width, layers, heads and rows of the embedding table of models as GPT-3, from the stacks [1]."""

SHARDS = {"fsdp": "weights", "hsdp": "weights", None: "optimizer"}
"""Shards by printed name, where they differ; Megatron's recipes shard the optimizer."""

EXPERT_CHIPS = {"gpt-oss-20b": 8, "gpt-oss-120b": 64}
"""Expert parallelism where none is printed: the sharding group [1]."""

SLICED = {"a100-sxm-40gb": "a100-sxm-80gb"}
"""Chips in place of those whose interconnect between nodes the catalogue lacks: the same peak."""


class Group(NamedTuple):
    """Steps of one fit, and the chips that it is given to.

    Attributes:
        stack: Software.
        steps: Chips of the steps.
        chips: Chips with the fit: those of the steps, or with the same compute unit.
        compute: Compute dtype of linear layers.
        experts: Whether the models have routed experts.
        source: Document.
    """

    stack: str
    steps: tuple[str, ...]
    chips: tuple[str, ...]
    compute: str
    experts: bool
    source: str


BLACKWELL = ("b200", "gb200", "b300", "gb300")
HOPPER = ("h100-sxm", "h200-sxm")
BRIDGE = "performance summary of NVIDIA-NeMo/Megatron-Bridge at 4ab94dfa, Apache-2.0, (c) NVIDIA"

GROUPS = (
    Group(
        "llm-foundry",
        ("a100-sxm-40gb",),
        ("a100-sxm-40gb", "a100-sxm-80gb"),
        "bf16",
        experts=False,
        source="benchmarks of mosaicml/llm-foundry at 49521837, Apache-2.0, (c) MosaicML",
    ),
    Group(
        "megatron-lm",
        ("h100-sxm",),
        HOPPER,
        "bf16",
        experts=False,
        source="table of NVIDIA/Megatron-LM at f2e5db40, BSD-3-Clause, (c) NVIDIA",
    ),
    Group(
        "automodel",
        ("h100-sxm",),
        HOPPER,
        "bf16",
        experts=True,
        source="performance summary of NVIDIA-NeMo/Automodel at cb976544, Apache-2.0, (c) NVIDIA",
    ),
    Group("megatron-bridge", ("h100-sxm",), HOPPER, "fp8", experts=False, source=BRIDGE),
    Group("megatron-bridge", ("h100-sxm",), HOPPER, "fp8", experts=True, source=BRIDGE),
    Group("megatron-bridge", BLACKWELL, BLACKWELL, "fp8", experts=False, source=BRIDGE),
    Group("megatron-bridge", BLACKWELL, BLACKWELL, "fp8", experts=True, source=BRIDGE),
)
"""Fits that are made."""


class PublishedStep(NamedTuple):
    """A published step beside its math.

    Attributes:
        stack, chip, model: Names.
        compute: Compute dtype of linear layers, every kind of fp8 together.
        experts: Whether the model has routed experts.
        over_math: Measured time / (t_math_s / (1 - bubble)) [1].
        over_lower: Measured time / t_lower_s [1].
    """

    stack: str
    chip: str
    model: str
    compute: str
    experts: bool
    over_math: float
    over_lower: float


def model_of(name: str) -> Model | None:
    """Model of a step; None: neither the catalogue nor `SHAPES` has it."""
    if name in SHAPES:
        width, layers, heads, rows = SHAPES[name]
        attention = {"N": heads, "K": heads, "H": width // heads}
        form = {"layers": layers, "D": width, "V": rows, "attention": attention}
        mlp = {"F": 4 * width, "gated": False}
        shape = Shape.model_validate({**form, "tied": rows == MPT, "mlp": mlp})
        return Model(name.lower().replace(" ", "-"), shape)
    return find_model(name) if name in model_entries() else None


def seconds_of(row: Mapping[str, Any], model: Model) -> float:
    """Time of a step: as printed, or by the printed share of peak [s].

    FLOP as Megatron-LM counts them: linear layers and LM head, and all token pairs.
    """
    if row["seconds"] is not None:
        return float(row["seconds"])
    shape = model.shape
    attention = 12 * shape.layers * shape.D * row["sequence_length"]
    multiplied = model.parameters().total - (0 if shape.tied else shape.V * shape.D)
    flops_per_token = 6 * multiplied + attention
    tokens = row["global_batch"] * row["sequence_length"]
    return float(flops_per_token * tokens / (row["mfu"] * PEAKS[row["precision"]] * row["chips"]))


def step_of(row: Mapping[str, Any], model: Model) -> PublishedStep:
    """A step beside its math.

    Raises:
        RooflinesError: The chips cannot do it, as the package models them.
    """
    tp, pp, cp = (row[name] or 1 for name in ("tp", "pp", "cp"))
    ep = row["ep"] or EXPERT_CHIPS.get(row["model"], 1)
    dp = row["chips"] // (tp * pp * cp)
    micro_batch = row["micro_batch"] or 1
    plan = {"tp": tp, "pp": pp, "cp": cp, "dp": dp} | ({"ep": ep} if ep > 1 else {})
    compute = "fp8" if "fp8" in row["precision"] else row["precision"]
    shard = SHARDS.get(row["shard"], row["shard"])
    recompute = row["recompute"] if row["recompute"] in ("full", "selective") else "none"
    several_nodes = row["chips"] > 8  # noqa: PLR2004, chips of a node
    chip = SLICED.get(row["chip"], row["chip"]) if several_nodes else row["chip"]
    answer = rooflines.train(
        chip,
        model,
        B=row["global_batch"],
        S=row["sequence_length"],
        dtypes=compute,
        split=plan,
        micro_batch=micro_batch,
        shard=shard if dp > 1 else "optimizer",
        recompute=recompute,
        calibration=None,
    ).row
    waits = (pp - 1) / (row["vpp"] or 1)  # uneven runs too
    batches = row["global_batch"] / (dp * micro_batch)
    measured_s = seconds_of(row, model)
    return PublishedStep(
        row["stack"],
        row["chip"],
        model.name,
        compute,
        model.shape.moe is not None,
        measured_s / (answer["t_math_s"] * (batches + waits) / batches),
        measured_s / answer["t_lower_s"],
    )


def published_steps(table: Path) -> tuple[list[PublishedStep], Counter[str]]:
    """Steps of the groups' stacks and chips, and those left out by reason."""
    rows = pl.read_csv(table, infer_schema_length=None).to_dicts()
    stacks = {(group.stack, chip) for group in GROUPS for chip in group.steps}
    steps, left_out = list[PublishedStep](), Counter[str]()
    for row in rows:
        if (row["stack"], row["chip"]) not in stacks or row["newest"] == "no":
            continue
        model = model_of(row["model"])
        if row["task"] == "lora" or model is None:
            left_out["adapters" if row["task"] == "lora" else "no shape in the catalogue"] += 1
            continue
        try:
            steps.append(step_of(row, model))
        except RooflinesError as error:
            left_out[str(error.problem).partition(",")[0]] += 1
    return steps, left_out


def group_fit(group: Group, steps: Iterable[PublishedStep], date: str) -> FittedTraining:
    """Median slowdown of a group's steps; errors and band are of models left out.

    Raises:
        ValueError: A step is below its bound, or there is one model alone.
    """
    own = [
        step
        for step in steps
        if (step.stack, step.compute, step.experts) == (group.stack, group.compute, group.experts)
        and step.chip in group.steps
    ]
    if min((step.over_lower for step in own), default=inf) < 1:
        raise ValueError(f"a step of {group.stack} is below its bound")
    times = median(step.over_math for step in own)
    models = sorted({step.model for step in own})
    ratios = []
    for model in models:
        rest = median(step.over_math for step in own if step.model != model)
        ratios += [step.over_math / rest for step in own if step.model == model]
    ends = quantiles(ratios, n=10, method="inclusive")
    chips = [chip for chip in group.steps if any(step.chip == chip for step in own)]
    return FittedTraining.model_validate(
        {
            "times": f"{times:.6g}",
            "base": "math",
            "models": models,
            "chips": chips,
            "bands": {"step": [f"{ends[0]:.6g}", f"{ends[-1]:.6g}"]},
            "fitted": _errors([step.over_math / times for step in own]),
            "held_out": _errors(ratios),
            "source": group.source,
            "date": date,
        }
    )


def _errors(ratios: Sequence[float]) -> dict[str, object]:
    """Errors of estimates, from measured over estimated times."""
    found = [abs(1 / ratio - 1) for ratio in ratios]
    p90 = quantiles(found, n=10, method="inclusive")[-1]
    values = {"median": median(found), "mean": mean(found), "p90": p90}
    return {"n": len(found), **{name: f"{value:.6g}" for name, value in values.items()}}


def training_fits(table: Path, date: str) -> dict[str, dict[str, FittedTraining]]:
    """Fits by `<chip>/<stack>`, then by `train-<compute dtype>`, with `-experts`."""
    steps, _ = published_steps(table)
    fits = dict[str, dict[str, FittedTraining]]()
    for group in GROUPS:
        fit = group_fit(group, steps, date)
        name = f"train-{group.compute}{'-experts' if group.experts else ''}"
        for chip in group.chips:
            fits.setdefault(f"{chip}/{group.stack}", {})[name] = fit
    return dict(sorted(fits.items()))


def fit_rows(fits: Mapping[str, Mapping[str, FittedTraining]]) -> Iterator[tuple[str, ...]]:
    """A line for each fit: slowdown, steps, models, held-out errors and band."""
    for key, by_name in fits.items():
        for name, fit in by_name.items():
            errors = fit.held_out or fit.fitted
            low, high = fit.bands["step"]
            yield (
                key,
                name,
                significant(float(fit.times)),
                str(errors.n),
                str(len(fit.models)),
                f"{100 * float(errors.median):.1f}",
                f"{100 * float(errors.p90):.1f}",
                f"{float(low):.3g} to {float(high):.3g}",
            )


def main() -> int:
    """Print fits, their errors, and steps that are left out."""
    folder = os.environ.get("ROOFLINES_PUBLIC_DATA")
    if folder is None:
        sys.exit("name the folder of public data in ROOFLINES_PUBLIC_DATA")
    table = Path(folder) / "training" / "published-steps.csv"
    names = ("chip and stack", "kind", "times", "steps", "models", "median", "p90", "band")
    print(as_table(names, list(fit_rows(training_fits(table, "")))))
    for reason, count in published_steps(table)[1].most_common():
        print(f"left out: {count} {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
