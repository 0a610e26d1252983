"""Chrome's JSON of traces, event by event: memory does not grow with the file.

The file is read in pieces. A piece that ends between two events is decoded at once, by msgspec; any
other piece event by event, by the standard library. A prefix of a list of events that is a list
itself ends between two events, so both ways give the same events.
"""

from __future__ import annotations

import json
import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rooflines.basics.errors import RooflinesError
from rooflines.basics.files import GZIP

if TYPE_CHECKING:
    from collections.abc import Iterator

PIECE_BYTES = 1 << 20
"""Bytes that are decoded at once [byte]."""

READ_BYTES = 1 << 17
"""Bytes that are read at once [byte]."""

MAX_VALUE_BYTES = 64 << 20
"""Size above which a value is none of a trace [byte]."""

MAX_EVENTS = 50_000_000
"""Events above which a file is refused [1]."""

BETWEEN = re.compile(rb"\}\s*,\s*(?=\{)")
"""End of an object in a list that another object follows."""

TAIL_BYTES = 1 << 16
"""Bytes at the end of a piece in which its last event's end is searched [byte]."""

MAX_TRIALS = 12
"""Places that are tried as the last event's end [1]."""

MARK = "\xef\xbb\xbf"
"""Byte order mark of UTF-8, as latin-1."""

SPACE = re.compile(r"[\s,]*")
"""Characters between values."""

PROFILER_FIX = "give the file of a profiler, not a config or a summary"


class ChromeEvent(msgspec.Struct, gc=False):
    """An event as Chrome's format has it; `args` stays JSON text until needed."""

    name: str | int | float | None = None
    cat: str | None = None
    ph: str | None = None
    pid: int | str | float | None = None
    tid: int | str | float | None = None
    ts: int | float | None = None
    dur: int | float | None = None
    args: msgspec.Raw = msgspec.Raw(b"")


EVENTS = msgspec.json.Decoder(list[ChromeEvent])

TIMES = ("ts", "dur")
FIELDS = frozenset(ChromeEvent.__struct_fields__)


def refusal(path: str, problem: str, fix: str = PROFILER_FIX) -> RooflinesError:
    """Error about a file that is read as no trace."""
    return RooflinesError("", problem, fix, file=path)


def unpacked(path: str, notes: list[str]) -> Iterator[bytes]:
    """Content in pieces, plain or unpacked; several gzip members are one file.

    Args:
        path: The file.
        notes: Gets a sentence where packed data are damaged; what lies before is read.
    """
    with Path(path).open("rb") as file:
        is_packed = file.read(len(GZIP)) == GZIP
        file.seek(0)
        member = zlib.decompressobj(31)
        while content := file.read(READ_BYTES):
            if not is_packed:
                yield content
                continue
            while content:
                try:
                    piece = member.decompress(content, PIECE_BYTES)
                except zlib.error as error:
                    notes.append(f"the gzip data are damaged ({error})")
                    return
                yield piece
                content = member.unconsumed_tail
                if member.eof:
                    content, member = member.unused_data, zlib.decompressobj(31)


