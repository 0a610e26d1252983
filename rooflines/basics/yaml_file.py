"""YAML without surprises: no duplicate keys, bounded aliases, errors with line and column."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from rooflines.basics.errors import RooflinesError, placed, quote, shortened
from rooflines.basics.files import bounded_text
from rooflines.basics.numbers import DECIMAL

if TYPE_CHECKING:
    from collections.abc import Iterator

JSON = Mapping[str, Any]
"""A mapping of YAML or JSON data."""

LARGEST_FILE = 2**20
"""Bytes of a config or catalogue [byte]; a larger one is a mistake."""

MOST_NODES = 500_000
"""Values of a document with its aliases spelt out [1]; each takes half a kilobyte while it is
read."""

DEEPEST = 40
"""Levels of nesting; a config has seven."""

SCALARS = {
    "str": "text",
    "int": "whole number",
    "float": "number",
    "bool": "truth value",
    "null": "null",
    "timestamp": "date",
    "merge": "key",
}
PLAIN: Mapping[str, type[yaml.Node]] = {
    f"tag:yaml.org,2002:{kind}": node
    for kind, node in {
        "map": yaml.MappingNode,
        "seq": yaml.SequenceNode,
        **dict.fromkeys(SCALARS, yaml.ScalarNode),
    }.items()
}
"""The accepted kinds of values by tag; other tags, such as those of sets and bytes, are refused."""

MERGE = "tag:yaml.org,2002:merge"
"""The key `<<`: the keys beside it override those of its mapping."""

NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")

CLEAR = re.compile(
    rf"{DECIMAL.pattern}|[+-]?0x[0-9a-fA-F]+|[+-]?0b[01]+|[+-]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
    re.ASCII,
)
"""Numbers that YAML 1.1 reads as people do. It reads others differently: `1:30` is 90, `017` is 15,
`1__0` is 10."""

MOST_OPEN = 500
"""Brackets inside each other, or columns of indentation, that no config has [1]."""

MEND = (
    "mend the file there, or in the line above: indent with spaces and not with tabs, keys of one "
    "mapping alike; close brackets and quotes; write a space behind each colon"
)


def _wrong(node: yaml.Node, problem: str) -> yaml.MarkedYAMLError:
    """The error of a value at its place, as PyYAML has it."""
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Loader(Base):  # type: ignore[misc]  # the C loader where libyaml is there; both construct plain data only
    """Plain data; a number may be written 1.97e14, and a mapping may not have a key twice."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: ANN401, FBT001, FBT002, PyYAML's signature
        """A value; where it does not fit its tag, PyYAML may raise any error."""
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError):
            kind = SCALARS.get(node.tag.rpartition(":")[2])
            if kind is None:
                raise
            raise _wrong(node, f"{quote(node.value)} is no {kind}") from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002, PyYAML's signature
        """A mapping, each key once."""
        seen: dict[object, yaml.Node] = {}
        for key_node, _ in node.value:
            if key_node.tag == MERGE:
                continue
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, list | dict):
                raise _wrong(key_node, "a key is a list or a mapping")
            if key in seen:
                raise _wrong(key_node, f"the key {quote(key)} is written twice")
            seen[key] = key_node
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return mapping


Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(\d[\d_]*\.?\d*|\.\d+)[eE][-+]?\d+$"),
    list("-+0123456789."),
)


def read_yaml(path: str | Path) -> Any:  # noqa: ANN401, any YAML value
    """The plain data in a YAML file.

    Raises:
        RooflinesError: The file is missing, too large, no YAML, or no plain data.
    """
    with placed(file=str(path)):
        text = bounded_text(Path(path), LARGEST_FILE, f"keep it to {LARGEST_FILE:,} bytes")
        try:
            return _plain_data(text)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            place = _place(mark) if mark else ""
            raise RooflinesError(place, f"is not valid YAML: {error.problem}", MEND) from None
        except RecursionError:
            raise RooflinesError(
                "", f"is nested more than {DEEPEST} levels deep", "nest it less"
            ) from None
        except RooflinesError:
            raise
        except (yaml.YAMLError, ValueError) as error:
            problem = " ".join(str(error).split())
            raise RooflinesError("", f"is not valid YAML: {problem}", "mend the file") from None


def _place(mark: yaml.Mark) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}"


def _plain_data(text: str) -> Any:  # noqa: ANN401, any YAML value
    if _could_overflow(text):
        raise RecursionError
    loader = Loader(text)
    try:
        root = loader.get_single_node()
        _check_shape(root, loader)
        return None if root is None else loader.construct_document(root)
    finally:
        loader.dispose()


