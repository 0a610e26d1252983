"""Every number of a chip, with its source and remarks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.catalogue.chips import source_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["numbers_with_sources"]


def numbers_with_sources(entry: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The numbers of a chip one by one.

    Args:
        entry: The chip as JSON, variants resolved (`Chip.plain`).

    Yields:
        `path` (such as `memory.hbm.bytes_per_s`), `value` (in the SI unit of the path's last word),
        `source`, `confidence`, `estimate`, `halved`, `printed_with_sparsity`, `note`.
    """
    parts: list[tuple[str, Mapping[str, Any]]] = [
        (f"units.{unit}.{dtype}", peak)
        for unit, peaks in entry["units"].items()
        for dtype, peak in peaks.items()
    ]
    parts += [(f"memory.{name}", level) for name, level in entry["memory"].items()]
    parts += [(f"networks.{name}", network) for name, network in entry["networks"].items()]
    parts += [("power", entry["power"])] if "power" in entry else []
    parts += [(f"prices.{index}", price) for index, price in enumerate(entry.get("prices", []))]
    for path, part in parts:
        for key, value in part.items():
            if (
                isinstance(value, int | float)
                and not isinstance(value, bool)
                and key != "printed_with_sparsity"
            ):
                source = source_of(part, key) or source_of(entry, key)
                yield {
                    "path": f"{path}.{key}",
                    "value": float(value),
                    "source": ", ".join(source) if isinstance(source, list) else source,
                    "confidence": part.get("confidence"),
                    "estimate": part.get("estimate", False),
                    "halved": part.get("halved", False),
                    "printed_with_sparsity": part.get("printed_with_sparsity"),
                    "note": part.get("note"),
                }
