"""What is timed: matmuls in one dtype combination, on random operands that are in no cache.

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
"""The shape whose time shows drift, and about how long others take."""

UNKNOWN_CACHE_BYTES = 256 * 2**20
"""The last-level cache of a machine that reports none [byte]."""

CACHES = 2
"""Operands that are used in turn take as many times the last-level cache [1]."""

MAX_MEMORY_SHARE = 0.6
"""The most of the memory that the arrays may take [1]."""

STREAMS = 5
"""Runs of each test of the memory [1]."""

ALIGNED = 256
"""Elements between the starts of pieces [1]: kernels read vectors of up to 64 bytes."""


class MachineState(NamedTuple):
    """How fast what multiplies runs.

    Attributes:
        clock_mhz: The clock of its compute units [MHz]; None: not read.
        watts: The power that it draws [W]; None: not read.
    """

    clock_mhz: float | None = None
    watts: float | None = None


class Ring(Generic[Array]):
    """A long array that is taken piece by piece, from its start again at its end."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self._next = 0

    def matrix(self, rows: int, columns: int) -> Array:
        """The next piece, as a matrix."""
        count = rows * columns
        start = self._next if self._next + count <= len(self.array) else 0
        self._next = start + -(-count // ALIGNED) * ALIGNED
        array: Any = self.array  # of numpy or of torch
        piece: Array = array[start : start + count].reshape(rows, columns)
        return piece


class Multiplier(ABC):
    """Timed matmuls of a library in one dtype combination, on random data.

    Args:
        dtypes: A combination of the dtype catalogue, one of `COMBINATIONS`.
        machine: What multiplies.
        shapes: All shapes that will be timed.

    Raises:
        RooflinesError: The arrays would take too much of the memory.
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
        largest = max(cost(shape, dtypes, "footprint_bytes") for shape in shapes)
        self.dtypes = dtypes
        self.ring_bytes = CACHES * (machine.cache_bytes or UNKNOWN_CACHE_BYTES) + largest
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
        """What multiplies.

        Raises:
            RooflinesError: The library, or what it runs on, is missing.
        """

    @staticmethod
    @abstractmethod
    def default_dtypes() -> str:
        """The dtype combinations that are timed where none are named, separated by commas."""

    @abstractmethod
    def seconds(self, shape: MatmulSizes) -> float:
        """The time of one matmul on operands that are in no cache [s]."""

    @abstractmethod
    def bytes_per_s(self) -> float:
        """The memory rate: the fastest of adding two arrays into a third, and of reading two.

        Source: of adding, McCalpin's STREAM, "Add"; the bytes of a store count once.
        """

    def state(self) -> MachineState:
        """Clock and power right now."""
        return MachineState()

    def copies(self, shape: MatmulSizes) -> int:
        """Times that the operands fit the arrays that they are taken from [1]."""
        return self.ring_bytes // cost(shape, self.dtypes, "footprint_bytes")
