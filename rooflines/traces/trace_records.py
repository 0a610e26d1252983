"""Trace records: device activities, launches, operators, annotations, costs.

Times in fields that end in `_ns` are whole nanoseconds: sums close exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ActivityKind = Literal["kernel", "collective", "copy", "set"]
"""Device work: a kernel, a collective's kernel, a copy (memcpy) or a memset."""

BoundSource = Literal["launch", "graph", "model", "before"]
"""Origin of a call: a launch in the file, a graph, a model's group, or before the trace."""


@dataclass(frozen=True, slots=True)
class Message:
    """A collective as record_param_comms has it.

    Attributes:
        collective: Its name as recorded, such as `allreduce` or `_allgather_base`.
        dtype: Element type as recorded, such as `BFloat16`.
        in_elements: Elements that a rank gives [1].
        out_elements: Elements that a rank gets [1].
        ranks: Ranks in the process group [1].
        group: Process group name.
    """

    collective: str
    dtype: str
    in_elements: int
    out_elements: int
    ranks: int
    group: str = ""


@dataclass(frozen=True, slots=True)
class CompilerWork:
    """Work as XLA's compiler counted it.

    Attributes:
        category: hlo_category, such as `convolution fusion`.
        flops: model_flops, or flops [FLOP].
        memory_bytes: bytes_accessed [byte].
        shape: shape_with_layout, such as `bf16[8,128]{1,0}`.
    """

    category: str
    flops: float
    memory_bytes: float
    shape: str = ""


@dataclass(slots=True, eq=False)
class Arguments:
    """Operator arguments, stored once: operators with equal arguments share the object.

    Equality is identity, so they can be keys in a cache.

    Attributes:
        input_dims: Dims by argument; for a list of tensors, a list of dims; `[]` for a number.
        input_types: Type by argument as recorded, such as `c10::BFloat16` or `Scalar`;
            empty where the file has none.
        input_strides: Strides by argument, as `input_dims`; empty where the file has none.
        concrete_inputs: Numbers and lists of numbers as text, "" for tensors.
        message: The collective, in record_param_comms.
    """

    input_dims: Sequence[Sequence[Any]] = ()
    input_types: Sequence[str] = ()
    input_strides: Sequence[Sequence[Any]] = ()
    concrete_inputs: Sequence[str] = ()
    message: Message | None = None


NO_ARGUMENTS = Arguments()
"""Arguments in a file without shapes."""


@dataclass(slots=True, eq=False)
class HostEvent:
    """A host thread's event, in whole ns.

    Attributes:
        name: As recorded.
        thread: Process and thread.
        begin_ns: Begin [ns].
        end_ns: End [ns].
        parent: Innermost operator or annotation on the thread that contains it; None: on top.
    """

    name: str
    thread: tuple[str, str]
    begin_ns: int
    end_ns: int
    parent: Operator | Annotation | None = None


@dataclass(slots=True, eq=False)
class HostLaunch(HostEvent):
    """The host's call that submits activities: cudaLaunchKernel, hipGraphLaunch.

    Attributes:
        correlation: Number that it shares with its activities.
        kernel: Kernel name, which ROCm records; None elsewhere.
    """

    correlation: int | str | None = None
    kernel: str | None = None


@dataclass(slots=True, eq=False)
class Operator(HostEvent):
    """A framework operator: aten::mm, record_param_comms.

    Attributes:
        arguments: Dims, types, strides and values, shared between operators.
        external: External id; None: not recorded.
    """

    arguments: Arguments = NO_ARGUMENTS
    external: int | None = None


@dataclass(slots=True, eq=False)
class Annotation(HostEvent):
    """A range that a program named: step, phase, module."""


@dataclass(slots=True, eq=False)
class Activity:
    """A device's kernel, collective, copy or memset, in whole ns.

    Attributes:
        name: Kernel name as recorded.
        kind: What the device did.
        device: The device, unique in a file.
        stream: The stream or queue.
        begin_ns: Begin [ns].
        end_ns: End [ns].
        correlation: Number that it shares with its launch.
        external: External id that it shares with an operator; None: not recorded.
        copied_bytes: Bytes that are copied or set [byte]; 0: not recorded.
        copy_kind: Direction, such as HtoD.
        message: The collective, where newer files have it on the kernel.
        compiled: XLA's counts.
        owned_ns: Its part in busy time, set by the device's account [ns].
        idle_host_ns: Idle time before it in which the host had not called its launch [ns].
        idle_call_ns: Idle time before it in which its launch call ran [ns].
        idle_device_ns: Idle time before it after its launch call: queued, or a break [ns].
        launch: Its launch; None: not in the file.
        operator: Innermost operator or annotation around its launch; None: not in the file.
        step: Step index in `Trace.steps`; -1: outside.
        captured: True for a graph's kernel whose operator comes from a trace of the capture.
    """

    name: str
    kind: ActivityKind
    device: str
    stream: str
    begin_ns: int
    end_ns: int
    correlation: int | str | None = None
    external: int | None = None
    copied_bytes: int = 0
    copy_kind: str = ""
    message: Message | None = None
    compiled: CompilerWork | None = None
    owned_ns: int = 0
    idle_host_ns: int = 0
    idle_call_ns: int = 0
    idle_device_ns: int = 0
    launch: HostLaunch | None = None
    operator: Operator | Annotation | None = None
    step: int = -1
    captured: bool = False

    @property
    def duration_ns(self) -> int:
        """End less begin [ns]."""
        return self.end_ns - self.begin_ns


