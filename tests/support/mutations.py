"""Invalid configs and catalogues: mutations of valid ones, as data and as text."""

import contextlib
import copy
import json
from dataclasses import dataclass
from functools import cache

import yaml
from hypothesis import strategies as st
from valid_files import CHIPS, CONFIGS, DTYPES, LONG, ODD

KINDS = ("numbers", "odd-numbers", "names", "ranges", "others")
values = st.one_of(*(st.sampled_from(ODD[kind]) for kind in KINDS), st.sampled_from(LONG))
pieces = st.sampled_from([*ODD["pieces"], *LONG])


def places(node, path=()):
    """Return the path of every value inside plain data."""
    inner = (
        node.items()
        if isinstance(node, dict)
        else enumerate(node)
        if isinstance(node, list)
        else ()
    )
    return [place for key, value in inner for place in ((*path, key), *places(value, (*path, key)))]


def at(document, path):
    """Return the value at a path."""
    for step in path:
        document = document[step]
    return document


def renamed(mapping, key, new):
    """Rename a key of a mapping, without changing the order."""
    items = [(new if name == key else name, value) for name, value in mapping.items()]
    mapping.clear()
    mapping.update(items)


@st.composite
def mutated(draw, text):
    """Draw plain data that differs from a valid document in a few values."""
    document = copy.deepcopy(parsed(text))
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 4]))):
        known = places(document)
        if known:
            mutate(draw, document, known)
    return document


def mutate(draw, document, known):
    """Change one value of a document."""
    path = draw(st.sampled_from(known))
    parent, last = at(document, path[:-1]), path[-1]
    how = draw(
        st.sampled_from(
            ["value", "value", "value", "drop", "rename", "copy", "swap", "change", "change"]
        )
    )
    if how == "drop":
        del parent[last]
    elif how == "rename" and isinstance(parent, dict):
        renamed(parent, last, draw(st.sampled_from([*ODD["names"], 7, 7.5, True, None])))
    elif how == "copy":
        with contextlib.suppress(KeyError, IndexError, TypeError):
            parent[last] = copy.deepcopy(at(document, draw(st.sampled_from(known))))
    elif how == "swap" and isinstance(parent, list):
        parent.reverse()
    elif how == "change":
        parent[last] = changed(draw, parent[last])
    else:
        parent[last] = copy.deepcopy(draw(values))


def changed(draw, value):
    """Return a larger, smaller or nested form of a value."""
    if isinstance(value, int | float) and draw(st.booleans()):
        factor = draw(st.sampled_from([0, -1, 1e-18, 1e18, 10**30, 0.5, 3]))
        with contextlib.suppress(
            OverflowError
        ):  # whole numbers may have grown beyond what Float64 holds
            return value * factor
        return -value
    if isinstance(value, list) and draw(st.booleans()):
        return value * draw(st.sampled_from([2, 50]))
    if draw(st.booleans()):
        return draw(st.sampled_from([[value], {"a": value}, str(value)]))
    for _ in range(draw(st.sampled_from([3, 60]))):
        value = [value] if draw(st.booleans()) else {"a": value}
    return value


@st.composite
def garbled(draw, text):
    """Draw the text of a document with insertions, deletions, copies, swaps and changed bytes."""
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(text)))
        stop = min(len(text), start + draw(st.sampled_from([0, 0, 1, 5, 40])))
        how = draw(st.sampled_from(["insert", "cut", "double", "line"]))
        if how == "insert":
            text = text[:start] + draw(pieces) + text[stop:]
        elif how == "cut":
            text = text[:start] + text[stop:]
        elif how == "double":
            text = text[:stop] + text[start:]
        else:
            lines = text.split("\n")
            line = lines[draw(st.integers(0, len(lines) - 1))]
            lines.insert(draw(st.integers(0, len(lines))), line)
            text = "\n".join(lines)
    raw = bytearray(text.encode("utf-8", "surrogatepass"))
    for _ in range(draw(st.sampled_from([0] * 9 + [1, 3]))):
        raw[draw(st.integers(0, len(raw) - 1))] = draw(st.integers(0, 255))
    return bytes(raw)


@cache
def parsed(text):
    """Return plain data with merge keys resolved and no shared objects."""
    return json.loads(json.dumps(yaml.safe_load(text), default=str))


def dumped(document):
    """Return the text of a document in block or flow style."""
    return yaml.dump(
        document, Dumper=yaml.CSafeDumper, allow_unicode=True, sort_keys=False, width=1000
    )


@st.composite
def texts(draw, valid):
    """Draw a document mutated as data, as text, or both; sometimes the valid one."""
    text = dumped(draw(mutated(valid))) if draw(st.integers(0, 2)) else valid
    return (
        draw(garbled(text))
        if draw(st.integers(0, 2)) == 0 or text == valid
        else text.encode("utf-8", "surrogatepass")
    )


@dataclass(frozen=True)
class Case:
    """The inputs of one case.

    Attributes:
        config: The bytes of the config.
        where: Which slice of a valid table is computed, from 0, its start, to 1, its end.
        chips, dtypes: The bytes of the catalogues, None for the valid ones.
    """

    config: bytes
    where: float = 0
    chips: bytes | None = None
    dtypes: bytes | None = None


@st.composite
def cases(draw):
    """Draw a case: mostly an invalid config, else an invalid catalogue."""
    valid = draw(st.sampled_from(CONFIGS))
    wrong = draw(st.sampled_from(["config", "config", "config", "chips", "dtypes"]))
    if wrong == "config":
        return Case(draw(texts(valid)), draw(st.floats(0, 1)))
    if wrong == "chips":
        return Case(valid.encode(), chips=draw(texts(CHIPS)))
    return Case(valid.encode(), dtypes=draw(texts(DTYPES)))
