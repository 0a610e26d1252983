"""Timed matmuls of numpy, on operands that are in no cache.

Operands are pieces of long arrays, taken one after another: before a piece is used again, more
bytes than the last-level cache holds have passed.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from rooflines.basics.errors import RooflinesError
from rooflines.basics.text import si
from rooflines.measured.shapes import cost

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from rooflines.measured.machine import Host
    from rooflines.measured.shapes import MatmulSizes

    Array = NDArray[np.float32] | NDArray[np.float64]

Dtype = Literal["fp32", "fp64"]
DTYPES: tuple[Dtype, ...] = ("fp32", "fp64")
"""The dtypes that numpy multiplies with BLAS, by their name in the dtype catalogue."""

BYTES: Mapping[Dtype, int] = {"fp32": 4, "fp64": 8}
"""Bytes of an element [byte]."""

UNKNOWN_CACHE_BYTES = 256 * 2**20
"""The last-level cache of a machine that reports none [byte]."""

CACHES = 2
"""Operands that are used in turn take as many times the last-level cache [1]."""

MOST_MEMORY = 0.6
"""The most of the main memory that the arrays may take [1]."""

STREAMS = 5
"""Runs of each test of the memory [1]."""


class Ring:
    """A long array that is taken piece by piece, from its start again at its end."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self._next = 0

    def matrix(self, rows: int, columns: int) -> Array:
        """The next piece, as a matrix."""
        count = rows * columns
        start = self._next if self._next + count <= self.array.size else 0
        self._next = start + count
        return self.array[start : start + count].reshape(rows, columns)


class Blas:
    """Timed matmuls of numpy in one dtype, on random data.

    Args:
        dtype: A key of the dtype catalogue.
        machine: This machine.
        shapes: All shapes that will be timed.

    Raises:
        RooflinesError: The arrays would take too much of the memory.
    """

    def __init__(self, dtype: Dtype, machine: Host, shapes: Sequence[MatmulSizes]) -> None:
        import numpy as np  # noqa: PLC0415, an extra

        largest = max(cost(shape, dtype, "footprint_bytes") for shape in shapes)
        self.ring_bytes = CACHES * (machine.cache_bytes or UNKNOWN_CACHE_BYTES) + largest
        if 2 * self.ring_bytes > MOST_MEMORY * machine.memory_bytes:
            raise RooflinesError(
                "rooflines measured measure",
                f"would need {si(2 * self.ring_bytes, 'B')} of the {si(machine.memory_bytes, 'B')} "
                "of memory, for operands that are in no cache",
                "give smaller shapes with --shapes FILE",
            )
        values = _random(dtype, self.ring_bytes)
        self.dtype: Dtype = dtype
        self.threads = machine.threads
        self._inputs, self._outputs = Ring(values), Ring(np.zeros_like(values))

    def seconds(self, shape: MatmulSizes) -> float:
        """The time of one matmul on operands that are in no cache [s]."""
        import numpy as np  # noqa: PLC0415, an extra

        x, w = (self._inputs.matrix(*sides) for sides in (shape[:2], shape[1:]))
        out = self._outputs.matrix(shape.B, shape.F)
        start = time.perf_counter()
        np.matmul(x, w, out=out)
        return time.perf_counter() - start

    def copies(self, shape: MatmulSizes) -> int:
        """Times that the operands fit the arrays that they are taken from [1]."""
        return self.ring_bytes // cost(shape, self.dtype, "footprint_bytes")

    def bytes_per_s(self) -> float:
        """The memory rate: the fastest of adding two arrays into a third, and of reading two.

        Source: of adding, McCalpin's STREAM, "Add"; the bytes of a store count once.
        """
        import numpy as np  # noqa: PLC0415, an extra
        from threadpoolctl import threadpool_limits  # noqa: PLC0415, the same

        half = self._inputs.array.size // 2
        b, c = self._inputs.array[:half], self._inputs.array[half : 2 * half]
        a = self._outputs.array[:half]
        cuts = [half * thread // self.threads for thread in range(self.threads + 1)]
        parts = [slice(*ends) for ends in pairwise(cuts)]

        def add(part: slice) -> None:
            np.add(b[part], c[part], out=a[part])

        def read(part: slice) -> None:
            np.dot(b[part], c[part])

        with threadpool_limits(1), ThreadPoolExecutor(self.threads) as pool:

            def rate(call: Callable[[slice], None], arrays: int) -> float:
                start = time.perf_counter()
                list(pool.map(call, parts))
                return arrays * b.nbytes / (time.perf_counter() - start)

            return max(max(rate(add, 3), rate(read, 2)) for _ in range(STREAMS))


def flops_per_s(dtype: Dtype, shape: MatmulSizes) -> float:
    """The rate of one matmul after another, to know roughly how long others take [FLOP/s]."""
    import numpy as np  # noqa: PLC0415, an extra

    x, w = (
        _random(dtype, rows * columns * BYTES[dtype]).reshape(rows, columns)
        for rows, columns in (shape[:2], shape[1:])
    )
    np.matmul(x, w)
    start = time.perf_counter()
    np.matmul(x, w)
    return cost(shape, dtype, "flops") / (time.perf_counter() - start)


def _random(dtype: Dtype, size: int) -> Array:
    """A random array of a size in bytes [byte], uniform between -0.5 and 0.5."""
    import numpy as np  # noqa: PLC0415, an extra

    count, draw = size // BYTES[dtype], np.random.default_rng(0)
    values: Array = draw.random(count, dtype=np.float32) if dtype == "fp32" else draw.random(count)
    values -= 0.5
    return values
