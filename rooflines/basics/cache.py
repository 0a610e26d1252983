"""Cache for data that take long to compute from package files: JSON, a file each.

A cache file is valid for one state: its sources, this package, Python. A doubt about it, or about
its folder, costs the time to compute the data again, never an error or another number.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rooflines.basics.files import CONFIG_DIR
from rooflines.basics.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Data = TypeVar("Data")

FOLDER_VARIABLE = "ROOFLINES_CACHE"
"""Environment variable with the cache folder; empty: no cache."""

PACKAGE = Path(__file__).parents[1]

ROOMS = (
    *("basics", "theory", "dictionary", "hardware", "kinds"),
    *("models", "models/hf", "training", "fits"),
)
"""Sub-packages whose code decides what the data are."""

MAX_BYTES = 2**26
"""Maximum cache file size [byte]."""

MAX_STATES = 12
"""Maximum number per name, the newest: several versions and edits take turns [1]."""

DIGEST_DIGITS = 64
"""Hexadecimal digits before the data in a cache file [1]."""

NOT_PLAIN = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Errors on data that are not what a cache file must have."""


TYPE, ITEMS = "#", "items"
"""Keys in a mapping that stands for another value: its type, and its items."""


@dataclass(frozen=True)
class Codec:
    """Conversion to a cache file's JSON: each value that JSON lacks becomes a mapping.

    Attributes:
        mapping_of: Turns a value that JSON lacks into a mapping with its type; None: it cannot.
        builders: Functions that turn such a mapping, without its type, into the value, by type.
        version: Version string for anything else that decides the data.
    """

    mapping_of: Callable[[object], dict[str, Any] | None] = lambda _: None
    builders: Mapping[str, Callable[[dict[str, Any]], Any]] = field(default_factory=dict)
    version: str = ""

    def encode(self, value: object) -> Any:  # noqa: ANN401, plain data
        """Plain data for a value.

        Raises:
            TypeError: They cannot stand for it.
        """
        if value is None or type(value) in (bool, int, float, str):
            return value
        if isinstance(value, list):
            return [self.encode(part) for part in value]
        if isinstance(value, tuple):
            return {TYPE: "tuple", ITEMS: self.encode([*value])}
        mapping = value if type(value) is dict else self.mapping_of(value)
        if mapping is None or (mapping is value and TYPE in mapping):
            raise TypeError
        if not all(isinstance(key, str) for key in mapping):
            return {TYPE: "pairs", ITEMS: self.encode([[*pair] for pair in mapping.items()])}
        return {key: self.encode(part) for key, part in mapping.items()}

    def decode(self, mapping: dict[str, Any]) -> Any:  # noqa: ANN401, any of the values
        """Value for a mapping whose parts are values."""
        form = mapping.pop(TYPE, None)
        if form is None:
            return mapping
        if form in ("tuple", "pairs"):
            return (tuple if form == "tuple" else dict)(mapping[ITEMS])
        return self.builders[form](mapping)


PLAIN = Codec()
"""Plain data."""


def cached(
    name: str, sources: Sequence[Path], compute: Callable[[], Data], codec: Codec = PLAIN
) -> Data:
    """Data from the cache, else computed and put there.

    Args:
        name: Name for the cache file.
        sources: Files that decide the data, apart from code; outside the package and its catalogues
            nothing is put into the cache.
        compute: Computes the data.
        codec: Conversion to JSON and back.
    """
    versions = name, codec.version
    key = _key(versions, sources)
    path = None if key is None else _path(name, key)
    if key is None or path is None:
        return compute()
    with suppress(*NOT_PLAIN):
        if (text := _read(path, key)) is not None:
            data: Data = json.loads(text, object_hook=codec.decode)
            return data
    data = compute()
    with suppress(*NOT_PLAIN):
        text = json.dumps(codec.encode(data), ensure_ascii=False, separators=(",", ":"))
        # A source that is edited at this moment may have been read after the edit.
        if json.loads(text, object_hook=codec.decode) == data and _key(versions, sources) == key:
            _write(path, name, f"{_digest(key, text)}{text}".encode())
    return data


def _key(versions: Sequence[str], sources: Sequence[Path]) -> str | None:
    """Digest over everything that decides the data; None without one."""
    digest = sha256("\n".join((*versions, *_code_state())).encode())
    try:
        for source in sources:
            if source.parent != CONFIG_DIR and PACKAGE not in source.parents:
                return None
            content = source.read_bytes()
            digest.update(f"\n{source}\n{len(content)}\n".encode() + content)
    except (OSError, ValueError):
        return None
    return digest.hexdigest()


@cache
def _code_state() -> tuple[str, ...]:
    """Times and sizes by file, from which Python tells whether compiled modules are current."""
    files = []
    with suppress(OSError):
        for room in ROOMS:
            for entry in sorted(os.scandir(PACKAGE / room), key=lambda entry: entry.name):
                if entry.is_file():
                    state = entry.stat()
                    files.append(f"{room}/{entry.name} {state.st_mtime_ns} {state.st_size}")
    return (sys.version, __version__, str(PACKAGE), *files)


def _digest(key: str, text: str) -> str:
    return sha256(f"{key}\n{text}".encode()).hexdigest()


# ------------------------------------------------------------ files


def cache_folder() -> Path | None:
    """Folder for cache files, by the platform's rules; None: no cache."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if folder is not None:
        return Path(folder) if folder else None
    home = Path(os.path.expanduser("~"))  # noqa: PTH111, Path.home() raises without a home
    default = home / ".cache"
    if sys.platform == "win32":
        default = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        default = home / "Library" / "Caches"
    parent = Path(os.environ.get("XDG_CACHE_HOME") or default)
    return parent / "rooflines" if parent.is_absolute() else None


def _path(name: str, key: str) -> Path | None:
    """Cache file path; None: no cache."""
    folder = cache_folder()
    return None if folder is None else folder / f"{name}-{key[:16]}.json"


def _is_own(state: os.stat_result) -> bool:
    """Tell whether a file or folder belongs to this user, and nobody else can write to it."""
    if not hasattr(os, "geteuid"):
        return True  # Windows: folders in a profile are the user's
    return state.st_uid == os.geteuid() and not state.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _read(path: Path, key: str) -> str | None:
    """Text in a cache file; None if it is missing, damaged, or could be someone else's."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        if not _is_own(path.parent.stat()):
            return None
        with open(os.open(path, flags), "rb") as file:  # noqa: PTH123, a descriptor
            state = os.fstat(file.fileno())
            if not stat.S_ISREG(state.st_mode) or not _is_own(state) or state.st_size > MAX_BYTES:
                return None
            content = file.read(MAX_BYTES).decode()
    except (OSError, ValueError):
        return None
    digest, text = content[:DIGEST_DIGITS], content[DIGEST_DIGITS:]
    return text if digest == _digest(key, text) else None


def _write(path: Path, name: str, content: bytes) -> None:
    """Write a cache file, whole or not at all, and remove old ones with this name."""
    import tempfile  # noqa: PLC0415, seldom used

    with suppress(OSError, ValueError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_own(path.parent.stat()):
            return
        handle, temporary = tempfile.mkstemp(prefix=f"{name}-", suffix=".tmp", dir=path.parent)
        try:
            with open(handle, "wb") as opened:  # noqa: PTH123, a descriptor
                opened.write(content)
            Path(temporary).replace(path)
        finally:
            Path(temporary).unlink(missing_ok=True)
        files = sorted(path.parent.glob(f"{name}-*"), key=lambda file: file.stat().st_mtime)
        for file in files[:-MAX_STATES]:
            file.unlink(missing_ok=True)