@dataclass(frozen=True, slots=True)
class TracedDevice:
    """A device as its file describes it; None: not recorded.

    Attributes:
        name: Name as the driver prints it; may be empty.
        major: Compute capability, first number.
        minor: Compute capability, second number.
        processors: Multiprocessors or compute units [1].
        memory_bytes: Memory [byte].
    """

    name: str = ""
    major: int | None = None
    minor: int | None = None
    processors: int | None = None
    memory_bytes: float | None = None


@dataclass(slots=True, eq=False)
class Trace:
    """A profiler's file: one process, or several that a tool merged.

    Attributes:
        file: Path as given.
        activities: Device work.
        launches: Host calls that submit activities.
        operators: Framework operators.
        annotations: Named ranges on the host.
        device_annotations: Named ranges on a device; no activities.
        devices: Devices as described.
        world_size: Ranks in the job; None: not recorded.
        notes: Sentences on what was left out.
        events: Events read [1].
        steps: Annotations that are steps, in order.
    """

    file: str
    activities: list[Activity] = field(default_factory=list)
    launches: list[HostLaunch] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
    annotations: list[Annotation] = field(default_factory=list)
    device_annotations: list[Annotation] = field(default_factory=list)
    devices: list[TracedDevice] = field(default_factory=list)
    world_size: int | None = None
    notes: list[str] = field(default_factory=list)
    events: int = 0
    steps: list[Annotation] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class TokenSums:
    """Sums over sequences in a step, from an engine's annotation [1].

    A sequence has q new tokens and s keys. A sum that the annotation lacks is 0.

    Attributes:
        sequences: Sequences.
        queries: Sum of q.
        keys: Sum of s.
        squared_queries: Sum of q^2.
        pairs: Sum of q s.
    """

    sequences: int = 0
    queries: int = 0
    keys: int = 0
    squared_queries: int = 0
    pairs: int = 0


@dataclass(frozen=True, slots=True)
class StepTokens:
    """Tokens in a step: prompts and decodes."""

    prompts: TokenSums = TokenSums()
    decodes: TokenSums = TokenSums()


@dataclass(frozen=True, slots=True)
class OperatorCost:
    """Least work for an operator call, as a cost rule returns it.

    Attributes:
        kind: matmul, attention, convolution, norm, elementwise, copy, host copy, collective, ..
        flops: Matrix products, convolutions and attention [FLOP].
        compute: Compute dtype, a key in a chip's peaks, such as bf16; for fp32 products
            also `tf32`, or `fp32 vector` where kernels say which unit ran; None: no products.
        memory_bytes: Least bytes through the device's memory [byte].
        host_bytes: Bytes over the host link [byte].
        collective: A key in `RING_PASSES` in `theory/network.py`; None: none.
        payload_bytes: The collective's payload by that module's definition [byte].
        ranks: Ranks in the collective [1].
        exact: Whether the trace confirms the work; otherwise it is assumed.
        sizes: Sizes by letter; a matmul has B, D, F and batch.
        dtypes: Stored dtypes by role; a matmul has `x`, `w` and `out`.
        repeated_bytes: Bytes in arguments with the dims and dtype of another argument, perhaps
            the same tensor [byte].
    """

    kind: str
    flops: float = 0.0
    compute: str | None = None
    memory_bytes: float = 0.0
    host_bytes: float = 0.0
    collective: str | None = None
    payload_bytes: float = 0.0
    ranks: int = 0
    exact: bool = True
    sizes: Mapping[str, int] = field(default_factory=dict)
    dtypes: Mapping[str, str] = field(default_factory=dict)
    repeated_bytes: float = 0.0


@dataclass(slots=True, eq=False)
class Call:
    """One operator run with the activities that it launched: a row in the table.

    Attributes:
        name: Operator, model group, or kernel.
        shape: Dims as text, or "layer 7".
        activities: What it launched, one device.
        operator: The operator, or the annotation without one; None: neither.
        cost: Its work; None: without a rule or shapes.
        step: Index in `Trace.steps`; -1: outside.
        why: Reason why no cost is known; empty with one.
        origin: launch, graph, model or before.
    """

    name: str
    shape: str
    activities: list[Activity]
    operator: Operator | Annotation | None = None
    cost: OperatorCost | None = None
    step: int = -1
    why: str = ""
    origin: BoundSource = "launch"

    @property
    def owned_ns(self) -> int:
        """Owned time, summed over activities [ns]."""
        return sum(activity.owned_ns for activity in self.activities)

    @property
    def kernel_ns(self) -> int:
        """Duration, summed over activities [ns]."""
        return sum(activity.duration_ns for activity in self.activities)
