"""Timed matmuls in numpy: on the processor, with its BLAS library."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING

from rooflines.measured.machine import Host, this_processor
from rooflines.measured.multiplier import STREAM_COUNT, Multiplier, Ring
from rooflines.measured.timed_shapes import ShapeRange

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from rooflines.measured.timed_shapes import MatmulSizes

BYTES = {"fp32": 4, "fp64": 8}
"""Bytes per element, by the dtypes that numpy multiplies with BLAS [byte]."""


class Blas(Multiplier):
    """Timed matmuls in numpy; see `Multiplier`."""

    COMBINATIONS = tuple(BYTES)
    SHAPE_RANGE = ShapeRange((512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192), (2, 4096))
    TIMER = "wall"

    def __init__(self, dtypes: str, machine: Host, shapes: Sequence[MatmulSizes]) -> None:
        import numpy as np  # noqa: PLC0415, an extra

        super().__init__(dtypes, machine, shapes)
        values = _random(dtypes, self.ring_bytes)
        self.threads = machine.threads or 1
        self._inputs, self._outputs = Ring(values), Ring(np.zeros_like(values))

    @staticmethod
    def machine() -> Host:
        """Processor that runs this program."""
        return this_processor()

    @staticmethod
    def default_dtypes() -> str:
        """All dtypes that numpy multiplies with BLAS, separated by commas."""
        return ",".join(BYTES)

    def seconds(self, shape: MatmulSizes) -> float:
        """Time for one matmul by the system's clock [s]."""
        import numpy as np  # noqa: PLC0415, an extra

        x, w = (self._inputs.matrix(*sides) for sides in (shape[:2], shape[1:]))
        out = self._outputs.matrix(shape.B, shape.F)
        start = time.perf_counter()
        np.matmul(x, w, out=out)
        return time.perf_counter() - start

    def bytes_per_s(self) -> float:
        """Memory rate with a thread per core; see `Multiplier.bytes_per_s` [byte/s]."""
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
                return float(arrays * b.nbytes / (time.perf_counter() - start))

            return max(max(rate(add, 3), rate(read, 2)) for _ in range(STREAM_COUNT))


def _random(dtype: str, size: int) -> NDArray[np.floating]:
    """Random array, this many bytes, uniform between -0.5 and 0.5."""
    import numpy as np  # noqa: PLC0415, an extra

    count, draw = size // BYTES[dtype], np.random.default_rng(0)
    kind = np.float32 if dtype == "fp32" else np.float64
    values: NDArray[np.floating] = draw.random(count, dtype=kind)
    values -= 0.5
    return values
