"""Valid configs and catalogues of tests/cases/configs, and the values that spoil them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

CASES = Path(__file__).parents[1] / "cases"


def config(name: str) -> str:
    """The text of one of the configs."""
    return (CASES / "configs" / f"{name}.yaml").read_text(encoding="utf-8")


CONFIGS = (config("every-key"), config("shapes"))
CHIPS, DTYPES = config("chips"), config("dtypes")
ONE_SWEEP = config("one-sweep")
"""One sweep on chips of its own."""

PLAIN: dict[str, Any] = yaml.safe_load(ONE_SWEEP)
"""The same as a mapping."""

ODD: dict[str, list[Any]] = yaml.safe_load((CASES / "odd.yaml").read_text(encoding="utf-8"))
LONG = ("9" * 40, "a" * 300, "9x" * 300 + "9", "[" * 5000, "{a: " * 100, "- " * 100, "a, " * 500)
