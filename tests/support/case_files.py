"""The files of tests/cases."""

from pathlib import Path
from typing import Any

import yaml

CASES = Path(__file__).parents[1] / "cases"


def config(name):
    """The text of one of the configs."""
    return (CASES / "configs" / f"{name}.yaml").read_text(encoding="utf-8")


def case(name) -> Any:
    """The plain data of a file."""
    return yaml.load((CASES / f"{name}.yaml").read_text("utf-8"), yaml.CSafeLoader)
