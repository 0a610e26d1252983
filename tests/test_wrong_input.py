"""Wrong input gets one message: file, key, what was found, what it is, how to fix it.

Nothing else happens. Every case is a valid config with one line changed, so that only the change
can be what is refused.
"""

# One list of wrong configs, each with its message: long, but one thing.

from __future__ import annotations

import copy
import datetime as dt
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import rooflines
from rooflines.run.plan import plan

ROOT = Path(__file__).resolve().parent.parent
FILE = "wrong.yaml"
VALID = """\
sweeps:
  mlp:
    operation: matmul
    grid:
      B: [1, 2, 4]
      D: 512
      F: D
    dtypes: [bf16]
    chips: [mine]
    sharding: none
    shards: [1]
    memory: hbm
    unit: matrix
    thresholds: [B]
chips:
  mine:
    name: My chip
    vendor: Myself
    source: my own notes
    units:
      matrix:
        bf16: {flops_per_s: 1.97e14}
    memory:
      hbm: {bytes_per_s: 8.2e11, capacity_bytes: 1.6e10}
    networks:
      ici: {bytes_per_s: 4.5e10, links: 4, topology: torus, ring_multiple: 16, domain: 64}
  mine-fast:
    base: mine
    memory.hbm.bytes_per_s: 9.0e11
    source: my own notes
charts: []
"""


@dataclass(frozen=True)
class Wrong:
    """One mistake: the text that is replaced, by what, and what the message must say.

    Attributes:
        name: The case, in words.
        old: A piece of the valid config.
        new: The text that replaces it.
        says: Pieces that the message must contain: the key path first, then what was found and
            what would be right.
        close: Names that the message must offer as close to the one found.
        mistakes: How many mistakes that makes.
    """

    name: str
    old: str
    new: str
    says: tuple[str, ...]
    close: tuple[str, ...] = ()
    mistakes: int = 1

    def text(self):
        """Return the wrong config."""
        assert VALID.count(self.old) == 1, f"{self.old!r} is not once in the valid config"
        return VALID.replace(self.old, self.new)


OPERATION, GRID_B, GRID_D, GRID_F = (
    "    operation: matmul\n",
    "B: [1, 2, 4]",
    "D: 512",
    "      F: D\n",
)
DTYPES, CHIPS, SHARDING, SHARDS = "dtypes: [bf16]", "chips: [mine]", "sharding: none", "shards: [1]"
UNIT, THRESHOLDS, MEMORY = "unit: matrix", "thresholds: [B]", "    memory: hbm\n"
SPLIT = "sharding: none\n    shards: [1]"
PEAK, BANDWIDTH, TOPOLOGY, BASE = "1.97e14", "8.2e11", "topology: torus", "base: mine\n"

NAMES = [
    Wrong(
        "chip nobody knows",
        CHIPS,
        "chips: [h100]",
        ("sweeps.mlp.chips[0]", "'h100'"),
        ("h100-sxm",),
    ),
    Wrong(
        "chip of one's own, misspelt",
        CHIPS,
        "chips: [mine, mine-fats]",
        ("sweeps.mlp.chips[1]", "'mine-fats'"),
        ("mine-fast",),
    ),
    Wrong("chips as a number", CHIPS, "chips: [7]", ("sweeps.mlp.chips", "7")),
    Wrong("no chips", CHIPS, "chips: []", ("sweeps.mlp.chips",)),
    Wrong("chip twice", CHIPS, "chips: [mine, mine]", ("sweeps.mlp.chips", "mine")),
    Wrong(
        "combination nobody knows",
        DTYPES,
        "dtypes: [bf61]",
        ("sweeps.mlp.dtypes[0]", "'bf61'"),
        ("bf16",),
    ),
    Wrong("no combinations", DTYPES, "dtypes: []", ("sweeps.mlp.dtypes",)),
    Wrong(
        "format nobody knows",
        DTYPES,
        "dtypes: [{x: bf16, w: int9, out: bf16, compute: bf16}]",
        ("sweeps.mlp.dtypes[0].w", "'int9'"),
        ("int8",),
    ),
    Wrong(
        "compute format nobody knows",
        DTYPES,
        "dtypes: [bf16, {x: bf16, w: bf16, out: bf16, compute: bf17}]",
        ("sweeps.mlp.dtypes[1].compute", "'bf17'"),
        ("bf16",),
    ),
    Wrong(
        "combination without compute",
        DTYPES,
        "dtypes: [{x: bf16, w: bf16, out: bf16}]",
        ("sweeps.mlp.dtypes[0]", "compute"),
    ),
    Wrong(
        "combination with a key too many",
        DTYPES,
        "dtypes: [{x: bf16, w: bf16, out: bf16, compute: bf16, accumulate: fp32}]",
        ("sweeps.mlp.dtypes[0]", "accumulate"),
    ),
    Wrong(
        "operation nobody knows",
        OPERATION,
        "    operation: matmull\n",
        ("sweeps.mlp.operation", "'matmull'"),
        ("matmul",),
    ),
    Wrong("unit nobody knows", UNIT, "unit: tensor", ("sweeps.mlp.unit", "'tensor'")),
    Wrong(
        "way to count nobody knows", UNIT, "flops: sometimes", ("sweeps.mlp.flops", "'sometimes'")
    ),
    Wrong(
        "what to do with the unsupported, unknown",
        UNIT,
        "on_unsupported: ignore",
        ("sweeps.mlp.on_unsupported", "'ignore'"),
    ),
    Wrong(
        "sharding nobody knows",
        SHARDING,
        "sharding: colunm",
        ("sweeps.mlp.sharding", "'colunm'"),
        ("column",),
    ),
    Wrong(
        "a sharding with keys of two types",
        SHARDING,
        "sharding: [{7: B, split: B}, none]",
        ("sweeps.mlp.sharding[0]", "7"),
    ),
    Wrong(
        "name of a sweep with bad characters",
        "  mlp:\n",
        "  My Sweep:\n",
        ("sweeps.My Sweep", "'My Sweep'", "lower-case"),
    ),
    Wrong(
        "name of a sweep that leaves its folder", "  mlp:\n", "  ../mlp:\n", ("sweeps", "'../mlp'")
    ),
    Wrong("name of a sweep that is a number", "  mlp:\n", "  7.5:\n", ("sweeps", "7.5")),
    Wrong(
        "name of a chip with bad characters",
        "  mine-fast:\n",
        "  Mine Fast:\n",
        ("chips.Mine Fast", "'Mine Fast'", "lower-case"),
    ),
    Wrong(
        "column nobody knows",
        UNIT,
        "columns: [flops, flopps]",
        ("sweeps.mlp.columns[1]", "'flopps'"),
        ("flops",),
    ),
    Wrong(
        "columns that are neither all nor a list",
        UNIT,
        "columns: some",
        ("sweeps.mlp.columns", "'some'"),
    ),
]

