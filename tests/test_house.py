"""The structure of the package: sub-packages imported one way, sizes, and names of one meaning."""

import ast
import re
from collections import defaultdict
from itertools import pairwise

import pytest
from processes import python

FLOORS = (
    *(
        "basics",
        "theory",
        "dictionary",
        "hardware",
        "kinds",
        "models",
        "training",
        "fits",
        "config",
    ),
    *(
        "sweep",
        "evaluation",
        "solvers",
        "serving",
        "answers",
        "results",
        "measured",
        "traces",
        "charts",
        "site",
    ),
    *("workbook", "loading", "run", "api", "cli"),
)
"""Sub-packages and top modules; each imports only from itself and from those before it."""

PUBLIC = {"basics/lazy", "models/__init__"}
"""Modules with an `__all__`: what users import, and modules that are imported when first used.

The file of a chart lists what `charts` offers."""

FACES = {"__init__", "__main__"}
"""Modules that only re-export names, or start a command."""


@pytest.fixture(scope="module")
def texts(repository):
    """The text of each module of the package, by its path without a suffix."""
    root = repository / "rooflines"
    return {
        path.relative_to(root).with_suffix("").as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(root.rglob("*.py"))
    }


@pytest.fixture(scope="module")
def trees(texts):
    """The syntax tree of each module."""
    return {name: ast.parse(text) for name, text in texts.items()}


def imports(tree):
    """Imports of a module from the package, including those for types only."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            own = [f"rooflines.{alias.name}" for alias in node.names]
            named = own if node.module == "rooflines" else [node.module or ""]
        else:
            named = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        yield from (name for name in named if name.split(".")[0] == "rooflines")


@pytest.fixture(scope="module")
def edges(trees):
    return [
        (name, module.removeprefix("rooflines").removeprefix(".").replace(".", "/"))
        for name, tree in trees.items()
        for module in imports(tree)
    ]


def test_nothing_imports_upward(edges):
    below = [(one, other) for one, other in edges if one not in FACES]
    assert len(below) > 100
    floor = {name: index for index, name in enumerate(FLOORS)}
    assert [
        (one, other)
        for one, other in below
        if floor[one.split("/")[0]] < floor[other.split("/")[0]]
    ] == []


def test_every_floor_is_used(edges):
    used = {path.split("/")[0] for edge in edges for path in edge}
    assert set(FLOORS) <= used
    assert all(one != other for one, other in pairwise(FLOORS))


def test_modules_do_not_import_in_circles(edges):
    waiting = {one: {other for start, other in edges if start == one} for one, _ in edges}
    while ready := [
        name for name, needed in waiting.items() if not needed & waiting.keys() - {name}
    ]:
        for name in ready:
            del waiting[name]
    assert sorted(waiting) == []


def test_only_public_modules_list_their_names(texts):
    listed = {name for name, text in texts.items() if "\n__all__ = " in text}
    assert {name for name in listed if not name.startswith("charts/kinds/")} == PUBLIC


GUIDED = ("evaluation", "fits", "measured", "solvers")
"""Folders whose guide, the docstring of the package, says why each module is there."""


@pytest.mark.parametrize("folder", GUIDED)
def test_a_guide_names_every_module_of_its_folder(folder, trees):
    guide = ast.get_docstring(trees[f"{folder}/__init__"]) or ""
    modules = {name.removeprefix(f"{folder}/") for name in trees if name.startswith(f"{folder}/")}
    named = set(re.findall(r"`(\w+)`", guide))
    assert modules - {"__init__"} - named == set()


PLANNING = """
import pkgutil, sys
from importlib import import_module
from rooflines import sweep
for module in pkgutil.iter_modules(sweep.__path__):
    import_module(f"rooflines.sweep.{module.name}")
assert len([name for name in sys.modules if name.startswith("rooflines.sweep.")]) > 10
sys.exit("polars" in sys.modules)
"""


def test_what_plans_does_without_polars():
    python("-c", PLANNING)


ONE_PLACE = {
    r"(pl|polars)\.(read|scan)_\w+": "basics/files",  # by the exact path, of bounded size
    r".*\.(write_csv|sink_csv|to_csv)|csv\.(Dict)?[wW]riter": "results/tables",  # no formulas
}
"""The one module that calls these functions, since it guards what others would have to."""


@pytest.mark.parametrize(("called", "module"), ONE_PLACE.items())
def test_one_module_reads_tables_and_one_writes_csv(called, module, trees):
    found = {
        name
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and re.fullmatch(called, ast.unparse(node.func))
    }
    assert found == {module}


SHARED = {"command", "kernels", "menus", "view"}
"""Public functions that every command or kind of chart has; kernels: a frame, or its chart."""


def shared(trees, *kinds):
    """The modules of every public name that several modules give a class or a function."""
    found = defaultdict(list)
    for module, tree in trees.items():
        for node in tree.body:
            if isinstance(node, kinds) and not node.name.startswith("_"):
                found[node.name].append(module)
    return {name: modules for name, modules in found.items() if len(modules) > 1}


ALIKE = {"cli", "charts/kinds"}
"""Rooms whose modules are named by what they serve: commands, and kinds of charts."""


def test_no_two_modules_share_a_file_name(texts):
    rooms = defaultdict(list)
    for path in texts:
        room, _, name = path.rpartition("/")
        if room not in ALIKE and name not in FACES:
            rooms[name].append(path)
    assert {name: paths for name, paths in rooms.items() if len(paths) > 1} == {}


def test_the_map_has_every_room_in_the_order_of_imports(repository):
    text = (repository / "docs" / "map.md").read_text(encoding="utf-8")
    rooms = re.findall(r"^\| `([a-z]+)(?:/|\.py)` \|", text, re.MULTILINE)
    assert rooms == list(FLOORS)


def test_no_two_classes_share_a_name(trees):
    assert shared(trees, ast.ClassDef) == {}


def test_no_two_public_functions_share_a_name(trees):
    functions = shared(trees, ast.FunctionDef, ast.AsyncFunctionDef)
    assert {name: modules for name, modules in functions.items() if name not in SHARED} == {}
    assert SHARED - functions.keys() == set(), "take these off the list"


CONVENTIONAL = {"pl", "np", "alt", "dt", "cs", "vlc"}
"""Aliases of libraries, as their documentation writes them."""


def test_the_package_has_no_alias_for_its_own_names(trees):
    """A name that is imported under another one has two; a module of a room may have one."""
    aliases = {
        (alias.asname, alias.name)
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
        if alias.asname not in {None, alias.name, *CONVENTIONAL}
    }
    assert aliases == {("kit", "layers")}


def test_an_imported_constant_has_one_meaning(trees):
    sources = defaultdict(set)
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rooflines."):
                for alias in node.names:
                    if alias.name.isupper():
                        sources[alias.name].add(node.module)
    assert len(sources) > 100
    assert {name: modules for name, modules in sources.items() if len(modules) > 1} == {}
