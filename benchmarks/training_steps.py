"""Fits of training steps that stacks publish: slowdown over the math, by chip, dtypes and experts.

Most stacks have the median of their steps. Megatron-Bridge's steps are enough for six numbers in
common: a factor each for experts, fp8, nvfp4 and experts on racks, and an exponent of the width of
models with experts.

`python -m benchmarks.calibration --write` fits them with all else, with `--training` them alone;
this module prints their errors. It reads `training/published-steps.csv` of the folder
`ROOFLINES_PUBLIC_DATA`. A step whose model is not in the catalogue has its shape from its row or
from `SHAPES`, or is left out and counted.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from functools import cache
from math import exp, inf, log, sqrt
from pathlib import Path
from statistics import mean, median, quantiles
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from scipy.optimize import least_squares

import rooflines
from rooflines.basics.errors import RooflinesError
from rooflines.basics.text import significant
from rooflines.cli.output import as_table
from rooflines.fits.calibration_files import TYPICAL_WIDTH, FittedTraining
from rooflines.models.architecture import Gqa, Shape
from rooflines.models.library import find_model, model_entries
from rooflines.models.model import Model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

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
RACKS = ("gb200", "gb300")
DEVICES = {"tpu-7x": 2}
"""Devices of a chip that a stack counts micro-batches of [1]."""

MEGATRON_BRIDGE = "megatron-bridge"
MAXTEXT = "files of AI-Hypercomputer/maxtext and tpu-recipes, Apache-2.0, (c) Google"
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
    *(
        Group("maxtext", (chip,), (chip,), compute, experts=False, source=MAXTEXT)
        for chip, compute in (("tpu-v5p", "bf16"), ("tpu-7x", "bf16"), ("tpu-7x", "fp8"))
    ),
    *(
        Group(MEGATRON_BRIDGE, chips, chips, compute, experts=experts, source=BRIDGE)
        for chips, compute, experts in (
            (HOPPER, "fp8", False),
            (HOPPER, "fp8", True),
            (BLACKWELL, "fp8", False),
            (BLACKWELL, "fp8", True),
            (BLACKWELL, "nvfp4", False),
            (BLACKWELL, "bf16", True),
        )
    ),
)
"""Fits that are made."""


class PublishedStep(NamedTuple):
    """A published step beside its math.

    Attributes:
        stack, chip, model: Names.
        release: Release of the stack; None: not printed.
        compute: Compute dtype of linear layers, every kind of fp8 together.
        experts: Whether the model has routed experts.
        width: Model width D [1].
        over_math: Measured time / (t_math_s / (1 - bubble)) [1].
        over_lower: Measured time / t_lower_s [1].
    """

    stack: str
    chip: str
    model: str
    release: str | None
    compute: str
    experts: bool
    width: int
    over_math: float
    over_lower: float


def model_of(row: Mapping[str, Any]) -> Model | None:
    """Model of a step; None: the catalogue, `SHAPES` and the row itself lack its shape."""
    name = row["model"]
    sizes = dict(part.split("=") for part in (row["shape"] or "").split() if "=" in part)
    if {*"DLNKHFV"} <= sizes.keys():
        shape = Shape.model_validate(
            {
                **{key: int(sizes[key[0].upper()]) for key in ("layers", "D", "V")},
                "attention": {letter: int(sizes[letter]) for letter in "NKH"},
                "mlp": {"F": int(sizes["F"]), "gated": "gated" in row["shape"]},
            }
        )
        return Model(name.lower().replace(" ", "-"), shape)
    if name in SHAPES:
        width, layers, heads, rows = SHAPES[name]
        attention = {"N": heads, "K": heads, "H": width // heads}
        form = {"layers": layers, "D": width, "V": rows, "attention": attention}
        mlp = {"F": 4 * width, "gated": False}
        shape = Shape.model_validate({**form, "tied": rows == MPT, "mlp": mlp})
        return Model(name.lower().replace(" ", "-"), shape)
    return find_model(name) if name in model_entries() else None


def seconds_of(row: Mapping[str, Any], model: Model) -> float:
    """Time of a step: as printed, or by the printed FLOP/s or share of peak [s].

    FLOP as Megatron-LM and MaxText count them: linear layers and LM head, and all token pairs.
    """
    if row["seconds"] is not None:
        return float(row["seconds"])
    shape, attention = model.shape, model.shape.attention
    heads = attention.N * attention.H if isinstance(attention, Gqa) else shape.D
    pairs = 12 * shape.layers * heads * row["sequence_length"]
    multiplied = model.parameters().total - (0 if shape.tied else shape.V * shape.D)
    tokens = row["global_batch"] * row["sequence_length"]
    if row["tflops_per_s_per_chip"] is not None:
        rate = row["tflops_per_s_per_chip"] * 1e12
    else:
        rate = row["mfu"] * PEAKS[row["precision"]]
    return float((6 * multiplied + pairs) * tokens / (rate * row["chips"]))


def step_of(row: Mapping[str, Any], model: Model) -> PublishedStep:
    """A step beside its math.

    Raises:
        RooflinesError: The chips cannot do it, as the package models them.
    """
    tp, pp, cp = (row[name] or 1 for name in ("tp", "pp", "cp"))
    ep = row["ep"] or EXPERT_CHIPS.get(row["model"], 1)
    dp = row["chips"] // (tp * pp * cp)
    micro_batch = (row["micro_batch"] or 1) * DEVICES.get(row["chip"], 1)
    plan = {"tp": tp, "pp": pp, "cp": cp, "dp": dp} | ({"ep": ep} if ep > 1 else {})
    if (row["vpp"] or 1) > 1:
        plan["interleave"] = row["vpp"]
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
    measured_s = seconds_of(row, model)
    return PublishedStep(
        row["stack"],
        row["chip"],
        model.name,
        None if row["stack_version"] is None else str(row["stack_version"]),
        compute,
        model.shape.moe is not None,
        model.shape.D,
        measured_s * (1 - answer["bubble"]) / answer["t_math_s"],
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
        model = model_of(row)
        if row["task"] == "lora" or model is None:
            left_out["adapters" if row["task"] == "lora" else "no shape in the catalogue"] += 1
            continue
        if row["chips"] is None or model.shape.state is not None:
            left_out["no number of chips" if row["chips"] is None else "states, judged apart"] += 1
            continue
        try:
            steps.append(step_of(row, model))
        except RooflinesError as error:
            left_out[str(error.problem).partition(",")[0]] += 1
    return steps, left_out


def in_group(group: Group, steps: Iterable[PublishedStep]) -> list[PublishedStep]:
    """Steps of a group.

    Raises:
        ValueError: One is below its bound.
    """
    of_group = [
        step
        for step in steps
        if (step.stack, step.compute, step.experts) == (group.stack, group.compute, group.experts)
        and step.chip in group.steps
    ]
    if min((step.over_lower for step in of_group), default=inf) < 1:
        raise ValueError(f"a step of {group.stack} is below its bound")
    return of_group


class Slowdown(NamedTuple):
    """Slowdown over the math.

    Attributes:
        times: At a width of 8,192 [1].
        width_power: Exponent of the width over 8,192 [1].
    """

    times: float
    width_power: float = 0.0

    def at(self, width: int) -> float:
        """Slowdown at a model width [1]."""
        return float(self.times * (width / TYPICAL_WIDTH) ** self.width_power)


class SixNumbers:
    """Slowdowns of Megatron-Bridge's steps, from six numbers in common.

    log(slowdown) = one + experts * (two + five * log(D / 8192) + six * racks) + three * fp8 + four
    * nvfp4, by least squares with a soft loss (log residuals beyond 0.1 count linearly) and a
    ridge.

    Args:
        steps: The steps.
    """

    SOFT, RIDGE = 0.1, 5.0

    def __init__(self, steps: Iterable[PublishedStep]) -> None:
        listed = [*steps]
        terms = np.array([self._terms(step, step.width) for step in listed])
        logs = np.log([step.over_math for step in listed])

        def residuals(numbers: Any) -> Any:  # noqa: ANN401, arrays
            scaled = (terms @ numbers - logs) / self.SOFT
            soft = np.sign(scaled) * np.sqrt(2 * (np.sqrt(1 + scaled**2) - 1))
            return np.concatenate([soft, sqrt(self.RIDGE) * numbers[1:]])

        self._numbers = least_squares(residuals, np.zeros(terms.shape[1])).x

    @staticmethod
    def _terms(kind: PublishedStep | Group, width: int, chip: str | None = None) -> list[float]:
        """Terms that the numbers multiply."""
        place = kind.chip if isinstance(kind, PublishedStep) else chip
        experts = float(kind.experts)
        return [
            1.0,
            experts,
            float(kind.compute == "fp8"),
            float(kind.compute == "nvfp4"),
            experts * log(width / TYPICAL_WIDTH),
            experts * (place in RACKS),
        ]

    def slowdown(self, group: Group, chip: str) -> Slowdown:
        """Slowdown of a kind of step on a chip."""
        times = exp(np.dot(self._terms(group, TYPICAL_WIDTH, chip), self._numbers))
        return Slowdown(times, float(self._numbers[4]) if group.experts else 0.0)


def median_slowdown(steps: Iterable[PublishedStep]) -> Slowdown:
    """Median slowdown of steps."""
    return Slowdown(median(step.over_math for step in steps))


def group_fits(
    group: Group, steps: Sequence[PublishedStep], date: str
) -> Iterator[tuple[str, FittedTraining]]:
    """Yield a fit for each chip of a group; errors and band are of models left out.

    With the six numbers a band is that of all steps with experts, or without.

    Raises:
        ValueError: A step is below its bound, or there is one model alone.
    """
    of_group, is_pooled = in_group(group, steps), group.stack == MEGATRON_BRIDGE
    pooled = [step for step in steps if step.stack == MEGATRON_BRIDGE]

    def slowdowns(without: str | None) -> Callable[[str], Slowdown]:
        if is_pooled:
            numbers = SixNumbers(step for step in pooled if step.model != without)
            return lambda chip: numbers.slowdown(group, chip)
        found = median_slowdown(step for step in of_group if step.model != without)
        return lambda _: found

    fitted = slowdowns(None)
    ratios = []
    for model in sorted({step.model for step in of_group}):
        left_out = slowdowns(model)
        ratios += [
            step.over_math / left_out(step.chip).at(step.width)
            for step in of_group
            if step.model == model
        ]
    spread = pooled_ratios(pooled)[group.experts] if is_pooled else ratios
    ends = quantiles(spread, n=10, method="inclusive")
    chips = [chip for chip in group.steps if any(step.chip == chip for step in of_group)]
    releases = sorted({step.release for step in (pooled if is_pooled else []) if step.release})
    for chip in group.chips:
        slowdown = fitted(chip)
        in_sample = [step.over_math / fitted(step.chip).at(step.width) for step in of_group]
        power = {"width_power": float(f"{slowdown.width_power:.6g}")} if slowdown[1] else {}
        yield (
            chip,
            FittedTraining.model_validate(
                {
                    "times": f"{slowdown.times:.6g}",
                    **power,
                    "base": "math",
                    "models": sorted({step.model for step in of_group}),
                    "chips": chips,
                    **({"release": releases[-1]} if releases else {}),
                    "bands": {"step": [f"{ends[0]:.6g}", f"{ends[-1]:.6g}"]},
                    "fitted": _errors(in_sample),
                    "held_out": _errors(ratios),
                    "source": group.source,
                    "date": date,
                }
            ),
        )


@cache
def _pooled_ratios(steps: tuple[PublishedStep, ...]) -> Mapping[bool, list[float]]:
    ratios: dict[bool, list[float]] = {True: [], False: []}
    for model in sorted({step.model for step in steps}):
        numbers = SixNumbers(step for step in steps if step.model != model)
        for step in steps:
            if step.model == model:
                group = Group(step.stack, (), (), step.compute, step.experts, "")
                expected = numbers.slowdown(group, step.chip).at(step.width)
                ratios[step.experts].append(step.over_math / expected)
    return ratios


def pooled_ratios(steps: Sequence[PublishedStep]) -> Mapping[bool, list[float]]:
    """Measured over estimated time with the model left out, with experts and without [1]."""
    return _pooled_ratios(tuple(steps))


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
        name = f"train-{group.compute}{'-experts' if group.experts else ''}"
        for chip, fit in group_fits(group, steps, date):
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
    fits = training_fits(table, "")
    names = ("chip and stack", "kind", "times", "steps", "models", "median", "p90", "band")
    print(as_table(names, list(fit_rows(fits))))
    for reason, count in published_steps(table)[1].most_common():
        print(f"left out: {count} {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
