"""Machine that multiplies: a processor or GPU with cache, memory and library; its chip entry."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from rooflines.basics.errors import RooflinesError, missing_package
from rooflines.basics.text import counted
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.hardware.entries import MAIN_MEMORY, Chip
from rooflines.theory.operation import MATRIX

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CPUINFO = Path("/proc/cpuinfo")
CPUS = Path("/sys/devices/system/cpu")

SUFFIXES = {"K": 2**10, "M": 2**20, "G": 2**30}
"""Factors for a cache size as Linux writes it."""

MAX_ID_LENGTH = 60
"""Characters that an id takes from a processor's name [1]."""


RATES = """\
#
# flops_per_s is the fastest run of any matmul, bytes_per_s the fastest of adding two arrays into a
# third and of reading two: bounds of what this machine did, not of what its data sheet promises.
"""

DIGITS = 4
"""Significant digits in a measured rate [1]."""

GRID = {"B": {"from": 1, "to": 8192, "factor": 2}, "D": [4096], "F": "D"}
"""Sizes in the sweep."""


@dataclass(frozen=True)
class Host:
    """Processor or GPU, with the library that multiplies on it.

    Attributes:
        name: As the system or the driver calls it.
        threads: Threads that a BLAS library uses [1]; None on a GPU.
        cache_bytes: The last-level cache, on a processor for the cores that may be used, as the
            system or the driver reports it [byte]; None: not reported.
        memory_bytes: Its main memory [byte].
        software: The library.
        version: Its version, and the versions that it builds on.
    """

    name: str
    threads: int | None
    cache_bytes: int | None
    memory_bytes: int
    software: str
    version: str

    @property
    def id(self) -> str:
        """Chip id for the machine, such as `amd-epyc-9654-96-threads`."""
        words = re.sub(r"[^a-z0-9]+", "-", self.name.lower().replace("(r)", "").replace("(tm)", ""))
        name = words.strip("-")[:MAX_ID_LENGTH].strip("-") or "cpu"
        count = "" if self.threads is None else f"-{counted(self.threads, 'thread')}"
        return name + count.replace(" ", "-")


def this_processor() -> Host:
    """Host for this processor, from the system and threadpoolctl.

    Raises:
        RooflinesError: numpy or threadpoolctl is missing, or numpy multiplies with no library that
            threadpoolctl knows.
    """
    try:
        import numpy as np  # noqa: PLC0415, an extra
        import threadpoolctl  # noqa: PLC0415, the same
    except ImportError as error:
        raise missing_package("rooflines measured measure", str(error.name)) from None
    libraries = [
        library for library in threadpoolctl.threadpool_info() if library["user_api"] == "blas"
    ]
    if not libraries:
        raise RooflinesError(
            "rooflines measured measure",
            "finds no BLAS library that numpy multiplies with",
            "install a numpy with OpenBLAS, MKL or BLIS, as its wheels have",
        )
    library = next(
        (library for library in libraries if "numpy" in library["filepath"]), libraries[0]
    )
    return Host(
        _processor(),
        int(library["num_threads"]),
        _last_level_cache(),
        os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        str(library["internal_api"]),
        f"{library['internal_api']} {library['version']}, numpy {np.__version__}",
    )


def _processor() -> str:
    """Processor's name."""
    text = CPUINFO.read_text(encoding="utf-8") if CPUINFO.exists() else ""
    names = re.findall(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return names[0].strip() if names else platform.processor() or platform.machine()


def _last_level_cache() -> int | None:
    """Bytes in the last-level caches for the cores that may be used; None: not reported."""
    caches = list(_caches())
    last = max((level for level, *_ in caches), default=None)
    shared = {cores: size for level, cores, size in caches if level == last}
    return sum(shared.values()) or None


def _caches() -> Iterator[tuple[int, str, int]]:
    """Level, sharing cores and bytes for every data cache."""
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
    for core in cores:
        for folder in (CPUS / f"cpu{core}" / "cache").glob("index*"):
            level, kind, sharing, size = (
                (folder / name).read_text(encoding="utf-8").strip()
                for name in ("level", "type", "shared_cpu_list", "size")
            )
            if kind != "Instruction":
                yield int(level), sharing, int(size[:-1]) * SUFFIXES[size[-1]]


# ------------------------------------------------------------ as a chip


def _entry(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Chip entry for a machine as YAML data, from its timings' metadata."""
    machine = metadata["machine"]
    peaks = {
        dtype: {"flops_per_s": rounded_rate(rate)}
        for dtype, rate in metadata["flops_per_s"].items()
    }
    memory: dict[str, dict[str, Any]] = {
        MAIN_MEMORY: {
            "bytes_per_s": rounded_rate(metadata["bytes_per_s"]),
            "capacity_bytes": machine["memory_bytes"],
        }
    }
    if machine["cache_bytes"]:
        memory["last-level"] = {"capacity_bytes": machine["cache_bytes"]}
    return {
        "name": machine["name"],
        "units": {MATRIX: peaks},
        "memory": memory,
        "source": timings_source(metadata),
        "confidence": "measured",
    }


def rounded_rate(rate: float) -> float:
    """Measured rate to `DIGITS` significant digits."""
    return float(f"{rate:.{DIGITS}g}")


def timings_source(metadata: Mapping[str, Any]) -> str:
    """Source for results that follow from timings, by their metadata."""
    machine = metadata["machine"]
    with_threads = f", {counted(machine['threads'], 'thread')}" if machine["threads"] else ""
    return f"rooflines measured measure, {machine['version']}{with_threads}"


def chip_of(metadata: Mapping[str, Any]) -> Chip:
    """Chip that was timed: from the catalogue, or the machine as a chip."""
    return chip_entries().get(metadata["chip"]) or Chip.model_validate(_entry(metadata))


def config_text(metadata: Mapping[str, Any], fits: str | None) -> str:
    """Config with a sweep on a machine, and the machine as a chip if the catalogue lacks it.

    Args:
        metadata: Its timings' metadata.
        fits: The file with the fits to them, relative to the config; None: none.
    """
    chip, software = metadata["chip"], metadata["machine"]["software"]
    sweep = {
        "operation": "matmul",
        "grid": GRID,
        "dtypes": list(metadata["reference_s"]),
        "chips": [chip],
        **({"calibration": software} if fits else {}),
    }
    content: dict[str, Any] = {"sweeps": {"matmul": sweep}}
    if fits:
        content["calibrations"] = [fits]
    head = (
        f"# A sweep of {metadata['machine']['name']}, measured by `rooflines measured measure`.\n"
    )
    if chip not in chip_entries():
        content["chips"] = {chip: _entry(metadata)}
        head += RATES
    body = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, default_flow_style=None)
    return head + body