KEYS = [
    Wrong(
        "key of a sweep, misspelt", DTYPES, "dtype: [bf16]", ("sweeps.mlp", "dtype"), ("dtypes",)
    ),
    Wrong("key of the config, misspelt", "charts: []", "chart: []", ("chart",), ("charts",)),
    Wrong("sweep without operation", OPERATION, "", ("sweeps.mlp", "operation")),
    Wrong("sweep without dtypes", f"    {DTYPES}\n", "", ("sweeps.mlp", "dtypes")),
    Wrong("sweep without chips", f"    {CHIPS}\n", "", ("sweeps.mlp", "chips")),
    Wrong(
        "operation that is a list",
        OPERATION,
        "    operation: [matmul]\n",
        ("sweeps.mlp.operation",),
    ),
    Wrong("operation that is null", OPERATION, "    operation:\n", ("sweeps.mlp.operation",)),
    Wrong(
        "grid that is a list",
        "grid:\n      B: [1, 2, 4]\n      D: 512\n      F: D\n",
        "grid: [1, 2]\n",
        ("sweeps.mlp.grid",),
    ),
    Wrong(
        "thresholds of a dimension that is not there",
        THRESHOLDS,
        "thresholds: [B, Z]",
        ("sweeps.mlp.thresholds[1]", "'Z'"),
    ),
    Wrong(
        "thresholds that are a number", THRESHOLDS, "thresholds: 3", ("sweeps.mlp.thresholds", "3")
    ),
    Wrong(
        "an unknown compression",
        UNIT,
        "compression: gzip",
        ("sweeps.mlp.compression", "'gzip'", "zstd"),
    ),
    Wrong(
        "the width of floats that earlier versions had",
        UNIT,
        "floats: float32",
        ("sweeps.mlp.floats", "Float64", "remove it"),
    ),
    Wrong("rows_per_part of zero", UNIT, "rows_per_part: 0", ("sweeps.mlp.rows_per_part", "0")),
    Wrong(
        "rows_per_part in words",
        UNIT,
        "rows_per_part: many",
        ("sweeps.mlp.rows_per_part", "'many'"),
    ),
    Wrong(
        "rows_per_part of one and a half",
        UNIT,
        "rows_per_part: 1.5",
        ("sweeps.mlp.rows_per_part", "1.5"),
    ),
    Wrong("charts that are a number", "charts: []", "charts: 3", ("charts", "3")),
]

EINSUMS = [
    Wrong(
        f"einsum {text!r}",
        OPERATION,
        f'    operation: "{text}"\n',
        ("sweeps.mlp.operation", f"'{text}'"),
    )
    for text in (
        "BD,DF",
        "BD->B",
        "BD,DF,FG->BG",
        "BD,DF->BZ",
        "BB,BF->BF",
        "BD,DF->BFF",
        "B1,1F->BF",
        "BD,DF->BF->B",
        "->",
        "",
    )
]

SIZES = [
    Wrong(f"size {found}", GRID_D, f"D: {found}", ("sweeps.mlp.grid.D", shown))
    for found, shown in [
        ("0", "0"),
        ("-4", "-4"),
        ("2.5", "2.5"),
        ("'2.5'", "2.5"),
        ("many", "'many'"),
        ("'1024 tokens'", "'1024 tokens'"),
        ("true", "true"),
        ("null", "null"),
        (".nan", "nan"),
        (".inf", "inf"),
        (str(2**70), str(2**70)),
        ("1.0e+400", "inf"),
        ("2026-11-21", "2026"),
        ("[]", ""),
        ("[512, 0]", "0"),
        ("[[512]]", "512"),
    ]
]

RANGES = [
    Wrong(f"range {spec}", GRID_B, f"B: {{{spec}}}", ("sweeps.mlp.grid.B", *says))
    for spec, says in [
        ("from: 8, to: 4, factor: 2", ("8", "4")),
        ("from: 1, to: 8, factor: 1", ("factor", "1")),
        ("from: 1, to: 8, factor: 0.5", ("factor", "0.5")),
        ("from: 1, to: 8, factor: -2", ("factor", "-2")),
        ("from: 1, to: 8, step: 0", ("step", "0")),
        ("from: 1, to: 8, step: -1", ("step", "-1")),
        ("from: 1, to: 8", ("factor", "step")),
        ("from: 1, to: 8, factor: 2, step: 2", ("factor", "step")),
        ("from: 1, factor: 2", ("to",)),
        ("from: 0, to: 8, factor: 2", ("from", "0")),
        ("from: 1, to: many, factor: 2", ("to", "'many'")),
        ("from: 1, to: 8, factor: 2, times: 3", ("times",)),
        ("from: 1, to: .inf, factor: 2", ("to", "inf")),
        ("from: 1, to: 8, count: 0", ("count", "0")),
        ("from: 1, to: 8, count: 2.5", ("count", "2.5")),
        ("from: 1, to: 8, count: 1", ("count", "1", "8")),
        ("from: 1, to: 8, count: 2, factor: 2", ("factor", "count")),
        ("from: 8, to: 4, count: 2", ("8", "4")),
        ("from: 1, to: 8, count: 2000000", ("2,000,000",)),
        ("sequences: 3, tokens_per_sequence: 5, replicas: 2", ("7.5",)),
        ("sequences: 3, tokens_per_sequence: 5, replicas: 0", ("replicas", "0")),
        ("sequences: 3, tokens_per_sequences: 5, replicas: 1", ("tokens_per_sequences",)),
    ]
]

