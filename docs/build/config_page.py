"""Tables and numbers of config/README.md, and the tolerances in CONTRIBUTING."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from blocks import table, with_block, with_values
from documents import ROOT

from rooflines.basics.numbers import MAX_SIZE
from rooflines.basics.yaml_file import MAX_YAML_BYTES
from rooflines.basics.yaml_loader import MAX_DEPTH, MAX_NODES
from rooflines.config.axis_sizes import MAX_AXIS_SIZES, SNAP, Sizes
from rooflines.config.sweep_fields import MAX_PART_ROWS
from rooflines.fits.timings import ATTENTION, COLLECTIVE, EXPERTS, MATMUL_TIMINGS, SERVED
from rooflines.hardware.dtype_catalogue import dtype_entries, stored_bits
from rooflines.hardware.plausibility import MAX_BASE_RATIO
from rooflines.loading import MAX_MODEL_THRESHOLDS, MAX_THRESHOLDS
from rooflines.models.layer_matrices import LAYERS
from rooflines.solvers.crossover import TIE_TOLERANCE
from rooflines.sweep.axes import MAX_PARTS
from rooflines.sweep.checks import MAX_PRODUCT
from rooflines.theory.network import RING_PASSES
from rooflines.theory.operation import NAMED_OPERATIONS, OPERANDS
from rooflines.theory.sharding import NAMED_SHARDINGS, REDUCTIONS, parse_sharding
from rooflines.theory.times import TIE_SHARE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

CONFIG_REFERENCE = ROOT / "config" / "README.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"

SIZES: Sequence[tuple[Any, str]] = (
    (4096, "one size"),
    ([1024, 4096], "a list"),
    ({"from": 1, "to": 65536, "factor": 2}, "geometric; `factor` may be fractional"),
    ({"from": 1, "to": 1024, "count": 21}, "geometric, `count` terms, ends included"),
    ({"from": 1, "to": 512, "step": 1}, "arithmetic"),
    (
        {"sequences": 512, "tokens_per_sequence": 4096, "replicas": 128},
        "tokens on one replica: sequences * tokens_per_sequence / replicas",
    ),
)
"""Forms of sizes in a grid, and what each means; a further one names another dimension."""

HEAD, TAIL = 6, 2
"""Sizes shown at either end of a long axis [1]."""

BLOCK_FORMATS = ("mxfp4", "nvfp4", "mxfp6", "mxfp8")


def yaml_of(form: object) -> str:
    """A form of sizes in YAML's flow style."""
    if isinstance(form, dict):
        return f"{{{', '.join(f'{key}: {value}' for key, value in form.items())}}}"
    return str(form)


def listed(sizes: Sequence[int]) -> str:
    """Sizes as text, the middle of a long axis left out."""
    if len(sizes) <= HEAD + TAIL:
        return ", ".join(map(str, sizes))
    return ", ".join([*map(str, sizes[:HEAD]), "...", *map(str, sizes[-TAIL:])])


def sizes_table() -> str:
    """The forms of sizes with their meaning and their sizes, in Markdown."""
    rows = [(f"`{yaml_of(form)}`", text, listed(Sizes(form).values())) for form, text in SIZES]
    same = ("`D`", "equal to that dimension in every row: `F: D` gives square weights", "")
    return table(("form", "meaning", "sizes"), [*rows, same])


def layers_table() -> str:
    """Layers by name with their matrix, in Markdown."""
    return table(("layer", "matrix"), [(f"`{name}`", text) for name, text in LAYERS.items()])


def shardings_table() -> str:
    """Named shardings of a matmul: split dimension, collective and sent bytes, in Markdown."""
    rows = [(f"`{name}`", *sharding_cells(name)) for name in NAMED_SHARDINGS]
    return table(("name", "split dimension", "collective", "each chip sends"), rows)


def sharding_cells(name: str) -> tuple[str, str, str]:
    """Split dimension of a matmul, collective, and bytes that a chip sends, for a sharding."""
    matmul = NAMED_OPERATIONS["matmul"]
    sharding = parse_sharding(name, matmul)
    if sharding.split is None:
        return "none", "", "0; one chip only"
    tensors = " and ".join(
        tensor for tensor in OPERANDS if sharding.split in matmul.operand(tensor)
    )
    split = f"{sharding.split}, in {tensors}"
    if not sharding.transfers:
        return split, "", "0"
    ((tensor, collective),) = sharding.transfers
    passes = RING_PASSES[collective]
    sent = f"{passes if passes > 1 else ''} (N-1)/N * bytes({tensor})".strip()
    when = "after" if collective in REDUCTIONS else "before"
    return split, f"{collective} of {tensor}, {when}", sent


def timings_table() -> str:
    """Kinds of timings with their columns, required and optional, in Markdown."""
    kinds = {
        "matmul": MATMUL_TIMINGS,
        "attention": ATTENTION,
        "routed experts": EXPERTS,
        "collective": COLLECTIVE,
        "served model": SERVED,
    }
    rows = [(name, names(kind.columns), names(kind.optional)) for name, kind in kinds.items()]
    return table(("timing", "columns", "optional"), rows)


def names(columns: Iterable[str]) -> str:
    """Names of columns in a cell."""
    return ", ".join(f"`{column}`" for column in columns)


def limits_table() -> str:
    """The largest input of each kind, in Markdown."""
    rows = (
        ("bytes in a file", f"{MAX_YAML_BYTES:,}"),
        ("values in a file, aliases expanded", f"{MAX_NODES:,}"),
        ("levels of nesting", f"{MAX_DEPTH}"),
        ("size", power(MAX_SIZE, 2)),
        ("sizes per dimension", power(MAX_AXIS_SIZES, 2)),
        ("product of the largest sizes (or tiles) and chips", power(MAX_PRODUCT, 10)),
        ("rows per part", power(MAX_PART_ROWS, 2)),
        ("parts per sweep", f"{MAX_PARTS:,}"),
        ("thresholds for operations per config", f"{MAX_THRESHOLDS:,}"),
        ("thresholds for models per config", f"{MAX_MODEL_THRESHOLDS:,}"),
    )
    return table(("input", "at most"), rows)


def power(number: int, base: int) -> str:
    """A whole power of a base, such as 2^53.

    Raises:
        ValueError: The number is none.
    """
    exponent = 0
    while base**exponent < number:
        exponent += 1
    if base**exponent != number:
        raise ValueError(f"{number} is no power of {base}")
    return f"{base}^{exponent}"


def with_reference(page: str) -> str:
    """config/README.md with current tables of sizes and limits, and bits of block formats."""
    formats = dtype_entries().formats
    bits = (f"{name} {float(stored_bits(formats[name])):g}" for name in BLOCK_FORMATS)
    values: Mapping[str, str] = {
        "bits": ", ".join(bits),
        "far": f"{MAX_BASE_RATIO:g}",
        "snap": f"{SNAP:e}",
    }
    blocks = {
        "sizes": sizes_table,
        "layers": layers_table,
        "shardings": shardings_table,
        "timings": timings_table,
        "limits": limits_table,
    }
    for name, block in blocks.items():
        page = with_block(page, name, block())
    return with_values(page, values)


def with_tolerances(page: str) -> str:
    """CONTRIBUTING with the current tolerances of rows and thresholds."""
    return with_values(page, {"tie": f"{TIE_SHARE:g}", "equal": f"{TIE_TOLERANCE:g}"})
