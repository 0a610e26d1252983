"""A program that writes the frames of a config where the model has one more resource to a folder.

It needs a process of its own: the list of resources is read at import.
"""

import json
import sys
from pathlib import Path

from rooflines.model import costs as work
from rooflines.model import resources
from rooflines.model.resources import Resource, memory_rate

TRAFFIC = 3
"""Bytes through the cache per byte of memory traffic [1]."""

resources.RESOURCES = (*resources.RESOURCES, Resource("cache", "cache_bytes", "cache", memory_rate))
resources.OTHERS = resources.RESOURCES[1:]
work.COSTS = {
    **work.COSTS,
    "cache_bytes": lambda workload: [
        (TRAFFIC * bytes_, dims) for bytes_, dims in work.memory_bytes(workload)
    ],
}

import rooflines  # noqa: E402, after the resource is there
from rooflines import charts  # noqa: E402
from rooflines.charts.files import views_of  # noqa: E402
from rooflines.charts.kit.themes import SIZES, config  # noqa: E402

SWEEP = {
    "operation": "matmul",
    "dtypes": ["bf16", "w8a16"],
    "chips": ["h100-sxm", "tpu-v5e"],
    "thresholds": ["B"],
}
BATCH = {"from": 1, "to": 65536, "factor": 2}
SIZES_OF = [256, 1024, 8192]
SHAPES = [{"name": "m-up", "D": 4096, "F": 14336}, {"name": "m-down", "D": 14336, "F": 4096}]
SPLIT = {"sharding": "contracting/all-reduce", "shards": [1, 2, 4, 8], "shapes": SHAPES}


def main(folder: Path) -> None:
    """Write tables, thresholds, frames and the colours that charts have for resources."""
    sweeps = {
        "grid": {**SWEEP, "grid": {"B": BATCH, "D": SIZES_OF, "F": SIZES_OF}},
        "split": {**SWEEP, "grid": {"B": BATCH}, **SPLIT},
    }
    loaded = rooflines.load_config({"sweeps": sweeps})
    results = charts.of_config(loaded)
    for name in sweeps:
        results.rows(name).collect().write_parquet(folder / f"{name}.parquet")
        results.thresholds(name).collect().write_parquet(folder / f"{name}-thresholds.parquet")
    domains = {}
    for chart in loaded.charts:
        view = views_of(results, chart)[0][1]
        view.rows.write_parquet(folder / f"{chart.chart}-{chart.sweep}.parquet")
        spec = view.spec()
        layers = (
            layer["encoding"].get("color", {}).get("scale", {})
            for layer in spec["layer"]
            if "encoding" in layer
        )
        domains[chart.id] = next(
            (scale["domain"] for scale in layers if scale.get("range") == "ordinal"), None
        )
    colours = config(SIZES["web"], dark=False)["range"]["ordinal"]
    (folder / "resources.json").write_text(json.dumps({"domains": domains, "colours": colours}))


main(Path(sys.argv[1]))
