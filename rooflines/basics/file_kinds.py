"""Kinds of files that tools of the field write, recognized by content.

`file_kinds.yaml` lists their marks, names, and the commands that read them. A command given another
kind names that kind, its content, and the tool that writes a readable file.
"""

from __future__ import annotations

import csv
import gzip
import re
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from rooflines.basics.errors import RooflinesError, printable
from rooflines.basics.files import GZIP, READ_ERRORS, encoding_of
from rooflines.basics.yaml_file import read_package_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Reader = Literal["kernels", "timings", "fit", "model", "config", "fits", "shapes"]
"""Content that a command reads: profiled kernels, timings, timings to fit, a model, a config,
fits, or matmul sizes."""

HEAD_BYTES = 2**17
"""Bytes at the start of a file, decompressed, that its kind is detected from [byte]."""

SQLITE = b"SQLite format 3\0"
"""First bytes of a SQLite database."""

HEADING_LINES = 400
"""Lines at a table's beginning searched for column names [1]."""

COUNTERS = (
    "gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum,"
    "sm__ops_path_tensor_src_bf16_dst_fp32.sum"
)
"""Nsight Compute counters for a roofline; docs/measure.md lists those for all dtypes."""

READER_CONTENT: dict[Reader, str] = {
    "kernels": "operations and bytes of kernels",
    "timings": "times of single matmuls, attention, collectives or served models",
    "fit": "times of single matmuls, attention or collectives",
    "model": "the shape of a model",
    "config": "a config of rooflines",
    "fits": "fits of a chip and software",
    "shapes": "columns D and F",
}
"""Content in words, by reader."""

FIXES: dict[Reader, dict[str, str]] = {
    "kernels": {
        "nvidia-report": "export it: ncu --import FILE --csv --page raw > kernels.csv",
        "nvidia": f"profile the program: ncu --csv --page raw --metrics {COUNTERS} ./program "
        "> kernels.csv",
        "amd": "profile the program: rocprof-compute profile -n run --format-rocprof-output csv "
        "-- ./program, and give the pmc_perf.csv that it writes",
        "tpu": "ask for the step: `rooflines explain tpu-v5p MODEL`; profiles of TPUs are not read",
        "": "profile the program: of an NVIDIA GPU with ncu --csv --page raw, of one of AMD with "
        "rocprof-compute profile, and give the CSV",
    },
    "timings": {
        "trace": "write its matmuls as a table, with TraceLens_generate_perf_report_pytorch "
        "--profile_json_path FILE, and give GEMM.csv; or time matmuls with `rooflines measured "
        "measure`",
        "engine": "run `vllm bench serve --save-result --max-concurrency N`, or "
        "`python -m sglang.bench_serving --output-file`, and give the JSON",
        "mlperf": "give published steps as docs/accuracy.md has them, or a result of "
        "`vllm bench serve`",
        "": "time matmuls with `rooflines measured measure`, or write a table with a row for each "
        "timing, as docs/measure.md has it",
    },
    "model": {
        "adapter": "give the config.json of the model that it names, or an id of "
        "`rooflines list models`",
        "beside": "give the config.json beside it, or an id of `rooflines list models`",
        "": "give the config.json of a model, or an id of `rooflines list models`",
    },
    "config": {"": "write one with `rooflines new matmul`"},
    "fits": {"": "make them with `rooflines measured calibrate`"},
    "shapes": {"": "write a CSV file with a row for each matmul"},
}
"""Fixes for a file of another kind, by reader and by the file's `maker`."""


class Sign(NamedTuple):
    """Marks of a file kind; a file needs all of them.

    Attributes:
        begins: First bytes.
        ends: End of the file name.
        text: Patterns near the beginning.
        columns: Names in one line of a table.
    """

    begins: bytes = b""
    ends: str = ""
    text: tuple[re.Pattern[str], ...] = ()
    columns: frozenset[str] = frozenset()


class FileKind(NamedTuple):
    """A kind of file.

    Attributes:
        id: The key in `file_kinds.yaml`.
        name: The name, such as "a trace of rocprofv3".
        content: The content in words.
        maker: The vendor or tool, which selects the fix.
        readers: Readers of this kind.
        command: The command line that reads it.
        signs: Alternative signs, one of which is enough.
    """

    id: str
    name: str
    content: str
    maker: str
    readers: frozenset[str]
    command: str
    signs: tuple[Sign, ...]


