"""The numbers of docs/training.md: steps that others published or measured, beside their bound."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from math import sqrt
from statistics import mean, median, quantiles
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl
import yaml
from answers import threshold
from blocks import table, with_block, with_values
from documents import DOCS

import rooflines
from rooflines import models
from rooflines.basics.text import significant
from rooflines.catalogue.chips import chip_entries
from rooflines.fits.entries import Errors, FittedTraining
from rooflines.models.counts import parameters_of
from rooflines.models.model import Model
from rooflines.models.shape import Shape
from rooflines.sweep.one_chip import sweep_on
from rooflines.sweep.rows import KernelTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

TRAINING = DOCS / "training.md"
RUNS = yaml.safe_load((DOCS / "build" / "training.yaml").read_text(encoding="utf-8"))

GIB = 2**30
SHORT = 4096
"""S of most measured steps [1]."""

PUBLISHED_TOKENS = 8192
"""S of the published runs [1]."""


@dataclass(frozen=True)
class MeasuredStep:
    """A measured step, its time [s], and the row of it; `run` is as in training.yaml."""

    run: Mapping[str, Any]
    measured_s: float
    row: Mapping[str, Any]

    @property
    def over_upper(self) -> float:
        """Measured over the time without overlap [1]."""
        return self.measured_s / float(self.row["t_upper_s"])

    @property
    def peak_share(self) -> float:
        """States and saved tensors over the measured peak [1]."""
        return float(self.row["footprint_bytes"]) / GIB / float(self.run["gib"])


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


def row_of(
    model: Model, chip: str, sequences: int, tokens: int, plan: Mapping[str, object]
) -> dict[str, Any]:
    """The row of a step of training."""
    frame = rooflines.train(model, chip, B=sequences, S=tokens, split=plan)
    (row,) = frame.iter_rows(named=True)
    return row


def measured_steps() -> Iterator[MeasuredStep]:
    """Every measured step."""
    for run in RUNS["measured"]:
        for micro_batches, ms in run["ms"].items():
            sequences = micro_batches * run["plan"].get("dp", 1)
            row = row_of(model_of(run), "b200", sequences, run["S"], run["plan"])
            yield MeasuredStep(run, ms / 1e3, row)


def shown_errors(ratios: Iterable[float]) -> Errors:
    """The errors of estimates, each given as measured over estimated time."""
    found = sorted(abs(1 / ratio - 1) for ratio in ratios)
    p90 = quantiles(found, n=10, method="inclusive")[-1]
    shares = (f"{value:.6g}" for value in (median(found), mean(found), p90))
    return Errors.model_validate({"n": len(found), **dict(zip(ERRORS, shares, strict=True))})


ERRORS = ("median", "mean", "p90")

DENSE = ("llama-3.1-70b", "llama-3.1-405b")
"""The measured models without experts."""


def training_fit(steps: Sequence[MeasuredStep]) -> FittedTraining:
    """One number on the time without overlap; of every model also by the steps of the others."""
    times = median(each.over_upper for each in steps)
    ratios = [each.over_upper / times for each in steps]
    ends = quantiles(ratios, n=10, method="inclusive")
    left_out = []
    for model in dict.fromkeys(each.run["model"] for each in steps):
        others = median(each.over_upper for each in steps if each.run["model"] != model)
        left_out += [each.over_upper / others for each in steps if each.run["model"] == model]
    return FittedTraining.model_validate(
        {
            "times": f"{times:.6g}",
            "bands": {"step": [f"{ends[0]:.6g}", f"{ends[-1]:.6g}"]},
            "fitted": shown_errors(ratios),
            "held_out": shown_errors(left_out),
            "source": "steps of 8 B200 of SimuMax at 4dcaae5 (docs/b200), Apache-2.0",
            "date": "2026-11-26",
        }
    )


def judged_on(steps: Sequence[MeasuredStep], fitted: str, judged: str) -> float:
    """The median error at steps of a model of the number fitted to another one, S = 4,096 [1]."""
    short = [each for each in steps if each.run["S"] == SHORT]
    times = median(each.over_upper for each in short if each.run["model"] == fitted)
    own = [each.over_upper for each in short if each.run["model"] == judged]
    return median(abs(times / ratio - 1) for ratio in own)


def published_tflops() -> Iterator[tuple[Mapping[str, Any], float]]:
    """Every published run with its TFLOP/s as counted here, pairs of tokens causal."""
    for run in RUNS["published"]:
        row = row_of(models.load(run["model"]), run["chip"], 1, PUBLISHED_TOKENS, {})
        flops = row["flops"] / PUBLISHED_TOKENS * run["tokens_per_s"]
        yield run, flops / 1e12


def gpt(row: Mapping[str, Any]) -> Model:
    """A model of the papers: no gate, as many heads of keys and values, a vocabulary of 51,200."""
    width, heads = row["D"], row["heads"]
    attention = {"N": heads, "K": heads, "H": width // heads}
    form = {"layers": row["layers"], "D": width, "V": 51_200, "attention": attention}
    mlp = {"F": 4 * width, "gated": False}
    return Model(row["name"], Shape.model_validate({**form, "mlp": mlp}))


class PublishedRun(NamedTuple):
    """A published time, as text; the model's FLOP over what the peak does in it, `mfu` [1].

    `row` is as in training.yaml; `mfu_full` counts all pairs of tokens in attention.
    """

    row: Mapping[str, Any]
    text: str
    mfu: float
    mfu_full: float


def chip_seconds(row: Mapping[str, Any]) -> dict[str, float]:
    """Seconds of one chip for a token [s], by the text of what was published."""
    tokens, chips = row.get("B", 1) * row["S"], row.get("chips", 1)
    return {
        **{f"{each:,} s": each * chips / tokens for each in row.get("s", ())},
        **{
            f"{each / 1e6:,.2f}M hours": each * 3600 / row["tokens"]
            for each in row.get("hours", ())
        },
        **{f"{each:,} tokens/s": 1 / each for each in row.get("tokens_per_s", ())},
    }


def published_runs() -> Iterator[PublishedRun]:
    """Every published time of a step, or of a training."""
    for row in RUNS["runs"]:
        model = gpt(row) if "layers" in row else models.load(row["name"])
        step = row_of(model, row["chip"], 1, row["S"], {})
        least, most = (step[name] * step["t_lower_s"] / row["S"] for name in ("mfu", "mfu_full"))
        for text, seconds in chip_seconds(row).items():
            yield PublishedRun(row, text, least / seconds, most / seconds)


LAYERS: Mapping[str, tuple[str, Mapping[str, int | str]]] = {
    "DP": ("8DF", {"dp": 4, "shard": "none"}),
    "FSDP": ("4DF + 8DF", {"dp": 4, "shard": "weights"}),
    "TP": ("4BD + 4BD", {"tp": 2}),
    "TP, `save: gathered`": ("4BD + 4BD", {"tp": 2, "save": "gathered"}),
    "FSDP and TP": (
        "4BD/X + 4DF/Y + 8BD/X + 8DF/Y",
        {"dp": 4, "tp": 2, "shard": "weights"},
    ),
}
"""What the book has of a layer of two matmuls in bf16, forward + backward, and the same split."""


def sent_of_layer(plan: Mapping[str, int | str]) -> str:
    """Bytes that a chip sends of a layer of two matmuls, forward + backward, in the book's letters.

    A collective over n chips counts as a whole, not (n - 1) / n.
    """
    dp, tp = (int(plan.get(key, 1)) for key in ("dp", "tp"))
    shape = gpt(RUNS["memory"][0]).shape
    form = shape.model_dump(include={*Shape.model_fields}, exclude_none=True)
    lengths = [1024, 2048]
    sweep = sweep_on(
        {"name": "gpt", **form},
        "gb200",
        {"weights": "bf16", "activations": "bf16", "gradients": "bf16"},
        phase="train",
        splits=[plan],
        grid={"B": dp, "S": lengths},
        thresholds=[],
    )
    kernels = KernelTable(sweep).frame().collect().cast({"group": pl.String})
    width, both = shape.D, 8 * shape.D**2  # D and 2DF
    replicated = kernels.filter(S=lengths[0], group="replicas")["network_bytes"].sum()
    found = []
    for passes in ("fwd", "(dgrad|wgrad)"):
        of = kernels.filter(pl.col("group").str.contains(f"^(gate-up|down)-{passes}$"))
        short, long = (float(of.filter(S=length)["network_bytes"].sum()) for length in lengths)
        token = (long - short) / (lengths[1] - lengths[0]) / width * tp / max(tp - 1, 1)
        weights = (2 * short - long) * tp / both
        if passes != "fwd" and plan.get("shard") == "none":
            weights += float(replicated) / float(parameters_of(shape).total)
        layer = 2 * weights * dp / max(dp - 1, 1)
        found += [f"{token:.0f}BD{'/X' * (dp > 1)}"] * (token > 0)
        found += [f"{layer:.0f}DF{'/Y' * (tp > 1)}"] * (layer > 0)
    return " + ".join(found)


MIXES = {"64": (48_000, 32_768, 64), "4096": (3e6, 13_824, 4096), "8960": (4.19e6, 28_672, 8960)}
"""Tokens, F and chips of the book's mixes of FSDP along two axes and TP along one."""


