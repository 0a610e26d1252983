"""Configs whose charts have every title there is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

B = {"from": 1, "to": 65536, "factor": 8}
LONG = {"from": 1, "to": 4096, "factor": 2}
MATMUL = {"operation": "matmul", "dtypes": ["bf16"], "chips": ["tpu-v5e", "h100-sxm", "b200"]}
FITTED = {
    "operation": "matmul",
    "dtypes": ["bf16", "w8a16"],
    "chips": ["h100-sxm", "tpu-v5e"],
    "calibration": "trtllm",
}
BLOCK = [{"name": "m-up", "D": 4096, "F": 14336}, {"name": "m-down", "D": 14336, "F": 4096}]
SPLITS = ["batch", "batch/gather-w", "column", "column/gather-x", "contracting/all-reduce"]
TIMINGS = Path(__file__).parents[1] / "cases" / "timings.csv"
TWINS = {name: {"base": "h100-sxm", "source": "a test"} for name in ("one", "two")}

MODELS = {
    "grid": {"B": {"from": 1, "to": 1024, "factor": 4}, "S": [1024, 10**7]},
    "splits": [{"tp": 1}, {"tp": 8}, {"tp": 2, "dp": 4}, {"dp": 8, "ep": 8}],
    "dtypes": ["bf16", "fp8"],
}

CONFIGS: dict[str, dict[str, Any]] = {
    "whole models": {
        "model-sweeps": {
            "s": {
                **MODELS,
                "models": ["llama-3.1-70b", "deepseek-v3", "llama-3.1-8b"],
                "chips": ["h100-sxm", "mi300x", "tpu-v5e"],
            },
        }
    },
    "calibrated whole models": {
        "model-sweeps": {
            "s": {
                **MODELS,
                "models": ["llama-3.1-70b", "deepseek-v3"],
                "chips": ["h100-sxm", "b200", "mi300x"],
                "calibration": ["trtllm", "nccl"],
            },
            "one": {
                **MODELS,
                "models": "llama-3.1-8b",
                "chips": ["h100-sxm", "mi300x"],
                "calibration": ["trtllm", "nccl"],
            },
        },
        "charts": [{"chart": "pareto", "sweep": s} for s in ("s", "one")],
    },
    "one chip of whole models": {
        "model-sweeps": {
            "s": {**MODELS, "models": ["llama-3.1-8b", "llama-3.1-70b"], "chips": ["mi300x"]},
            "slow": {
                **MODELS,
                "models": "llama-3.1-70b",
                "chips": ["mi300x"],
                "splits": [{"tp": 1}],
            },
        },
        "charts": [
            {"chart": chart, "sweep": s} for chart in ("pareto", "capacity") for s in ("s", "slow")
        ],
    },
    "ties of whole models": {
        "model-sweeps": {"s": {**MODELS, "models": ["llama-3.1-8b"], "chips": list(TWINS)}},
        "chips": TWINS,
    },
    "one chip": {
        "sweeps": {
            "s": {
                **MATMUL,
                "chips": ["tpu-v5e"],
                "grid": {"B": B},
                "shapes": BLOCK,
                "sharding": SPLITS,
                "shards": [1, 2, 16],
            }
        }
    },
    "ties": {
        "sweeps": {
            "s": {**MATMUL, "chips": list(TWINS), "grid": {"B": LONG, "D": [1024, 2048], "F": "D"}}
        },
        "chips": TWINS,
        "charts": [
            {"chart": chart, "sweep": "s"}
            for chart in ("chips", "ridges", "per-dollar", "per-watt", "attained")
        ],
    },
    "all never": {
        "sweeps": {"s": {**MATMUL, "grid": {"B": LONG, "D": [64, 128], "F": "D"}}},
        "charts": [{"chart": "attained", "sweep": "s"}],
    },
    "all never, split": {
        "sweeps": {
            "s": {
                **MATMUL,
                "grid": {"B": LONG},
                "shapes": [{"name": "x", "D": 64, "F": 64}],
                "sharding": ["none", *SPLITS],
                "shards": [1, 2, 4],
            }
        }
    },
    "one size": {
        "sweeps": {"s": {**MATMUL, "grid": {"B": LONG, "D": 4096, "F": 4096}}},
        "charts": [{"chart": "attained", "sweep": "s"}],
    },
    "every size found": {
        "sweeps": {
            "s": {
                **MATMUL,
                "chips": ["tpu-v5e"],
                "grid": {"B": LONG, "D": [4096, 8192, 16384, 32768], "F": [4096, 8192, 16384]},
            }
        }
    },
    "few chips": {
        "sweeps": {
            "s": {
                **MATMUL,
                "grid": {"B": LONG, "D": [1024, 4096, 8192, 16384], "F": [1024, 8192, 16384]},
                "sharding": ["contracting/all-reduce", "column"],
                "shards": [4],
            }
        },
        "charts": [
            {"chart": "critical", "sweep": "s"},
            {"chart": "bounds", "sweep": "s", "up": "D"},
        ],
    },
    "one split": {
        "sweeps": {
            "s": {
                **MATMUL,
                "grid": {"B": LONG, "D": LONG, "F": LONG},
                "sharding": "batch/gather-w",
                "shards": [4],
            },
            "shapes": {**MATMUL, "grid": {"B": LONG}, "shapes": BLOCK},
        },
        "charts": [{"chart": "critical-map", "sweep": "s"}],
    },
    "levels and axes": {
        "sweeps": {
            "s": {
                **MATMUL,
                "chips": ["h100-sxm", "h200-sxm"],
                "grid": {"B": B},
                "shapes": BLOCK,
                "sharding": SPLITS,
                "shards": [1, 2, 4, 8, 16],
                "network": ["nvlink", "infiniband"],
            },
            "t": {
                **MATMUL,
                "chips": ["tpu-v5p", "tpu-v4"],
                "grid": {"B": B},
                "shapes": BLOCK,
                "sharding": ["column/gather-x", "contracting/all-reduce"],
                "shards": [1, 4, "4x4", "4x4x4", 16],
            },
        },
    },
    "other letters": {
        "sweeps": {
            "depth": {
                **MATMUL,
                "grid": {"B": [64, 512, 1024, 4096], "D": LONG, "F": 8192},
                "thresholds": ["D"],
                "shares": [1, 0.9],
            },
            "width": {**MATMUL, "grid": {"B": [8, 512], "D": [64, 8192], "F": LONG}},
            "keys": {
                **MATMUL,
                "operation": "NQD,NKD->NQK",
                "grid": {"N": 8, "Q": [1, 4096], "D": 512, "K": LONG},
                "thresholds": ["K"],
                "shares": [1, 0.5],
            },
            "many": {
                **MATMUL,
                "operation": "NQD,NKD->NQK",
                "grid": {"N": LONG, "Q": 4096, "D": [256, 8192], "K": 8192},
                "thresholds": ["N"],
            },
        },
        "charts": [
            {"chart": "attained", "sweep": "depth"},
            {"chart": "bounds", "sweep": "depth"},
            {"chart": "bounds", "sweep": "width"},
            {"chart": "attained", "sweep": "keys"},
            {"chart": "attained", "sweep": "many"},
        ],
    },
    "no thresholds": {
        "sweeps": {
            "s": {
                **MATMUL,
                "grid": {"B": LONG},
                "shapes": BLOCK,
                "sharding": SPLITS,
                "shards": [1, 2, 4],
                "thresholds": [],
            }
        },
        "charts": [{"chart": "bounds", "sweep": "s"}, {"chart": "time", "sweep": "s"}],
    },
    "too large": {
        "sweeps": {
            "s": {
                **MATMUL,
                "grid": {"B": B},
                "shapes": [{"name": "m-up", "D": 2**18, "F": 2**18}, *BLOCK[1:]],
            }
        },
        "charts": [{"chart": "time", "sweep": "s"}, {"chart": "layers", "sweep": "s"}],
    },
    "calibrated": {
        "sweeps": {
            "grid": {
                **FITTED,
                "grid": {"B": LONG, "D": [512, 4096, 8192], "F": [512, 8192, 32768]},
            },
            "split": {
                **FITTED,
                "chips": ["tpu-v5e", "h100-sxm", "b200", "l40s", "a100-sxm-80gb"],
                "grid": {"B": LONG},
                "shapes": BLOCK,
                "sharding": SPLITS,
                "shards": [1, 2, 4],
            },
            "own": {
                **MATMUL,
                "chips": ["h100-sxm", "mine"],
                "grid": {"B": LONG, "D": [1024, 4096, 8192], "F": "D"},
            },
        },
        "chips": {
            "mine": {
                "base": "h100-sxm",
                "calibration.bf16": {"math": 0.8, "memory": 0.9, "overhead_s": 3.0e-6},
                "source": "a test",
            }
        },
    },
    "timings": {"measurements": {"timed": {"file": str(TIMINGS)}}},
    "calibrations": {
        "sweeps": {
            "s": {
                **MATMUL,
                "dtypes": ["bf16", "fp8-out-bf16"],
                "chips": ["h100-sxm", "b200", "rtx-pro-6000-server", "tpu-v5e"],
                "grid": {"B": LONG, "D": [256, 4096, 8192], "F": [256, 4096, 8192]},
                "calibration": "trtllm",
            },
            "one": {
                **MATMUL,
                "chips": ["h100-sxm"],
                "grid": {"B": LONG},
                "shapes": [*BLOCK, {"name": "narrow", "D": 64, "F": 64}],
                "calibration": "trtllm",
            },
        },
        "charts": [{"chart": "critical-estimate", "sweep": s} for s in ("s", "one")],
    },
    "on-chip memory first": {
        "sweeps": {
            "s": {
                **MATMUL,
                "chips": ["tpu-v5e"],
                "memory": ["vmem", "hbm"],
                "grid": {"B": LONG, "D": 1024, "F": 1024},
            }
        },
        "charts": [{"chart": "roofline", "sweep": "s"}],
    },
}
