"""The words of the package and its scripts: names are nouns, summaries say what a thing is."""

import ast
import re
from collections import Counter, defaultdict

import pytest
from case_files import case

PRONOUNS = {
    *("each", "found", "here", "it", "known", "of", "one", "other", "others", "own", "some"),
    *("asked", "both", "held", "kept", "made", "said", "that", "there", "this", "what", "which"),
}
"""Names that say nothing of what they hold."""

SUPERLATIVE = re.compile(r"_?(MOST|LEAST|FEWEST|LARGEST|SMALLEST|LONGEST|SHORTEST)(_|$)")
"""Constants that are a `MAX_` or a `MIN_`."""

INDIRECT = re.compile(r"(What|Whether|How|Which|Where|That|Those|Whose|It|They|Who|When|Why)\b")
"""Summaries that begin with a pronoun instead of a noun or a verb."""

KINDS = {
    "of": (
        "{count} 'of' in 100 words of docstrings: say the noun first (memory time, not the time of "
        "the memory), one idea a sentence"
    ),
    "indirect": "{count} summaries begin with What, Whether, How, ...: begin with a noun or a verb",
    "pronouns": (
        "{count} names are pronouns, or end in Of: name what the value is, as in docs/glossary.md "
        "(ridge, not ridgeOf)"
    ),
    "superlatives": "{count} constants are MOST_, LEAST_, ...: write MAX_ or MIN_",
}

SLACK = 0.3
"""Largest gap of a limit of `of` above the count, in 100 words."""


def named(tree):
    """Names that a module gives: variables, arguments, functions and classes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name


def counts_of(trees):
    """The counts of a folder, by kind."""
    counts: Counter[str] = Counter()
    words: list[str] = []
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                text = ast.get_docstring(node) or ""
                words += re.findall(r"[a-z']+", text.lower())
                counts["indirect"] += bool(INDIRECT.match(text))
        for name in named(tree):
            counts["pronouns"] += name.strip("_") in PRONOUNS
            counts["superlatives"] += bool(SUPERLATIVE.match(name))
    share = round(100 * words.count("of") / max(len(words), 1), 1)
    return {**dict.fromkeys(KINDS, 0), **counts, "of": share}


COMMENT = re.compile(r"/\*\*?(.*?)\*/", re.DOTALL)
"""A comment of a script that describes it, or what follows."""

CODE = re.compile(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"')
"""Line comments and plain texts, which have no names."""

NAMING = re.compile(
    r"\b(?:const|let)\s+([^=]*?)\s*(?:=|\bof\b)"  # a variable, or several, taken apart
    r"|\bfunction\s+(\w+\s*\([^)]*\))"
    r"|\(([^()]*)\)\s*=>|\b(\w+)\s*=>"  # arguments of arrow functions
    r"|[{,]\s*(\w+)\s*:|\.(\w+)\b(?!\()"  # fields, but for methods of the language
)
"""A place of a script that names something."""


def script_counts(scripts):
    """The counts of scripts, by kind; the `of` are those of their comments."""
    counts: Counter[str] = Counter()
    words: list[str] = []
    for script in scripts:
        for comment in COMMENT.findall(script):
            words += re.findall(r"[a-z']+", comment.lower())
            counts["indirect"] += bool(INDIRECT.match(comment.strip()))
        for place in NAMING.findall(CODE.sub('""', COMMENT.sub("", script))):
            for name in re.findall(r"[A-Za-z]\w*", " ".join(place)):
                counts["pronouns"] += name in PRONOUNS or bool(re.search(r"[a-z]Of$", name))
                counts["superlatives"] += bool(SUPERLATIVE.match(name))
    share = round(100 * words.count("of") / max(len(words), 1), 1)
    return {**dict.fromkeys(KINDS, 0), **counts, "of": share}


@pytest.fixture(scope="module")
def folders(repository):
    """The counts of every folder of the package, and of the site's scripts."""
    trees = defaultdict(list)
    root = repository / "rooflines"
    scripts = [path.read_text(encoding="utf-8") for path in root.rglob("assets/*.js")]
    for path in sorted(root.rglob("*.py")):
        folder, *rest = path.relative_to(root).parts
        trees[folder if rest else "rooflines"].append(ast.parse(path.read_text(encoding="utf-8")))
    counts = {folder: counts_of(modules) for folder, modules in trees.items()}
    return {**counts, "scripts": script_counts(scripts)}


LIMITS = case("words")


@pytest.mark.parametrize("kind", KINDS)
def test_no_folder_has_more_of_them_than_its_limit(kind, folders):
    over = {
        folder: KINDS[kind].format(count=counts[kind])
        for folder, counts in folders.items()
        if counts[kind] > LIMITS[folder][kind]
    }
    assert over == {}


@pytest.mark.parametrize("kind", KINDS)
def test_limits_only_fall(kind, folders):
    """After a change that lowers a count the limit in words.yaml is lowered to it."""
    slack = SLACK if kind == "of" else 0
    lower = {
        folder: f"lower the limit in tests/cases/words.yaml to {counts[kind]}"
        for folder, counts in folders.items()
        if LIMITS[folder][kind] > counts[kind] + slack
    }
    assert lower == {}


def test_pronouns_and_superlatives_are_counted():
    text = 'MOST_ROWS = 3\ndef f(of):\n    """How many there are of it."""\n    each = of\n'
    found = counts_of([ast.parse(text)])
    assert found == {"of": 16.7, "indirect": 1, "pronouns": 2, "superlatives": 1}


def test_names_of_scripts_are_counted():
    text = """/** How many there are of them. */
    const MOST_ROWS = 3; // of a table
    function rowsOf({ own, name: label }, ...others) {
      const text = "each of them, it: that";
      return own.map((one) => ({ said: one.length, [label]: found.indexOf(text) }));
    }"""
    found = script_counts([text])
    assert found == {"of": 16.7, "indirect": 1, "pronouns": 5, "superlatives": 1}


BOOK = "How to Scale Your Model"


@pytest.mark.parametrize("folder", ["tests", "docs/build", "benchmarks"])
def test_a_summary_outside_the_package_begins_with_a_noun_or_a_verb(folder, repository):
    found = [
        f"{path.name}: {node.value.value.splitlines()[0]}"
        for path in sorted((repository / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        and INDIRECT.match(node.value.value.removeprefix(BOOK))
    ]
    assert found == []
