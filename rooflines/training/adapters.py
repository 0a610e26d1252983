"""Low-rank adapters (LoRA): projections that have one, and their parameters.

An adapter adds x A B to x W, where A is in x r and B is r x out; W is frozen. Sources: Hu et al.
2021 (arXiv 2106.09685), and Dettmers et al. 2023 (arXiv 2305.14314) for frozen weights in 4 bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import BeforeValidator, Field, model_validator

from rooflines.basics.errors import RooflinesError, check_choice, quote
from rooflines.hardware.entry_forms import Entry, PositiveInt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflines.models.architecture import Shape

ATTENTION_TARGETS = ("q", "k", "v", "q-a", "q-b", "kv-a", "kv-b", "o")
MLP_TARGETS = ("gate", "up", "down")
SHARED_TARGETS = tuple(f"shared-{name}" for name in MLP_TARGETS)
EXPERT_TARGETS = tuple(f"experts-{name}" for name in MLP_TARGETS)
"""Projections in shared experts, and in routed ones, each with its own adapter."""

FUSED_TARGETS: Mapping[str, tuple[str, ...]] = {"qkv": ("q", "k", "v"), "gate-up": ("gate", "up")}
"""Projections that one adapter covers together, as where they are one matrix (Megatron-LM)."""

NAMED_TARGETS: Mapping[str, tuple[str, ...]] = {
    "all": (*ATTENTION_TARGETS, *MLP_TARGETS, *SHARED_TARGETS),
    "all-linear": (*ATTENTION_TARGETS, *MLP_TARGETS, *SHARED_TARGETS),
    "attention": ATTENTION_TARGETS,
    "mlp": MLP_TARGETS,
    "shared": SHARED_TARGETS,
    "experts": EXPERT_TARGETS,
}
"""Names for targets: those that the model has. `all` has linear layers; routed experts are packed
tensors (transformers 5), which adapters take by name alone."""

TARGETS = (
    *ATTENTION_TARGETS,
    *MLP_TARGETS,
    *SHARED_TARGETS,
    *EXPERT_TARGETS,
    *FUSED_TARGETS,
    *NAMED_TARGETS,
)

KERNELS: Mapping[str, str] = {
    "o": "o",
    "gate": "gate-up",
    "up": "gate-up",
    "down": "down",
    "q-b": "q-up",
    "kv-b": "kv-up",
    **dict.fromkeys(SHARED_TARGETS, "shared"),
    **dict.fromkeys(EXPERT_TARGETS, "experts"),
}
"""Kernel by projection; all others are in the layer's first."""

DOWN_TARGETS = ("down", "shared-down", "experts-down")
"""Projections whose input is an activation."""

MAX_RANK = 2**16
"""Largest rank [1]."""


class Adapter(NamedTuple):
    """An adapter beside a projection.

    Attributes:
        kernel: Kernel that computes the projection.
        width, out: Elements in its input and output [1].
        copies: Adapters in a layer: one per routed expert, else one [1].
        active: Adapters that a token uses [1].
        is_down: Whether its input is an activation.
    """

    kernel: str
    width: int
    out: int
    copies: int = 1
    active: int = 1
    is_down: bool = False


class LayerAdapters(NamedTuple):
    """Adapters in one layer.

    Attributes:
        attention: In attention, so in every layer.
        mlp: In an MLP.
        experts: In routed and shared experts.
    """

    attention: tuple[Adapter, ...]
    mlp: tuple[Adapter, ...]
    experts: tuple[Adapter, ...]

    @property
    def every(self) -> tuple[Adapter, ...]:
        """All adapters."""
        return (*self.attention, *self.mlp, *self.experts)


def _targets(value: object) -> object:
    """Targets in a list, from one, or several behind commas."""
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list | tuple) or not value:
        problem = f"is {quote(value)}, which is no list of projections"
        raise RooflinesError("", problem, "write [q, v], attention or all", value=value)
    for target in value:
        check_choice(target, TARGETS, "no projection that an adapter can have")
    return tuple(value)