GRIDS = [
    Wrong(
        "dimension that is not there", GRID_F, "      F: D\n      E: 4\n", ("sweeps.mlp.grid", "E")
    ),
    Wrong("dimension without sizes", GRID_F, "", ("sweeps.mlp", "F")),
    Wrong(
        "tie to a dimension that is not there", GRID_F, "      F: G\n", ("sweeps.mlp.grid.F", "'G'")
    ),
    Wrong("tie to itself", GRID_F, "      F: F\n", ("sweeps.mlp.grid.F", "circle")),
    Wrong(
        "ties in a circle", "D: 512\n      F: D", "D: F\n      F: D", ("sweeps.mlp.grid", "D", "F")
    ),
    Wrong(
        "shape without a name",
        GRID_F,
        "    shapes: [{F: 512}]\n",
        ("sweeps.mlp.shapes[0]", "name"),
    ),
    Wrong(
        "shape without a dimension",
        GRID_F,
        "    shapes: [{name: up, F: 512}, {name: down}]\n",
        ("sweeps.mlp.shapes[1]", "F"),
    ),
    Wrong(
        "dimension in grid and shapes",
        GRID_F,
        "      F: D\n    shapes: [{name: up, D: 4096}]\n",
        ("sweeps.mlp", "D"),
    ),
    Wrong(
        "two shapes of one name",
        GRID_F,
        "    shapes: [{name: up, F: 512}, {name: up, F: 1024}]\n",
        ("sweeps.mlp.shapes", "'up'"),
    ),
    Wrong(
        "size of a shape in words",
        GRID_F,
        "    shapes: [{name: up, F: wide}]\n",
        ("sweeps.mlp.shapes[0].F", "'wide'"),
    ),
    Wrong(
        "dimension of a shape that is not there",
        GRID_F,
        "    shapes: [{name: up, F: 1, G: 2}]\n",
        ("sweeps.mlp.shapes[0]", "G"),
    ),
    Wrong(
        "tile of a dimension that is not there", UNIT, "tile: {Z: 128}", ("sweeps.mlp.tile", "Z")
    ),
    Wrong(
        "sizes whose product is beyond Float64",
        "operation: matmul\n    grid:\n      B: [1, 2, 4]\n      D: 512\n      F: D\n",
        'operation: "ABCDEFGHIJKLMNOPQRSTU,A->ABCDEFGHIJKLMNOPQRSTU"\n    grid: '
        f"{{A: {2**53}, {', '.join(f'{dim}: A' for dim in 'BCDEFGHIJKLMNOPQRSTU')}}}\n",
        ("sweeps.mlp.grid", "1e335", "1e100"),
    ),
    Wrong(
        "tiles whose product is beyond what a table holds",
        "operation: matmul\n    grid:\n      B: [1, 2, 4]\n      D: 512\n      F: D\n",
        'operation: "BCDEFGH,C->BCDEFGH"\n'
        f"    shapes: [{{name: a, {', '.join(f'{dim}: 1' for dim in 'BCDEFGH')}}}]\n"
        f"    tile: {{{', '.join(f'{dim}: {2**53}' for dim in 'BCDEFGH')}}}\n",
        ("sweeps.mlp.shapes", "1e112", "1e100"),
    ),
    Wrong(
        "tile that spans too many elements of all chips",
        SPLIT,
        "sharding: column\n    tile: {F: 9007199254740992}\n    shards: [1, 1000]",
        ("sweeps.mlp.tile.F", "9,007,199,254,740,992", "4,611,686,018,427,387,904", "1,000 chips"),
    ),
    Wrong("tile of zero", UNIT, "tile: {B: 0}", ("sweeps.mlp.tile.B", "0")),
    Wrong("tile in words", UNIT, "tile: {B: large}", ("sweeps.mlp.tile.B", "'large'")),
    Wrong("tile that is a number", UNIT, "tile: 128", ("sweeps.mlp.tile", "128")),
    Wrong("efficiency of zero", UNIT, "efficiency: {math: 0}", ("sweeps.mlp.efficiency.math", "0")),
    Wrong(
        "efficiency above one",
        UNIT,
        "efficiency: {memory: 1.5}",
        ("sweeps.mlp.efficiency.memory", "1.5"),
    ),
    Wrong(
        "efficiency in percent",
        UNIT,
        "efficiency: {math: 82 %}",
        ("sweeps.mlp.efficiency.math", "'82 %'"),
    ),
    Wrong(
        "efficiency of an unknown resource",
        UNIT,
        "efficiency: {maths: 0.8}",
        ("sweeps.mlp.efficiency", "maths"),
        ("math",),
    ),
]

SHARDINGS = [
    Wrong(
        "shards without a sharding",
        SHARDS,
        "shards: [1, 2]",
        ("sweeps.mlp.shards", "2", "sharding"),
    ),
    Wrong(
        "none without a single chip",
        SPLIT,
        "sharding: [none, column]\n    shards: [2]",
        ("sweeps.mlp.shards", "1", "none"),
    ),
    Wrong(
        "solving for shards where nothing is split",
        THRESHOLDS,
        "thresholds: [shards]",
        ("sweeps.mlp.thresholds[0]", "shards"),
    ),
    Wrong(
        "solving for shards of a tiled dimension",
        f"{SPLIT}\n    memory: hbm\n    {UNIT}\n    {THRESHOLDS}",
        "sharding: column\n    tile: {F: 128}\n    thresholds: [shards]",
        ("sweeps.mlp.thresholds[0]", "shards", "F", "tile"),
    ),
    Wrong("no shards", SPLIT, "sharding: column\n    shards: []", ("sweeps.mlp.shards",)),
    Wrong(
        "shards of zero", SPLIT, "sharding: column\n    shards: [0]", ("sweeps.mlp.shards[0]", "0")
    ),
    Wrong(
        "shards of one and a half",
        SPLIT,
        "sharding: column\n    shards: [1, 1.5]",
        ("sweeps.mlp.shards[1]", "1.5"),
    ),
    Wrong(
        "shards in words",
        SPLIT,
        "sharding: column\n    shards: [two]",
        ("sweeps.mlp.shards[0]", "'two'"),
    ),
    Wrong(
        "shards that are true",
        SPLIT,
        "sharding: column\n    shards: [true]",
        ("sweeps.mlp.shards[0]", "true"),
    ),
    Wrong(
        "split of a dimension that is not there",
        SHARDING,
        "sharding: {split: Z}",
        ("sweeps.mlp.sharding", "'Z'"),
    ),
    Wrong(
        "contracted split without a reduction",
        SHARDING,
        "sharding: {split: D}",
        ("sweeps.mlp.sharding", "D", "then"),
    ),
    Wrong(
        "reduction of what is not contracted",
        SHARDING,
        "sharding: {split: F, then: all-reduce}",
        ("sweeps.mlp.sharding", "F", "all-reduce"),
    ),
    Wrong(
        "gather of an operand that keeps the split",
        SHARDING,
        "sharding: {split: F, first: all-gather w}",
        ("sweeps.mlp.sharding", "F", "gather", "w itself"),
    ),
    Wrong(
        "gather nobody knows",
        SHARDING,
        "sharding: {split: F, first: all-gather y}",
        ("sweeps.mlp.sharding", "'all-gather y'"),
    ),
    Wrong(
        "reduction nobody knows",
        SHARDING,
        "sharding: {split: D, then: all-reduced}",
        ("sweeps.mlp.sharding", "'all-reduced'", "all-reduce,"),
    ),
    Wrong(
        "long form without a split",
        SHARDING,
        "sharding: {then: all-reduce}",
        ("sweeps.mlp.sharding", "split"),
    ),
    Wrong(
        "long form with a key too many",
        SHARDING,
        "sharding: {split: F, after: all-reduce}",
        ("sweeps.mlp.sharding", "after"),
    ),
    Wrong(
        "exact FLOPs with less than one element for each chip",
        SPLIT,
        "sharding: contracting/all-reduce\n    flops: exact\n    shards: [1024]",
        ("sweeps.mlp", "exact", "1024", "64 chips at most"),
        mistakes=2,
    ),
]

