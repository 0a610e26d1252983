"""A program that writes the frames of a config where the model has one more resource to a folder.

It needs a process of its own: the list of resources is read at import.
"""

import json
import sys
from pathlib import Path

from rooflines.model import costs, resources
from rooflines.model.resources import Resource, memory_rate

TRAFFIC = 3
"""Bytes through the cache per byte of memory traffic [1]."""

resources.RESOURCES = (
    *resources.RESOURCES,
    Resource(
        "cache",
        "traffic_bytes",
        "cache",
        memory_rate,
        lambda kernel: kernel.work("memory_bytes") * TRAFFIC,
    ),
)
resources.OTHERS = resources.RESOURCES[1:]
costs.COSTS = {
    **costs.COSTS,
    "traffic_bytes": lambda workload: [
        (TRAFFIC * bytes_, dims) for bytes_, dims in costs.memory_bytes(workload)
    ],
}

from rooflines.model import columns  # noqa: E402, after the resource is there

columns.WORK_MEANING["traffic_bytes"] = ("byte", "bytes through the cache, per chip")

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
STEPS = {
    "models": ["gpt-oss-120b"],
    "dtypes": ["bf16"],
    "chips": ["h100-sxm"],
    "splits": [{"tp": 8}],
    "calibration": ["trtllm"],
}
MODELS = {
    "steps": {**STEPS, "grid": {"B": [1, 64], "S": [1000, 8000]}, "thresholds": ["B", "S"]},
    "requests": {**STEPS, "grid": {"B": 8}, "requests": [{"input": 100, "output": 900}]},
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
    loaded = rooflines.load_config({"sweeps": sweeps, "model-sweeps": MODELS})
    results = charts.of_config(loaded)
    for name in sweeps:
        results.rows(name).collect().write_parquet(folder / f"{name}.parquet")
        results.thresholds(name).collect().write_parquet(folder / f"{name}-thresholds.parquet")
    for name in MODELS:
        rooflines.model_rows(loaded, name).collect().write_parquet(folder / f"{name}.parquet")
    rooflines.model_layers(loaded, "steps").collect().write_parquet(folder / "layers.parquet")
    rooflines.model_thresholds(loaded, "steps").write_parquet(folder / "step-thresholds.parquet")
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