def mixes() -> dict[str, str]:
    """The book's best replicas of a mix, and its least tokens of a chip by the numbers of v5p."""
    v5p = chip_entries()["tpu-v5p"].plain
    peak, link = v5p["units"]["matrix"]["bf16"]["flops_per_s"], v5p["networks"]["ici"]
    alpha = float(peak) / (2 * float(link["bytes_per_s"]))
    best = {f"mix{name}": sqrt(2 * B / F * N) for name, (B, F, N) in MIXES.items()}
    least = {f"tokens{F}": alpha**2 / (2 * F) for F in (32_768, 30_000, 13_824)}
    return {name: significant(each, 3) for name, each in (best | least).items()}


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
    return f"{threshold(found, 'B')['critical']:,}"


def with_runs(page: str) -> str:
    """The page with current numbers of published and of measured steps, and their tables."""
    counted = [own / row["tflops"] for row, own in published_tflops()]
    steps = list(measured_steps())
    shares, ratios = [each.peak_share for each in steps], [each.over_upper for each in steps]
    left_out = training_fit(steps).held_out or shown_errors(ratios)
    values = {
        "runs": str(len(counted)),
        "off": f"{max(abs(ratio - 1) for ratio in counted):.1%}",
        "steps": str(len(steps)),
        "quickest": f"{min(ratios):.2f}",
        "slowest": f"{max(ratios):.2f}",
        "median": f"{median(ratios):.2f}",
        "least": f"{min(shares):.1%}",
        "most": f"{max(shares):.1%}",
        "judged": f"{judged_on(steps, DENSE[0], DENSE[1]):.1%}",
        "reverse": f"{judged_on(steps, DENSE[1], DENSE[0]):.1%}",
        "heldout": f"{left_out.median:.1%}",
        **mixes(),
        **{f"fsdp{name}": gathered_from(*case) for name, case in FSDP.items()},
    }
    rows = ((name, book, sent_of_layer(plan)) for name, (book, plan) in LAYERS.items())
    page = with_block(page, "layers", table(("", "book", "here"), rows))
    head = ("model", "split", "ms", "no overlap", "states and saved")
    page = with_block(page, "measured", table(head, longest_steps(steps)))
    head = ("model", "chips", "published", "mfu", "mfu, all pairs")
    return with_values(with_block(page, "published", table(head, runs_of_models())), values)


def longest_steps(steps: Sequence[MeasuredStep]) -> Iterator[Sequence[str]]:
    """Cells of the longest step of each run at the shortest S."""
    shortest = min(each.run["S"] for each in steps)
    for each in {id(each.run): each for each in steps if each.run["S"] == shortest}.values():
        times = (f"{1e3 * float(time):,.0f}" for time in (each.measured_s, each.row["t_upper_s"]))
        yield each.run["model"], each.row["split"], *times, f"{each.peak_share:.1%}"


def runs_of_models() -> Iterator[Sequence[str]]:
    """Cells of the published times, those of one run in one row."""
    for _, group in groupby(published_runs(), key=lambda each: id(each.row)):
        rows, texts, mfu, mfu_full = zip(*group, strict=True)
        count = f"{rows[0]['chips']:,} " if "chips" in rows[0] else ""
        shares = (", ".join(f"{each:.1%}" for each in column) for column in (mfu, mfu_full))
        yield rows[0]["name"], f"{count}{rows[0]['chip']}", ", ".join(texts), *shares
