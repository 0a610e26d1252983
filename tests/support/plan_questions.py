"""Random questions about the best training plans, and their answers by brute force."""

from random import Random
from typing import Any, NamedTuple

import polars as pl

import rooflines
from rooflines.basics.errors import RooflinesError

MODELS = (
    "llama-3.2-1b",
    "llama-3.1-8b",
    "llama-3.1-70b",
    "mixtral-8x7b",
    "qwen3-30b-a3b",
    "deepseek-v3",
    "gpt-oss-20b",
    "nemotron-3-nano",
    "qwen3.5-35b-a3b",
)
CHIPS = ("h100-sxm", "h200-sxm", "b200", "mi300x", "a100-sxm-80gb")
GIVEN: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"optimizer": 6},
    {"context": "heads"},
    {"shard": "weights"},
    {"recompute": "selective"},
    {"micro_batch": 2},
    {"stack": "megatron"},
    {"optimizer": "muon"},
    {"search": "cp,loss"},
)
LAYOUT = ("tp", "pp", "cp", "dp", "ep")


class PlanQuestion(NamedTuple):
    """Question about the best plans: arguments of `best_splits`, and how many plans are kept."""

    chip: str
    model: str
    keep: int | None
    options: dict[str, Any]

    def found(self, **options: Any) -> pl.DataFrame:
        """Rows of `best_splits`."""
        keys = {**self.options, **options}
        return rooflines.best_splits(self.chip, self.model, phase="train", **keys)

    def brute(self) -> pl.DataFrame:
        """Best plan of each layout that fits, by a table of every plan."""
        rows = self.found(every=True).filter(pl.col("fits"))
        return rows.unique(LAYOUT, keep="first", maintain_order=True)


def random_question(
    rng: Random, chips: tuple[int, ...] = (1, 2, 4, 8), each: tuple[int, ...] = (1, 2, 4, 6)
) -> PlanQuestion:
    """Question whose plans are few enough to compute them all.

    Args:
        rng: Random numbers.
        chips: Numbers of chips.
        each: Sequences of a step per chip.
    """
    number = rng.choice(chips)
    options: dict[str, Any] = {
        "chips": number,
        "B": number * rng.choice(each),
        "S": rng.choice((1024, 4096, 8192, 32_768)),
        "by": rng.choice(("t_rank_s", "t_rank_s", "t_serial_s", "t_upper_s")),
        "dtypes": rng.choice(("bf16", "bf16", "fp8")),
        **rng.choice(GIVEN),
    }
    return PlanQuestion(
        rng.choice(CHIPS), rng.choice(MODELS), rng.choice((1, 3, 10, None)), options
    )


def differences(question: PlanQuestion) -> list[str] | None:
    """Plans in which search and brute force differ; None: the question is refused."""
    try:
        brute = question.brute()["split"].to_list()
    except RooflinesError:
        return None
    found = question.found(keep=question.keep)
    fitting = found.filter(pl.col("fits"))["split"].to_list()
    expected = brute[: question.keep]
    return [
        f"{one} != {other}" for one, other in zip(expected, fitting, strict=False) if one != other
    ] + ([] if len(expected) == len(fitting) else [f"{len(expected)} plans != {len(fitting)}"])
