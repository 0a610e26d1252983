"""Timed matmuls in torch: on a GPU, in CUDA graphs.

A graph holds matmuls on one piece of the arrays after another. Timing a whole graph leaves Python
and kernel launches out, as in a server that replays graphs.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.basics.errors import RooflinesError, quote
from rooflines.measured.machine import Host
from rooflines.measured.multiplier import STREAM_COUNT, MachineState, Multiplier, Ring
from rooflines.measured.timed_shapes import ShapeRange

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rooflines.measured.timed_shapes import MatmulSizes


class Formats(NamedTuple):
    """Dtype combination in torch.

    Attributes:
        x: The dtype of x and w, a name in torch.
        out: The result's dtype.
        tf32: True if fp32 products are computed in TF32.
        min_capability: The least compute capability that multiplies it.
        step: D and F must be multiples of it [1].
        contents: Work that a timing includes besides the matmul.
    """

    x: str
    out: str
    tf32: bool = False
    min_capability: tuple[int, int] = (7, 0)
    step: int = 1
    contents: str | None = None


FORMATS = {
    "bf16": Formats("bfloat16", "bfloat16", min_capability=(8, 0)),
    "fp16": Formats("float16", "float16"),
    "tf32": Formats("float32", "float32", tf32=True, min_capability=(8, 0)),
    "fp64": Formats("float64", "float64", min_capability=(8, 0)),
    "fp8-out-bf16": Formats(
        "float8_e4m3fn", "bfloat16", min_capability=(8, 9), step=16, contents="static scales"
    ),
}
"""Dtype combinations that torch multiplies on matrix units. In fp8 the scales are given, one per
tensor, and sums may be kept in fewer bits (`use_fast_accum`)."""

GRAPH_S, MAX_MATMULS = 5e-4, 1000
"""About the shortest graph time [s], and the most matmuls in a graph [1]."""

STREAM_BYTES = 2**31
"""Bytes per array in memory tests [byte], at most a sixteenth of the free memory."""


@cache
def _torch() -> Any:  # noqa: ANN401, no dependency
    """Import torch, which no extra brings: the one to install depends on the GPU's driver."""
    try:
        return import_module("torch")
    except ImportError:
        problem = "needs torch, which is not installed"
        fix = "install the one for your GPU's driver"
        raise RooflinesError("rooflines measured measure --backend torch", problem, fix) from None