def file_kind(path: str | Path) -> FileKind | None:
    """Recognize the kind of a file; None: unknown, or unreadable."""
    content = _head(Path(path))
    if not content:
        return None
    text = content.decode(encoding_of(content), "replace")
    names = list(_column_name_lines(text))
    name = Path(path).name.lower()
    return next(
        (
            kind
            for kind in file_kinds()
            if any(_has_marks(sign, name, content, text, names) for sign in kind.signs)
        ),
        None,
    )


def check_kind(path: str | Path, reader: Reader) -> FileKind | None:
    """Refuse a file of a kind that a command does not read.

    Args:
        path: The file.
        reader: The content that the command reads.

    Returns:
        The kind; None: unknown.

    Raises:
        RooflinesError: The file is of another kind, or empty.
    """
    kind = file_kind(path)
    fixes = FIXES["timings" if reader == "fit" else reader]
    if kind is None and reader not in ("config", "fits") and _is_empty(Path(path)):
        raise RooflinesError("", "is empty", fixes[""], file=printable(str(path)))
    if kind is None or reader in kind.readers:
        return kind
    fix = fixes.get(kind.maker, fixes[""])
    if kind.command:
        fix = f"use `{kind.command}`, which reads it; or {fix}"
    problem = (
        f"is {kind.name}, which has {kind.content}; this command reads {READER_CONTENT[reader]}"
    )
    raise RooflinesError("", problem, fix, file=printable(str(path)))


@contextmanager
def named_kind(path: str | Path, reader: Reader) -> Iterator[None]:
    """Name the kind of a file in a reading error, if the command does not read that kind.

    Args:
        path: The file.
        reader: The content that the command reads.

    Raises:
        RooflinesError: The error of `check_kind` in place of the one raised inside, or the latter.
    """
    try:
        yield
    except RooflinesError as error:
        try:
            check_kind(path, reader)
        except RooflinesError as kind_error:
            raise kind_error from None
        raise error from None


@cache
def file_kinds() -> tuple[FileKind, ...]:
    """All kinds, in the order of trial."""
    content = read_package_yaml(Path(__file__).with_name("file_kinds.yaml"))
    return tuple(
        FileKind(
            name,
            entry["name"],
            entry["has"],
            entry.get("maker", ""),
            frozenset(entry.get("reads", ())),
            entry.get("use", ""),
            tuple(map(_sign, entry.get("any", [entry]))),
        )
        for name, entry in content.items()
    )


def _sign(entry: dict[str, object]) -> Sign:
    """Parse a sign from its entry."""
    texts, columns = entry.get("text", []), entry.get("columns", [])
    assert isinstance(texts, list) and isinstance(columns, list)  # noqa: S101, PT018, for types
    return Sign(
        str(entry.get("begins", "")).encode("latin-1"),
        str(entry.get("ends", "")),
        tuple(re.compile(text) for text in texts),
        frozenset(columns),
    )


def _has_marks(sign: Sign, name: str, content: bytes, text: str, lines: Sequence[set[str]]) -> bool:
    """Tell whether a file has all marks of a sign."""
    return (
        content.startswith(sign.begins)
        and name.endswith(sign.ends)
        and all(pattern.search(text) for pattern in sign.text)
        and (not sign.columns or any(sign.columns <= names for names in lines))
    )


def _is_empty(path: Path) -> bool:
    """Tell whether a file is empty."""
    try:
        return path.is_file() and path.stat().st_size == 0
    except (OSError, ValueError):
        return False


def _head(path: Path) -> bytes:
    """Read the beginning of a file, unpacked."""
    try:
        if not path.is_file():  # a pipe can be read once only
            return b""
        with path.open("rb") as file:
            is_gzip = file.read(len(GZIP)) == GZIP
        with gzip.open(path) if is_gzip else path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        return head + _table_names(path) if head.startswith(SQLITE) else head
    except (*READ_ERRORS, ValueError):
        return b""


def _table_names(path: Path) -> bytes:
    """Table names of a SQLite database, which may stand anywhere in the file."""
    import sqlite3  # noqa: PLC0415, few files need it

    with (
        suppress(sqlite3.Error),
        closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        ) as database,
    ):
        names = database.execute("SELECT name FROM sqlite_master").fetchall()
        return "\n".join(name for (name,) in names).encode()
    return b""


def _column_name_lines(text: str) -> Iterator[set[str]]:
    """Cells of the first lines, any of which may hold the column names."""
    for line in text.splitlines()[:HEADING_LINES]:
        if "," in line:
            try:
                yield {cell.strip() for cell in next(csv.reader([line], skipinitialspace=True))}
            except (csv.Error, StopIteration):
                continue
