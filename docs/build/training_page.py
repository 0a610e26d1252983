"""Published and measured training steps beside their bound, and the numbers of docs/train.md."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from math import sqrt
from statistics import mean, median, quantiles
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl
import yaml
from blocks import table, with_block, with_values
from documents import DOCS

import rooflines
from rooflines import models
from rooflines.basics.text import seconds, significant
from rooflines.evaluation.row_frames import KernelTable, table_of
from rooflines.fits.calibration_files import Errors, FittedTraining
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.models.architecture import Shape
from rooflines.models.model import Model
from rooflines.models.mtp import with_mtp_layer
from rooflines.models.parameter_counts import parameters_of
from rooflines.sweep.one_chip import sweep_on

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

BOOK, TRAIN = DOCS / "book.md", DOCS / "train.md"
RUNS = yaml.safe_load((DOCS / "build" / "training.yaml").read_text(encoding="utf-8"))

GIB = 2**30
SHORT = 4096
"""S of most measured steps [1]."""


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


def row_of(  # noqa: PLR0913, PLR0917, a question
    model: Model,
    chip: str,
    sequences: int,
    tokens: int,
    plan: Mapping[str, object],
    dtypes: str = "bf16",
) -> dict[str, Any]:
    """The row of a step of training, without the rest of an answer."""
    form = model.shape.model_dump(include={*Shape.model_fields}, exclude_none=True)
    sweep = sweep_on(
        {"name": "one", **form},
        chip,
        dtypes,
        phase="train",
        splits=[plan],
        grid={"B": sequences, "S": tokens},
        thresholds=[],
    )
    (row,) = table_of(sweep).stored_frame().collect().to_dicts()
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


def gpt(row: Mapping[str, Any]) -> Model:
    """A model as GPT-3: no gate, as many heads of keys and values."""
    width, heads = row["D"], row["heads"]
    attention = {"N": heads, "K": heads, "H": width // heads}
    form = {"layers": row["layers"], "D": width, "V": row.get("V", 51_200), "attention": attention}
    mlp = {"F": 4 * width, "gated": False}
    return Model(row["name"], Shape.model_validate({**form, "mlp": mlp}))


class PublishedRun(NamedTuple):
    """A published time or rate.

    Attributes:
        row: As in training.yaml.
        number, unit: What was published, and its unit.
        mfu, mfu_full: The model's FLOP over what the peak does in that time, with causal pairs or
            all pairs of tokens in attention [1].
        off: What is counted here over the FLOP/s or the share of the peak printed beside it [1];
            None where the source prints neither.
    """

    row: Mapping[str, Any]
    number: float
    unit: str
    mfu: float
    mfu_full: float
    off: float | None

    @property
    def bound(self) -> float:
        """Bound at the peak, in the same unit: no FLOP but the model's, pairs causal."""
        return self.number / self.mfu if self.unit == RATE else self.number * self.mfu

    @property
    def of(self) -> tuple[str, str, int]:
        """Common values of runs in one row: model and dtypes, unit, and B."""
        dtypes = f", {self.row['dtypes']}" if "dtypes" in self.row else ""
        return f"{self.row['name']}{dtypes}", self.unit, self.row.get("B", 0)


def published_values(row: Mapping[str, Any]) -> Iterator[tuple[float, str, float]]:
    """Published figure of a run: number, unit, and chip time per token [s]."""
    tokens, chips = row.get("B", 1) * row["S"], row.get("chips", 1)
    for each in row.get("s", ()):
        yield each, " s", each * chips / tokens
    for each in row.get("hours", ()):
        yield each / 1e6, "M hours", each * 3600 / row["tokens"]
    for each in row.get("tokens_per_s", ()):
        yield each, RATE, 1 / each


RATE = " tokens/s"


class TokenWork(NamedTuple):
    """The model's work for a token.

    Attributes:
        flops: With causal pairs [FLOP].
        mfu, mfu_full: Its time at the peak of one chip, with causal or all pairs [s].
    """

    flops: float
    mfu: float
    mfu_full: float


def work_of(row: Mapping[str, Any]) -> TokenWork:
    """The model's work for a token, with that of a module for multi-token prediction."""
    model = gpt(row) if "layers" in row else models.load(row["name"])
    own, dtypes, length = [model], row.get("dtypes", "bf16"), row["S"]
    merge = 0
    if row.get("mtp"):
        own.append(Model("mtp", with_mtp_layer(model.shape, standalone=True)))
        merge = 3 * 2 * 2 * model.shape.D**2  # the projection of two states to one, three passes
    peak = chip_entries()[row["chip"]].plain["units"]["matrix"][dtypes]["flops_per_s"]
    steps = [row_of(each, row["chip"], 1, length, {}, dtypes) for each in own]
    seconds = (
        sum(step[name] * step["t_lower_s"] for step in steps) / length + merge / float(peak)
        for name in ("mfu", "mfu_full")
    )
    return TokenWork(sum(step["flops"] for step in steps) / length + merge, *seconds)


