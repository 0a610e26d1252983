"""The models of the catalogue as rows: counts by every convention, caches and sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.models.cache import cache_bytes, cache_elements
from rooflines.models.counts import parameters_of
from rooflines.models.library import CONVENTIONS, model_entries

if TYPE_CHECKING:
    from rooflines.models.library import ModelEntry

CACHE_DTYPES = ("bf16", "fp8")
"""The dtypes of the columns `cache_bytes_per_token_`."""


def shape_rows() -> list[dict[str, Any]]:
    """A row for each model of the catalogue, with the columns of `MODEL_SHAPES`."""
    return [_row(name, entry) for name, entry in model_entries().items()]


def _row(name: str, entry: ModelEntry) -> dict[str, Any]:
    counts, published, window = parameters_of(entry), entry.published, entry.window
    notes = [note for note in (entry.note, published.note) if note]
    per_layer = entry.attention.cache_elements
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
        "cache_elements_per_token": cache_elements(entry, 1),
        "window": None if window is None else window.tokens,
        "windowed_elements_per_token": 0 if window is None else window.layers * per_layer,
        **{
            f"cache_bytes_per_token_{dtype}": float(cache_bytes(entry, 1, dtype))
            for dtype in CACHE_DTYPES
        },
        "source": entry.source,
        "note": "; ".join(dict.fromkeys(notes)) or None,
    }
