"""Tests of layers per chunk, and of published steps with unequal stages."""

from __future__ import annotations

from typing import Any

import pytest

import rooflines
from rooflines.basics.errors import RooflinesError
from rooflines.training.layer_chunks import chunk_layers
from rooflines.training.parallel_plan import TrainingPlan

LLAMA = "llama-3.1-405b"


def by_stage(layers: int, **keys: Any) -> list[int]:
    """Layers on every stage."""
    plan = TrainingPlan.model_validate(keys)
    chunks = chunk_layers(layers, plan)
    return [sum(chunks[stage :: plan.pp]) for stage in range(plan.pp)]


@pytest.mark.parametrize(
    ("layers", "keys", "stages"),
    [
        (126, {"pp": 8, "interleave": 8}, [15, *[16] * 6, 15]),
        (126, {"pp": 16, "interleave": 8}, [7, *[8] * 14, 7]),
        (61, {"pp": 4, "interleave": 4}, [15, 16, 15, 15]),
        (61, {"pp": 2, "interleave": 8}, [30, 31]),
        (61, {"pp": 8, "interleave": 2}, [7, *[8] * 5, 7, 7]),
        (94, {"pp": 4, "interleave": 12}, [23, 24, 24, 23]),
        (80, {"pp": 8, "interleave": 5}, [10] * 8),
        (61, {"pp": 16, "stage_layers": "4x15,1"}, [*[4] * 15, 1]),
        (61, {"pp": 4, "first": 13, "last": 14}, [13, 17, 17, 14]),
        (32, {"pp": 3}, [11, 11, 10]),
    ],
)
def test_layers(layers: int, keys: dict[str, Any], stages: list[int]) -> None:
    """Stages have layers as Megatron deals them, or as typed; all are dealt."""
    assert by_stage(layers, **keys) == stages
    assert sum(stages) == layers


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"pp": 16, "stage_layers": "4x16"}, "adds up to 64"),
        ({"pp": 8, "stage_layers": "4x15,1"}, "has 16 numbers"),
        ({"pp": 4, "first": 14}, "leaves 47 layers for 3"),
        ({"pp": 8, "interleave": 8}, "64 chunks, more than 61 layers"),
        ({"pp": 62}, "is 62 stages"),
    ],
)
def test_refused(keys: dict[str, Any], said: str) -> None:
    """Layers that do not add up, or are not even, are refused."""
    with pytest.raises(RooflinesError, match=said):
        by_stage(61, **keys)


@pytest.mark.parametrize(
    ("chip", "model", "batch", "length", "split", "lower", "serial", "bubble"),
    [
        ("b200", LLAMA, 64, 8192, "tp4-pp8-cp2-dp2", "2.4012", "3.3564", "7/263"),
        (
            "h100-sxm",
            "llama-3.1-405b",
            1536,
            8192,
            "tp8-pp8-cp2-dp8",
            "16.3809",
            "19.6907",
            "7/1543",
        ),
        ("gb200", "deepseek-v3", 4096, 4096, "pp4-ep64-dp64", "3.7582", "5.3686", "3/259"),
    ],
)
def test_published_steps(  # noqa: PLR0913, PLR0917, a row of the table
    chip: str, model: str, batch: int, length: int, split: str, lower: str, serial: str, bubble: str
) -> None:
    """Bounds of steps in groups; interleaving them unevenly leaves the least time as it is."""
    ask: dict[str, Any] = {"B": batch, "S": length, "dtypes": "fp8", "calibration": None}
    chunks = "v4" if model == "deepseek-v3" else "v8"
    row = rooflines.train(chip, model, split=split, **ask).row
    interleaved = rooflines.train(chip, model, split=f"{split}-{chunks}", **ask).row
    assert f"{row['t_lower_s']:.4f}" == f"{interleaved['t_lower_s']:.4f}" == lower
    assert f"{row['t_serial_s']:.4f}" == serial
    top, bottom = map(int, bubble.split("/"))
    assert interleaved["bubble"] == pytest.approx(top / bottom)
