"""The numbers of docs/training.md: steps that others published or measured, beside their bound."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import median
from typing import TYPE_CHECKING, Any

import yaml
from blocks import table, with_block, with_values
from documents import DOCS

import rooflines
from rooflines import models
from rooflines.catalogue.chips import chip_entries
from rooflines.models.model import Model
from rooflines.models.shape import Shape
from rooflines.training.memory import saved_tensors
from rooflines.training.plan import TrainingPlan
from rooflines.training.question import training_step

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.training.step import TrainingStep

TRAINING = DOCS / "training.md"
RUNS = yaml.safe_load((DOCS / "build" / "training.yaml").read_text(encoding="utf-8"))

GIB = 2**30
PUBLISHED_TOKENS = 8192
"""S of the published runs [1]."""


@dataclass(frozen=True)
class MeasuredStep:
    """A measured step beside what is computed.

    Attributes:
        row: The run, as in training.yaml.
        measured_s: The longest step that was measured [s].
        step: What is computed for it.
    """

    row: Mapping[str, Any]
    measured_s: float
    step: TrainingStep

    @property
    def over_upper(self) -> float:
        """Measured over the time without overlap [1]."""
        return self.measured_s / float(self.step.t_upper_s)

    @property
    def peak_share(self) -> float:
        """States and saved tensors over the measured peak [1]."""
        return float(self.step.footprint.total) / GIB / float(self.row["gib"])


def model_of(row: Mapping[str, Any]) -> Model:
    """The model of a run, with its layers cut, the first of them dense."""
    if "shape" in row:
        found = Model(row["model"], Shape.model_validate(row["shape"]))
    else:
        found = models.load(row["model"])
    form = {
        key: value for key, value in found.shape.model_dump().items() if key in Shape.model_fields
    }
    form["layers"] = row["layers"]
    if form["mlp"] and form["moe"]:
        form["mlp"]["layers"], form["moe"]["layers"] = 1, None
    form["attention"] |= {"K": row["K"]} if "K" in row else {}
    return replace(found, shape=Shape.model_validate(form))


def measured_steps() -> Iterator[MeasuredStep]:
    """Every measured step."""
    chip = chip_entries()["b200"]
    for row in RUNS["measured"]:
        for micro_batches, ms in row["ms"].items():
            sequences = micro_batches * row["plan"].get("dp", 1)
            step = training_step(model_of(row), chip, sequences, row["S"], row["plan"])
            yield MeasuredStep(row, ms / 1e3, step)


def published_tflops() -> Iterator[tuple[Mapping[str, Any], float]]:
    """Every published run with its TFLOP/s as counted here, pairs of tokens causal."""
    for row in RUNS["published"]:
        step = training_step(
            models.load(row["model"]), chip_entries()[row["chip"]], 1, PUBLISHED_TOKENS, {}
        )
        flops = float(step.model_flops()) / PUBLISHED_TOKENS * row["tokens_per_s"]
        yield row, flops / 1e12


def gpt(row: Mapping[str, Any]) -> Model:
    """A model of the papers: no gate, as many heads of keys and values, a vocabulary of 51,200."""
    width, heads = row["D"], row["heads"]
    attention = {"N": heads, "K": heads, "H": width // heads}
    form = {"layers": row["layers"], "D": width, "V": 51_200, "attention": attention}
    mlp = {"F": 4 * width, "gated": False}
    return Model(row["name"], Shape.model_validate({**form, "mlp": mlp}))


@dataclass(frozen=True)
class PublishedRun:
    """A published time beside what is counted.

    Attributes:
        row: The run, as in training.yaml.
        text: What was published.
        mfu: The FLOP of the model over what the peak does in that time [1].
        mfu_full: The same with all pairs of tokens in attention [1].
    """

    row: Mapping[str, Any]
    text: str
    mfu: float
    mfu_full: float


def published_runs() -> Iterator[PublishedRun]:
    """Every published time of a step, or of a training."""
    for row in RUNS["runs"]:
        model = gpt(row) if "layers" in row else models.load(row["name"])
        step = training_step(model, chip_entries()[row["chip"]], 1, row["S"], {})
        peak = float(step.machine.peaks[step.setting.dtypes.compute])
        least, most = (float(step.model_flops(causal=each)) / row["S"] for each in (True, False))
        of = {
            f"{each:,} s": each * row.get("chips", 1) / (row.get("B", 1) * row["S"])
            for each in row.get("s", ())
        }
        of |= {
            f"{each / 1e6:,.2f}M hours": each * 3600 / row["tokens"]
            for each in row.get("hours", ())
        }
        of |= {f"{each:,} tokens/s": 1 / each for each in row.get("tokens_per_s", ())}
        for text, chip_s in of.items():
            yield PublishedRun(row, text, least / peak / chip_s, most / peak / chip_s)


def paper_memory() -> Iterator[tuple[Mapping[str, Any], tuple[float, float, float]]]:
    """The models of Korthikanti et al., with their states, saved tensors, and these `selective`.

    Returns:
        GiB of a chip. The paper's layers keep scores, 5/2 N S^2, and two masks of a byte for each
        of D; they have no sums of softmaxes, and states have 18 bytes of a parameter of a layer.
    """
    for row in RUNS["memory"]:
        shape, width, length, tp = gpt(row).shape, row["D"], 2048, 8
        tensors = saved_tensors(shape, TrainingPlan.model_validate({}), Fraction(2))
        kept = sum(each.elements("none") for name, each in tensors.items() if "embed" not in name)
        shared = 2 * (kept - 2 * row["heads"] + width)  # bytes of a token, with the masks
        whole = 10 * width  # of these not shared without sequence parallelism
        stages, runs = row["stages"], row["runs"]
        ahead = 1 + Fraction(stages - 1, stages * runs) if runs > 1 else Fraction(1)
        tokens = length * row["micro_batch"] * row["layers"] * ahead
        scores = 5 * row["heads"] * length
        states = Fraction(18 * 12 * row["layers"] * width**2, tp * stages)
        saved = tokens * (whole + Fraction(shared - whole + scores, tp))
        selective = tokens * shared / tp
        yield row, (float(states / GIB), float(saved / GIB), float(selective / GIB))


FSDP: Mapping[str, tuple[str, int | str, Sequence[str]]] = {
    "16": ("tpu-v5p", 16, ("ici",)),
    "4096": ("tpu-v5p", "16x16x16", ("ici",)),
    "1024": ("h100-sxm-book-gpus", 1024, ("nvlink", "infiniband")),
}
"""Chips that share the weights of a matmul in the book's chapter on training."""


