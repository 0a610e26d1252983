"""The numbers of docs/training.md: steps that others published or measured, beside their bound."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any

import yaml
from blocks import table, with_block, with_values
from documents import DOCS

from rooflines import models
from rooflines.catalogue.chips import chip_entries
from rooflines.models.shape import Shape
from rooflines.training.question import training_step

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rooflines.models.model import Model
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


def with_runs(page: str) -> str:
    """The page with current numbers of published and of measured steps, and a table of the latter.

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
    head = ("model", "split", "ms", "at least", "no overlap", "peak GiB", "states and saved")
    return with_values(with_block(page, "measured", table(head, rows)), values)
