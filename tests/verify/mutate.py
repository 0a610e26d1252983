"""Mutation tests: changes the package one place at a time and checks that a test fails.

Run by `make mutate`. Sub-packages are drawn in proportion to their lines that changed in the last
300 commits, and so are the modules of each. A module is tried by the nearest test files: those with
its name, those that import it, else those that import what imports it, but for tests that run the
workflow or a browser.
Each change is tried in a copy of the repository. What no test notices is in `survivors.md`, to be
read: the change, the lines around it, and the tests that passed.

    python tests/verify/mutate.py                           one change in each of 40 modules
    python tests/verify/mutate.py --seed 7 --modules 10     others, and fewer of them
    python tests/verify/mutate.py --changed main --each 5   five in each module changed since main
    python tests/verify/mutate.py rooflines/theory/poly.py --each 1000   all changes of a module
    python tests/verify/mutate.py --tests tests/test_x.py   by these tests, in place of the nearest
"""

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("benchmarks", "config", "docs", "notebooks", "profiles", "rooflines", "tests", "workflow")

SURVIVORS = ROOT / "survivors.md"

COMMITS = 300
"""The last commits whose changed lines count [1]."""

AROUND = 3
"""Lines shown before and after a change [1]."""

FILES = 3
"""Test files that are tried in turn [1]."""

SECONDS = 300
"""Time after which a change counts as noticed, since a loop has no end [s]."""

PAIRS = (
    *("Lt LtE", "Gt GtE", "Eq NotEq", "In NotIn", "Is IsNot", "And Or", "Add Sub", "Mult Div"),
    *("BitAnd BitOr", "max min", "max_horizontal min_horizontal", "any all", "ceil floor"),
)
"""Operators and functions that take each other's place."""

OTHERS = dict([one.split() for one in PAIRS] + [one.split()[::-1] for one in PAIRS])


def other_operator(op):
    """The operator that takes the place of another, or the same."""
    name = type(op).__name__
    return getattr(ast, OTHERS.get(name, name))()


def changed(node):  # noqa: PLR0911, a kind of place each
    """A node in its changed form; None if there is none."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=right) if type(op).__name__ in OTHERS:
            return ast.Compare(left, [other_operator(op)], right)
        case ast.BinOp(left=left, op=op, right=right) if type(op).__name__ in OTHERS:
            return ast.BinOp(left, other_operator(op), right)
        case ast.BoolOp(op=op, values=values):
            return ast.BoolOp(other_operator(op), values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return ast.IfExp(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return None
        case ast.If(test=test, body=body, orelse=orelse):
            return ast.If(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.Constant(value=bool(value)):
            return ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            return ast.Constant(value + 1)
        case ast.Name(id=name, ctx=ctx) if name in OTHERS:
            return ast.Name(OTHERS[name], ctx)
        case ast.Attribute(value=value, attr=name, ctx=ctx) if name in OTHERS:
            return ast.Attribute(value, OTHERS[name], ctx)
    return None


class Change(ast.NodeTransformer):
    """Changes one place of a module, by its number, and counts them; not of types and `strict`."""

    def __init__(self, number=-1):
        self.number, self.count, self.line, self.said = number, 0, 0, ""

    def visit(self, node):
        other = changed(node)
        if other is not None:
            self.count += 1
            if self.count - 1 == self.number:
                before, after = (ast.unparse(each).splitlines()[0] for each in (node, other))
                self.line, self.said = node.lineno, f"{before[:60]} -> {after[:60]}"
                return other
        return super().visit(node)

    def visit_arg(self, node):
        return node

    def visit_keyword(self, node):
        return node if node.arg == "strict" else self.generic_visit(node)

    def visit_AnnAssign(self, node):
        node.value = node.value and self.visit(node.value)
        return node

    def visit_FunctionDef(self, node):
        types, node.returns = node.returns, None
        self.generic_visit(node)
        node.returns = types
        return node


def imports(path):
    """The modules of the package, and those of tests/support, that a file names."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def importers():
    """The files that import each module, by its dotted name."""
    found = defaultdict(set)
    for folder in ("rooflines", "tests"):
        for path in (ROOT / folder).rglob("*.py"):
            if "verify" not in path.parts and "engines" not in path.parts:
                for name in imports(path):
                    found[name].add(path)
    return found


