"""Kernel kinds by name, from `kernel_names.yaml`."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from rooflines.basics.yaml_file import read_package_yaml

if TYPE_CHECKING:
    from rooflines.traces.trace_records import Activity

KERNEL_NAMES_FILE = Path(__file__).with_name("kernel_names.yaml")

NAME_LENGTH = 400
"""Characters of a name that are searched; templates have thousands [1]."""

NO_KIND = "other"

COPY_KIND = "copy"


@cache
def kernel_kind(name: str) -> str:
    """Kernel kind by name, such as attention or matmul; `other` where none fits."""
    short = name[:NAME_LENGTH]
    return next((kind for kind, pattern in _patterns() if pattern.search(short)), NO_KIND)


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    entries = read_package_yaml(KERNEL_NAMES_FILE)
    return tuple(
        (kind, re.compile(pattern, re.IGNORECASE))
        for entry in entries
        for kind, pattern in entry.items()
    )


def activity_kind(activity: Activity) -> str:
    """Activity kind: for a kernel by its name; copies and memsets are copies."""
    return COPY_KIND if activity.kind in ("copy", "set") else kernel_kind(activity.name)
