"""SSM layers and linear attention: a state of constant size, and short-convolution inputs."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal, Self

from pydantic import Field, model_validator

from rooflines.basics.errors import RooflinesError
from rooflines.hardware.entry_forms import Entry
from rooflines.kinds.kinds import Tensor
from rooflines.models.kind_costs import KindLetters
from rooflines.models.matrix import (
    HEADS_LAYOUT,
    ROW_LAYOUT,
    CopiedPart,
    Matrix,
    ModelSize,
    Widths,
)

CONV_INPUT_BITS = 16
"""Bits per short-convolution input, which engines keep in bf16 for any state dtype [bit]."""


SHORT_CONV = "short-conv"
"""Gated short convolution without a state: a sequence keeps its inputs only."""

MAMBA1, MAMBA2 = "mamba1", "mamba2"
"""Selective state-space models: a state per channel; a state per head."""

LIGHTNING = "lightning"
"""Linear attention with a fixed decay per head, without convolutions."""

DELTA_RULE = ("gated-delta", "kda")
"""Linear attention by the delta rule; further recurrences decay a state and add to it."""

STATE_TENSORS = {
    "x": Tensor("x", "B*T*(2*K*H + N*Hv)"),
    "state": Tensor("cache", "B*N*H*Hv"),
    "new_state": Tensor("cache", "B*N*H*Hv"),
    "conv": Tensor("cache", "B*conv_elements"),
}
"""Tensors in a recurrence fused with its convolution; gates per head are computed on the chip."""

STEPS_BY_CHANNEL = {"steps": Tensor("x", "B*T*N*Hv")}
"""Time steps that Mamba-1 reads, one per channel."""


class State(Entry):
    """Layers with a state of constant size: linear attention, or a state-space model.

    Sources: Gated DeltaNet (arXiv 2412.06464), Kimi Linear (arXiv 2510.26692), Mamba (arXiv
    2312.00752), Mamba-2 (arXiv 2405.21060), lightning attention (arXiv 2501.08313); the
    transformers classes under `qwen3_next`, `kimi_linear`, `jamba`, `nemotron_h`, `minimax` and
    `lfm2`.
    """

    kind: Literal["gated-delta", "kda", "lightning", "mamba1", "mamba2", "short-conv"]
    layers: ModelSize = Field(description="layers with a state [1]")
    beside: bool = Field(
        default=False,
        description="whether these layers have attention too, whose output is added to theirs",
    )
    heads: ModelSize = Field(
        description="heads, each with a state; in Mamba-1 channels, with value 1 [1]"
    )
    key: ModelSize = Field(description="key head size; in Mamba-1 and -2 the state size [1]")
    value: ModelSize = Field(description="value head size; in Mamba-2 the head size [1]")
    groups: ModelSize = Field(
        description="key heads, which value heads share; in Mamba-2 groups [1]"
    )
    conv: ModelSize = Field(
        description="short-convolution tokens; 1 in lightning attention, which has none [1]"
    )
    rank: ModelSize | None = Field(None, description="for mamba1: rank of the time steps [1]")
    full_gate: bool = Field(default=True, description="for kda: whether gates have full rank")
    norm: bool = Field(default=True, description="for mamba2: whether outputs have a norm")
    bits: ModelSize = Field(32, description="bits per state element [bit]")

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        if self.kind == SHORT_CONV and self.conv == 1:
            raise RooflinesError("conv", "is 1, of which nothing is kept", "write 2 or more")
        if self.kind == LIGHTNING and (self.conv, self.groups) != (1, self.heads):
            problem = "is lightning, without convolutions, and with keys in every head"
            raise RooflinesError("kind", problem, f"write conv: 1 and groups: {self.heads}")
        if (self.kind == MAMBA1) != (self.rank is not None):
            problem = f"is {self.rank or 'absent'}, and kind is {self.kind}"
            raise RooflinesError("rank", problem, "state it for mamba1 alone")
        if self.kind == MAMBA1 and (self.value, self.groups) != (1, 1):
            problem = "is mamba1, in which every channel has a state, and all share their keys"
            raise RooflinesError("kind", problem, "write value: 1 and groups: 1")
        return self

    @property
    def elements(self) -> int:
        """State elements per sequence and layer: heads * key * value; 0 if `short-conv` [1]."""
        return 0 if self.kind == SHORT_CONV else self.heads * self.key * self.value

    @property
    def qk_elements(self) -> int:
        """Query and key elements per token, all key heads: 2 * groups * key [1]."""
        return 0 if self.kind == SHORT_CONV else 2 * self.groups * self.key

    @property
    def inputs(self) -> int:
        """Query, key and value elements per token [1]."""
        return self.qk_elements + self.heads * self.value

    @property
    def conv_channels(self) -> int:
        """Short-convolution channels [1]; in Mamba-1 values only."""
        return self.heads * self.value if self.kind == MAMBA1 else self.inputs

    @property
    def step_elements(self) -> int:
        """Decays and steps per token that a recurrence reads beside `inputs` [1].

        In Mamba-1 the keys, from which, with a low rank, its steps by channel follow.
        """
        by_kind = {
            "gated-delta": 2 * self.heads,
            "kda": self.heads * (self.key + 1),
            MAMBA1: self.qk_elements,
            MAMBA2: self.heads,
        }
        return by_kind.get(self.kind, 0)

    @property
    def low_ranks(self) -> int:
        """Elements per token between projections of low rank [1]."""
        if self.rank is not None:
            return self.rank
        return self.value * (1 if self.full_gate else 2) if self.kind == "kda" else 0

    @property
    def conv_inputs(self) -> int:
        """Short-convolution inputs kept per sequence and layer: (conv - 1) * channels [1].

        They belong to the last conv - 1 tokens, with `CONV_INPUT_BITS` each.
        """
        return (self.conv - 1) * self.conv_channels

    def moved_conv_elements(self, *, decode: bool) -> Fraction:
        """Convolution inputs that a step moves per sequence and layer, `bits` bits each [1].

        Decode reads them and writes one new token's: the minimum. Prefill writes them.
        """
        share = Fraction(0 if self.kind == LIGHTNING else CONV_INPUT_BITS, self.bits)
        return (self.conv_inputs + (self.conv_channels if decode else 0)) * share

    def matrices(self, width: int) -> tuple[Matrix, ...]:
        """Input and output projections, for width D [1]; low ranks belong to the first.

        Every chip has the key heads that its heads share, and whole low ranks. Mamba-1 has time
        steps and keys between them, by channel; their small sum over chips is not counted.
        """
        out = self.heads * self.value
        last = Matrix("state-out", out * width, out, width, ROW_LAYOUT)
        if self.kind == SHORT_CONV:
            return Matrix("state-in", width * 3 * out, width, 3 * out), last
        if self.rank is not None:
            steps = out * (2 * self.rank + self.qk_elements)
            copied = (CopiedPart("keys", 1, writes=self.qk_elements),)
            between = Matrix(
                "state-steps", steps, out, self.qk_elements + out, HEADS_LAYOUT, copied
            )
            return Matrix("state-in", width * 2 * out, width, 2 * out), between, last
        into, ranks, low = self.conv_channels + out, 0, 0
        if self.kind != LIGHTNING:
            into += self.heads
        if self.kind == "gated-delta":
            into += self.heads
        elif self.kind == "kda":
            ranks, low = 1, self.value * self.heads * self.key
            if not self.full_gate:
                into, ranks, low = into - out, 2, low + self.value * out
        down = ranks * width * self.value
        copied_parts = [
            CopiedPart("key heads", self.groups, width * self.qk_elements, writes=self.qk_elements)
        ]
        copied_parts += [CopiedPart("low ranks", 1, down)] if down else []
        return (
            Matrix(
                "state-in", width * into + down + low, width, into, copied_parts=tuple(copied_parts)
            ),
            last,
        )

    def projections(self, width: int) -> Widths:
        """Projections in one layer by module name, as (input, output) widths [1].

        Args:
            width: D [1].
        """
        out, keys = self.heads * self.value, self.groups * self.key
        if self.rank is not None:
            steps = {"x_proj": (out, self.rank + self.qk_elements), "dt_proj": (self.rank, out)}
            return {"in_proj": (width, 2 * out), **steps, "out_proj": (out, width)}
        if self.kind == SHORT_CONV:
            return {"in_proj": (width, 3 * out), "out_proj": (out, width)}
        if self.kind == MAMBA2:
            into = self.conv_channels + out + self.heads
            return {"in_proj": (width, into), "out_proj": (out, width)}
        if self.kind == LIGHTNING:
            gate = {"output_gate": (width, out), "out_proj": (out, width)}
            return {"qkv_proj": (width, self.conv_channels), **gate}
        if self.kind == "gated-delta":
            parts = {"qkv": self.conv_channels, "z": out, "b": self.heads, "a": self.heads}
            widths = {f"in_proj_{name}": (width, size) for name, size in parts.items()}
            return {**widths, "out_proj": (out, width)}
        parts = {"q": keys, "k": keys, "v": out, "b": self.heads, "f_a": self.value}
        parts |= {"g": out} if self.full_gate else {"g_a": self.value}
        widths = {f"{name}_proj": (width, size) for name, size in parts.items()}
        widths["f_b_proj"] = self.value, self.heads * self.key
        if not self.full_gate:
            widths["g_b_proj"] = self.value, out
        return {**widths, "o_proj": (out, width)}

    def modules(self, width: int) -> dict[str, int]:
        """Projection elements by module name, as in checkpoint files [1].

        Args:
            width: D [1].
        """
        return {name: into * out for name, (into, out) in self.projections(width).items()}

    def kernel(self, *, decode: bool) -> KindLetters:
        """Recurrence, fused with its convolution; chunked prefill kernels compute more.

        Decode reads and writes the state, prefill writes it. Not for `short-conv`.
        """
        letters: dict[str, int | Fraction] = {
            "N": self.heads,
            "K": self.groups,
            "H": self.key,
            "Hv": self.value,
            "conv_elements": self.moved_conv_elements(decode=decode),
        }
        tensors: dict[str, Tensor | None] = {**STATE_TENSORS}
        if self.kind == MAMBA1:
            tensors |= STEPS_BY_CHANNEL
        if not decode:
            tensors["state"] = None
        kind = "delta-net" if self.kind in DELTA_RULE else "mamba2"
        return KindLetters(kind, letters, tensors=tensors)

    def vector_elements(self) -> int:
        """Parameters in convolutions, decays, steps and norms per layer [1]."""
        convolution = self.conv_channels * self.conv
        values = self.heads * self.value
        if self.kind == SHORT_CONV:
            return convolution
        if self.kind == LIGHTNING:
            return values
        if self.rank is not None:  # biases, decays, skips, norms of steps and keys
            return convolution + (3 + self.key) * self.heads + self.rank + self.qk_elements
        if self.kind == MAMBA2:
            norm = values if self.norm else 0
            return convolution + self.conv_channels + 3 * self.heads + norm
        steps = self.heads * (self.key if self.kind == "kda" else 1)
        return convolution + self.heads + steps + self.value