def dotted(path):
    """The name under which others import a file."""
    base = ROOT / "tests/support" if "support" in path.parts else ROOT
    return ".".join(path.relative_to(base).with_suffix("").parts).removesuffix(".__init__")


def nearest(module, known):
    """The test files that are nearest to a module, by imports; the shortest of equals first.

    Those with its name come first, whatever they import, then those that import most of its
    sub-package; last those of other modules of the sub-package, since some are imported by their
    names alone.
    """
    package = dotted(module).rpartition(".")[0]

    def is_named(path):
        return any(word.startswith(module.stem.rstrip("s")) for word in path.stem.split("_"))

    def distance(path):
        own = sum(name.startswith(f"{package}.") for name in imports(path))
        return not is_named(path), -own, path.stat().st_size

    tests = sorted(filter(is_named, (ROOT / "tests").glob("test_*.py")), key=distance)
    for start in ([module], [each for each in module.parent.glob("*.py") if each != module]):
        front, seen = start, {*start}
        while front and len(tests) < FILES:
            users = {user for each in front for user in known[dotted(each)]} - seen
            seen |= users
            found = {user for user in users if user.stem.startswith("test_")}
            tests += sorted(found - {*tests}, key=distance)
            front = [*users - found]
    return [path.relative_to(ROOT).as_posix() for path in tests[:FILES]]


