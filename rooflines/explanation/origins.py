"""Where the numbers of an explanation come from, part by part of the chip."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from rooflines.basics.text import seconds, si
from rooflines.explanation.wording import DIGITS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rooflines.catalogue.parts import NumberRecord


@dataclass(frozen=True)
class NumberSource:
    """Where the numbers of one part of the chip come from.

    Attributes:
        part: The part, such as `bf16 peak` or `hbm`.
        values: Its numbers as text.
        sources: Ids of documents, or free text.
        remarks: Confidence, `estimate`, what was halved.
        note: What else to know; only of estimates.
    """

    part: str
    values: str
    sources: tuple[str, ...]
    remarks: tuple[str, ...]
    note: str


def origins(numbers: Iterable[NumberRecord]) -> Iterator[NumberSource]:
    """Numbers of a chip, as of `catalogue.parts.records`, with their sources, part by part."""
    for path, group in groupby(numbers, key=lambda number: number["path"].rpartition(".")[0]):
        of_part = list(group)
        first = of_part[0]
        head, _, rest = path.partition(".")
        name = rest.rpartition(".")[2]
        names = {"units": f"{name} peak", "memory": name, "networks": name, "prices": "price"}
        stated = (source for number in of_part for source in (number["source"] or "").split(", "))
        remarks = (
            first["confidence"],
            "estimate" if first["estimate"] else "",
            "half of the figure with sparsity" if first["halved"] else "",
            "at boost clock" if first["clock"] == "boost" else "",
        )
        yield NumberSource(
            names.get(head, head),
            ", ".join(_value(number, head) for number in of_part),
            tuple(dict.fromkeys(filter(None, stated))),
            tuple(filter(None, remarks)),
            (first["note"] or "") if first["estimate"] else "",
        )


def _value(number: NumberRecord, head: str) -> str:
    """A number of the chip as text."""
    key, value = number["path"].rpartition(".")[2], number["value"]
    if key == "bytes_per_s":
        return si(value, "B/s", DIGITS) + (" a link" if head == "networks" else "")
    forms = {
        "flops_per_s": lambda: si(value, "FLOP/s", DIGITS),
        "capacity_bytes": lambda: si(value, "B", DIGITS),
        "links": lambda: f"{value:.0f} links" if value != 1 else "1 link",
        "domain": lambda: f"{value:.0f} chips",
        "ring_multiple": lambda: f"rings of {value:.0f}",
        "watts": lambda: f"{value:,.10g} W",
        "usd_per_hour": lambda: f"${value:,.10g} an hour",
        "overhead_s": lambda: f"overhead {seconds(value)}",
        "typical_hop_latency_s": lambda: f"{seconds(value)} typically",
        "hop_latency_s": lambda: f"{seconds(value)} a hop",
    }
    return forms[key]() if key in forms else f"{key} {value:.10g}"
