"""Convolution work: any number of dimensions, strides, dilations, groups, transposed ones."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.traces.tensors import RecordedArguments, TensorArgument


class ConvolutionSizes(NamedTuple):
    """Convolution sizes.

    Attributes:
        letters: Letters in kind conv2d, with position pairs in place of square sides.
        out_dims: Result dims [1].
    """

    letters: Mapping[str, int]
    out_dims: tuple[int, ...]


@lru_cache(4096)
def pairs_inside(  # noqa: PLR0913, PLR0917, the sizes along a side
    size: int, outputs: int, kernel: int, stride: int, padding: int, dilation: int
) -> int:
    """Pairs (output, kernel position) inside the image, along one side: padding costs nothing [1].

    Args:
        size: Image elements [1].
        outputs: Result elements [1].
        kernel: Kernel elements [1].
        stride: Step between outputs [1].
        padding: Zeros before the image [1].
        dilation: Step between kernel elements [1].
    """
    pairs = 0
    for position in range(kernel):
        shift = padding - position * dilation
        first = max(0, -(-shift // stride))
        last = min(outputs - 1, (size - 1 + shift) // stride)
        pairs += max(0, last - first + 1)
    return pairs


def convolution_sizes(
    x: TensorArgument,
    w: TensorArgument,
    recorded: RecordedArguments,
    places: Mapping[str, int],
) -> ConvolutionSizes:
    """Convolution sizes; in a transposed one x is what a plain one would make.

    Args:
        x: The image: B, channels, sides.
        w: The kernel: channels out, channels in by group, sides; transposed the other way round.
        recorded: The operator's arguments.
        places: Places for stride, padding, dilation, output_padding, transposed and groups.
    """
    axes = len(x.dims) - 2
    stride = _along(recorded.numbers(places.get("stride")), axes, 1)
    padding = _along(recorded.numbers(places.get("padding")), axes, 0)
    dilation = _along(recorded.numbers(places.get("dilation")), axes, 1)
    extra = _along(recorded.numbers(places.get("output_padding")), axes, 0)
    groups = recorded.number(places.get("groups"), x.dims[1] // w.dims[1])
    sides, kernel = x.dims[2:], w.dims[2:]
    spans = [step * (side - 1) + 1 for side, step in zip(kernel, dilation, strict=True)]
    sizes = zip(sides, spans, stride, padding, extra, strict=True)
    if recorded.flag(places.get("transposed")):
        outputs = tuple((n - 1) * s - 2 * p + span + more for n, span, s, p, more in sizes)
        images, results = outputs, sides
        letters = {"B": x.dims[0], "F": x.dims[1], "C": w.dims[1] * groups, "groups": groups}
        channels = w.dims[1] * groups
    else:
        outputs = tuple((n + 2 * p - span) // s + 1 for n, span, s, p, _ in sizes)
        images, results = sides, outputs
        letters = {"B": x.dims[0], "F": w.dims[0], "C": w.dims[1] * groups, "groups": groups}
        channels = w.dims[0]
    axis_sizes = zip(images, results, kernel, stride, padding, dilation, strict=True)
    positions = prod(pairs_inside(*sizes_along) for sizes_along in axis_sizes)
    return ConvolutionSizes({**letters, "positions": positions}, (x.dims[0], channels, *outputs))


def _along(values: Sequence[int], axes: int, otherwise: int) -> tuple[int, ...]:
    """One value an axis, from a list as long, or with one for all."""
    if len(values) == 1:
        return tuple(values) * axes
    return tuple(values) if len(values) == axes else (otherwise,) * axes
