"""Invalid configs and catalogues: mutations of valid ones, as data and as text."""

# One list of mutations of a config: long, but one thing.

from __future__ import annotations

import contextlib
import copy
import json
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml
from hypothesis import strategies as st

Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

# ---------------------------------------------------------------- valid ones

CONFIGS = (
    """\
sweeps:
  mlp: &mlp
    operation: matmul
    grid: {B: {from: 1, to: 64, factor: 2}, D: [512, 1.024e3], F: D}
    dtypes: [bf16, {x: bf16, w: int8, out: bf16, compute: bf16}]
    chips: [mine, h100-sxm]
    sharding: [none, {split: D, then: all-reduce}]
    shards: [1, 2]
    thresholds: [B, shards]
    tile: {B: 128}
    efficiency: {math: 0.9}
    columns: [flops, t_lower_s, bound]
  again:
    <<: *mlp
    chips: mine-fast
    sharding: column/gather-x
    thresholds: [D]
    tile: null
    columns: all
    flops: leading
    rows_per_part: 10
  nodes:
    operation: matmul
    grid: {B: [8, 64], D: 512, F: 256}
    dtypes: bf16
    chips: [mine, h100-sxm]
    sharding: [{split: B, first: all-to-all x, then: all-to-all}, column/gather-x]
    shards: [1, 8, 2x4]
    network: [[near, far], ici, [net]]
    shares: [1, 0.9]
    columns: [network_inner_bytes, t_network_s, bound]
chips:
  mine:
    name: My chip
    source: {bytes_per_s: notes}
    efficiency: {memory: 0.8}
    calibration: {bf16: {math: 0.8, overhead_s: 1.0e-6}}
    units:
      matrix: {bf16: {flops_per_s: 1.97e14, note: dense}, int8: {flops_per_s: 3.94e14}}
      vector: {bf16: {flops_per_s: 1.0e13}}
    memory: {hbm: {bytes_per_s: 8.2e11, capacity_bytes: 1.6e10}, l2: {bytes_per_s: 8.0e12}}
    networks:
      ici: {bytes_per_s: 4.5e10, links: 4, topology: torus, ring_multiple: 16, domain: 64,
            hop_latency_s: 1.0e-6}
      net: {bytes_per_s: 5.0e9, topology: switch}
      near: {bytes_per_s: 2.5e10, links: 18, topology: switch, domain: 4, hop_latency_s: 6.0e-7}
      far: {bytes_per_s: 5.0e9, topology: switch, domain: unlimited}
    power: {watts: 300}
    prices: [{usd_per_hour: 1.2, provider: someone, date: "2026-01-01"}]
  mine-fast: {base: mine, memory.hbm.bytes_per_s: 9.0e11, units.matrix.fp8.flops_per_s: 8.0e14,
              source: my own notes}
model-sweeps:
  serve:
    models:
      - meta-llama/Llama-3.1-8B
      - {name: own, layers: 2, D: 64, V: 128, attention: {N: 4, K: 2, H: 16},
         moe: {E: 8, k: 2, Fe: 32}}
    phase: [decode, prefill]
    grid: {B: {from: 1, to: 64, factor: 8}, S: [128, 4096]}
    dtypes: [bf16, {name: w8, weights: int8, cache: bf16, activations: bf16, compute: bf16}]
    chips: [mine, h100-sxm]
    splits: [{tp: 1}, {tp: 2x2}, {tp: 2, dp: 2, ep: 4}]
    network: [ici, [near, far]]
    routing: same
    cache_split: batch
    prices: {provider: someone}
    targets: {t_step_s: [0.01], time: t_ops_s}
    thresholds: [B, S, chips]
    rows_per_part: 20
  ask:
    models: {name: dense, layers: 2, D: 64, V: 128, tied: true, attention: {N: 4, K: 2, H: 16},
             mlp: {F: 96}}
    grid: {B: [1, 8]}
    requests: [{input: 64, output: 16}]
    dtypes: fp8
    chips: mine-fast
    layers: false
charts:
  - {chart: roofline, sweep: again, chips: [mine-fast], dtypes: [bf16], title: Mine, sizes: [1, 64]}
pathvars: {results: here}
""",
    """\
sweeps:
  decode:
    operation: "BSD,DF->BSF"
    grid: {B: [1, 8], S: {sequences: 8, tokens_per_sequence: 2048, replicas: 2}}
    shapes:
      - {name: llama-3-8b-up, D: 4096, F: 14336}
      - {name: "7b down, twice", D: 14336, F: "4096"}
    dtypes: [bf16, w4a16]
    chips: [h100-sxm, tpu-v5e]
    memory: [hbm, l2]
    network: nvlink
    unit: matrix
    thresholds: [S]
    on_unsupported: skip
  dots:
    operation: dot
    grid: {D: {from: 16, to: 100, step: 7}}
    dtypes: fp32
    chips: [tpu-v5p]
    flops: exact
    thresholds: null
charts: auto
""",
)

