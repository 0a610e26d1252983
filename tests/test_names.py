"""Names of the package: a class, or a public function of a sub-package, has its own."""

import ast
from collections import defaultdict

EVERYWHERE = {"cli:command"}
"""Functions that every module of a sub-package has."""

FUNCTIONS: set[str] = {"charts:menus", "charts:sizes_of", "charts:view"}
"""Public functions of a sub-package that still share a name; the list only gets shorter."""


def named(path, kinds):
    """The public names of a module's classes or functions."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, kinds):
            name: str = node.name
            if not name.startswith("_"):
                yield name


def shared(root):
    """The modules of every class name, and of every function `<sub-package>:<name>`, of several."""
    classes, functions = defaultdict(list), defaultdict(list)
    for path in sorted(root.rglob("*.py")):
        module = path.relative_to(root)
        for name in named(path, (ast.ClassDef,)):
            classes[name].append(module.as_posix())
        for name in named(path, (ast.FunctionDef, ast.AsyncFunctionDef)):
            functions[f"{module.parts[0]}:{name}"].append(module.as_posix())
    several = (
        {name: modules for name, modules in found.items() if len(modules) > 1}
        for found in (classes, functions)
    )
    first, second = several
    return first, second


def test_no_two_classes_share_a_name(repository):
    classes, _ = shared(repository / "rooflines")
    assert classes == {}


def test_no_two_public_functions_of_a_sub_package_share_a_name(repository):
    _, functions = shared(repository / "rooflines")
    known = FUNCTIONS | EVERYWHERE
    assert {name: modules for name, modules in functions.items() if name not in known} == {}
    assert FUNCTIONS - functions.keys() == set(), "take these off the list"
