"""Sheet of one model, number by number; and table of the catalogue's models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.basics.numbers import exact
from rooflines.hardware.chip_catalogue import base_chips, chip_entries
from rooflines.hardware.entries import MAIN_MEMORY
from rooflines.models.library import CONVENTIONS, model_entries
from rooflines.models.memory import kv_cache_elements
from rooflines.models.parameter_counts import parameters_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflines.models.library import ModelEntry
    from rooflines.models.model import Model

DTYPES = ("bf16", "fp8", "int4")
"""Weight dtypes on the sheet."""

CACHE_DTYPES = ("bf16", "fp8")
"""KV cache dtypes on the sheet; also for weights in the batch on one chip."""

CONTEXTS = (8192, 32768, 131072)
"""KV cache contexts on the sheet [1]."""

BATCH_CONTEXT = CONTEXTS[0]
"""Context for the largest batch on one chip [1]."""


def model_numbers(model: Model) -> Iterator[tuple[str, float, str]]:
    """Compute the numbers on a model's sheet.

    Yields:
        Name, such as `parameters.total` or `kv_cache_bytes.bf16.8192`, number, and unit (1 or
        byte): training context, if known; parameters by part and by convention; SSM states, if any;
        KV cache per sequence at one token and at three contexts, states included; weights by
        dtype; and the largest batch on each catalogue chip that holds the model.
    """
    if model.shape.context is not None:
        yield "context", model.shape.context, "1"
    counts = model.parameters()
    for part, count in counts.groups.items():
        yield f"parameters.{part}", count, "1"
    for name in ("total", *CONVENTIONS):
        yield f"parameters.{name}", getattr(counts, name), "1"
    yield "kv_cache_elements.1", model.kv_cache_elements(1), "1"
    if state := model.state_bytes():
        yield "state_bytes", float(state), "byte"
    for dtype in CACHE_DTYPES:
        for context in (1, *CONTEXTS):
            size = model.kv_cache_bytes(context, dtype)
            yield f"kv_cache_bytes.{dtype}.{context}", float(size), "byte"
    for dtype in DTYPES:
        yield f"weights_bytes.{dtype}", float(model.weights_bytes(dtype)), "byte"
    if model.dtypes is not None:
        yield "weights_bytes.published", float(model.weights_bytes()), "byte"
    for chip, _, batches in fitting_chips(model):
        for dtype, batch in batches.items():
            if batch:
                yield f"max_batch.{chip}.{dtype}.{BATCH_CONTEXT}", batch, "1"


def fitting_chips(model: Model) -> Iterator[tuple[str, float, dict[str, int]]]:
    """Find catalogue chips, without variants, that alone hold the model and a KV cache.

    Yields:
        Chip; main memory capacity [byte]; largest batch by dtype (weights and KV cache), at a
        context of `BATCH_CONTEXT` [1]. Only chips with a batch in some dtype.
    """
    for chip in base_chips():
        level = chip_entries()[chip].memory.get(MAIN_MEMORY)
        if level is None or level.capacity_bytes is None:
            continue
        capacity = level.capacity_bytes
        batches = {
            dtype: model.max_batch(exact(capacity), BATCH_CONTEXT, dtype) for dtype in CACHE_DTYPES
        }
        if any(batches.values()):
            yield chip, capacity, batches


def shape_rows() -> list[dict[str, Any]]:
    """Rows for the catalogue's models, with the columns `MODEL_SHAPES`."""
    return [_row(name, entry) for name, entry in model_entries().items()]


def _row(name: str, entry: ModelEntry) -> dict[str, Any]:
    counts, published, window = parameters_of(entry), entry.published, entry.window
    notes = [note for note in (entry.note, published.note) if note]
    model = entry.model(name)
    state = model.state_bytes()
    return {
        "model": name,
        "name": entry.name,
        "family": entry.family,
        "layers": entry.layers,
        "context": entry.context,
        "parameters": counts.total,
        **{convention: getattr(counts, convention) for convention in CONVENTIONS},
        "published_total": str(published.total),
        "published_active": None if published.active is None else str(published.active),
        "convention": published.convention,
        "match": published.match,
        "cache_elements_per_token": kv_cache_elements(entry, 1),
        "window": None if window is None else window.tokens,
        "windowed_elements_per_token": kv_cache_elements(entry, 1, local=True),
        **{
            f"kv_cache_bytes_per_token_{dtype}": float(model.kv_cache_bytes(1, dtype) - state)
            for dtype in CACHE_DTYPES
        },
        "state_bytes": float(state),
        "source": entry.source,
        "note": "; ".join(dict.fromkeys(notes)) or None,
    }