def _could_overflow(text: str) -> bool:
    """Whether the nesting could overflow the stack of the parser, which recurses in C.

    Brackets and indentation bound it from above.
    """
    deepest = depth = 0
    for bracket in re.findall(r"[][{}]", text):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    indented = max((len(match) for match in re.findall(r"^[ ?:-]*", text, re.MULTILINE)), default=0)
    return max(deepest, indented) > MOST_OPEN


def _check_shape(root: yaml.Node | None, loader: Loader) -> None:
    """Refuse a document before it is built.

    It may nest too deep, grow by its aliases, or have ambiguous numbers.
    """
    sizes: dict[int, int] = {}

    def size(node: yaml.Node, depth: int) -> int:
        if depth > DEEPEST:
            raise _wrong(node, f"nested more than {DEEPEST} levels deep")
        if not isinstance(node, PLAIN.get(node.tag, ())):
            raise _wrong(node, f"{quote(node.tag)} is no kind of plain data")
        if id(node) in sizes:
            return sizes[id(node)]
        sizes[id(node)] = 1
        if isinstance(node, yaml.ScalarNode):
            _check_number(node, loader)
            return 1
        children = (
            [child for pair in node.value for child in pair]
            if isinstance(node, yaml.MappingNode)
            else node.value
        )
        sizes[id(node)] = 1 + sum(size(child, depth + 1) for child in children)
        if sizes[id(node)] > MOST_NODES:
            raise _wrong(node, f"more than {MOST_NODES:,} values, aliases spelt out")
        return sizes[id(node)]

    if root is not None:
        size(root, 0)


def _check_number(node: yaml.ScalarNode, loader: Loader) -> None:
    """Refuse a number that YAML 1.1 reads as a different one than people do."""
    if node.tag in NUMBERS and not CLEAR.fullmatch(node.value):
        problem = (
            f"has {shortened(node.value)}, which YAML reads as "
            f"{quote(loader.construct_object(node))}"
        )
        fix = (
            "write the number without leading zeros, colons and stray underscores, or put it "
            "in quotes where text is meant"
        )
        raise RooflinesError(_place(node.start_mark), problem, fix)


@contextmanager
def in_file(path: str | Path, place: str = "") -> Iterator[None]:
    """Adds file and line to the errors raised inside, and sorts them by line.

    Lines are looked up only then, in the text read again: a valid config costs nothing.

    Args:
        path: The file.
        place: Goes before the key paths.
    """
    try:
        yield
    except RooflinesError as error:
        mistakes = error.within(place, file=str(path), line_of=Lines(path).of).errors
        raise RooflinesError.of(sorted(mistakes, key=lambda mistake: mistake.line or 0)) from None


class Lines:
    """The lines of the keys and items of a YAML file; for an alias, of its anchor."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)

    @cached_property
    def _found(self) -> dict[str, int]:
        found: dict[str, int] = {}
        with suppress(OSError, ValueError, yaml.YAMLError):
            if self._path.is_file():  # a pipe can be read once only
                text = self._path.read_text(encoding="utf-8")
                _add_lines(yaml.compose(text, Loader=Loader), "", found)
        return found

    def of(self, where: str) -> int | None:
        """The line of a key path, or of its longest part that exists [1]; None without one."""
        while where and where not in self._found:
            where = where[: max(where.rfind("."), where.rfind("["), 0)]
        return self._found.get(where)


def _add_lines(node: yaml.Node | None, path: str, found: dict[str, int], depth: int = 0) -> None:
    """Add the lines of what a node holds by key path; keys beside `<<` override merged ones."""
    children: list[tuple[str, yaml.Node, yaml.Node]] = []
    if isinstance(node, yaml.SequenceNode):
        children = [(f"{path}[{index}]", item, item) for index, item in enumerate(node.value)]
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.tag == MERGE and depth <= DEEPEST:
                merged = value.value if isinstance(value, yaml.SequenceNode) else [value]
                for part in reversed(merged):
                    _add_lines(part, path, found, depth + 1)
        joint = f"{path}." if path else ""
        own = ((key, value) for key, value in node.value if key.tag != MERGE)
        children = [(f"{joint}{key.value}", key, value) for key, value in own]
    for step, named, value in children if depth <= DEEPEST else ():
        found[step] = named.start_mark.line + 1
        _add_lines(value, step, found, depth + 1)