CHIPS = """\
sources:
  notes: {title: Notes, publisher: Nobody, date: 2026-01-01}
chips:
  h100-sxm:
    name: A chip
    vendor: Somebody
    year: 2022
    status: sold
    aliases: [h100]
    units: {matrix: {bf16: {flops_per_s: 9.89e14, source: notes, confidence: vendor, halved: true,
                            printed_with_sparsity: 1.979e15}}}
    memory: {hbm: {bytes_per_s: 3.35e12, capacity_bytes: 80000000000, technology: HBM3,
                   source: [notes, others]}}
    networks: {nvlink: {bytes_per_s: 2.5e10, links: 18, topology: switch, domain: 8,
                        estimate: false}}
    measured: [{what: a matmul, fraction_of_peak: 0.8, source: notes}]
  tpu-v5e:
    units: {matrix: {bf16: {flops_per_s: 1.97e14}, int8: {flops_per_s: 394000000000000}},
            vector: {fp32: {flops_per_s: 3e12}}}
    memory: {hbm: {bytes_per_s: 8.1e11}, l2: {capacity_bytes: 1.3e8}}
    networks: {ici: {bytes_per_s: 4.5e10, links: 4, topology: torus, ring_multiple: 16, domain: 16}}
  tpu-v5p: {base: tpu-v5e, units.vector.fp32.flops_per_s: 7.0e12, estimate: true}
"""

DTYPES = """\
formats:
  fp32: {bits: 32, source: IEEE 754}
  bf16: {bits: 16}
  fp8: {bits: 8}
  int8: {bits: 8, note: two's complement}
  int4: {bits: 4, scale_bits: 16, block: 128}
combinations:
  bf16: {x: bf16, w: bf16, out: bf16, compute: bf16, note: all of it}
  fp32: {x: fp32, w: fp32, out: fp32, compute: fp32}
  w4a16: {x: bf16, w: int4, out: bf16, compute: bf16}
"""

# ---------------------------------------------------------------- mutations

NUMBERS = (
    0,
    -1,
    1,
    2,
    3,
    1.5,
    0.1,
    1e-320,
    1e-30,
    1e30,
    1e308,
    -1e308,
    2**31,
    2**53,
    2**53 + 1,
    2**63,
    2**64,
    10**400,
    -0.0,
    1e12,
    10**18,
)
ODD_NUMBERS = (
    float("nan"),
    float("inf"),
    float("-inf"),
    "1.97e14",
    "1_000",
    "0x10",
    "1/3",
    "1e999999",
    "٣",
    "\uff11\uff12",
    "9" * 5000,
    "1e-400",
)
NAMES = (
    *(
        "../x",
        "..",
        ".",
        "/etc/passwd",
        "a/b",
        "a\\b",
        "~",
        "$HOME",
        "`id`",
        "con",
        "-rf",
        "--help",
        "a" * 300,
        "x\0y",
        "x\ny",
        "é",
        "\u202e",
        "",
    ),
    *(
        "=1+1",
        "+1",
        "-1+1",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        " =1",
        ";=1",
        "\uff1d1",
        '=cmd|" /C calc"!A0',
        "<script>alert(1)</script>",
        "{sweep}",
        "%s",
        "{0}",
    ),
    *(
        "all",
        "none",
        "auto",
        "null",
        "true",
        "bf16",
        "int8",
        "mine",
        "mine-fast",
        "h100-sxm",
        "B",
        "D",
        "shards",
        "hbm",
        "matmul",
        "dot",
        "column",
    ),
    *(
        "BD,DF->BF",
        "BD,DF->",
        "AB,AB->AB",
        "A,B->AB",
        "AB,BC->CA",
        "ABCDEFGHIJ,JIHGFEDCBA->A",
        "vector",
        "exact",
        "error",
        "index",
        "batch/gather-w",
    ),
    *(
        "4x4",
        "2x2x2x2",
        "9x" * 300 + "9",
        "near+far",
        "unlimited",
        "all-to-all",
        "all-to-all x",
        "network_outer_bytes",
    ),
)
RANGES = (
    *(
        {"from": 1, "to": 2**53, "step": 1},
        {"from": 1, "to": 1e18, "factor": 2},
        {"from": 1, "to": 10**6, "factor": 1.000001},
    ),
    *(
        {"from": 1, "to": 2**53, "factor": 1 + 2**-52},
        {"from": 2**53, "to": 2**53, "step": 1e-300},
        {"from": 0.5, "to": 3, "step": 0.25},
    ),
    *(
        {"from": 1, "to": 2**53, "count": 7},
        {"from": 1, "to": 2**53, "count": 2**53},
        {"from": 0.5, "to": 3, "count": "3"},
    ),
    *(
        {"from": 1, "to": 2**20, "step": 1},
        {"from": 1, "to": 2**52, "factor": 1.0001},
        {"from": 1, "to": 1000, "step": 1},
    ),
    *(
        {"sequences": 2**53, "tokens_per_sequence": 2**53, "replicas": 1},
        {"sequences": 1, "tokens_per_sequence": 1, "replicas": 3},
    ),
)
OTHERS: tuple[Any, ...] = (
    None,
    True,
    False,
    [],
    {},
    [[]],
    [None],
    [1, 1],
    {"": 1},
    {"a": {"b": 1}},
    [{}],
    list(range(1, 40)),
    [2**53, 1],
    ["bf16"],
    {"D": 3},
    ["near", "far"],
    [["near", "far"], "ici", ["far"]],
    [["ici", "near"]],
    [1, "2x2", "16x64"],
    {"split": "B", "then": "all-to-all"},
)

