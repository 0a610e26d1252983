"""The reviewed explanations of tests/cases/explained, and a config that asks the same question."""

import re

from case_files import CASES, case

FOLDER = CASES / "explained"
OWN = case("explained/own")["chips"]
EXAMPLE = "h100-sxm 128x8192x8192 bf16"
MODEL = "h100-sxm llama-3.1-70b B=64 S=8192 --split tp=8"


def as_config(chip, sizes, dtypes, asked):
    """A config that asks the same, written by hand."""
    x, w, out, compute = re.split(r",|->|@", dtypes) if "@" in dtypes else [""] * 4
    split = asked.get("sharding", "none")
    has_form = split != "none" and "x" not in str(asked["shards"]) and "to-all" not in str(split)
    sweep = {
        "operation": "matmul",
        "grid": dict(sizes),
        "chips": chip,
        "dtypes": [{"x": x, "w": w, "out": out, "compute": compute}] if x else dtypes,
        "thresholds": [*sizes, *(["shards"] if has_form else [])],
        "shares": [1, 0.9],
        **asked,
    }
    if "network" in asked:
        sweep["network"] = asked["network"].split(",")
    sweep["sharding"] = [split]
    return {"sweeps": {"explain": sweep}, "chips": OWN}
