"""Random sweeps on random chips against an independent model in exact rational arithmetic.

``HYPOTHESIS_PROFILE=thorough`` draws twenty times as many.
"""

from __future__ import annotations

import math
import os
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import oracle
import polars as pl
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import rooflines
from rooflines.settings.sizes import Sizes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

EFFORT = 20 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 1
ROW_TOLERANCE = Fraction(1, 10**12)
EXACT_INTEGER = 2**53
REAL_TOLERANCE = 1e-9

BITS: dict[str, Any] = {
    "fp32": {"bits": 32},
    "bf16": {"bits": 16},
    "fp8": {"bits": 8},
    "int8": {"bits": 8},
    "int4": {"bits": 4},
    "mxfp8": {"bits": 8, "scale_bits": 8, "block": 32},
    "mxfp4": {"bits": 4, "scale_bits": 8, "block": 32},
    "nvfp4": {"bits": 4, "scale_bits": 8, "block": 16},
}
COMPUTE = ("fp32", "bf16", "fp8", "int8")
DTYPES: dict[str, Any] = {
    "formats": BITS,
    "combinations": {
        "bf16": {"x": "bf16", "w": "bf16", "out": "bf16", "compute": "bf16"},
        "int8": {"x": "int8", "w": "int8", "out": "int8", "compute": "int8"},
        "w8a16": {"x": "bf16", "w": "int8", "out": "bf16", "compute": "bf16"},
    },
}
NAMED_COMBINATIONS = ("bf16", "int8", "w8a16")
METRICS = (
    "flops",
    "memory_bytes",
    "network_bytes",
    "footprint_bytes",
    "t_math_s",
    "t_memory_s",
    "t_network_s",
    "t_lower_s",
    "t_upper_s",
    "t_estimate_s",
    "memory_intensity",
    "network_intensity",
    "attained_flops_per_s",
    "utilization",
)
KEYS = ("operation", "chip", "unit", "memory", "network", "dtypes", "sharding", "shards", "shape")