SPLIT_D, SPLIT_B = (f"sharding: {{split: {dim}, %s}}\n    shards: [1]" for dim in ("D", "B"))
ON_TWO = "sharding: column\n    shards: [%s]\n    network: [%s]"

NETWORKS = [
    *(
        Wrong(
            f"shards of {form}",
            SPLIT,
            f"sharding: column\n    shards: [1, {form}]",
            ("sweeps.mlp.shards[1]", f"'{form}'", "such as 4x4"),
        )
        for form in ("4x", "x4", "1x4", "4x4x", "4.5x2", "4X4", "4*4", "axb")
    ),
    Wrong(
        "shards of no chips along an axis",
        SPLIT,
        "sharding: column\n    shards: [1, '0x4']",
        ("sweeps.mlp.shards[1]", "'0x4'", "such as 4x4"),
    ),
    Wrong(
        "more chips along axes than can be counted",
        SPLIT,
        "sharding: column\n    shards: [99999999x999999999]",
        ("sweeps.mlp.shards[0]", "'99999999x999999999'", "choose fewer chips"),
    ),
    Wrong(
        "more axes than links allow",
        SPLIT,
        "sharding: column\n    shards: [2x2x2]\n    on_unsupported: error",
        ("sweeps.mlp", "2x2x2", "4 links on ici, two for an axis"),
    ),
    Wrong(
        "a product without a sharding", SHARDS, "shards: [4x4]", ("sweeps.mlp.shards", "4x4 chips")
    ),
    Wrong(
        "solving for shards of a product",
        f"{SPLIT}\n{MEMORY}    {UNIT}\n    {THRESHOLDS}",
        "sharding: column\n    shards: [1, 4x4]\n    thresholds: [shards]",
        ("sweeps.mlp.thresholds[0]", "4x4 is a product of axes", "leave shards out"),
    ),
    Wrong(
        "solving for shards of an all-to-all",
        f"{SPLIT}\n{MEMORY}    {UNIT}\n    {THRESHOLDS}",
        SPLIT_B % "then: all-to-all" + "\n    thresholds: [shards]",
        ("sweeps.mlp.thresholds[0]", "B/all-to-all", "leave shards out"),
    ),
    Wrong(
        "all-to-all of partial sums",
        SPLIT,
        SPLIT_D % "then: all-to-all",
        ("sweeps.mlp.sharding", "D is contracted", "`then: all-reduce`"),
    ),
    Wrong(
        "all-to-all of an operand, and partial sums",
        SPLIT,
        SPLIT_D % "first: all-to-all x, then: all-reduce",
        ("sweeps.mlp.sharding", "D is contracted", "leave `first` out"),
    ),
    Wrong(
        "all-to-all of an operand that lacks the split",
        SPLIT,
        "sharding: {split: F, first: all-to-all x}\n    shards: [1]",
        ("sweeps.mlp.sharding", "x lacks F", "`first: all-gather x`"),
    ),
    Wrong(
        "all-to-all and a gather",
        SPLIT,
        SPLIT_B % "first: all-gather w, then: all-to-all",
        ("sweeps.mlp.sharding", "gathers one tensor", "two sweeps"),
    ),
    Wrong(
        "all-to-all of the weights",
        SPLIT,
        SPLIT_B % "first: all-to-all w",
        ("sweeps.mlp.sharding[0].first", "'all-to-all w'"),
        ("all-to-all", "x"),
    ),
    Wrong(
        "all-to-all, misspelt",
        SPLIT,
        SPLIT_B % "then: alltoall",
        ("sweeps.mlp.sharding[0].then", "'alltoall'"),
        ("all-to-all",),
    ),
    Wrong(
        "two levels of one network",
        SPLIT,
        ON_TWO % (2, "ici, ici"),
        ("sweeps.mlp.network", "two levels of one network"),
    ),
    Wrong(
        "three levels",
        SPLIT,
        ON_TWO % (2, "[a, b, c], ici"),
        ("sweeps.mlp.network[0]", "has 3 networks", "inner, outer"),
    ),
    Wrong("no level", SPLIT, ON_TWO % (2, ""), ("sweeps.mlp.network", "has 0 networks")),
    Wrong(
        "two levels as one name",
        SPLIT,
        "sharding: column\n    network: fabric+ici",
        ("sweeps.mlp.network is", "'fabric+ici'", "[fabric, ici]"),
    ),
    Wrong(
        "a name of a network that is none",
        SPLIT,
        "sharding: column\n    network: [ici, 7]",
        ("sweeps.mlp.network[1]", "7"),
    ),
    Wrong(
        "bytes of levels on one network",
        THRESHOLDS,
        "columns: [network_inner_bytes]",
        ("sweeps.mlp.columns[0]", "'network_inner_bytes'", "no two networks", "[inner, outer]"),
    ),
    Wrong("domain in words", "domain: 64", "domain: many", ("ici.domain", "'many'", "unlimited")),
    Wrong(
        "domain, misspelt",
        "domain: 64",
        "domain: unlimitd",
        ("ici.domain", "'unlimitd'"),
        ("unlimited",),
    ),
    Wrong(
        "domain of a variant in words",
        "memory.hbm.bytes_per_s: 9.0e11",
        "networks.ici.domain: many",
        ("chips.mine-fast.networks.ici.domain", "'many'", "unlimited"),
    ),
    Wrong(
        "endless mesh",
        "topology: torus, ring_multiple: 16, domain: 64",
        "topology: mesh, domain: unlimited",
        ("networks.ici.domain", "unlimited", "a mesh of 4 links joins 5 chips at most"),
    ),
    *(
        Wrong(f"share of {share}", THRESHOLDS, f"shares: {share}", (f"sweeps.mlp.shares{says}",))
        for share, says in {
            "0": "[0] is 0, which is less than 1e-06",
            "1.5": "[0] is 1.5, which is more than 1",
            "[]": " is an empty list",
            "[1, 1.0]": "[1] is 1.0, which is listed twice",
        }.items()
    ),
]