class Lora(Entry):
    """Adapters: their rank, and the projections that have one."""

    rank: PositiveInt = Field(description="rank of every adapter [1]")
    on: Annotated[tuple[str, ...], BeforeValidator(_targets)] = Field(
        ("all",),
        description=(
            "projections with an adapter: q, k, v, o, gate, up, down; qkv or gate-up, with one for "
            "the fused matrix; attention, mlp, shared, or all of these; experts, or experts-down "
            "and so on: one in every routed expert"
        ),
    )

    @model_validator(mode="before")
    @classmethod
    def _from_rank(cls, value: Any) -> Any:  # noqa: ANN401, any YAML value
        """Take a number as the rank, and `16+q+v` as in a plan's name."""
        if isinstance(value, str) and "+" in value:
            rank, *targets = value.replace("_", "-").split("+")
            return {"rank": rank, "on": targets}
        if isinstance(value, Mapping):  # YAML reads the key `on` as true
            return {"on" if key is True else key: member for key, member in value.items()}
        return {"rank": value}

    @model_validator(mode="after")
    def _check_rank(self) -> Lora:
        if self.rank > MAX_RANK:
            problem = f"is {self.rank}, more than {MAX_RANK:,}"
            raise RooflinesError("rank", problem, "write a rank such as 16")
        return self

    @property
    def name(self) -> str:
        """Name in a plan's, such as `lora16` or `lora16+attention`."""
        targets = () if self.on == ("all",) else (target.replace("-", "_") for target in self.on)
        return "+".join([f"lora{self.rank}", *targets])

    def adapters(self, shape: Shape) -> LayerAdapters:
        """Adapters in one layer.

        Raises:
            RooflinesError: The model lacks a projection that is named.
        """
        attention = _projections(shape.attention.projections(shape.D))
        mlp = _projections(shape.mlp.projections(shape.D)) if shape.mlp is not None else {}
        experts = _expert_projections(shape)
        has = {**attention, **mlp, **experts}
        first = "qkv" if "q-a" not in attention else "qkv-down"
        by_part: tuple[list[Adapter], ...] = [], [], []
        for names in _chosen(self.on, has):
            part = 0 if names[0] in attention else 1 if names[0] in mlp else 2
            by_part[part].append(_adapter(names, has, first, shape))
        return LayerAdapters(*map(tuple, by_part))

    def active_parameters(self, shape: Shape) -> int:
        """Adapter parameters that a token uses: r (in + out) each, in k experts [1]."""
        layers = (shape.layers, shape.mlp_layers, shape.moe_layers)
        return sum(
            count * self.rank * adapter.active * (adapter.width + adapter.out)
            for count, adapters in zip(layers, self.adapters(shape), strict=True)
            for adapter in adapters
        )


def _projections(widths: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    """Projections with an output; attention's gates have no adapter [1]."""
    return {name: sizes for name, sizes in widths.items() if sizes[1] and name != "gates"}


def _expert_projections(shape: Shape) -> dict[str, tuple[int, int]]:
    """Projections in one routed expert, and in all shared ones as one MLP [1]."""
    if (moe := shape.moe) is None:
        return {}
    routed = moe.expert.projections(moe.width(shape.D))
    widths = {f"experts-{name}": sizes for name, sizes in _projections(routed).items()}
    if moe.shared:
        width = moe.shared * moe.Fe
        shared = moe.expert.model_copy(update={"F": width}).projections(shape.D)
        widths |= {f"shared-{name}": sizes for name, sizes in _projections(shared).items()}
    return widths


def _adapter(
    parts: tuple[str, ...],
    widths: Mapping[str, tuple[int, int]],
    first_kernel: str,
    shape: Shape,
) -> Adapter:
    """Adapter for projections with one input."""
    kernel = KERNELS.get(parts[0], first_kernel)
    moe = shape.moe if parts[0] in EXPERT_TARGETS else None
    return Adapter(
        kernel,
        widths[parts[0]][0],
        sum(widths[part][1] for part in parts),
        1 if moe is None else moe.E,
        1 if moe is None else moe.k,
        parts[0] in DOWN_TARGETS,
    )


def _chosen(
    targets: tuple[str, ...], has: Mapping[str, tuple[int, int]]
) -> Iterator[tuple[str, ...]]:
    """Projections by adapter, none twice.

    Raises:
        RooflinesError: The model lacks a target.
    """
    seen = set[str]()
    for target in targets:
        members = NAMED_TARGETS.get(target) or FUSED_TARGETS.get(target) or (target,)
        present = tuple(member for member in members if member in has)
        if not present or (target not in NAMED_TARGETS and present != members):
            problem = f"has {target}, but the model's projections are {', '.join(has)}"
            raise RooflinesError("lora.on", problem, "name some of these, attention or all")
        if twice := seen & {*present}:
            problem = f"has {target}, and {', '.join(sorted(twice))} a second time"
            raise RooflinesError("lora.on", problem, "leave out one of them")
        seen |= {*present}
        yield from [present] if target in FUSED_TARGETS else ((member,) for member in present)
