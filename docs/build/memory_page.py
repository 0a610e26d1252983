"""Table of docs/memory.md: pools of vLLM by rule beside what its start-up logs print."""

from __future__ import annotations

from functools import cache
from typing import Any

import yaml
from blocks import table, with_block, with_values
from documents import DOCS, ROOT

from rooflines.basics.text import significant
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.models.architecture import Shape
from rooflines.models.engine_pool import EnginePool, PoolSettings, Replica, engine_pool
from rooflines.models.engine_rules import GIB, engine_entries
from rooflines.models.library import load
from rooflines.models.split import Split
from rooflines.models.tensor_dtypes import format_dtypes, step_dtypes

MEMORY = DOCS / "memory.md"
STARTS = ROOT / "tests" / "cases" / "engine-starts.yaml"

SERVER = PoolSettings(utilization=0.95, max_batched_tokens=8192, max_seqs=1024, block_tokens=16)
"""Options of the starts."""

HEAD = ("start", "weights", "printed", "pool", "printed", "requests", "printed", "off by")


@cache
def compared() -> list[tuple[list[Any], EnginePool]]:
    """Starts, each with the pool from its shape alone."""
    content = yaml.safe_load(STARTS.read_text(encoding="utf-8"))
    rules, pools = engine_entries()["vllm"].rules("0.19"), []
    capacity = chip_entries()["h100-sxm"].memory["hbm"].capacity_bytes or 0.0
    for row in content["rows"]:
        model, weights, cache_format, tp, stages, context, *_ = row
        forms = content["shapes"]
        shape = Shape.model_validate(forms[model]) if model in forms else load(model).shape
        form = {**format_dtypes(weights), "name": None, "cache": cache_format}
        split = Split.model_validate({"tp": tp})
        replica = Replica(shape, step_dtypes(form).bits(), split, stages)
        pools.append((row, engine_pool(rules, replica, capacity, context, SERVER)))
    return pools


def _row(start: list[Any], pool: EnginePool) -> list[str]:
    """Row of the table; memory in GiB."""
    (
        model,
        weights,
        cache_format,
        tp,
        stages,
        context,
        weights_gib,
        _,
        _,
        pool_gib,
        _,
        requests,
        _,
    ) = start
    parts = [model, weights]
    parts += [f"cache {cache_format}"] if cache_format not in (weights, "bf16", "fp16") else []
    parts += [f"tp{tp}"] if tp > 1 else []
    parts += [f"{stages} stages"] if stages > 1 else []
    parts += [f"S {context:,}"]
    ours = float(pool.concurrency)
    return [
        ", ".join(parts),
        f"{float(pool.weights.total) / GIB:.2f}",
        f"{weights_gib:.2f}",
        f"{pool.pool_bytes / GIB:.2f}",
        f"{pool_gib:.2f}",
        f"{ours:.2f}",
        f"{requests:.2f}",
        f"{ours / requests - 1:+.2%}",
    ]


def memory_values() -> dict[str, str]:
    """Values of the page by their names."""
    offs = [abs(float(pool.concurrency) / start[11] - 1) for start, pool in compared()]
    tight, wide = (sum(off <= share for off in offs) for share in (0.002, 0.01))
    return {
        "starts": f"{len(offs)}",
        "tight": f"{tight}",
        "wide": f"{wide}",
        "worst": f"{significant(100 * max(offs), 2)} %",
    }


def with_starts(page: str) -> str:
    """A page with the table of starts, and its values."""
    rows = [_row(start, pool) for start, pool in compared()]
    return with_values(with_block(page, "starts", table(HEAD, rows)), memory_values())