CHIP_ENTRIES = [
    Wrong(
        "base that does not exist",
        BASE,
        "base: mein\n",
        ("chips.mine-fast.base", "'mein'"),
        ("mine",),
    ),
    Wrong("base that is itself", BASE, "base: mine-fast\n", ("chips.mine-fast.base", "mine-fast")),
    Wrong(
        "override of what is not there",
        "memory.hbm.bytes_per_s:",
        "memory.hbm.bytes_per_sec:",
        ("chips.mine-fast", "memory.hbm.bytes_per_sec"),
        ("bytes_per_s",),
    ),
    Wrong(
        "override of a level that is not there",
        "memory.hbm.bytes_per_s:",
        "memory.l9.bytes_per_s:",
        ("chips.mine-fast", "memory.l9.bytes_per_s"),
    ),
    Wrong(
        "override of a number that a network cannot have",
        "memory.hbm.bytes_per_s:",
        "networks.ici.hop_latency:",
        ("chips.mine-fast.networks.ici.hop_latency", "names no number"),
        ("hop_latency_s",),
    ),
    Wrong(
        "override of a network that is not there",
        "memory.hbm.bytes_per_s:",
        "networks.icy.bytes_per_s:",
        ("chips.mine-fast.networks.icy.bytes_per_s", "names no number"),
        ("ici",),
    ),
    Wrong(
        "override of a whole level that is there",
        "memory.hbm.bytes_per_s: 9.0e11",
        "memory.hbm: {bytes_per_s: 9.0e11}",
        ("chips.mine-fast.memory.hbm", "names no number", "memory.hbm.bytes_per_s"),
    ),
    Wrong(
        "override of all levels",
        "memory.hbm.bytes_per_s: 9.0e11",
        "memory: {hbm: {bytes_per_s: 9.0e11}}",
        ("chips.mine-fast.memory", "names no number"),
    ),
    Wrong(
        "new network of a variant without its topology",
        "memory.hbm.bytes_per_s: 9.0e11",
        "networks.net: {bytes_per_s: 9.0e11}",
        ("chips.mine-fast.networks.net", "lacks topology"),
    ),
    Wrong(
        "new level of a variant that is a number",
        "memory.hbm.bytes_per_s: 9.0e11",
        "memory.l3: 9.0e11",
        ("chips.mine-fast.memory.l3", "names no number"),
    ),
    Wrong(
        "peak of a variant in a format nobody knows",
        "memory.hbm.bytes_per_s:",
        "units.matrix.bf61.flops_per_s:",
        ("chips.mine-fast.units.matrix.bf61",),
        ("bf16",),
    ),
    Wrong(
        "override in words",
        "9.0e11",
        "fast",
        ("chips.mine-fast", "memory.hbm.bytes_per_s", "'fast'"),
    ),
    Wrong("override of zero", "9.0e11", "0", ("chips.mine-fast", "memory.hbm.bytes_per_s", "0")),
    Wrong(
        "number with its unit",
        PEAK,
        "1.97e14 FLOP/s",
        ("chips.mine.units.matrix.bf16.flops_per_s", "'1.97e14 FLOP/s'"),
    ),
    Wrong("rate of zero", PEAK, "0", ("chips.mine.units.matrix.bf16.flops_per_s", "0")),
    Wrong("rate below zero", BANDWIDTH, "-8.2e11", ("chips.mine.memory.hbm.bytes_per_s", "-8")),
    Wrong("rate that is true", BANDWIDTH, "true", ("chips.mine.memory.hbm.bytes_per_s", "true")),
    Wrong(
        "rate that is not a number", BANDWIDTH, ".nan", ("chips.mine.memory.hbm.bytes_per_s", "nan")
    ),
    Wrong("rate without end", BANDWIDTH, ".inf", ("chips.mine.memory.hbm.bytes_per_s", "inf")),
    Wrong(
        "rate that is missing",
        "{flops_per_s: 1.97e14}",
        "{note: fast}",
        ("chips.mine.units.matrix.bf16", "flops_per_s"),
    ),
    Wrong(
        "format of a peak nobody knows",
        "bf16: {",
        "bf61: {",
        ("chips.mine.units.matrix", "bf61"),
        ("bf16",),
    ),
    Wrong(
        "unit of a chip nobody knows",
        "      matrix:\n",
        "      tensor:\n",
        ("chips.mine.units", "tensor"),
    ),
    Wrong(
        "topology nobody knows",
        TOPOLOGY,
        "topology: tours",
        ("chips.mine.networks.ici.topology", "'tours'"),
        ("torus",),
    ),
    Wrong(
        "clock nobody knows",
        "    name: My chip\n",
        "    name: My chip\n    clock: bost\n",
        ("chips.mine.clock", "'bost'", "use 'boost'"),
    ),
    Wrong(
        "measured share as a percentage",
        "    name: My chip\n",
        "    name: My chip\n    measured: [{what: a matmul, fraction_of_peak: 82}]\n",
        ("chips.mine.measured[0].fraction_of_peak", "more than 2"),
    ),
    Wrong("links of zero", "links: 4", "links: 0", ("chips.mine.networks.ici.links", "0")),
    Wrong(
        "hop of less than no time",
        "domain: 64",
        "hop_latency_s: -1",
        ("chips.mine.networks.ici.hop_latency_s", "-1"),
    ),
    Wrong("domain of zero", "domain: 64", "domain: 0", ("chips.mine.networks.ici.domain", "0")),
    Wrong(
        "key of a memory level, misspelt",
        "capacity_bytes",
        "capacity_byte",
        ("chips.mine.memory.hbm", "capacity_byte"),
        ("capacity_bytes",),
    ),
    Wrong(
        "key of a chip, misspelt",
        "    networks:\n",
        "    network:\n",
        ("chips.mine", "network"),
        ("networks",),
    ),
    Wrong(
        "chip without units",
        "    units:\n      matrix:\n        bf16: {flops_per_s: 1.97e14}\n",
        "",
        ("chips.mine", "units"),
    ),
    Wrong(
        "efficiency of a chip above one",
        "    vendor: Myself\n",
        "    vendor: Myself\n    efficiency: {math: 2}\n",
        ("chips.mine.efficiency.math", "2"),
    ),
    Wrong(
        "calibration for a format nobody knows",
        "    vendor: Myself\n",
        "    vendor: Myself\n    calibration: {bf61: {math: 0.8}}\n",
        ("chips.mine.calibration", "bf61"),
    ),
    Wrong(
        "overhead below zero",
        "    vendor: Myself\n",
        "    vendor: Myself\n    calibration: {bf16: {math: 0.8, overhead_s: -1}}\n",
        ("chips.mine.calibration.bf16.overhead_s", "-1"),
    ),
    Wrong(
        "format that the chip lacks, where that is an error",
        DTYPES,
        "dtypes: [bf16, int8]\n    on_unsupported: error",
        ("sweeps.mlp", "mine", "int8"),
    ),
    Wrong(
        "level that the chip lacks, where that is an error",
        MEMORY,
        "    memory: l9\n    on_unsupported: error\n",
        ("sweeps.mlp", "mine", "l9"),
    ),
    Wrong(
        "more chips than the domain holds, where that is an error",
        SPLIT,
        "sharding: column\n    shards: [1, 128]\n    on_unsupported: error",
        ("sweeps.mlp", "mine", "128", "64"),
    ),
    Wrong(
        "network that the chip lacks, where that is an error",
        SPLIT,
        "sharding: column\n    shards: [2]\n    network: nvlink\n    on_unsupported: error",
        ("sweeps.mlp", "mine", "nvlink"),
    ),
]