def published_runs() -> Iterator[PublishedRun]:
    """Every published time or rate of a step, or of a training."""
    for row in RUNS["runs"]:
        work = work_of(row)
        flops, shares = row.get("tflops", ()), row.get("percent", ())
        for index, (number, unit, token_s) in enumerate(published_values(row)):
            mfu, mfu_full = work.mfu / token_s, work.mfu_full / token_s
            off = work.flops / token_s / 1e12 / flops[index] if flops else None
            off = 100 * mfu_full / shares[index] if shares else off
            yield PublishedRun(row, number, unit, mfu, mfu_full, off)


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
"""The book's bytes for a layer of two matmuls in bf16, forward + backward, and the split."""


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
    sweep = {
        "operation": "matmul",
        "grid": {"B": 2**22, "D": 8192, "F": 28_672},
        "dtypes": "bf16",
        "chips": chip,
        "shards": shards,
        "sharding": "batch/gather-w",
        "network": [[*network]],
        "thresholds": "B",
    }
    found = rooflines.thresholds(rooflines.load_config({"sweeps": {"one": sweep}, "charts": []}))
    return f"{found['critical'][0]:,}"


def with_steps(page: str) -> tuple[str, dict[str, str]]:
    """Tables of published and of measured steps in a page, and the values of its sentences."""
    runs, steps = list(published_runs()), list(measured_steps())
    counted = [each.off for each in runs if each.off is not None]
    shares, ratios = [each.peak_share for each in steps], [each.over_upper for each in steps]
    fit = training_fit(steps)
    left_out = fit.held_out or fit.fitted
    values = {
        "counted": str(len(counted)),
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
        "insample": f"{fit.fitted.median:.1%}",
    }
    measured = table(
        ("model", "split", "ms", "no overlap", "states and saved"), longest_steps(steps)
    )
    page = with_block(page, "measured", measured)
    head = ("model", "chips", "published", "bound", "MFU", "all pairs")
    return with_block(page, "published", table(head, runs_of_models(runs))), values


def with_book_numbers(page: str) -> str:
    """docs/book.md with current numbers of the chapter on training."""
    rows = ((name, book, sent_of_layer(plan)) for name, (book, plan) in LAYERS.items())
    page = with_block(page, "layers", table(("", "book", "here"), rows))
    gathers = {f"fsdp{name}": gathered_from(*case) for name, case in FSDP.items()}
    return with_values(page, mixes() | gathers)


def with_step(page: str) -> str:
    """docs/train.md with the times of the step that it shows."""
    row = rooflines.train(
        "b200",
        "llama-3.1-8b",
        B=64,
        S=8192,
        split={"dp": 8},
        shard="weights",
        calibration=["megatron"],
    ).row
    times = {"estimate": "t_estimate_s", "serialized": "t_serial_s", "lower": "t_lower_s"}
    values = {name: seconds(row[column]) for name, column in times.items()}
    return with_values(page, values | offload_values())


def offload_values() -> dict[str, str]:
    """Thresholds of offloading in docs/train.md, by the bound, by their names."""
    dtypes = dict.fromkeys(("weights", "cache", "activations", "compute", "gradients"), "bf16")

    def rows(chip: str) -> list[dict[str, Any]]:
        sweep = {
            "models": ["llama-3.1-8b"],
            "chips": [chip],
            "phase": "train",
            "grid": {"B": 8, "S": 8192},
            "splits": [{"dp": 8}],
            "dtypes": [dtypes],
            "thresholds": ["S_offload", "X_offload"],
        }
        config = rooflines.load_config({"model-sweeps": {"offload": sweep}})
        return rooflines.thresholds(config, "offload").filter(time="t_lower_s").to_dicts()

    inputs, saved, states = rows("h100-sxm")
    return {
        "inputs": inputs["outcome"],
        "saved": f"{saved['critical']:,}",
        "states": f"{states['critical']:,}",
        "c2c": f"{rows('gb200')[-1]['critical']:,}",
    }


def longest_steps(steps: Sequence[MeasuredStep]) -> Iterator[Sequence[str]]:
    """Cells of the longest step of each run at the shortest S, those of a model in one row."""
    shortest = min(each.run["S"] for each in steps)
    longest = {id(each.run): each for each in steps if each.run["S"] == shortest}.values()
    for model, group in groupby(longest, key=lambda each: each.run["model"]):
        found = list(group)
        cells = (
            [each.row["split"] for each in found],
            [f"{1e3 * each.measured_s:,.0f}" for each in found],
            [f"{1e3 * float(each.row['t_upper_s']):,.0f}" for each in found],
            [f"{each.peak_share:.1%}" for each in found],
        )
        yield model, *("; ".join(each) for each in cells)


def runs_of_models(runs: Iterable[PublishedRun]) -> Iterator[Sequence[str]]:
    """Cells of what was published, of runs of the same model and dtypes in one row."""
    for (name, unit, _), group in groupby(runs, key=lambda each: each.of):
        found = list(group)
        places = (f"{each.row.get('chips', '')} {each.row['chip']}".strip() for each in found)
        bounds = dict.fromkeys(significant(each.bound, 3) for each in found)
        cells = (
            dict.fromkeys(places),
            [significant(each.number, 5) for each in found],
            bounds if len(bounds) == 1 else [significant(each.bound, 3) for each in found],
            [f"{each.mfu:.1%}" for each in found],
            [f"{each.mfu_full:.1%}" for each in found],
        )
        chips, numbers, bound, *shares = ("; ".join(each) for each in cells)
        yield name, chips, numbers + unit, bound + unit, *shares
