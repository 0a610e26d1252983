"""Loader of YAML as plain data: numbers as people write them, bounded nesting and aliases.

Apart from `yaml_file`, which imports it with the first file that is read: PyYAML takes a while.
"""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, ClassVar

import yaml

from rooflines.basics.errors import RooflinesError, quote
from rooflines.basics.numbers import DECIMAL

if TYPE_CHECKING:
    from pathlib import Path

MAX_NODES = 500_000
"""Maximum of values in a document, aliases spelt out [1]; each takes half a kilobyte while
reading."""

MAX_DEPTH = 40
"""Maximum nesting depth [1]; a config has seven levels."""

MAX_OPEN = 500
"""Maximum of nested brackets, or columns of indentation [1]; no config comes near."""

INT, FLOAT, MERGE = (f"tag:yaml.org,2002:{kind}" for kind in ("int", "float", "merge"))


YAML_FIX = (
    "mend the file there, or in the line above: indent with spaces and not with tabs, keys of one "
    "mapping alike; close brackets and quotes; write a space behind each colon"
)


def _yaml_error(node: yaml.Node, problem: str) -> yaml.MarkedYAMLError:
    """PyYAML's error about a value, with its place."""
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Loader(Base):  # type: ignore[misc]  # the C loader where libyaml is there; both construct plain data only
    """Loader of plain data: numbers as people write them, no duplicate keys in mappings."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {
        first: [(tag, form) for tag, form in forms if tag not in (INT, FLOAT)]
        for first, forms in Base.yaml_implicit_resolvers.items()
    }

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: ANN401, FBT001, FBT002, PyYAML's signature
        """Construct a value; a misfit to its tag, such as a date in month 13, is refused."""
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError):
            kind = node.tag.rpartition(":")[2]
            raise _yaml_error(node, f"{quote(node.value)} is no {kind}") from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002, PyYAML's signature
        """Construct a mapping; a duplicate key is refused."""
        pairs = node.value if node.id == "mapping" else ()  # anything else is refused by super()
        keys = [key for key, _ in pairs if key.tag != MERGE]
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        known_keys = set[object]()
        for key_node in keys:
            key = self.construct_object(key_node, deep=True)
            if key in known_keys:
                raise _yaml_error(key_node, f"the key {quote(key)} is written twice")
            known_keys.add(key)
        return mapping


# Of YAML 1.1's numbers those that people read alike: there `017` is 15, and `1:30` is 90.
Loader.add_implicit_resolver(
    INT, re.compile(r"[-+]?(0|[1-9]\d*(_\d+)*)$", re.ASCII), list("-+0123456789")
)
Loader.add_implicit_resolver(
    FLOAT,
    re.compile(rf"({DECIMAL.pattern}|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$", re.ASCII),
    list("-+.0123456789"),
)


def plain_data(text: str) -> Any:  # noqa: ANN401, any YAML value
    """Read plain data from a YAML document.

    Raises:
        RooflinesError: The text is no YAML, or no plain data.
    """
    try:
        return _document(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise RooflinesError(place, f"is not valid YAML: {error.problem}", YAML_FIX) from None
    except (yaml.YAMLError, ValueError) as error:
        problem = " ".join(str(error).split())
        raise RooflinesError("", f"is not valid YAML: {problem}", "mend the file") from None


def _document(text: str) -> Any:  # noqa: ANN401, any YAML value
    _check_nesting(text)
    loader = Loader(text)
    try:
        root = loader.get_single_node()
        if root is not None:
            _check_size(root)
        return None if root is None else loader.construct_document(root)
    finally:
        loader.dispose()


def _check_nesting(text: str) -> None:
    """Refuse nesting that could overflow the stack of the parser, which recurses in C.

    Brackets and indentation bound it from above.
    """
    brackets = re.findall(r"[][{}]", text)
    depths = accumulate(1 if bracket in "[{" else -1 for bracket in brackets)
    indents = map(len, re.findall(r"^[ ?:-]*", text, re.MULTILINE))
    if max(chain(depths, indents)) > MAX_OPEN:
        raise yaml.YAMLError(f"nested more than {MAX_DEPTH} levels deep")


def _check_size(root: yaml.Node) -> None:
    """Refuse a document that nests too deep, or grows by its aliases, before it is built."""
    sizes: dict[int, int] = {}

    def size(node: yaml.Node, depth: int) -> int:
        if depth > MAX_DEPTH:
            raise _yaml_error(node, f"nested more than {MAX_DEPTH} levels deep")
        if id(node) not in sizes:
            below = size_of(node, depth + 1) if isinstance(node, yaml.CollectionNode) else 0
            sizes[id(node)] = 1 + below
        if sizes[id(node)] > MAX_NODES:
            raise _yaml_error(node, f"more than {MAX_NODES:,} values, aliases spelt out")
        return sizes[id(node)]

    def size_of(node: yaml.CollectionNode, depth: int) -> int:
        pairs = isinstance(node, yaml.MappingNode)
        children = chain.from_iterable(node.value) if pairs else node.value
        return sum(size(child, depth) for child in children)

    size(root, 0)


def lines_by_path(path: Path) -> dict[str, int]:
    """Line numbers in a YAML file by key path [1]; empty for a file that is missing or no YAML."""
    line_by_path: dict[str, int] = {}
    with suppress(OSError, ValueError, yaml.YAMLError):
        if path.is_file():  # a pipe can be read once only
            text = path.read_text(encoding="utf-8")
            _add_lines(yaml.compose(text, Loader=Loader), "", line_by_path)
    return line_by_path


def _add_lines(
    node: yaml.Node | None, path: str, line_by_path: dict[str, int], depth: int = 0
) -> None:
    """Add the lines of a node's children by key path; merged keys have the line of `<<`."""
    children: list[tuple[str, yaml.Node, yaml.Node]] = []
    if isinstance(node, yaml.SequenceNode):
        children = [(f"{path}[{index}]", item, item) for index, item in enumerate(node.value)]
    elif isinstance(node, yaml.MappingNode):
        joint = f"{path}." if path else ""
        children = [(f"{joint}{key.value}", key, value) for key, value in node.value]
    for step, key_node, value in children if depth <= MAX_DEPTH else ():
        line_by_path[step] = key_node.start_mark.line + 1
        _add_lines(value, step, line_by_path, depth + 1)