class ChromeFile:
    """A file in Chrome's trace format, an object or a bare list.

    Attributes:
        path: Path as given.
        meta: Values beside the events, by key; complete after the last event.
        cut: Where the file ends too early; empty: it is whole.
        has_events: Whether it has a list of events.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.meta: dict[str, Any] = {}
        self.cut = ""
        self.has_events = False
        self._damage: list[str] = []
        self._source = unpacked(path, self._damage)
        self._text = ""
        self._place = 0
        self._ended = False
        self._boundary = b""

    def batches(self) -> Iterator[list[ChromeEvent]]:
        """Events in lists, in the order of the file.

        Raises:
            RooflinesError: It is no trace.
        """
        try:
            yield from self._events()
        except RecursionError:
            problem = "nests deeper than a trace does"
            raise refusal(self.path, problem) from None
        except ValueError as error:
            if isinstance(error, RooflinesError):
                raise
            if not self._ended:
                raise refusal(self.path, "is no JSON of a trace") from None
            self.cut = self.cut or "the file ends within an event"
        if self._damage:
            self.cut = self._damage[0]

    def _events(self) -> Iterator[list[ChromeEvent]]:
        """Events in the list at the top, or under traceEvents."""
        self._more()
        self._text = self._text.removeprefix(MARK)
        start = self._next()
        if start not in {"{", "["}:
            begins = f"it begins with {_utf8(self._text[:12])!r}" if self._text else "it is empty"
            raise refusal(self.path, f"is no JSON of a trace: {begins}")
        self._place += 1
        if start == "[":
            self.has_events = True
            yield from self._list()
            return
        while self._next() not in {"}", ""}:
            key = self._value()
            if self._next() != ":":
                raise ValueError(key)
            self._place += 1
            begins = self._next()
            if key != "traceEvents" or begins != "[":
                self.meta[str(key)] = self._value()
                continue
            self._place += 1
            self.has_events = True
            yield from self._list()

    def _more(self, count: int = 0) -> None:
        """Read on by a piece, or by more, and drop what lies before the place."""
        count = max(count, PIECE_BYTES)
        pieces, size = [self._text[self._place :]], 0
        for piece in self._source:
            pieces.append(piece.decode("latin-1"))
            size += len(piece)
            if size >= count:
                break
        else:
            self._ended = True
        self._text, self._place = "".join(pieces), 0

    def _next(self) -> str:
        """The next value's first character; empty at the end."""
        while True:
            match = SPACE.match(self._text, self._place)
            self._place = match.end() if match else self._place
            if self._place < len(self._text) or self._ended:
                return self._text[self._place : self._place + 1]
            self._more()

    def _value(self) -> Any:  # noqa: ANN401, any JSON value
        """Next value."""
        while True:
            try:
                value, place = SCANNER.raw_decode(self._text, self._place)
            except ValueError:
                if self._ended:
                    raise ValueError(self.path) from None
            else:
                if place - self._place > MAX_VALUE_BYTES:
                    raise self._too_large()
                if place < len(self._text) or self._ended:
                    text, self._place = self._text[self._place : place], place
                    return value if text.isascii() else json.loads(_utf8(text))
            size = len(self._text) - self._place
            if size > MAX_VALUE_BYTES:
                raise self._too_large()
            self._more(size)

    def _too_large(self) -> RooflinesError:
        """Error about a value that no trace has."""
        return refusal(self.path, "has a value of more than 64 MiB before its events")

    def _list(self) -> Iterator[list[ChromeEvent]]:
        """Events up to the end of their list, which is left behind."""
        while True:
            if self._next() == "]":
                self._place += 1
                return
            if len(self._text) - self._place < PIECE_BYTES and not self._ended:
                self._more()
            events = self._whole_piece()
            if events is None:
                yield self._single_events()
                if self._ended and self._next() == "":
                    self.cut = self.cut or "the file ends within its events"
                    return
            else:
                yield events

    def _whole_piece(self) -> list[ChromeEvent] | None:
        """Events up to the last whole one in the text; None: its end is not seen."""
        if self._text[self._place : self._place + 1] != "{":
            return None
        content = self._text[self._place :].encode("latin-1")
        matches = [*BETWEEN.finditer(content, max(len(content) - TAIL_BYTES, 0))]
        ends = [(match.start() + 1, match[0]) for match in reversed(matches)]
        ends = sorted(ends[: MAX_TRIALS * 4], key=lambda end: end[1] != self._boundary)
        for end, boundary in ends[:MAX_TRIALS]:
            try:
                events = EVENTS.decode(b"[" + content[:end] + b"]")
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
            self._boundary = boundary
            self._place += end
            return events
        return None

    def _single_events(self) -> list[ChromeEvent]:
        """Events one by one, as far as the text goes."""
        events: list[ChromeEvent] = []
        while (character := self._next()) != "]" and character:
            try:
                value = self._value()
            except ValueError:
                self._place = len(self._text)
                self.cut = "the file ends within an event"
                break
            if isinstance(value, dict):
                events.append(_event(value))
            if len(self._text) - self._place >= PIECE_BYTES and len(events) >= SINGLE_EVENTS:
                break
        return events


SINGLE_EVENTS = 64
"""Events that are read one by one before whole pieces are tried again [1]."""

SCANNER = json.JSONDecoder()


def _utf8(text: str) -> str:
    """Text whose bytes were read as latin-1."""
    return text.encode("latin-1").decode("utf-8", errors="replace")


def _event(value: dict[str, Any]) -> ChromeEvent:
    """An event from its fields; without a begin if a time is no number."""
    fields = {key: value[key] for key in FIELDS & value.keys() if key != "args"}
    for key, content in [*fields.items()]:
        if key in TIMES:
            if content is not None and (
                isinstance(content, bool) or not isinstance(content, int | float)
            ):
                fields[key] = fields["ts"] = None
        elif isinstance(content, bool | list | dict):
            fields[key] = None
        elif key in {"cat", "ph"} and content is not None:
            fields[key] = str(content)
    args = value.get("args")
    text = json.dumps(args) if isinstance(args, dict) else ""
    return ChromeEvent(**fields, args=msgspec.Raw(text.encode()))
