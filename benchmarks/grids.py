"""The sweeps of the benchmarks: B x dtypes x shards x D x F, as a user would write them."""

from __future__ import annotations

from typing import Any

DTYPES = ("bf16", "fp8-out-bf16", "w8a16", "w4a16")
SHARDINGS = ("contracting/all-reduce", "column/gather-x")
SHARDS = (1, 2, 4, 8)
SIZES = tuple(range(1024, 24 * 1024 + 1, 1024))
ROWS_PER_B = len(DTYPES) * len(SHARDINGS) * len(SHARDS) * len(SIZES) ** 2
CHIP = "h100-sxm"


def config(rows: float, chips: int = 1, **sweep: object) -> dict[str, Any]:
    """A config with one sweep of about `rows` rows, over `chips` copies of one chip."""
    own = {f"chip-{number:02d}": {"base": CHIP} for number in range(chips)}
    batches = max(round(rows / ROWS_PER_B / chips), 1)
    grid = {"B": {"from": 16, "to": 16 * batches, "step": 16}, "D": list(SIZES), "F": list(SIZES)}
    keys = {
        "dtypes": list(DTYPES),
        "sharding": list(SHARDINGS),
        "shards": list(SHARDS),
        "chips": list(own),
        "thresholds": [],
    }
    return {
        "sweeps": {"bench": {"operation": "matmul", "grid": grid, **keys, **sweep}},
        "chips": own,
        "charts": [],
    }
