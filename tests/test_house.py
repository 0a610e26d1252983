"""The structure of the package: sub-packages in the order data flow, imported one way."""

from __future__ import annotations

import ast
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FLOORS = (
    "basics",
    "model",
    "catalogue",
    "settings",
    "sweep",
    "critical",
    "results",
    "charts",
    "site",
    "config",
    "run",
    "api",
)
"""Sub-packages and top modules; each imports only from itself and from those before it."""

FACES = {"__init__", "provenance", "tables"}
"""Modules that only re-export names."""


def imports(path: Path) -> Iterator[str]:
    """Imports of a module from the package, including those for types only."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.ImportFrom)
            and node.module
            and node.module.split(".")[0] == "rooflines"
        ):
            yield from (
                [node.module]
                if node.module != "rooflines"
                else [f"rooflines.{alias.name}" for alias in node.names]
            )
        elif isinstance(node, ast.Import):
            yield from (
                alias.name for alias in node.names if alias.name.split(".")[0] == "rooflines"
            )


@pytest.fixture(scope="module")
def edges(repository: Path) -> list[tuple[str, str]]:
    """Every import within the package, as two paths such as `charts/kit/drawing`."""
    root = repository / "rooflines"
    found = []
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).with_suffix("").as_posix()
        found += [
            (name, module.removeprefix("rooflines").removeprefix(".").replace(".", "/"))
            for module in imports(path)
        ]
    return found


def test_nothing_imports_upward(edges: list[tuple[str, str]]) -> None:
    """A module imports from its own floor and from those below it."""
    below = [(one, other) for one, other in edges if one not in FACES]
    assert len(below) > 100
    floor = {name: index for index, name in enumerate(FLOORS)}
    assert [
        (one, other)
        for one, other in below
        if floor[one.split("/")[0]] < floor[other.split("/")[0]]
    ] == []


def test_every_floor_is_used(edges: list[tuple[str, str]]) -> None:
    """Every name in `FLOORS` exists, and no two in a row are equal."""
    used = {path.split("/")[0] for edge in edges for path in edge}
    assert set(FLOORS) <= used
    assert all(one != other for one, other in pairwise(FLOORS))


def test_modules_do_not_import_in_circles(edges: list[tuple[str, str]]) -> None:
    """There are no import cycles, not even within a floor."""
    waiting = {one: {other for start, other in edges if start == one} for one, _ in edges}
    while ready := [
        name for name, needed in waiting.items() if not needed & waiting.keys() - {name}
    ]:
        for name in ready:
            del waiting[name]
    assert sorted(waiting) == []