NOT_THE_USERS_WORDS = (
    "literal[",
    "validation",
    "NoneType",
    "datetime",
    "Dictionary",
    "dict",
    "union",
)
ONE_LINE = [*NAMES, *KEYS, *EINSUMS, *SIZES, *RANGES, *GRIDS, *SHARDINGS, *NETWORKS, *CHIP_ENTRIES]

WHOLE_FILES = [
    ("no mapping but a list", "- sweeps\n", ("['sweeps']", "mapping")),
    ("no mapping but a word", "sweeps\n", ("sweeps",)),
    ("an empty file", "", ("sweeps",)),
    ("sweeps missing", "charts: []\n", ("sweeps",)),
    ("sweeps that are null", "sweeps:\ncharts: []\n", ("sweeps",)),
    ("sweeps that are empty", "sweeps: {}\n", ("sweeps",)),
    ("sweeps that are a list", "sweeps: [mlp]\n", ("sweeps",)),
    (
        "chips that are a list",
        VALID[: VALID.index("chips:\n  mine:")] + "chips: [mine]\n",
        ("chips",),
    ),
    ("a sweep that is null", "sweeps:\n  mlp:\n", ("sweeps.mlp",)),
    (
        "a bracket that is not closed",
        "sweeps:\n  mlp:\n    dtypes: [bf16\n    chips: 1\n",
        ("line 4", "column"),
    ),
    ("a tab for indentation", "sweeps:\n\tmlp: 1\n", ("line 2", "column 1")),
    (
        "a key twice",
        VALID.replace("    unit: matrix\n", "    unit: matrix\n    unit: vector\n"),
        ("line 14", "unit", "twice"),
    ),
    (
        "a sweep twice",
        VALID.replace("chips:\n  mine:", "  mlp: {}\nchips:\n  mine:"),
        ("line 15", "mlp", "twice"),
    ),
    ("an alias of nothing", VALID.replace("D: 512", "D: *size"), ("line 6", "alias")),
    ("an alias of itself", VALID.replace("[1, 2, 4]", "&b [*b]"), ("sweeps.mlp.grid.B",)),
    (
        "aliases that multiply without end",
        "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1]\n"
        + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 8)}]\n" for n in range(1, 30)),
        ("line",),
    ),
    (
        "Python in YAML",
        VALID.replace("D: 512", "D: !!python/object/apply:os.getcwd []"),
        ("line 6",),
    ),
    ("two documents", VALID + "---\n" + VALID, ("line",)),
    (
        "bases in a circle",
        VALID.replace("base: mine\n", "base: mine-slow\n").replace(
            "charts: []",
            "  mine-slow:\n    base: mine-fast\n    memory.hbm.bytes_per_s: 8.0e11\n"
            "    source: notes\ncharts: []",
        ),
        ("chips.mine", "base", "mine-slow", "mine-fast"),
    ),
    (
        "a role that no dimension has",
        VALID.replace("operation: matmul", "operation: dot")
        .replace("      B: [1, 2, 4]\n", "")
        .replace("      F: D\n", "")
        .replace("[B]", "[D]")
        .replace("sharding: none", "sharding: column"),
        ("sweeps.mlp.sharding", "'column'"),
    ),
    (
        "a role that two dimensions have",
        VALID.replace("operation: matmul", "operation: sequence-matmul")
        .replace("      F: D\n", "      F: D\n      S: 4\n")
        .replace("sharding: none", "sharding: batch"),
        ("sweeps.mlp.sharding", "'batch'", "B", "S", "split"),
    ),
]


def message_of(text, folder):
    """The message for a wrong config; checks that no file was written."""
    path = folder / FILE
    path.write_text(text, encoding="utf-8")
    with pytest.raises(rooflines.RooflinesError) as caught:
        plan(rooflines.load_config(path))
    assert [entry.name for entry in folder.iterdir()] == [FILE]
    return str(caught.value)


def assert_form(message, file, mistakes=1):
    """Check the form of a message.

    For each mistake: file, place and problem, then indented lines, one of which says how to fix it.
    """
    parts = re.split(r"\n(?! )", message)
    if parts[-1].startswith("and "):
        assert re.fullmatch(r"and (at least )?\d+ more mistakes?\.", parts.pop()), message
    assert len(parts) == mistakes or mistakes is None, message
    for part in parts:
        first, *rest = part.splitlines()
        assert re.match(rf"\S*{re.escape(file)}(:\d+)?(: | )\S.*\.$", first), message
        assert rest, message
        assert all(line.startswith("  ") for line in rest), message
        assert sum(line.startswith("  fix: ") for line in rest) == 1, message
    assert "Traceback" not in message


def test_the_config_that_every_case_starts_from_is_valid(tmp_path):
    path = tmp_path / FILE
    path.write_text(VALID, encoding="utf-8")
    config = rooflines.load_config(path)
    assert rooflines.rows(config, "mlp").collect().height == 3
    assert [part.rows for part in plan(config).parts] == [3]


FABRICS = """\
    networks:
      fabric: {bytes_per_s: 4.5e11, topology: switch, domain: 8}
      unknown: {bytes_per_s: 4.5e10, topology: switch}
      mesh: {bytes_per_s: 4.5e10, links: 7, topology: mesh}
"""

