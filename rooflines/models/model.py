"""A model: architecture, name and dtypes, with methods for parameters, KV cache and memory."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError, at_path, quote
from rooflines.basics.numbers import exact, whole
from rooflines.basics.text import count
from rooflines.hardware.entry_forms import validate_entry
from rooflines.models import memory
from rooflines.models.groups import Group, groups_of
from rooflines.models.parameter_counts import Parameters, parameters_of
from rooflines.models.split import BY_HEADS, Split
from rooflines.models.tensor_dtypes import ModelDtypes, bits_of, model_dtypes

if TYPE_CHECKING:
    from rooflines.models.architecture import Phase, Shape


MTP_NOTES = (
    "without the layers for multi-token prediction",
    "without the layer for multi-token prediction",
)
"""Notes to drop where the MTP layer drafts tokens."""


@dataclass(frozen=True, repr=False)
class Model:
    """Decoder-only transformer.

    Attributes:
        name: Id, or the file that it was read from.
        shape: Architecture: layers and sizes.
        dtypes: Published dtypes; None where the source states none.
        note: Omissions and assumptions, joined by `; `.
        weight_only: Whether it is published with weights alone quantized, and no activations.
    """

    name: str
    shape: Shape
    dtypes: ModelDtypes | None = None
    note: str | None = None
    weight_only: bool = False

    def __repr__(self) -> str:
        """Name, parameters, layers and KV cache, in one line."""
        total, per_token = self.parameters().total, memory.kv_cache_elements(self.shape, 1)
        return (
            f"<Model {self.name}: {count(total)} parameters, {self.shape.layers} layers, "
            f"{count(per_token)} cache elements a token>"
        )

    def notes(self, *, drafts: bool = False) -> tuple[str, ...]:
        """Omissions and assumptions, one text each.

        Args:
            drafts: Whether the MTP layer is counted, as it drafts tokens.
        """
        notes = (self.note or "").split("; ")
        obsolete = MTP_NOTES if drafts and self.shape.mtp else ()
        return tuple(note for note in notes if note and note not in obsolete)

    def parameters(self) -> Parameters:
        """Count parameters by part, with `.total`, `.active` and two more conventions [1]."""
        return parameters_of(self.shape)

    def kv_cache_elements(self, S: int) -> int:  # noqa: N803, the letter of the docs
        """KV cache elements per sequence of S tokens [1]."""
        return memory.kv_cache_elements(self.shape, S)

    def kv_cache_bytes(self, S: int, dtype: str) -> int | Fraction:  # noqa: N803, the same
        """KV cache per sequence of S tokens, SSM states included [byte], exact.

        Args:
            S: Tokens in the sequence [1].
            dtype: A format in the dtype catalogue; block scales count. States and indexer keys have
                separate dtypes.

        Raises:
            RooflinesError: S or the dtype is invalid.
        """
        with at_path("S"):
            tokens = whole(S)
        with at_path("dtype"):
            bits = bits_of(dtype)
        size = memory.cache_on_chip(self.shape, tokens, {"cache": bits}, validate_entry(Split, {}))
        return _int_if_whole(size)

    def state_bytes(self) -> int | Fraction:
        """SSM states and convolution inputs per sequence, for any length [byte], exact."""
        return _int_if_whole(memory.state_bytes(self.shape))

    def weights_bytes(self, dtypes: object = None) -> int | Fraction:
        """Memory for all parameters [byte], exact.

        Args:
            dtypes: A format, or `{weights: , experts: , head: }`; by default as published.

        Raises:
            RooflinesError: A dtype is unknown, or none is published.
        """
        one_chip = validate_entry(Split, {})
        size = memory.weights_on_chip(self.shape, self._dtypes(dtypes).bits(), one_chip)
        return _int_if_whole(size)

    def max_batch(  # noqa: PLR0913, all but the first two have a default
        self,
        capacity: float | Fraction,
        S: int,  # noqa: N803, the same
        dtypes: object = None,
        *,
        tp: int = 1,
        dp: int = 1,
        cache_split: str = BY_HEADS,
    ) -> int:
        """Largest batch whose KV cache fits beside the weights [1], exact.

        Args:
            capacity: Memory per chip [byte].
            S: Tokens in each sequence [1].
            dtypes: A format, or `{weights: , experts: , head: , cache: }`; by default as published.
            tp: Chips that share a replica's weights [1].
            dp: Replicas [1].
            cache_split: `heads`: split by KV heads, replicated beyond them; `batch`: by sequences.

        Returns:
            dp * floor((capacity - weights per chip) / KV cache per sequence and chip); 0 if the
            weights alone do not fit. Activations and runtime memory are not counted.

        Raises:
            RooflinesError: An argument is invalid, or the dtypes lack one for the KV cache.
        """
        with at_path("capacity"):
            capacity_bytes = capacity if isinstance(capacity, Fraction) else exact(capacity)
            if capacity_bytes <= 0:
                problem = f"is {quote(capacity)}, which is not above zero"
                raise RooflinesError("", problem, "write bytes, such as 80e9")
        bits, split = self._dtypes(dtypes).bits(), validate_entry(Split, {"tp": tp, "dp": dp})
        free_bytes = capacity_bytes - memory.weights_on_chip(self.shape, bits, split)
        sequence_bytes = memory.cache_on_chip(self.shape, S, bits, split, cache_split)
        return dp * max(int(free_bytes // sequence_bytes), 0)

    def groups(self, phase: Phase) -> tuple[Group, ...]:
        """Kernel groups with exact costs, in run order.

        Args:
            phase: `decode` or `prefill`.

        Raises:
            RooflinesError: The phase is unknown.
        """
        return groups_of(self.shape, phase)

    def _dtypes(self, form: object) -> ModelDtypes:
        if form is not None:
            return model_dtypes(form)
        if self.dtypes is None:
            raise RooflinesError(
                "dtypes", f"are not known for {self.name}", "give them, such as bf16"
            )
        return self.dtypes


def _int_if_whole(size: Fraction) -> int | Fraction:
    """Convert a whole fraction to an int."""
    return int(size) if size.denominator == 1 else size
