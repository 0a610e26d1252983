"""This machine: processor, threads, last-level cache, memory, and its BLAS library."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError, not_installed

if TYPE_CHECKING:
    from collections.abc import Iterator

CPUINFO = Path("/proc/cpuinfo")
CPUS = Path("/sys/devices/system/cpu")

SUFFIXES = {"K": 2**10, "M": 2**20, "G": 2**30}
"""Factors of a cache's size as Linux writes it."""

LONGEST_ID = 60
"""Characters of the name of a processor in an id [1]."""


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
