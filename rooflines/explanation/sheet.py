"""What an explanation shows, piece by piece; the text and the card lay the pieces out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class Line:
    """A labelled statement.

    Attributes:
        label: What it is about.
        value: The short answer; may be empty.
        text: The rest.
    """

    label: str
    value: str
    text: str


@dataclass(frozen=True)
class Bar:
    """The time of one resource.

    Attributes:
        bound: The resource's name as a bottleneck.
        time_s: Its time [s].
        text: Its work and rate.
    """

    bound: str
    time_s: float
    text: str


@dataclass(frozen=True)
class Section:
    """Statements under a title; without statements, the title is one itself."""

    title: str
    lines: Sequence[Line] = ()


@dataclass(frozen=True)
class NumberSource:
    """Where the numbers of one part of the chip come from.

    Attributes:
        part: The part, such as `bf16 peak` or `hbm`.
        values: Its numbers as text.
        sources: Ids of documents, or free text.
        remarks: Confidence, `estimate`, `halved`.
        note: What else to know; only of estimates.
    """

    part: str
    values: str
    sources: tuple[str, ...]
    remarks: tuple[str, ...]
    note: str


@dataclass(frozen=True)
class Sheet:
    """An explanation as statements.

    Attributes:
        asked: The question.
        finding: The short answer.
        bound: The bottleneck.
        bars: The time of every resource.
        facts: Labelled statements about the whole; they have no values.
        sections: Further statements.
        name: The chip's full name.
        origins: Where the chip's numbers come from.
        documents: Title and address of the sources that are documents, by id.
    """

    asked: str
    finding: str
    bound: str
    bars: Sequence[Bar]
    facts: Sequence[Line]
    sections: Sequence[Section]
    name: str
    origins: Sequence[NumberSource]
    documents: Mapping[str, Mapping[str, str]]
