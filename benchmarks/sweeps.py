"""The sweep of the benchmarks: B x dtypes x shards x D x F, as a user would write it."""

from __future__ import annotations

from typing import Any

DTYPES = ("bf16", "fp8-out-bf16", "w8a16", "w4a16")
SHARDINGS = ("contracting/all-reduce", "column/gather-x")
SHARDS = (1, 2, 4, 8)
SIZES = tuple(range(1024, 24 * 1024 + 1, 1024))
ROWS_PER_B = len(DTYPES) * len(SHARDINGS) * len(SHARDS) * len(SIZES) ** 2
CHIP = "h100-sxm"


def config(rows: float, chips: int | None = 1, **sweep: object) -> dict[str, Any]:
    """A config with one sweep of about `rows` rows.

    Args:
        rows: The rows [1].
        chips: How many copies of one chip it is over; None: the chip itself.
        sweep: Other keys of the sweep.
    """
    own = {f"chip-{number:02d}": {"base": CHIP} for number in range(chips or 0)}
    batches = max(round(rows / ROWS_PER_B / (chips or 1)), 1)
    grid = {"B": {"from": 16, "to": 16 * batches, "step": 16}, "D": list(SIZES), "F": list(SIZES)}
    keys = {
        "dtypes": list(DTYPES),
        "sharding": list(SHARDINGS),
        "shards": list(SHARDS),
        "chips": list(own) or CHIP,
        "thresholds": [],
    }
    return {
        "sweeps": {"bench": {"operation": "matmul", "grid": grid, **keys, **sweep}},
        "chips": own,
        "charts": [],
    }