class Gpu(Multiplier):
    """Timed matmuls in torch on the first GPU that it sees; see `Multiplier`.

    Weights are stored as `torch.nn.Linear` stores them, F x D.
    """

    COMBINATIONS = tuple(FORMATS)
    SHAPE_RANGE = ShapeRange(
        (512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384), (1, 16384)
    )
    TIMER = "graph"

    def __init__(self, dtypes: str, machine: Host, shapes: Sequence[MatmulSizes]) -> None:
        torch = _torch()
        super().__init__(dtypes, machine, shapes)
        formats = self._formats = FORMATS[dtypes]
        capability = torch.cuda.get_device_capability()
        if capability < formats.min_capability:
            problem = f"is {quote(dtypes)}, which {machine.name} does not multiply on matrix units"
            raise RooflinesError("--dtypes", problem, f"time {Gpu.default_dtypes()}")
        misaligned = [shape for shape in shapes if shape.D % formats.step or shape.F % formats.step]
        if misaligned:
            D, F = misaligned[0][1:]  # noqa: N806, letters of sizes
            problem = (
                f"has D={D} and F={F}; torch multiplies {dtypes} in multiples of {formats.step}"
            )
            raise RooflinesError("--shapes", problem, "round them up, as padded weights are")
        self.contents = formats.contents
        in_dtype, out_dtype = (getattr(torch, name) for name in (formats.x, formats.out))
        values = (
            torch.rand(self.ring_bytes // in_dtype.itemsize, device="cuda").sub_(0.5).to(in_dtype)
        )
        out = torch.empty(self.ring_bytes // out_dtype.itemsize, device="cuda", dtype=out_dtype)
        self._inputs, self._outputs = Ring(values), Ring(out)
        self._unit_scale = torch.ones((), device="cuda")
        self._graphs: dict[MatmulSizes, tuple[Any, int]] = {}

    @staticmethod
    def machine() -> Host:
        """First GPU that torch sees."""
        torch = _torch()
        if not torch.cuda.is_available():
            problem = "finds no GPU with torch"
            fix = "install a torch for its driver, or time the processor with --backend numpy"
            raise RooflinesError("rooflines measured measure", problem, fix)
        facts = torch.cuda.get_device_properties(0)
        cache = facts.L2_cache_size or None
        return Host(facts.name, None, cache, facts.total_memory, "torch", _version(torch))

    @staticmethod
    def default_dtypes() -> str:
        """bf16, and fp8 where the GPU has it; fp16 where it has neither."""
        capability = _torch().cuda.get_device_capability(0)
        names = [
            name for name in ("bf16", "fp8-out-bf16") if FORMATS[name].min_capability <= capability
        ]
        return ",".join(names or ["fp16"])

    def seconds(self, shape: MatmulSizes) -> float:
        """Time for one matmul in a graph by the GPU's clock: graph time / matmuls [s]."""
        graph, count = self._graphs.get(shape) or self._capture(shape)
        graph.replay()  # while it runs the next is launched
        return _seconds(graph.replay) / count

    def bytes_per_s(self) -> float:
        """Memory rate of the GPU; see `Multiplier.bytes_per_s` [byte/s]."""
        torch = _torch()
        free, _ = torch.cuda.mem_get_info()
        count = min(STREAM_BYTES, free // 16) // 4
        a, b, c = (torch.rand(count, device="cuda") for _ in range(3))

        def rate(call: Callable[[], object], arrays: int) -> float:
            call()
            return float(arrays * b.nbytes / _seconds(call))

        add = max(rate(lambda: torch.add(b, c, out=a), 3) for _ in range(STREAM_COUNT))
        return max(add, *(rate(lambda: torch.dot(b, c), 2) for _ in range(STREAM_COUNT)))

    def state(self) -> MachineState:
        """Clock and power; none where nvidia-ml-py is not installed."""
        cuda = _torch().cuda
        try:
            return MachineState(float(cuda.clock_rate()), cuda.power_draw() / 1000)
        except (ModuleNotFoundError, RuntimeError):
            return MachineState()

    def _capture(self, shape: MatmulSizes) -> tuple[Any, int]:
        """Capture a graph with matmuls of one shape; return it with their number."""
        torch = _torch()
        self._multiply(shape)
        alone_s = _seconds(lambda: self._multiply(shape))
        count = max(self.copies(shape), ceil(GRAPH_S / alone_s))
        graph, count = torch.cuda.CUDAGraph(), min(count, MAX_MATMULS)
        with torch.cuda.graph(graph):
            for _ in range(count):
                self._multiply(shape)
        self._graphs[shape] = graph, count
        return graph, count

    def _multiply(self, shape: MatmulSizes) -> None:
        """Multiply once, on the arrays' next pieces."""
        torch = _torch()
        x, w = self._inputs.matrix(shape.B, shape.D), self._inputs.matrix(shape.F, shape.D).t()
        out = self._outputs.matrix(shape.B, shape.F)
        if self.dtypes == "fp8-out-bf16":
            scale, out_dtype = self._unit_scale, out.dtype
            torch._scaled_mm(x, w, scale, scale, out_dtype=out_dtype, use_fast_accum=True, out=out)  # noqa: SLF001, its only name
            return
        torch.backends.cuda.matmul.allow_tf32 = self._formats.tf32
        torch.mm(x, w, out=out)


def _version(torch: Any) -> str:  # noqa: ANN401, no dependency
    """Version of torch, and the driver's if nvidia-ml-py is installed."""
    version = f"torch {torch.__version__}"
    try:
        nvml = import_module("pynvml")
        nvml.nvmlInit()
        return f"{version}, driver {nvml.nvmlSystemGetDriverVersion()}"
    except Exception:  # noqa: BLE001, no driver of NVIDIA, or no such package
        return version


def _seconds(call: Callable[[], object]) -> float:
    """GPU time from the start to the end of a call's work [s]."""
    start, end = (_torch().cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    call()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1000