values = st.one_of(*map(st.sampled_from, (NUMBERS, ODD_NUMBERS, NAMES, RANGES, OTHERS)))


def places(node: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value inside plain data."""
    inner = (
        node.items()
        if isinstance(node, dict)
        else enumerate(node)
        if isinstance(node, list)
        else ()
    )
    return [place for key, value in inner for place in ((*path, key), *places(value, (*path, key)))]


def at(document: Any, path: tuple[Any, ...]) -> Any:  # noqa: ANN401, plain data
    """Return the value at a path."""
    for step in path:
        document = document[step]
    return document


def renamed(mapping: dict[Any, Any], key: object, new: object) -> None:
    """Rename a key of a mapping, without changing the order."""
    items = [(new if name == key else name, value) for name, value in mapping.items()]
    mapping.clear()
    mapping.update(items)


@st.composite
def mutated(draw: st.DrawFn, text: str) -> Any:  # noqa: ANN401, plain data
    """Draw plain data that differs from a valid document in a few values."""
    document = copy.deepcopy(parsed(text))
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 4]))):
        known = places(document)
        if known:
            mutate(draw, document, known)
    return document


def mutate(draw: st.DrawFn, document: Any, known: list[tuple[Any, ...]]) -> None:  # noqa: ANN401, plain data
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
        renamed(parent, last, draw(st.sampled_from([*NAMES, 7, 7.5, True, None])))
    elif how == "copy":
        with contextlib.suppress(KeyError, IndexError, TypeError):
            parent[last] = copy.deepcopy(at(document, draw(st.sampled_from(known))))
    elif how == "swap" and isinstance(parent, list):
        parent.reverse()
    elif how == "change":
        parent[last] = changed(draw, parent[last])
    else:
        parent[last] = copy.deepcopy(draw(values))


def changed(draw: st.DrawFn, value: Any) -> Any:  # noqa: ANN401, plain data
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


PIECES = (
    *(
        "&a ",
        "*a",
        "*mlp",
        "<<: *mlp",
        "<<: [*mlp, *mlp]",
        "!!python/object/apply:os.system [id]",
        "!!python/name:os.system ",
        "!!binary aGk=",
    ),
    *(
        "!!set {a, b}",
        "!!omap [a: 1]",
        "!!int ",
        "!!str ",
        "!!float nan",
        "!x ",
        "---\n",
        "...\n",
        "%YAML 1.1\n",
        "{",
        "}",
        "[",
        "]",
        ": ",
        ", ",
        "- ",
    ),
    *(
        "? ",
        "| ",
        ">\n",
        "#",
        "'",
        '"',
        "\t",
        "\0",
        "\x07",
        "\ufeff",
        "\u2028",
        "\x85",
        "💥",
        "\n",
        "\n\n",
        "  ",
        "=",
        "1e400",
        ".nan",
        "0o17",
        "1:30:00",
    ),
    *(
        "[" * 100,
        "{a: " * 100,
        "- " * 100,
        "? " * 50,
        "[" * 5000,
        "a: &x [*x]\n",
        "&b [*b, *b]",
        "a, " * 500,
        "2026-99-99",
        "0b2",
        "9" * 4500,
    ),
)


@st.composite
def garbled(draw: st.DrawFn, text: str) -> bytes:
    """Draw the text of a document with insertions, deletions, copies, swaps and changed bytes."""
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(text)))
        stop = min(len(text), start + draw(st.sampled_from([0, 0, 1, 5, 40])))
        how = draw(st.sampled_from(["insert", "cut", "double", "line"]))
        if how == "insert":
            text = text[:start] + draw(st.sampled_from(PIECES)) + text[stop:]
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
def parsed(text: str) -> Any:  # noqa: ANN401, plain data
    """Return plain data with merge keys resolved and no shared objects."""
    return json.loads(json.dumps(yaml.safe_load(text), default=str))


def dumped(document: object) -> str:
    """Return the text of a document in block or flow style."""
    return str(yaml.dump(document, Dumper=Dumper, allow_unicode=True, sort_keys=False, width=1000))


@st.composite
def texts(draw: st.DrawFn, valid: str) -> bytes:
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
def cases(draw: st.DrawFn) -> Case:
    """Draw a case: mostly an invalid config, else an invalid catalogue."""
    valid = draw(st.sampled_from(CONFIGS))
    wrong = draw(st.sampled_from(["config", "config", "config", "chips", "dtypes"]))
    if wrong == "config":
        return Case(draw(texts(valid)), draw(st.floats(0, 1)))
    if wrong == "chips":
        return Case(valid.encode(), chips=draw(texts(CHIPS)))
    return Case(valid.encode(), dtypes=draw(texts(DTYPES)))