def noticed(folder, tests):
    """The first of some test files that fails in a folder; None if none does."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "ROOFLINES_SEED": "1"}
    options = ["-q", "-x", "-n", "0", "-p", "no:cacheprovider", "--tb=no", "--fast"]
    for test in tests:
        command = [sys.executable, "-m", "pytest", *options, test]
        try:
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True,
                check=False, timeout=SECONDS,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"{test}: no end"
        if done.returncode not in (0, 5):
            failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
            return failed[1] if failed else test
    return None


def changed_lines(numstat):
    """Lines added and removed by path, of `git log --numstat --format= --no-renames`."""
    found = Counter[str]()
    for line in filter(None, numstat.splitlines()):
        added, removed, path = line.split("\t")
        found[path] += 0 if added == "-" else int(added) + int(removed)  # "-" is of binary files
    return found


def package_of(path):
    """The sub-package of a path such as `rooflines/theory/costs.py`; of a top module its name."""
    return path.split("/")[1].removesuffix(".py")


def quotas(weights, number):
    """Whole numbers in proportion to weights, `number` in all: the largest rests are rounded up."""
    whole = sum(weights.values())
    shares = {name: number * weight / whole for name, weight in weights.items()}
    found = {name: int(share) for name, share in shares.items()}
    rests = sorted(shares, key=lambda name: (found[name] - shares[name], name))
    for name in rests[: number - sum(found.values())]:
        found[name] += 1
    return found


def drawn(modules, lines, number, chance):
    """Modules of sub-packages, both in proportion to the lines that changed in them.

    Args:
        modules: The paths that can be drawn.
        lines: The lines that changed, by path; also of modules that are gone.
        number: How many are drawn; fewer where a sub-package has not as many.
        chance: The source of randomness.
    """
    own = defaultdict(list)
    for path in sorted(modules):
        own[package_of(path)].append(path)
    weights = Counter(dict.fromkeys(own, 0))
    for path, changed in lines.items():
        if package_of(path) in own:
            weights[package_of(path)] += changed
    found = []
    for package, quota in quotas(weights, number).items():
        left = own[package]
        for _ in range(min(quota, len(left))):
            (path,) = chance.choices(left, [lines[path] + 1 for path in left])
            left.remove(path)
            found.append(path)
    return found


def report(seed, revision, tried, survivors):
    """Report for a person: the survivors of a run, with their lines.

    Args:
        seed: The seed of the run.
        revision: The commit that was changed.
        tried: The number of changes by sub-package.
        survivors: Path, line, the lines around it, what was changed, and the tests that passed.
    """
    lost = Counter(package_of(path) for path, *_ in survivors)
    head = [
        f"# {len(survivors)} of {sum(tried.values())} changes were noticed by no test",
        "",
        f"`python tests/verify/mutate.py --seed {seed}` at {revision} repeats this.",
        "",
        "| sub-package | changes | not noticed |",
        "|---|---|---|",
        *(f"| {name} | {count} | {lost[name]} |" for name, count in sorted(tried.items())),
    ]
    for path, line, shown, said, tests in survivors:
        passed = ", ".join(tests) or "no test is near"
        head += ["", f"## {path}:{line}", "", f"`{said}`", "", "```text", *shown, "```", "", passed]
    return "\n".join([*head, ""])


def around(text, line):
    """The lines around one of a module, which is marked."""
    first = max(0, line - 1 - AROUND)
    return [
        f"{'>' if number == line else ' '} {number:4} {shown}".rstrip()
        for number, shown in enumerate(text.splitlines()[first : line + AROUND], start=first + 1)
    ]


def git(*words):
    """Output of git in the repository."""
    command = ("git", *words)
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def tried(module, chance, options, folder, known):
    """Try changes of a module, drawn at random; yields each with whether a test noticed it."""
    text = module.read_text(encoding="utf-8")
    counting = Change()
    counting.visit(ast.parse(text))
    numbers = chance.sample(range(counting.count), min(options.each, counting.count))
    tests, path = options.tests or nearest(module, known), module.relative_to(ROOT).as_posix()
    target = folder / path
    for number in numbers:
        change = Change(number)
        tree = ast.fix_missing_locations(change.visit(ast.parse(text)))
        target.write_text(ast.unparse(tree), encoding="utf-8")
        seen = noticed(folder, tests)
        end = seen or f"SURVIVED {' '.join(tests)}"
        print(f"{path}:{change.line}: {change.said}: {end}", flush=True)
        yield seen is not None, (path, change.line, around(text, change.line), change.said, tests)
    target.write_text(text, encoding="utf-8")


def main():
    """Try changes of the modules that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--modules", type=int, default=40)
    parser.add_argument("--each", type=int, default=1)
    parser.add_argument("--changed", metavar="REVISION")
    parser.add_argument("--tests", nargs="*")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    modules = [ROOT / path for path in options.files]
    if options.changed:
        names = ("diff", "--name-only", "--diff-filter=d", options.changed, "rooflines/*.py")
        modules = [ROOT / name for name in git(*names).split()]
    elif not modules:
        every = [path.relative_to(ROOT).as_posix() for path in ROOT.glob("rooflines/**/[!_]*.py")]
        log = ("log", f"-{COMMITS}", "--numstat", "--no-renames", "--format=", "--")
        lines = changed_lines(git(*log, "rooflines/*.py"))
        modules = [ROOT / path for path in drawn(every, lines, options.modules, chance)]
    known = importers()
    print(f"--seed {options.seed} repeats this: {len(modules)} modules", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ignored = shutil.ignore_patterns("__pycache__")
        for each in COPIED:
            shutil.copytree(ROOT / each, folder / each, ignore=ignored)
        for path in ROOT.glob("*"):
            if path.is_file():
                shutil.copy(path, folder)
        done = [one for m in modules for one in tried(m, chance, options, folder, known)]
    survivors = [about for noticed, about in done if not noticed]
    counts = Counter(package_of(path) for _, (path, *_) in done)
    revision = git("rev-parse", "--short", "HEAD").strip()
    SURVIVORS.write_text(report(options.seed, revision, counts, survivors), encoding="utf-8")
    print(f"{len(survivors)} of {len(done)} survived: {SURVIVORS.name}")
    return int(bool(survivors))


if __name__ == "__main__":
    raise SystemExit(main())
