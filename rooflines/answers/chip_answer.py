"""A question that names chips alone: peaks, ridges, memory, interconnects and prices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.answers.basis import BOUND_BASIS
from rooflines.answers.case_table import Cases
from rooflines.answers.name_search import check_chip
from rooflines.answers.phrases import price_notes
from rooflines.answers.question_words import LIST_CHIPS
from rooflines.basics.errors import at_path
from rooflines.basics.text import si, significant
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.hardware.entries import MAIN_MEMORY
from rooflines.theory.operation import MATRIX

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rooflines.answers.question import QuestionCatalogues
    from rooflines.answers.question_words import Question
    from rooflines.hardware.entries import Chip

TITLES = {"chip": "chip", "dtype": "dtype", "peak": "dense peak", "ridge": "ridge [FLOP/B]"}
"""Column titles."""


def names_chips_alone(question: Question) -> bool:
    """Check for a question that names chips, perhaps with dtypes, and nothing to compute."""
    return bool(question.chips) and not (
        question.model
        or question.operation
        or question.product
        or question.sizes
        or question.open_sizes
        or question.request
        or question.splits
        or question.roles
        or question.options
        or question.mistakes
    )


def chip_cases(question: Question, catalogues: QuestionCatalogues) -> Cases:
    """Peak and ridge of each chip by dtype: peak / bandwidth of main memory [FLOP/byte].

    Args:
        question: Chips, and perhaps dtypes that the table is cut to.
        catalogues: What can be named.

    Raises:
        RooflinesError: A chip is not in the catalogue.
    """
    for name in question.chips:
        with at_path("chip"):
            check_chip(name, catalogues.chips, LIST_CHIPS)
    chips = {name: catalogues.chips[name] for name in question.chips}
    rows = [row for name, chip in chips.items() for row in _peaks(name, chip)]
    typed_dtypes = [row for row in rows if row["dtype"] in question.dtypes]
    rows = typed_dtypes or rows
    several = len(chips) > 1
    columns = {name: title for name, title in TITLES.items() if several or name != "chip"}
    head = f"{', '.join(chips)} · roofline of the matrix unit over main memory"
    notes = [note for name, chip in chips.items() for note in _notes(name, chip, several=several)]
    first = next(iter(chips))
    lacking = [
        f"No {dtype} peak: {', '.join(without)}."
        for dtype in question.dtypes
        if typed_dtypes
        and (without := [name for name in chips if dtype not in chips[name].units.get(MATRIX, {})])
    ]
    notes += [
        *lacking,
        "A kernel is compute-bound above the ridge, in FLOP per byte of memory traffic.",
        *price_notes(chips),
        f"Ask about a step: rooflines explain {first} llama-3.1-8b B=64 S=8k.",
        f"Ask about a matmul: rooflines explain {first} 128x8192x8192.",
        f"All numbers, with their sources: rooflines list chips {first}.",
    ]
    return Cases(head, rows, columns, "", BOUND_BASIS, notes)


def _peaks(name: str, chip: Chip) -> Iterator[Mapping[str, Any]]:
    """Peak and ridge in each dtype of the matrix unit, in catalogue order."""
    bytes_per_s = chip.memory[MAIN_MEMORY].bytes_per_s
    peaks = chip.units.get(MATRIX, {})
    for dtype in dtype_entries().formats:
        if dtype not in peaks:
            continue
        flops_per_s = peaks[dtype].flops_per_s
        ridge = flops_per_s / bytes_per_s if bytes_per_s else None
        yield {
            "chip": name,
            "dtype": dtype,
            "flops_per_s": flops_per_s,
            "ridge_intensity": ridge,
            "peak": si(flops_per_s, "FLOP/s"),
            "ridge": "-" if ridge is None else significant(ridge),
        }


def _notes(name: str, chip: Chip, *, several: bool) -> Iterator[str]:
    """Sentences on memory and interconnects."""
    memory = chip.memory[MAIN_MEMORY]
    parts = []
    if memory.capacity_bytes:
        label = f" (label {memory.label})" if memory.label else ""
        parts.append(f"{si(memory.capacity_bytes, 'B')}{label}")
    if memory.bytes_per_s:
        parts.append(si(memory.bytes_per_s, "B/s"))
    head = f"{name}: memory" if several else "Memory"
    if parts:
        yield f"{head} {' at '.join(parts)}."
    networks = [
        f"{network_name} {si(network.bytes_per_s * network.links, 'B/s')} out of a chip"
        + (f", up to {network.domain} chips" if isinstance(network.domain, int) else "")
        for network_name, network in chip.networks.items()
        if network.domain != 1
    ]
    if networks:
        head = f"{name}: interconnects" if several else "Interconnects"
        yield f"{head}: {'; '.join(networks)}."