UNJOINED = [
    ("4x4", "fabric", "no axes on fabric: 4x4 needs one torus"),
    ("2x2", "mesh", "no axes on mesh: 2x2 needs one torus"),
    ("2x2x2", "ici", "4 links on ici, two for an axis: too few for 2x2x2"),
    ("65", "ici", "64 chips at most on one ici"),
    ("9", "mesh", "8 chips at most on one mesh"),
    ("3", "unknown", "no published number of chips that unknown joins"),
    ("12", "[fabric, ici]", "groups of 8 chips on fabric, of which 12 is no multiple"),
    ("2x8", "[fabric, ici]", "no axes on fabric and ici: 2x8 needs one torus"),
    ("2", "[ici, fabric]", "a torus, ici, which cannot be the inner of two networks"),
    ("2", "[fabric, cable]", "no interconnect cable"),
]
"""Shards and networks that a chip does not have, and the reason in skipped.csv."""


@pytest.mark.parametrize(("shards", "network", "reason"), UNJOINED)
def test_chips_that_no_network_joins_are_skipped_with_the_reason(shards, network, reason):
    text = VALID.replace("    networks:\n", FABRICS).replace(
        SPLIT, f"sharding: column\n    shards: [1, {shards}]\n    network: {network}"
    )
    config = rooflines.load_config(yaml.safe_load(text))
    assert rooflines.rows(config, "mlp").collect()["shards"].to_list() == [1, 1, 1]
    (row,) = rooflines.skipped(config).to_dicts()
    assert (row["axes"], row["rows"], row["reason"]) == (shards, 3, reason)


def test_shards_over_two_networks_with_an_outer_torus_are_refused():
    text = VALID.replace("    networks:\n", FABRICS).replace(
        SPLIT, "sharding: column\n    shards: [1]\n    network: [fabric, ici]"
    )
    with pytest.raises(rooflines.RooflinesError, match=r"ici of mine, is a torus") as caught:
        plan(rooflines.load_config(yaml.safe_load(text.replace("[B]", "[shards]"))))
    assert_form(str(caught.value), "config")


@pytest.mark.parametrize("wrong", ONE_LINE, ids=lambda wrong: wrong.name)
def test_a_wrong_line_is_refused_with_its_place_and_a_fix(wrong, tmp_path):
    message = message_of(wrong.text(), tmp_path)
    assert_form(message, FILE, wrong.mistakes)
    assert not [word for word in NOT_THE_USERS_WORDS if word in message], message
    missing = [piece for piece in wrong.says if piece not in message]
    assert not missing, f"{missing} not in:\n{message}"
    if wrong.close:
        (close,) = [line for line in message.splitlines() if line.startswith("  close to it: ")]
        assert set(wrong.close) <= set(re.split(r"[ ,]+", close)), message


@pytest.mark.parametrize(
    ("text", "says"), [case[1:] for case in WHOLE_FILES], ids=[case[0] for case in WHOLE_FILES]
)
def test_a_wrong_file_is_refused_with_its_place_and_a_fix(text, says, tmp_path):
    message = message_of(text, tmp_path)
    assert_form(message, FILE)
    assert not [word for word in NOT_THE_USERS_WORDS if word in message], message
    missing = [piece for piece in says if piece not in message]
    assert not missing, f"{missing} not in:\n{message}"


def test_a_missing_file_is_refused_by_name(tmp_path):
    with pytest.raises(rooflines.RooflinesError) as caught:
        rooflines.load_config(tmp_path / "nowhere.yaml")
    assert_form(str(caught.value), "nowhere.yaml")


def test_a_folder_is_no_config(tmp_path):
    with pytest.raises(rooflines.RooflinesError) as caught:
        rooflines.load_config(tmp_path)
    assert_form(str(caught.value), tmp_path.name)


def test_a_file_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / FILE
    path.write_bytes(b"sweeps: \xff\xfe\x00\n")
    with pytest.raises(rooflines.RooflinesError) as caught:
        rooflines.load_config(path)
    assert_form(str(caught.value), FILE)


@pytest.mark.parametrize(
    ("sizes", "rows"),
    [
        (
            {
                "B": "{from: 1, to: 1000000, step: 1}",
                "D": "{from: 1, to: 1000000, step: 1}",
                "F": "{from: 1, to: 1000000, step: 1}",
            },
            10**18,
        ),
        (
            {
                "B": "{from: 1, to: 9007199254740992, step: 1}",
                "D": "{from: 1, to: 1000, step: 1}",
                "F": "1",
            },
            2**53 * 1000,
        ),
        (
            {
                "B": "{from: 1, to: 9007199254740992, step: 1}",
                "D": "{from: 1, to: 9007199254740992, step: 1}",
                "F": "D",
            },
            2**106,
        ),
    ],
    ids=["a quintillion rows", "one endless range", "2^106 rows"],
)
def test_a_grid_beyond_a_table_is_refused_at_once_with_its_number_of_rows(sizes, rows, tmp_path):
    text = (
        VALID.replace("[1, 2, 4]", sizes["B"])
        .replace("D: 512", f"D: {sizes['D']}")
        .replace("      F: D", f"      F: {sizes['F']}")
    )
    start = time.perf_counter()
    message = message_of(text, tmp_path)
    assert time.perf_counter() - start < 5
    assert_form(message, FILE, 1 + (rows == 2**106))
    assert "sweeps.mlp" in message
    assert str(rows) in re.sub(r"(?<=\d)[,_ ](?=\d)", "", message), message


def test_a_fine_range_does_not_take_the_memory(tmp_path):
    start = time.perf_counter()
    message = message_of(
        VALID.replace("[1, 2, 4]", "{from: 1, to: 1000000000000, factor: 1.000000001}"), tmp_path
    )
    assert time.perf_counter() - start < 5
    assert_form(message, FILE)
    assert "sweeps.mlp.grid.B" in message


@pytest.mark.parametrize(
    "text",
    [
        "1.97e14",
        "'1.97e14'",
        "1.97e+14",
        "197000000000000",
        "197_000_000_000_000",
        "'197000000000000'",
    ],
)
def test_a_number_in_any_spelling_is_that_number(text, tmp_path):
    path = tmp_path / FILE
    path.write_text(VALID.replace(PEAK, text), encoding="utf-8")
    row = rooflines.rows(rooflines.load_config(path), "mlp").collect().row(0, named=True)
    assert row["t_math_s"] == pytest.approx(row["flops"] / 1.97e14, rel=1e-15)


@pytest.mark.parametrize("text", ["4096", "'4096'", "4.096e3", "4096.0", "4_096"])
def test_a_size_in_any_spelling_is_that_size(text, tmp_path):
    path = tmp_path / FILE
    path.write_text(VALID.replace(GRID_D, f"D: {text}"), encoding="utf-8")
    assert rooflines.rows(rooflines.load_config(path), "mlp").collect()["D"].unique().to_list() == [
        4096
    ]


