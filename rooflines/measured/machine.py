"""This machine: processor, threads, last-level cache, memory, BLAS library; and it as a chip."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from rooflines.basics.errors import RooflinesError, not_installed
from rooflines.catalogue.entries import MAIN_MEMORY, Chip
from rooflines.model.operation import MATRIX

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CPUINFO = Path("/proc/cpuinfo")
CPUS = Path("/sys/devices/system/cpu")

SUFFIXES = {"K": 2**10, "M": 2**20, "G": 2**30}
"""Factors of a cache's size as Linux writes it."""

LONGEST_ID = 60
"""Characters of the name of a processor in an id [1]."""


ABOUT = """\
# {name}, measured by `rooflines measured measure`: the machine as a chip, and a sweep of it.
#
# flops_per_s is the fastest run of any matmul, bytes_per_s the fastest of adding two arrays into a
# third and of reading two: bounds of what this machine did, not of what its data sheet promises.
"""

DIGITS = 4
"""Significant digits of a measured rate [1]."""

GRID = {"B": {"from": 1, "to": 8192, "factor": 2}, "D": [4096], "F": "D"}
"""The sizes of the sweep."""


@dataclass(frozen=True)
class Host:
    """This machine.

    Attributes:
        name: Its processor.
        threads: Threads that its BLAS library uses [1].
        cache_bytes: The last-level cache of the cores that may be used, as the system reports it
            [byte]; None: not reported.
        memory_bytes: Its main memory [byte].
        software: The BLAS library.
        version: Its version, and that of numpy.
    """

    name: str
    threads: int
    cache_bytes: int | None
    memory_bytes: int
    software: str
    version: str

    @property
    def id(self) -> str:
        """An id for it as a chip, such as `amd-epyc-9654-96-threads`."""
        words = re.sub(r"[^a-z0-9]+", "-", self.name.lower().replace("(r)", "").replace("(tm)", ""))
        unit = "thread" if self.threads == 1 else "threads"
        return f"{words.strip('-')[:LONGEST_ID].strip('-') or 'cpu'}-{self.threads}-{unit}"


def require_numpy() -> None:
    """Check that numpy and threadpoolctl are installed.

    Raises:
        RooflinesError: One is not.
    """
    try:
        import numpy as np  # noqa: PLC0415, an extra
        import threadpoolctl  # noqa: PLC0415, the same
    except ImportError as error:
        raise not_installed("rooflines measured measure", str(error.name)) from None
    del np, threadpoolctl


def this_machine() -> Host:
    """What the system and threadpoolctl say of this machine.

    Raises:
        RooflinesError: numpy multiplies with no library that threadpoolctl knows.
    """
    import numpy as np  # noqa: PLC0415, an extra
    import threadpoolctl  # noqa: PLC0415, the same

    libraries = [each for each in threadpoolctl.threadpool_info() if each["user_api"] == "blas"]
    if not libraries:
        raise RooflinesError(
            "rooflines measured measure",
            "finds no BLAS library that numpy multiplies with",
            "install a numpy with OpenBLAS, MKL or BLIS, as its wheels have",
        )
    library = next((each for each in libraries if "numpy" in each["filepath"]), libraries[0])
    return Host(
        _processor(),
        int(library["num_threads"]),
        _last_level_cache(),
        os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        str(library["internal_api"]),
        f"{library['internal_api']} {library['version']}, numpy {np.__version__}",
    )


def _processor() -> str:
    """The name of the processor."""
    text = CPUINFO.read_text(encoding="utf-8") if CPUINFO.exists() else ""
    names = re.findall(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return names[0].strip() if names else platform.processor() or platform.machine()


def _last_level_cache() -> int | None:
    """Bytes of the last-level caches of the cores that may be used; None: not reported."""
    caches = list(_caches())
    last = max((level for level, *_ in caches), default=None)
    shared = {cores: size for level, cores, size in caches if level == last}
    return sum(shared.values()) or None


def _caches() -> Iterator[tuple[int, str, int]]:
    """Level, sharing cores and bytes of every cache of data."""
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


def _entry(about: Mapping[str, Any]) -> dict[str, Any]:
    """The entry of a machine as YAML data, of the metadata of its timings."""
    machine = about["machine"]
    peaks = {
        dtype: {"flops_per_s": rounded_rate(rate)} for dtype, rate in about["flops_per_s"].items()
    }
    memory: dict[str, dict[str, Any]] = {
        MAIN_MEMORY: {
            "bytes_per_s": rounded_rate(about["bytes_per_s"]),
            "capacity_bytes": machine["memory_bytes"],
        }
    }
    if machine["cache_bytes"]:
        memory["last-level"] = {"capacity_bytes": machine["cache_bytes"]}
    return {
        "name": machine["name"],
        "units": {MATRIX: peaks},
        "memory": memory,
        "source": f"rooflines measured measure, {machine['version']}, {machine['threads']} threads",
        "confidence": "measured",
    }


def rounded_rate(rate: float) -> float:
    """A measured rate to a few significant digits."""
    return float(f"{rate:.{DIGITS}g}")


def chip_of(about: Mapping[str, Any]) -> Chip:
    """The machine as a chip."""
    return Chip.model_validate(_entry(about))


def config_text(about: Mapping[str, Any]) -> str:
    """A config with the machine as a chip, and a sweep of it."""
    sweep = {
        "operation": "matmul",
        "grid": GRID,
        "dtypes": list(about["flops_per_s"]),
        "chips": [about["chip"]],
    }
    content = {"sweeps": {"matmul": sweep}, "chips": {about["chip"]: _entry(about)}}
    body = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, default_flow_style=None)
    return ABOUT.format(name=about["machine"]["name"]) + body