def check(examples: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the settings of a property: its number of examples, and a blob to repeat a failure."""
    return settings(
        max_examples=examples * EFFORT,
        deadline=None,
        print_blob=True,
        database=None,
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
            HealthCheck.filter_too_much,
        ],
    )


# ---------------------------------------------------------------- strategies


@st.composite
def rates(draw: st.DrawFn, low: int, high: int) -> float | str:
    """Draw a rate between two powers of ten, as number or text; often round, for exact ties."""
    exponent = draw(st.integers(low, high))
    if draw(st.booleans()):
        value = float(
            f"{draw(st.sampled_from([1, 1.25, 1.5, 2, 2.5, 3, 3.2, 4, 5, 6.4, 8]))}e{exponent}"
        )
    else:
        value = float(
            f"{draw(st.integers(1_000_000_000_000_000, 9_999_999_999_999_999))}e{exponent - 15}"
        )
    return repr(value) if draw(st.integers(0, 3)) == 0 else value


fractions_of_one = st.sampled_from([1, 1.0, 0.95, 0.8, 0.5, 0.82, 0.333, 0.1, 0.7071067811865476])


@st.composite
def networks(draw: st.DrawFn) -> dict[str, Any]:
    """Draw an interconnect."""
    topology = draw(st.sampled_from(["switch", "mesh", "torus"]))
    entry: dict[str, Any] = {"bytes_per_s": draw(rates(9, 12)), "topology": topology}
    entry["links"] = draw(st.sampled_from([1, 3, 4, 7, 15, 18]))
    if draw(st.booleans()):
        entry["domain"] = draw(st.sampled_from([4, 8, 16, 72]))
    if topology == "mesh" and "domain" in entry:
        entry["links"] = entry["domain"] - 1
    if topology == "torus" and draw(st.booleans()):
        entry["ring_multiple"] = draw(st.sampled_from([2, 4, 16]))
    if draw(st.integers(0, 3)) == 0:
        entry["hop_latency_s"] = draw(st.sampled_from([1e-6, 5e-7, 2.5e-5]))
    return entry


@st.composite
def chips(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a chip that may lack a dtype, with one or two memory levels and interconnects."""

    def peaks() -> dict[str, Any]:
        kinds = draw(st.lists(st.sampled_from(COMPUTE), min_size=1, max_size=4, unique=True))
        return {kind: {"flops_per_s": draw(rates(12, 16))} for kind in kinds}

    chip: dict[str, Any] = {
        "name": "A chip",
        "vendor": "Nobody",
        "source": "made up",
        "units": {"matrix": peaks(), "vector": peaks()},
        "memory": {
            "hbm": {"bytes_per_s": draw(rates(10, 13)), "capacity_bytes": draw(rates(4, 12))}
        },
        "networks": {"fabric": draw(networks())},
    }
    if draw(st.booleans()):
        chip["memory"]["l2"] = {"bytes_per_s": draw(rates(11, 13))}
    if draw(st.booleans()):
        chip["networks"]["second"] = draw(networks())
    if draw(st.integers(0, 3)) == 0:
        chip["efficiency"] = {
            r: draw(fractions_of_one) for r in draw(st.sets(st.sampled_from(oracle.RESOURCES)))
        }
    if draw(st.integers(0, 3)) == 0:
        chip["calibration"] = {
            draw(st.sampled_from(COMPUTE)): {
                **{r: draw(fractions_of_one) for r in oracle.RESOURCES},
                "overhead_s": draw(st.sampled_from([0, 3e-6, 1.25e-5])),
            }
        }
    return chip


@st.composite
def operations(draw: st.DrawFn) -> str:
    """Draw one of the four named operations or an einsum of up to five letters in any order."""
    if draw(st.booleans()):
        return draw(st.sampled_from(list(oracle.NAMED)))
    letters = draw(st.lists(st.sampled_from("BDFSTGHKMN"), min_size=1, max_size=5, unique=True))
    places = {d: draw(st.sampled_from(["xw", "xo", "wo", "xwo"])) for d in letters}
    operands = [
        "".join(d for d in draw(st.permutations(letters)) if place in places[d]) for place in "xwo"
    ]
    assume(operands[0] and operands[1])
    return f"{operands[0]},{operands[1]}->{operands[2]}"


def shardings_of(operation: oracle.Operation) -> list[str | dict[str, str]]:
    """Return every valid sharding of an operation, by name if it has one, and in long form."""
    x, w, out = set(operation.x), set(operation.w), set(operation.out)
    found: list[str | dict[str, str]] = ["none"]
    if len((x & w) - out) == 1:
        found += ["contracting/all-reduce", "contracting/reduce-scatter"]
    if len((w & out) - x) == 1:
        found += ["column", "column/gather-x"]
    if len(x & out) == 1 and not x & out & w:
        found += ["batch", "batch/gather-w"]
    for d in operation.dims:
        if d not in out:
            found += [{"split": d, "then": "all-reduce"}, {"split": d, "then": "reduce-scatter"}]
        else:
            found += [{"split": d}]
            found += [
                {"split": d, "first": f"all-gather {o}"}
                for o in "xw"
                if d not in operation.letters(o)
            ]
    return found


small = st.integers(1, 300)
round_sizes = st.sampled_from([2**k for k in range(15)] + [96, 192, 384, 1536, 11008, 14336])
huge = st.one_of(st.integers(1, 2**40), st.sampled_from([2**k for k in range(15, 41)]))
sizes = st.one_of(small, round_sizes, huge)


@st.composite
def axes(draw: st.DrawFn, most: int) -> int | list[int] | dict[str, Any]:
    """Draw the grid entry of one dimension, of at most `most` sizes."""
    kind = draw(st.sampled_from(["one", "list", "list", "factor", "count", "step", "tokens"]))
    if kind == "one":
        size: int = draw(sizes)
        return size
    if kind == "list":
        return draw(st.lists(sizes, min_size=1, max_size=most, unique=True))
    start = draw(st.integers(1, 5000))
    if kind == "factor":
        factor, steps = (
            draw(st.sampled_from(["2", "3", "1.1", "1.7", "10"])),
            draw(st.integers(0, most - 1)),
        )
        to = math.floor(start * Fraction(factor) ** steps)
        return {"from": start, "to": to, "factor": draw(st.sampled_from([factor, float(factor)]))}
    if kind == "count":
        return {
            "from": start,
            "to": draw(st.integers(start + 1, 10**6)),
            "count": draw(st.integers(2, max(most, 2))),
        }
    if kind == "step":
        step = draw(st.integers(1, 1000))
        return {"from": start, "to": start + draw(st.integers(0, (most - 1) * step)), "step": step}
    replicas = draw(st.sampled_from([1, 2, 128]))
    return {
        "sequences": draw(st.integers(1, 512)) * replicas,
        "tokens_per_sequence": draw(st.sampled_from([1, 2048, 4096])),
        "replicas": replicas,
    }


@st.composite
def combinations(draw: st.DrawFn) -> str | dict[str, str]:
    """Draw a named combination or four dtypes."""
    if draw(st.booleans()):
        return draw(st.sampled_from(NAMED_COMBINATIONS))
    return {
        **{operand: draw(st.sampled_from(list(BITS))) for operand in ("x", "w", "out")},
        "compute": draw(st.sampled_from(COMPUTE)),
    }


def named(combination: str | dict[str, str]) -> str:
    """Return the name of a combination."""
    return oracle.combination_of(combination, DTYPES["combinations"])[0]


@st.composite
def grids(draw: st.DrawFn, operation: oracle.Operation) -> dict[str, Any]:
    """Draw the sizes of every dimension, as a grid, sometimes with a tie, and as shapes."""
    most = {1: 6, 2: 4, 3: 3}.get(len(operation.dims), 2)
    grid: dict[str, Any] = {d: draw(axes(most)) for d in operation.dims}
    if len(grid) > 1 and draw(st.booleans()):
        tied, other = draw(st.permutations(operation.dims))[:2]
        grid[tied] = other
    if draw(st.integers(0, 2)):
        return {"grid": grid}
    free = [d for d in operation.dims if not isinstance(grid[d], str)]
    moved = draw(st.lists(st.sampled_from(free), min_size=1, max_size=2, unique=True))
    names = ["up", "down"][: draw(st.integers(1, 2))]
    shapes = [{"name": name, **{d: draw(sizes) for d in moved}} for name in names]
    return {"grid": {d: grid[d] for d in grid if d not in moved}, "shapes": shapes}


@st.composite
def splits(draw: st.DrawFn, operation: oracle.Operation) -> dict[str, Any]:
    """Draw one or two shardings and the numbers of chips."""
    specs = shardings_of(operation)
    chosen = draw(st.lists(st.integers(0, len(specs) - 1), min_size=1, max_size=2, unique=True))
    sharding = [specs[number] for number in chosen]
    if sharding == ["none"]:
        return draw(
            st.sampled_from([{}, {"sharding": "none"}, {"sharding": ["none"], "shards": [1]}])
        )
    shards = draw(
        st.lists(st.sampled_from([1, 2, 3, 4, 7, 8, 16, 48]), min_size=1, max_size=2, unique=True)
    )
    if "none" in sharding:
        shards = [1, *(count for count in shards if count > 1)]
    return {
        "sharding": sharding[0] if len(sharding) == 1 and draw(st.booleans()) else sharding,
        "shards": shards,
    }


@st.composite
def counts(draw: st.DrawFn, operation: oracle.Operation) -> dict[str, Any]:
    """Draw how FLOPs and bytes are counted: by default, leading, exact, or in tiles."""
    how = draw(st.sampled_from(["default", "leading", "exact", "tile"]))
    if how == "tile":
        tiled = sorted(draw(st.sets(st.sampled_from(operation.dims))))
        return {
            "flops": "leading",
            "tile": {d: draw(st.sampled_from([1, 16, 100, 128, 256])) for d in tiled},
        }
    return {} if how == "default" else {"flops": how}


@st.composite
def configs(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a config of one sweep, at least one row of which some chip supports."""
    text = draw(operations())
    operation = oracle.operation_of(text)
    own = {f"chip-{number}": draw(chips()) for number in range(draw(st.integers(1, 2)))}
    if draw(st.integers(0, 3)) == 0:
        own["chip-0-fast"] = {
            "base": "chip-0",
            "memory.hbm.bytes_per_s": draw(rates(10, 13)),
            "networks.fabric.bytes_per_s": draw(rates(9, 12)),
            "source": "made up",
        }
    sweep: dict[str, Any] = {
        "operation": text,
        **draw(grids(operation)),
        "dtypes": draw(st.lists(combinations(), min_size=1, max_size=2, unique_by=named)),
        "chips": draw(st.permutations(list(own))),
        **draw(splits(operation)),
        **draw(counts(operation)),
        "thresholds": draw(st.lists(st.sampled_from(operation.dims), max_size=2, unique=True)),
    }
    optional: dict[str, st.SearchStrategy[Any]] = {
        "unit": st.sampled_from(["matrix", "vector"]),
        "memory": st.sampled_from(["hbm", ["l2", "hbm"], "l2"]),
        "network": st.sampled_from([None, "fabric", "second"]),
        "efficiency": st.dictionaries(st.sampled_from(oracle.RESOURCES), fractions_of_one),
    }
    sweep |= {key: draw(values) for key, values in optional.items() if draw(st.booleans())}
    splits_of = {
        oracle.sharding_of(operation, spec).split
        for spec in oracle.as_list(sweep.get("sharding", "none"))
    }
    if splits_of != {None} and not splits_of & set(sweep.get("tile", {})) and draw(st.booleans()):
        sweep["thresholds"].append("shards")
    requested = list(oracle.rows(sweep, own, DTYPES))
    assume(any(row.setting is not None for row in requested))
    if oracle.exactly(sweep) and operation.contracted:
        assume(all(fewest_elements(row) >= row.keys["shards"] for row in requested))
    return {"sweeps": {"random": sweep}, "chips": own, "charts": []}


def fewest_elements(row: oracle.Row) -> int:
    """Return the size of the smallest contracted dimension of a row."""
    return min(row.sizes[d] for d in oracle.operation_of(row.keys["operation"]).contracted)


# ---------------------------------------------------------------- comparison


def same(found: float | None, expected: Fraction | None) -> bool:
    """Say whether a float equals an exact number to a relative 1e-12, or both are null."""
    if found is None or expected is None:
        return found is None and expected is None
    return math.isfinite(found) and abs(Fraction(found) - expected) <= ROW_TOLERANCE * abs(expected)


def table_of(config: dict[str, Any]) -> pl.DataFrame:
    """Return the table of a config's one sweep."""
    (sweep,) = config["sweeps"]
    frame: pl.DataFrame = rooflines.rows(rooflines.load_config(config), sweep).collect()
    return frame


def expected_rows(config: Mapping[str, Any]) -> list[oracle.Row]:
    """Return every requested row of a config's one sweep."""
    ((_, sweep),) = config["sweeps"].items()
    return list(oracle.rows(sweep, config["chips"], DTYPES))


def differences(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> list[str]:
    """Describe the differences between the rows of two tables."""
    if len(found) != len(expected):
        return [f"{len(found)} rows where {len(expected)} are expected"]
    wrong = []
    for number, (row, truth) in enumerate(zip(found, expected, strict=True)):
        for column, value in truth.items():
            if not (same(row[column], value) if column in METRICS else row[column] == value):
                wrong.append(
                    f"row {number}, {column}: {row[column]!r} where {value!r} is exact, in {truth}"
                )
    return wrong


# ---------------------------------------------------------------- claims


@check(60)
@given(config=configs())
def test_every_row_of_a_random_sweep_is_the_exact_one(config: dict[str, Any]) -> None:
    """Keys, sizes, order, bound and fits are equal, metrics to 1e-12; the rest is skipped."""
    truth = expected_rows(config)
    table = table_of(config)
    assert (
        differences(table.to_dicts(), [row.values() for row in truth if row.setting is not None])
        == []
    )
    skipped = rooflines.skipped(rooflines.load_config(config))
    assert skipped["rows"].sum() == sum(row.setting is None for row in truth)


@check(40)
@given(config=configs())
def test_whole_numbers_below_two_to_the_53_are_whole(config: dict[str, Any]) -> None:
    """FLOPs and bytes that are whole numbers on one chip are exact."""
    truth = [row for row in expected_rows(config) if row.setting is not None]
    for row, found in zip(truth, table_of(config).iter_rows(named=True), strict=True):
        exact = row.values()
        for column in ("flops", "memory_bytes", "footprint_bytes"):
            if (
                row.keys["shards"] == 1
                and exact[column].denominator == 1
                and exact[column] < EXACT_INTEGER
            ):
                assert found[column] == exact[column], (column, exact)


@check(60)
@given(config=configs())
def test_every_threshold_of_a_random_sweep_is_the_exact_one(config: dict[str, Any]) -> None:
    """Equal to the integer, for every axis and resource, with the bottleneck below them."""
    assume(config["sweeps"]["random"]["thresholds"])
    assert threshold_differences(config) == []


WHOLE = ("critical", "critical_memory", "critical_network", "limit")
REAL = ("critical_exact", "limit_intensity")


def close(found: float | None, exact: Fraction | None) -> bool:
    """Say whether a float equals an exact number to a relative 1e-9, or both are null."""
    if found is None or exact is None:
        return found is None and exact is None
    return math.isclose(found, exact, rel_tol=REAL_TOLERANCE)


def threshold_differences(config: dict[str, Any]) -> list[str]:
    """Describe the differences between the thresholds of a config's one sweep and exact ones."""
    ((name, sweep),) = config["sweeps"].items()
    frame = rooflines.thresholds(rooflines.load_config(config), name)
    keys = [*KEYS, "axis", *oracle.operation_of(sweep["operation"]).dims]
    found = {tuple(row[key] for key in keys): row for row in frame.iter_rows(named=True)}
    expected = {
        tuple(row[key] for key in keys): row
        for row in oracle.thresholds(sweep, config["chips"], DTYPES)
    }
    if len(found) != frame.height or found.keys() != expected.keys():
        common = len(found.keys() & expected)
        return [f"{frame.height} thresholds where {len(expected)} are expected, {common} in common"]
    wrong = []
    for key, truth in expected.items():
        for column in truth.keys() & {*WHOLE, *REAL}:
            value, exact = found[key][column], truth[column]
            if not (value == exact if column in WHOLE else close(value, exact)):
                wrong.append(f"{column}: {value} where {exact} is exact, at {key}")
    return wrong


@check(25)
@given(config=configs(), data=st.data())
def test_critical_is_compute_bound_and_the_size_before_is_not(
    config: dict[str, Any], data: st.DataObject
) -> None:
    """A table over the two sizes around a threshold changes its bound exactly there."""
    ((name, sweep),) = config["sweeps"].items()
    operation = oracle.operation_of(sweep["operation"])
    axis = data.draw(st.sampled_from(operation.dims))
    requested = {**config, "sweeps": {name: {**sweep, "thresholds": [axis]}}}
    frame = rooflines.thresholds(rooflines.load_config(requested), name)
    frame = frame.filter(pl.col("critical").is_not_null() & (pl.col("critical") < EXACT_INTEGER))
    assume(frame.height)
    for row in frame.head(4).iter_rows(named=True):
        critical = row["critical"]
        around = [critical - 1, critical] if critical > 1 else [critical]
        spec = next(
            s
            for s in oracle.as_list(sweep.get("sharding", "none"))
            if oracle.sharding_of(operation, s).name == row["sharding"]
        )
        single = {
            **{key: value for key, value in sweep.items() if key not in ("shapes", "thresholds")},
            "chips": [row["chip"]],
            "memory": row["memory"],
            "sharding": spec,
            "shards": [row["shards"]],
            "dtypes": [c for c in sweep["dtypes"] if named(c) == row["dtypes"]],
            "grid": {d: around if d == axis else row[d] for d in operation.dims},
        }
        elements = [around[0] if d == axis else row[d] for d in operation.contracted]
        if oracle.exactly(sweep) and min(elements, default=row["shards"]) < row["shards"]:
            continue  # refused: a chip would have less than one element
        bounds = table_of({**config, "sweeps": {name: single}})["bound"].to_list()
        assert bounds[-1] == "compute", (row, bounds)
        assert "compute" not in bounds[:-1], (row, bounds)


@st.composite
def ties(draw: st.DrawFn) -> tuple[dict[str, Any], str]:
    """Draw a config in which two or three times tie at one size, and the bound there."""
    text = draw(st.sampled_from(["matmul", "sequence-matmul", "per-example-matmul", "BD,DF->BF"]))
    operation = oracle.operation_of(text)
    base = {
        d: draw(st.one_of(st.integers(2, 300), st.sampled_from([16, 48, 64, 96, 128, 192, 256])))
        for d in operation.dims
    }
    spec = draw(st.sampled_from(shardings_of(operation)))
    sharding = oracle.sharding_of(operation, spec)
    shards = 1 if spec == "none" else draw(st.sampled_from([2, 3, 4, 6, 8]))
    combination = draw(combinations())
    dtypes = oracle.combination_of(combination, DTYPES["combinations"])[1]
    one = Fraction(1)
    setting = oracle.Setting(
        operation=operation,
        sharding=sharding,
        bits={operand: oracle.stored_bits(BITS, dtypes[operand]) for operand in ("x", "w", "out")},
        peak=one,
        memory_rate=one,
        capacity=None,
        link=None,
        efficiency=dict.fromkeys(oracle.RESOURCES, one),
        exact_flops=draw(st.booleans()) and sharding.split not in operation.contracted,
    )
    work = setting.work(base, shards)
    scale = math.lcm(*(amount.denominator for amount in work.values()))
    while scale * work["math"] < 10**10:
        scale *= 10
    tied = draw(
        st.sampled_from(["math memory", "math network", "memory network", "math memory network"])
    ).split()
    if not work["network"]:
        tied = ["math", "memory"]
    rates_of = {
        r: scale * amount * (1 if r in tied else 100) for r, amount in work.items()
    }  # the others are faster
    assume(all(rate.denominator == 1 and rate < EXACT_INTEGER for rate in rates_of.values()))
    chip: dict[str, Any] = {
        "name": "A chip",
        "vendor": "Nobody",
        "source": "made up",
        "units": {"matrix": {dtypes["compute"]: {"flops_per_s": float(rates_of["math"])}}},
        "memory": {"hbm": {"bytes_per_s": float(rates_of["memory"])}},
        "networks": {
            "fabric": {
                "bytes_per_s": float(rates_of["network"] or 1),
                "links": 1,
                "topology": "switch",
            },
        },
    }
    axis = draw(st.sampled_from(operation.dims))
    grid: dict[str, Any] = {**base, axis: [base[axis] - 1, base[axis], base[axis] + 1]}
    sweep = {
        "operation": text,
        "grid": grid,
        "dtypes": [combination],
        "chips": ["tied"],
        "sharding": spec,
        "shards": [shards],
        "flops": "exact" if setting.exact_flops else "leading",
        "thresholds": [axis] if spec == "none" else [axis, "shards"],
    }
    return {"sweeps": {"tie": sweep}, "chips": {"tied": chip}, "charts": []}, oracle.LABEL[tied[0]]


@check(80)
@given(tie=ties())
def test_an_exact_tie_goes_to_compute_and_then_to_memory(tie: tuple[dict[str, Any], str]) -> None:
    """At a tie the rule gives the bound; one size before and after it, the larger time."""
    config, expected = tie
    truth = [row.values() for row in expected_rows(config)]
    assert truth[1]["bound"] == expected
    assert table_of(config)["bound"].to_list() == [row["bound"] for row in truth]


@check(60)
@given(tie=ties())
def test_a_threshold_that_is_a_whole_number_is_that_number(tie: tuple[dict[str, Any], str]) -> None:
    """Where compute ties with a bottleneck, the critical size is that of the tie, not the next."""
    config, _ = tie
    sweep = config["sweeps"]["tie"]
    sweep["grid"] = {
        d: spec[1] if isinstance(spec, list) else spec for d, spec in sweep["grid"].items()
    }
    assert threshold_differences(config) == []


@st.composite
def reaches(draw: st.DrawFn, topology: str, ring_multiple: int | None) -> dict[str, Any]:
    """Draw a split matmul on a chip whose memory and network end the split at drawn numbers."""
    spec = draw(
        st.sampled_from(
            [
                "contracting/all-reduce",
                "contracting/reduce-scatter",
                "column/gather-x",
                "batch/gather-w",
                "batch",
            ]
        )
    )
    operation = oracle.operation_of("matmul")
    sizes_of_all = {
        d: draw(st.sampled_from([512, 1000, 4096, 14336, 65536])) for d in operation.dims
    }
    link: dict[str, Any] = {"links": 7, "topology": topology, "ring_multiple": ring_multiple}
    link["domain"] = draw(
        st.sampled_from([None, 8, 2] if topology == "mesh" else [None, None, 256, 64, 8, 2, 1])
    )
    if draw(st.integers(0, 3)) == 0:
        link["hop_latency_s"] = draw(st.sampled_from([1e-9, 1e-6, 1e-4]))
    setting = oracle.plain_matmul(spec)
    peak = draw(rates(13, 15))
    by_memory, by_network = (
        draw(st.sampled_from([10**6, 2000, 40, 3, 1])),
        draw(st.integers(2, 500)),
    )
    at_memory, at_network = (
        setting.work(sizes_of_all, by_memory),
        setting.work(sizes_of_all, by_network),
    )
    bandwidth = oracle.exact(peak) * at_memory["memory"] / at_memory["math"]
    one_way = (
        oracle.exact(peak)
        * at_network["network"]
        / at_network["math"]
        / draw(st.sampled_from([1, 2, 7]))
    )
    chip = {
        "name": "A chip",
        "vendor": "Nobody",
        "source": "made up",
        "units": {"matrix": {"bf16": {"flops_per_s": peak}}},
        "memory": {"hbm": {"bytes_per_s": float(bandwidth)}},
        "networks": {
            "fabric": {
                "bytes_per_s": float(one_way) or 1e9,
                **{k: v for k, v in link.items() if v is not None},
            }
        },
    }
    sweep = {
        "operation": "matmul",
        "grid": sizes_of_all,
        "dtypes": ["bf16"],
        "chips": ["one"],
        "sharding": spec,
        "shards": [1],
        "thresholds": ["shards"],
    }
    return {"sweeps": {"reach": sweep}, "chips": {"one": chip}, "charts": []}


FABRICS = [
    ("switch", None),
    ("mesh", None),
    ("torus", None),
    *(("torus", ring) for ring in (1, 2, 3, 4, 16)),
]


@pytest.mark.parametrize(("topology", "ring_multiple"), FABRICS)
@check(30)
@given(data=st.data())
def test_the_most_chips_of_a_split_are_those_of_a_search(
    topology: str, ring_multiple: int | None, data: st.DataObject
) -> None:
    """The critical number of chips equals that of a search, for any ring, domain and latency."""
    assert threshold_differences(data.draw(reaches(topology, ring_multiple))) == []


@pytest.mark.parametrize("sizes_of_all", [(512, 1000, 65536), (65536, 1000, 512)])
def test_a_tie_on_one_chip_is_one_chip(sizes_of_all: tuple[int, int, int]) -> None:
    """If math and memory tie on one chip, critical is 1, even if rounding gives none."""
    chip = {
        "source": "made up",
        "units": {"matrix": {"bf16": {"flops_per_s": 1e14}}},
        "memory": {"hbm": {"bytes_per_s": 296838378906.25}},
        "networks": {"fabric": {"bytes_per_s": 2e11, "links": 7, "topology": "switch"}},
    }
    sweep = {
        "operation": "matmul",
        "grid": dict(zip("BDF", sizes_of_all, strict=True)),
        "dtypes": ["bf16"],
        "chips": ["one"],
        "sharding": "contracting/all-reduce",
        "thresholds": ["shards"],
    }
    config = {"sweeps": {"tie": sweep}, "chips": {"one": chip}, "charts": []}
    assert threshold_differences(config) == []
    assert rooflines.thresholds(rooflines.load_config(config))["critical_exact"].item() == 1


@pytest.mark.parametrize(("topology", "ring_multiple"), FABRICS)
@check(8)
@given(data=st.data())
def test_the_next_number_of_chips_is_not_compute_bound(
    topology: str, ring_multiple: int | None, data: st.DataObject
) -> None:
    """From the critical number of chips to the next, the bound changes from compute to `limit`."""
    config = data.draw(reaches(topology, ring_multiple))
    frame = rooflines.thresholds(rooflines.load_config(config))
    critical, limit = frame["critical"].item(), frame["limit"].item()
    assume(critical is not None and limit is not None)
    sweep = config["sweeps"]["reach"]
    sweep["shards"] = [critical, critical + 1]
    assert table_of(config)["bound"].to_list() == ["compute", limit]


@check(30)
@given(config=configs(), rates_of=st.tuples(rates(12, 16), rates(10, 13)))
def test_rule_of_thumb_is_the_exact_threshold_of_endless_other_dimensions(
    config: dict[str, Any], rates_of: tuple[Any, Any]
) -> None:
    """For a matmul it is bits/16 of the operand without the dimension times critical intensity."""
    ((name, sweep),) = config["sweeps"].items()
    chip = {
        "name": "A chip",
        "vendor": "Nobody",
        "source": "made up",
        "units": {"matrix": {compute: {"flops_per_s": rates_of[0]} for compute in COMPUTE}},
        "memory": {"hbm": {"bytes_per_s": rates_of[1]}},
    }
    requested = {
        "operation": "matmul",
        "grid": {"B": 64, "D": 512, "F": 2048},
        "dtypes": sweep["dtypes"],
        "efficiency": sweep.get("efficiency", {}),
        "chips": ["one"],
        "thresholds": ["B", "D", "F"],
    }
    frame = rooflines.thresholds(
        rooflines.load_config({"sweeps": {name: requested}, "chips": {"one": chip}, "charts": []})
    )
    lacks = {"B": "w", "D": "out", "F": "x"}
    efficiency = {r: oracle.exact(requested["efficiency"].get(r, 1)) for r in oracle.RESOURCES}
    ridge = (
        oracle.exact(rates_of[0])
        * efficiency["math"]
        / (oracle.exact(rates_of[1]) * efficiency["memory"])
    )
    assert frame.height == 3 * len(sweep["dtypes"])
    for row in frame.iter_rows(named=True):
        combination = next(c for c in sweep["dtypes"] if named(c) == row["dtypes"])
        dtypes = oracle.combination_of(combination, DTYPES["combinations"])[1]
        rule = oracle.stored_bits(BITS, dtypes[lacks[row["axis"]]]) / 16 * ridge
        assert same(row["critical_rule"], rule), (row, float(rule))
        setting = oracle.Setting(
            operation=oracle.operation_of("matmul"),
            sharding=oracle.Sharding("none"),
            bits={
                operand: oracle.stored_bits(BITS, dtypes[operand]) for operand in ("x", "w", "out")
            },
            peak=oracle.exact(rates_of[0]),
            memory_rate=oracle.exact(rates_of[1]),
            capacity=None,
            link=None,
            efficiency=efficiency,
        )
        endless = oracle.thresholds_along(setting, row["axis"], dict.fromkeys("BDF", 10**30), 1)
        assert float(rule) == pytest.approx(float(endless["critical_exact"]), rel=REAL_TOLERANCE)


@pytest.mark.parametrize("exponent", [40, 45, 53])
def test_sizes_far_past_an_integer_product_keep_their_bound_and_threshold(exponent: int) -> None:
    """Sizes whose FLOPs pass 2^62 many times over give the numbers that exact arithmetic gives."""
    chip = {
        "name": "A chip",
        "vendor": "Nobody",
        "source": "made up",
        "units": {"matrix": {"bf16": {"flops_per_s": 2e15}}},
        "memory": {"hbm": {"bytes_per_s": 1e12}},
    }
    size = 2**exponent
    sweep = {
        "operation": "matmul",
        "grid": {"B": [1, 1999, 2000, 2001, size], "D": size, "F": [size - 1, size]},
        "dtypes": ["bf16", {"x": "mxfp4", "w": "nvfp4", "out": "bf16", "compute": "bf16"}],
        "chips": ["one"],
        "thresholds": ["B", "D", "F"],
    }
    config = {"sweeps": {"large": sweep}, "chips": {"one": chip}, "charts": []}
    truth = [row.values() for row in expected_rows(config)]
    assert differences(table_of(config).to_dicts(), truth) == []
    found = rooflines.thresholds(rooflines.load_config(config)).sort(
        "axis", "dtypes", "B", "D", "F"
    )
    exact = pl.DataFrame(
        [
            {k: float(v) if isinstance(v, Fraction) else v for k, v in t.items()}
            for t in oracle.thresholds(sweep, {"one": chip}, DTYPES)
        ],
        infer_schema_length=None,
    ).sort("axis", "dtypes", "B", "D", "F")
    for column in ("critical", "critical_memory", "critical_network"):
        assert found[column].to_list() == exact[column].to_list()


@given(
    start=st.integers(1, 10**6),
    factor=st.sampled_from(["1.1", "1.01", "1.3", "2", "1.0001"]),
    steps=st.integers(0, 40),
)
@check(60)
def test_a_range_ends_where_exact_arithmetic_ends(start: int, factor: str, steps: int) -> None:
    """A range by factor reaches its end if the end is a power of the factor, after any steps."""
    last = min(math.floor(start * Fraction(factor) ** steps), EXACT_INTEGER)
    assert_sizes({"from": start, "to": last, "factor": float(factor)})


@pytest.mark.parametrize("end", [1024, 1024 * (1 + 2e-10), 1024 * (1 - 2e-10)])
def test_a_geometric_range_keeps_its_end(end: float) -> None:
    """A factor is rounded, so its last power misses the end slightly; the end is still a size."""
    root = {"from": 1, "to": end, "factor": 1.4142135623730951}
    assert Sizes(root).values()[-3:] == (512, 724, 1024)
    assert Sizes({**root, "to": 1023.9}).values()[-2:] == (512, 724)
    assert Sizes({**root, "to": 2**40}).values()[-1] == 2**40


@pytest.mark.parametrize(
    ("lowest", "sizes"), [(1, (1, 2, 4, 8, 16, 32)), (32, (32,)), (1.5, (2, 3, 5, 9, 17, 32))]
)
def test_a_range_by_count_has_both_ends_and_equal_factors_between(
    lowest: float, sizes: tuple[int, ...]
) -> None:
    """Six sizes are requested; equal ones after rounding are kept once."""
    assert Sizes({"from": lowest, "to": 32, "count": 6}).values() == sizes


def test_a_range_by_count_rounds_a_half_up_and_keeps_a_size_once() -> None:
    """3.5 is the middle of 1 and 12.25; from 1 to 3 there are three sizes, for any count."""
    assert Sizes({"from": 1, "to": 12.25, "count": 3}).values() == (1, 4, 12)
    assert Sizes({"from": 1, "to": 3, "count": 100}).values() == (1, 2, 3)
    assert Sizes({"from": 7, "to": 7, "count": 1}).values() == (7,)


@pytest.mark.parametrize("last", [600, 3000])
@pytest.mark.parametrize("factor", [1.01, 1.013, 1.0125])
def test_a_long_range_has_the_sizes_of_exact_arithmetic(factor: float, last: int) -> None:
    """Hundreds or thousands of terms are rounded like the exact powers, up to the largest."""
    spec = {"from": 1, "to": min(factor**last, 2.0**53), "factor": factor}
    assert list(Sizes(spec).values()) == oracle.sizes_of(spec)


def test_a_range_by_count_is_the_range_by_its_factor() -> None:
    """Equivalent forms give the same sizes, even if the factor has no exact decimal."""
    by_count = Sizes({"from": 1, "to": 2**20, "count": 601}).values()
    assert by_count == Sizes({"from": 1, "to": 2**20, "factor": 2 ** (1 / 30)}).values()
    assert list(by_count) == oracle.sizes_of({"from": 1, "to": 2**20, "count": 601})


@pytest.mark.parametrize(
    ("last", "factor"),
    [(10**9, 1.5), (10**9 + 1, 1.0000001), (10**12, 1.00000000001), (2**53, 1.1)],
)
def test_only_the_end_of_a_range_is_moved(last: int, factor: float) -> None:
    """Sizes within the tolerance of the end are not moved."""
    spec = {"from": last - 700, "to": last, "factor": factor}
    assert list(Sizes(spec).values()) == oracle.sizes_of(spec)
    assert len(Sizes(spec).values()) <= Sizes(spec).count


def assert_sizes(spec: dict[str, Any]) -> None:
    """Check that a table has the sizes of exact arithmetic."""
    chip = {
        "name": "A chip",
        "vendor": "Nobody",
        "source": "made up",
        "units": {"matrix": {"bf16": {"flops_per_s": 2e15}}},
        "memory": {"hbm": {"bytes_per_s": 1e12}},
    }
    sweep = {
        "operation": "matmul",
        "grid": {"B": spec, "D": 1, "F": 1},
        "dtypes": ["bf16"],
        "chips": ["one"],
        "thresholds": [],
    }
    table = table_of({"sweeps": {"range": sweep}, "chips": {"one": chip}, "charts": []})
    assert table["B"].to_list() == oracle.sizes_of(spec)