def test_an_alias_is_the_value_it_stands_for(tmp_path):
    path = tmp_path / FILE
    path.write_text(
        VALID.replace("  mlp:\n", "  mlp: &mlp\n").replace(
            "chips:\n  mine:", "  again:\n    <<: *mlp\n    dtypes: [w8a16]\nchips:\n  mine:"
        ),
        encoding="utf-8",
    )
    config = rooflines.load_config(path)
    assert rooflines.rows(config, "mlp").collect()["dtypes"].unique().to_list() == ["bf16"]
    assert rooflines.rows(config, "again").collect()["dtypes"].unique().to_list() == ["w8a16"]


def test_a_mapping_that_merges_itself_is_refused(tmp_path):
    message = message_of("sweeps:\n  mlp: &mlp\n    <<: *mlp\n    operation: 7\n", tmp_path)
    assert_form(message, FILE, mistakes=2)
    assert "wrong.yaml:4: sweeps.mlp.operation is 7" in message


def test_a_mapping_is_refused_in_the_same_words():
    grid = {"B": 1, "D": 512, "F": "D"}
    sweep = {"operation": "matmull", "grid": grid, "dtypes": ["bf16"], "chips": ["h100-sxm"]}
    with pytest.raises(rooflines.RooflinesError) as caught:
        plan(rooflines.load_config({"sweeps": {"mlp": sweep}}))
    message = str(caught.value)
    assert "sweeps.mlp.operation" in message
    assert "'matmull'" in message
    assert "\n  fix: " in message


def test_a_sweep_that_is_not_in_the_config_is_refused(tmp_path):
    path = tmp_path / FILE
    path.write_text(VALID, encoding="utf-8")
    with pytest.raises(rooflines.RooflinesError) as caught:
        rooflines.rows(rooflines.load_config(path), "mpl")
    assert "'mpl'" in str(caught.value)
    assert "mlp" in str(caught.value).replace("'mpl'", "")


def places(node, path=()):
    """The path of every value in JSON, and of one missing key in every mapping."""
    found = [path] if path else []
    if isinstance(node, dict):
        found += [(*path, "unheard-of")]
        found += [place for key, value in node.items() for place in places(value, (*path, key))]
    if isinstance(node, list):
        found += [
            place for number, value in enumerate(node) for place in places(value, (*path, number))
        ]
    return found


FULL = yaml.safe_load(
    VALID.replace("sharding: none", "sharding: [column, {split: D, then: all-reduce}]")
    .replace("shards: [1]", "shards: [1, 2]")
    .replace(
        "    unit: matrix\n",
        "    shapes: [{name: up, F: 512}]\n    unit: matrix\n"
        "    flops: leading\n    network: ici\n",
    )
    .replace("      F: D\n", "")
    .replace("B: [1, 2, 4]", "B: {from: 1, to: 8, factor: 2}")
    .replace(
        "    thresholds: [B]\n",
        "    thresholds: [B, shards]\n    tile: {B: 128}\n"
        "    efficiency: {math: 0.9}\n    columns: [bound]\n",
    )
    .replace("[bf16]", "[bf16, {x: bf16, w: int8, out: bf16, compute: bf16}]")
)
ODD: list[object] = [
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        1.5,
        2**70,
        -(2**70),
        1e308,
        float("nan"),
        float("inf"),
        dt.date(2026, 11, 21),
    ),
    *(
        "",
        " ",
        "many",
        "1.97e14",
        "0x10",
        "nan",
        "all",
        "none",
        "B",
        "mine",
        "..",
        "a" * 1000,
        "\n",
        "\0",
        "é",
        "1/3",
        "1e999999",
    ),
    *(
        [],
        [[]],
        [None],
        [1, 1],
        ["B", 2],
        {},
        {"a": 1},
        {1: 2},
        {None: None},
        {"from": 1, "to": 2**60, "step": 1},
        (1, 2),
        {1},
        b"x",
    ),
]


@settings(max_examples=300, deadline=None, print_blob=True, database=None)
@given(place=st.sampled_from(places(FULL)), value=st.sampled_from(ODD))
def test_any_value_in_any_place_is_accepted_or_refused_in_words(place, value):
    config = copy.deepcopy(FULL)
    *path, last = place
    node = config
    for step in path:
        node = node[step]
    node[last] = value
    try:
        plan(rooflines.load_config(config))
    except rooflines.RooflinesError as error:
        assert_form(str(error), "config", mistakes=None)


def test_the_config_whose_every_value_is_replaced_is_valid():
    assert [part.rows for part in plan(rooflines.load_config(FULL)).parts] == [4 * 2 * 2 * 2]


COMMAND_LINE = [
    (
        "an unknown chip",
        VALID.replace("[mine]", "[h100]"),
        ("sweeps.mlp.chips[0]", "'h100'", "h100-sxm"),
    ),
    ("no YAML", "sweeps:\n\tmlp: 1\n", ("line 2", "column 1")),
    (
        "a grid beyond a table",
        VALID.replace("[1, 2, 4]", "{from: 1, to: 1e18, step: 1}"),
        ("sweeps.mlp.grid.B",),
    ),
    (
        "an unsupported dtype as an error",
        VALID.replace("[bf16]", "[int8]\n    on_unsupported: error"),
        ("sweeps.mlp", "int8"),
    ),
]


@pytest.mark.parametrize(
    ("text", "says"), [case[1:] for case in COMMAND_LINE], ids=[case[0] for case in COMMAND_LINE]
)
def test_snakemake_stops_before_any_job_with_that_one_message(text, says, tmp_path):
    (tmp_path / FILE).write_text(text, encoding="utf-8")
    run = snakemake(tmp_path, FILE)
    assert run.returncode != 0
    output = run.stdout + run.stderr
    assert "Traceback" not in output
    assert output.count("  fix: ") == 1, output
    missing = [piece for piece in says if piece not in output]
    assert not missing, f"{missing} not in:\n{output}"
    assert {entry.name for entry in tmp_path.iterdir()} <= {FILE, ".snakemake"}


def test_snakemake_names_a_missing_config(tmp_path):
    run = snakemake(tmp_path, "nowhere.yaml")
    assert run.returncode != 0
    assert "nowhere.yaml" in run.stdout + run.stderr
    assert "Traceback" not in run.stdout + run.stderr
    assert {entry.name for entry in tmp_path.iterdir()} <= {".snakemake"}


def snakemake(folder, config):
    """Run the workflow in a folder with a config of its own."""
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "snakemake",
            "--cores",
            "1",
            "--snakefile",
            ROOT / "Snakefile",
            "--configfile",
            config,
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
