"""Published layouts of training are among the best that a search finds.

`ROOFLINES_PUBLIC_DATA` names a folder with `training/published-steps.csv`. A question is the
quickest newest step for a model, chip, number of chips, precision and batch of Megatron-Bridge;
micro-batch and shard are as run. Questions that are refused, such as 256 GB200, are left out.
"""

import csv
import os
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import pytest

import rooflines
from rooflines.basics.errors import RooflinesError
from rooflines.models.library import model_entries

DATA = os.environ.get("ROOFLINES_PUBLIC_DATA")
SHARDS = {"fsdp": "weights", "hsdp": "weights", "": "optimizer"}
TIE = 1.03


def questions() -> list[dict[str, str]]:
    with (Path(DATA or "") / "training" / "published-steps.csv").open(encoding="utf-8") as file:
        rows = [*csv.DictReader(file)]
    quickest: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        is_asked = row["stack"] == "megatron-bridge" and row["task"] == "pretrain"
        if not is_asked or row["newest"] == "no" or row["model"] not in model_entries():
            continue
        names = ("model", "chip", "chips", "precision", "global_batch", "sequence_length")
        key = tuple(row[name] for name in names)
        if key not in quickest or float(row["seconds"]) < float(quickest[key]["seconds"]):
            quickest[key] = row
    return [*quickest.values()]


def best(row: dict[str, str], keep: int, **layout: int) -> list[float]:
    form = "fp8" if "fp8" in row["precision"] else row["precision"]
    keys: dict[str, Any] = {"recompute": None, "layout": layout or None}
    keys |= {} if row["vpp"] not in ("", "1") else {"interleave": 1}
    frame = rooflines.best_splits(
        row["chip"],
        row["model"],
        B=int(row["global_batch"]),
        S=int(row["sequence_length"]),
        chips=int(row["chips"]),
        dtypes=form,
        phase="train",
        keep=keep,
        micro_batch=int(row["micro_batch"] or 1),
        shard=SHARDS.get(row["shard"], row["shard"]),
        search="cp" if layout else None,
        **keys,
    )
    return frame.filter(fits=True)["t_rank_s"].to_list()


@pytest.mark.skipif(DATA is None, reason="ROOFLINES_PUBLIC_DATA names no folder")
def test_published_layouts_are_among_the_best_three_or_tie():
    counts, ratios = Counter[str](), list[float]()
    for row in questions():
        tp, pp, cp, ep = (int(row[name] or 1) for name in ("tp", "pp", "cp", "ep"))
        layout = {"tp": tp, "pp": pp, "cp": cp, "ep": ep}
        try:
            ranks, own = best(row, 3), best(row, 1, **layout)
        except RooflinesError:
            continue
        if own:
            counts["asked"] += 1
            counts["best three"] += own[0] <= ranks[-1] * (1 + 1e-9)
            counts["with ties"] += own[0] <= ranks[-1] * TIE
            ratios.append(own[0] / ranks[0])
    assert counts["asked"] >= 34
    assert counts["with ties"] / counts["asked"] > 0.7
    assert counts["best three"] / counts["asked"] > 0.55
    assert median(ratios) < 1.06
