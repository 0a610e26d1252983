"""Timed matmuls in one dtype combination, on random operands that are in no cache.

Operands are pieces of long arrays, taken one after another: before a piece is used again, more
bytes than the last-level cache holds have passed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sized
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

from rooflines.basics.errors import RooflinesError
from rooflines.basics.text import si
from rooflines.measured.timed_shapes import MatmulSizes, cost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflines.measured.machine import Host
    from rooflines.measured.timed_shapes import ShapeRange

Array = TypeVar("Array", bound=Sized)

REFERENCE = MatmulSizes(2048, 2048, 2048)
"""Shape whose time shows drift, and about how long others take."""

UNKNOWN_CACHE_BYTES = 256 * 2**20
"""Last-level cache on a machine that reports none [byte]."""

CACHES = 2
"""Size of the rotating operands, in last-level caches [1]."""

MAX_MEMORY_SHARE = 0.6
"""Largest share that the arrays may take in memory [1]."""

STREAM_COUNT = 5
"""Runs per memory test [1]."""

ALIGNED = 256
"""Elements between the starts of pieces [1]: kernels read vectors of up to 64 bytes."""


class MachineState(NamedTuple):
    """Clock and power of the machine that multiplies.

    Attributes:
        clock_mhz: Its compute units' clock [MHz]; None: not read.
        watts: The power that it draws [W]; None: not read.
    """

    clock_mhz: float | None = None
    watts: float | None = None


class Ring(Generic[Array]):
    """Long array that is taken piece by piece, from its start again at its end."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self._next = 0

    def matrix(self, rows: int, columns: int) -> Array:
        """Next piece, as a matrix."""
        count = rows * columns
        start = self._next if self._next + count <= len(self.array) else 0
        self._next = start + -(-count // ALIGNED) * ALIGNED
        array: Any = self.array  # of numpy or of torch
        piece: Array = array[start : start + count].reshape(rows, columns)
        return piece


class Multiplier(ABC):
    """Timed matmuls by a library in one dtype combination, on random data.

    Args:
        dtypes: A combination in the dtype catalogue, one among `COMBINATIONS`.
        machine: The machine that multiplies.
        shapes: All shapes that will be timed.

    Raises:
        RooflinesError: The arrays would take too much memory.
    """

    COMBINATIONS: ClassVar[tuple[str, ...]]
    """The dtype combinations that the library multiplies."""

    SHAPE_RANGE: ClassVar[ShapeRange]
    """The sizes of the shapes that are chosen."""

    TIMER: ClassVar[str]
    """What takes the time."""

    contents: str | None = None
    """What a timing includes besides the matmul."""

    def __init__(self, dtypes: str, machine: Host, shapes: Sequence[MatmulSizes]) -> None:
        max_footprint = max(cost(shape, dtypes, "footprint_bytes") for shape in shapes)
        self.dtypes = dtypes
        self.ring_bytes = CACHES * (machine.cache_bytes or UNKNOWN_CACHE_BYTES) + max_footprint
        if 2 * self.ring_bytes > MAX_MEMORY_SHARE * machine.memory_bytes:
            raise RooflinesError(
                "rooflines measured measure",
                f"would need {si(2 * self.ring_bytes, 'B')} of the {si(machine.memory_bytes, 'B')} "
                "of memory, for operands that are in no cache",
                "give smaller shapes with --shapes FILE",
            )

    @staticmethod
    @abstractmethod
    def machine() -> Host:
        """Machine that multiplies.

        Raises:
            RooflinesError: The library or its device is missing.
        """

    @staticmethod
    @abstractmethod
    def default_dtypes() -> str:
        """Dtype combinations that are timed where none are named, separated by commas."""

    @abstractmethod
    def seconds(self, shape: MatmulSizes) -> float:
        """Time for one matmul on operands that are in no cache [s]."""

    @abstractmethod
    def bytes_per_s(self) -> float:
        """Memory rate: the fastest of adding two arrays into a third, and of reading two.

        Source for adding: McCalpin's STREAM, "Add"; a store's bytes count once.
        """

    def state(self) -> MachineState:
        """Clock and power right now."""
        return MachineState()

    def copies(self, shape: MatmulSizes) -> int:
        """Copies of the operands that fit the arrays that they are taken from [1]."""
        return self.ring_bytes // cost(shape, self.dtypes, "footprint_bytes")