def gathered_from(chip: str, shards: int | str, network: Sequence[str]) -> str:
    """The batch from which a matmul hides the gather of its weights."""
    sizes = {"B": 2**22, "D": 8192, "F": 28_672}
    found = rooflines.explain(
        chip, sizes, "bf16", shards=shards, sharding="batch/gather-w", network=network
    )
    (critical,) = (
        each["critical"] for each in found.thresholds if each["axis"] == "B" and each["share"] == 1
    )
    return f"{critical:,}"


def with_runs(page: str) -> str:
    """The page with current numbers of published and of measured steps, and their tables.

    The table has the longest step of each run at the shortest S.
    """
    counted = [own / row["tflops"] for row, own in published_tflops()]
    steps = list(measured_steps())
    shares, ratios = [each.peak_share for each in steps], [each.over_upper for each in steps]
    values = {
        "runs": str(len(counted)),
        "off": f"{max(abs(ratio - 1) for ratio in counted):.1%}",
        "steps": str(len(steps)),
        "quickest": f"{min(ratios):.2f}",
        "slowest": f"{max(ratios):.2f}",
        "median": f"{median(ratios):.2f}",
        "least": f"{min(shares):.1%}",
        "most": f"{max(shares):.1%}",
    }
    shortest = min(each.row["S"] for each in steps)
    last = {id(each.row): each for each in steps if each.row["S"] == shortest}
    rows = [
        (
            each.row["model"],
            each.step.setting.plan.name,
            *(
                f"{1e3 * float(time):,.0f}"
                for time in (each.measured_s, each.step.t_lower_s, each.step.t_upper_s)
            ),
            f"{each.row['gib']:.1f}",
            f"{each.peak_share:.1%}",
        )
        for each in last.values()
    ]
    page = with_block(page, "published", table(RUN_HEAD, _run_rows()))
    page = with_block(page, "memory", table(MEMORY_HEAD, _memory_rows()))
    values |= {f"fsdp{name}": gathered_from(*case) for name, case in FSDP.items()}
    head = ("model", "split", "ms", "at least", "no overlap", "peak GiB", "states and saved")
    return with_values(with_block(page, "measured", table(head, rows)), values)


RUN_HEAD = ("model", "chips", "published", "mfu", "mfu, all pairs")
MEMORY_HEAD = ("model", "states", "saved", "selective")


def _run_rows() -> Iterator[tuple[str, ...]]:
    for each in published_runs():
        chips = (
            f"{each.row['chips']:,} {each.row['chip']}" if "chips" in each.row else each.row["chip"]
        )
        yield each.row["name"], chips, each.text, f"{each.mfu:.1%}", f"{each.mfu_full:.1%}"


def _memory_rows() -> Iterator[tuple[str, ...]]:
    for row, gib in paper_memory():
        yield row["name"], *(f"{each:.2f}" for each in gib)
