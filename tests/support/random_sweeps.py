"""Random sweeps on random chips, as `lots`."""

import math
from fractions import Fraction
from typing import Any

import effort
import lots
import oracle
from case_files import case
from hypothesis import settings
from lots import assume

DTYPES = case("random")
BITS: dict[str, Any] = DTYPES["formats"]
COMPUTE = ("fp32", "bf16", "fp8", "int8")


def check(examples, at_length=0):
    """Return the settings of a property: its number of examples, that of `make verify` apart."""
    return settings(max_examples=at_length * effort.THOROUGH or effort.cases(examples))


GROUPS = (2, 4, 8)
"""Chips that a network joins inside another."""


@lots.composite
def rates(draw, low, high):
    """Draw a rate between two powers of ten, as number or text; often round, for exact ties.

    Others have twelve digits: times that differ by a smaller share tie, which the oracle ignores.
    """
    exponent = draw(lots.integers(low, high))
    if draw(lots.booleans()):
        digits = (
            f"{draw(lots.sampled_from([1, 1.25, 1.5, 2, 2.5, 3, 3.2, 4, 5, 6.4, 8]))}e{exponent}"
        )
    else:
        digits = f"{draw(lots.integers(10**11, 10**12 - 1))}e{exponent - 11}"
    value = float(digits)
    return repr(value) if draw(lots.integers(0, 3)) == 0 else value


fractions_of_one = lots.sampled_from([1, 1.0, 0.95, 0.8, 0.5, 0.82, 0.333, 0.1, 0.7071067811865476])


@lots.composite
def networks(draw, domains=()):
    """Draw an interconnect, of one of some domains if there are any."""
    topology = draw(lots.sampled_from(["switch", "mesh", "torus"]))
    entry: dict[str, Any] = {"bytes_per_s": draw(rates(9, 12)), "topology": topology}
    entry["links"] = draw(lots.sampled_from([1, 3, 4, 7, 15, 18]))
    if domains or draw(lots.integers(0, 3)):
        entry["domain"] = draw(lots.sampled_from(domains or [2, 4, 8, 16, 72, "unlimited"]))
    if topology == "mesh" and entry.get("domain") == "unlimited":
        del entry["domain"]
    if topology == "mesh" and "domain" in entry:
        entry["links"] = entry["domain"] - 1
    if topology == "torus" and draw(lots.booleans()):
        entry["ring_multiple"] = draw(lots.sampled_from([2, 4, 16]))
    if draw(lots.integers(0, 3)) == 0:
        entry["hop_latency_s"] = draw(lots.sampled_from([1e-6, 5e-7, 2.5e-5]))
        if draw(lots.booleans()):
            entry["typical_hop_latency_s"] = 3e-5
    return entry


@lots.composite
def chips(draw, *, grouped=False):
    """Draw a chip that may lack a dtype, with one or two memory levels and interconnects.

    Of a grouped one, the second interconnect joins groups of the first.
    """

    def peaks():
        kinds = draw(lots.lists(lots.sampled_from(COMPUTE), min_size=1, max_size=4, unique=True))
        return {kind: {"flops_per_s": draw(rates(12, 16))} for kind in kinds}

    chip: dict[str, Any] = {
        "name": "A chip",
        "vendor": "Nobody",
        "source": "made up",
        "units": {"matrix": peaks(), "vector": peaks()},
        "memory": {
            "hbm": {"bytes_per_s": draw(rates(10, 13)), "capacity_bytes": draw(rates(4, 12))}
        },
        "networks": {"fabric": draw(networks(GROUPS if grouped else ()))},
    }
    if draw(lots.booleans()):
        chip["memory"]["l2"] = {"bytes_per_s": draw(rates(11, 13))}
    if grouped or draw(lots.booleans()):
        chip["networks"]["second"] = draw(networks([72, "unlimited"] if grouped else ()))
    if draw(lots.integers(0, 3)) == 0:
        chip["efficiency"] = {
            r: draw(fractions_of_one) for r in draw(lots.sets(lots.sampled_from(oracle.RESOURCES)))
        }
    if draw(lots.integers(0, 3)) == 0:
        chip["calibration"] = {
            draw(lots.sampled_from(COMPUTE)): {
                **{r: draw(fractions_of_one) for r in oracle.RESOURCES},
                "overhead_s": draw(lots.sampled_from([0, 3e-6, 1.25e-5])),
            }
        }
    return chip


@lots.composite
def operations(draw):
    """Draw one of the four named operations or an einsum of up to five letters in any order."""
    if draw(lots.booleans()):
        return draw(lots.sampled_from(list(oracle.NAMED)))
    letters = draw(lots.lists(lots.sampled_from("BDFSTGHKMN"), min_size=1, max_size=5, unique=True))
    places = {d: draw(lots.sampled_from(["xw", "xo", "wo", "xwo"])) for d in letters}
    operands = [
        "".join(d for d in draw(lots.permutations(letters)) if place in places[d])
        for place in "xwo"
    ]
    assume(operands[0] and operands[1])
    return f"{operands[0]},{operands[1]}->{operands[2]}"


def shardings_of(operation):
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
            found += [{"split": d, "then": "all-to-all"}]
            if d in x:
                found += [
                    {"split": d, "first": "all-to-all x"},
                    {"split": d, "first": "all-to-all x", "then": "all-to-all"},
                ]
            found += [
                {"split": d, "first": f"all-gather {o}"}
                for o in "xw"
                if d not in operation.letters(o)
            ]
    return found


small = lots.integers(1, 300)
round_sizes = lots.sampled_from([2**k for k in range(15)] + [96, 192, 384, 1536, 11008, 14336])
huge = lots.one_of(lots.integers(1, 2**40), lots.sampled_from([2**k for k in range(15, 41)]))
sizes = lots.one_of(small, round_sizes, huge)


@lots.composite
def axes(draw, most):
    """Draw the grid entry of one dimension, of at most `most` sizes."""
    kind = draw(lots.sampled_from(["one", "list", "list", "factor", "count", "step", "tokens"]))
    if kind == "one":
        return draw(sizes)
    if kind == "list":
        return draw(lots.lists(sizes, min_size=1, max_size=most, unique=True))
    start = draw(lots.integers(1, 5000))
    if kind == "factor":
        factor, steps = (
            draw(lots.sampled_from(["2", "3", "1.1", "1.7", "10"])),
            draw(lots.integers(0, most - 1)),
        )
        to = math.floor(start * Fraction(factor) ** steps)
        return {"from": start, "to": to, "factor": draw(lots.sampled_from([factor, float(factor)]))}
    if kind == "count":
        return {
            "from": start,
            "to": draw(lots.integers(start + 1, 10**6)),
            "count": draw(lots.integers(2, max(most, 2))),
        }
    if kind == "step":
        step = draw(lots.integers(1, 1000))
        return {
            "from": start,
            "to": start + draw(lots.integers(0, (most - 1) * step)),
            "step": step,
        }
    replicas = draw(lots.sampled_from([1, 2, 128]))
    return {
        "sequences": draw(lots.integers(1, 512)) * replicas,
        "tokens_per_sequence": draw(lots.sampled_from([1, 2048, 4096])),
        "replicas": replicas,
    }


@lots.composite
def combinations(draw):
    """Draw a named combination or four dtypes."""
    if draw(lots.booleans()):
        return draw(lots.sampled_from(list(DTYPES["combinations"])))
    return {
        **{operand: draw(lots.sampled_from(list(BITS))) for operand in ("x", "w", "out")},
        "compute": draw(lots.sampled_from(COMPUTE)),
    }


def named(combination):
    """Return the name of a combination."""
    return oracle.combination_of(combination, DTYPES["combinations"])[0]


@lots.composite
def grids(draw, operation):
    """Draw the sizes of every dimension, as a grid, sometimes with a tie, and as shapes."""
    most = {1: 6, 2: 4, 3: 3}.get(len(operation.dims), 2)
    grid: dict[str, Any] = {d: draw(axes(most)) for d in draw(lots.permutations(operation.dims))}
    if len(grid) > 1 and draw(lots.booleans()):
        tied, other = draw(lots.permutations(operation.dims))[:2]
        grid[tied] = other
    if draw(lots.integers(0, 2)):
        return {"grid": grid}
    free = [d for d in operation.dims if not isinstance(grid[d], str)]
    moved = draw(lots.lists(lots.sampled_from(free), min_size=1, max_size=2, unique=True))
    names = ["up", "down"][: draw(lots.integers(1, 2))]
    shapes = [{"name": name, **{d: draw(sizes) for d in moved}} for name in names]
    return {"grid": {d: grid[d] for d in grid if d not in moved}, "shapes": shapes}


@lots.composite
def splits(draw, operation, *, grouped=False):
    """Draw one or two shardings and the numbers of chips, or all-to-all among groups of them."""
    specs = [s for s in shardings_of(operation) if not grouped or "all-to-all" in str(s)]
    assume(specs)
    chosen = draw(lots.lists(lots.integers(0, len(specs) - 1), min_size=1, max_size=2, unique=True))
    sharding = [specs[number] for number in chosen]
    if sharding == ["none"]:
        return draw(
            lots.sampled_from([{}, {"sharding": "none"}, {"sharding": ["none"], "shards": [1]}])
        )
    forms: list[int | str] = [1, 2, 3, 4, 7, 8, 16, 48, "2x2", "4x4", "3x16", "2x2x4"]
    forms = [16, 48] if grouped else forms
    shards = draw(lots.lists(lots.sampled_from(forms), min_size=1, max_size=2, unique=True))
    if "none" in sharding:
        shards = [1, *(form for form in shards if form != 1)]
    return {
        "sharding": sharding[0] if len(sharding) == 1 and draw(lots.booleans()) else sharding,
        "shards": shards,
    }


@lots.composite
def counts(draw, operation):
    """Draw how FLOPs and bytes are counted: by default, leading, exact, or in tiles."""
    how = draw(lots.sampled_from(["default", "leading", "exact", "tile"]))
    if how == "tile":
        tiled = sorted(draw(lots.sets(lots.sampled_from(operation.dims))))
        return {
            "flops": "leading",
            "tile": {d: draw(lots.sampled_from([1, 16, 100, 128, 256])) for d in tiled},
        }
    return {} if how == "default" else {"flops": how}


@lots.composite
def configs(draw, *, grouped=False):
    """Draw a config of one sweep, at least one row of which some chip supports.

    A grouped one is of all-to-alls on two networks.
    """
    text = draw(operations())
    operation = oracle.operation_of(text)
    own = {
        f"chip-{number}": draw(chips(grouped=grouped))
        for number in range(draw(lots.integers(1, 2)))
    }
    if draw(lots.integers(0, 3)) == 0:
        faster = {
            "memory.hbm.bytes_per_s": draw(rates(10, 13)),
            "networks.fabric.bytes_per_s": draw(rates(9, 12)),
        }
        own["chip-0-fast"] = {
            "base": "chip-0",
            **faster,
            "plausible": [*faster],  # any rates
            "source": "made up",
        }
    sweep: dict[str, Any] = {
        "operation": text,
        **draw(grids(operation)),
        "dtypes": draw(lots.lists(combinations(), min_size=1, max_size=2, unique_by=named)),
        "chips": draw(lots.permutations(list(own))),
        **draw(splits(operation, grouped=grouped)),
        **draw(counts(operation)),
        "thresholds": draw(lots.lists(lots.sampled_from(operation.dims), max_size=2, unique=True)),
    }
    optional: dict[str, lots.Lot] = {
        "unit": lots.sampled_from(["matrix", "vector"]),
        "memory": lots.sampled_from(["hbm", ["l2", "hbm"], "l2"]),
        "network": lots.sampled_from(
            [None, "fabric", "second", ["fabric", "second"], [["second", "fabric"], "fabric"]]
        ),
        "shares": lots.sampled_from([1, [1, 0.9], 0.5]),
        "efficiency": lots.dictionaries(lots.sampled_from(oracle.RESOURCES), fractions_of_one),
    }
    sweep |= {key: draw(values) for key, values in optional.items() if draw(lots.booleans())}
    sweep |= {"network": ["fabric", "second"]} if grouped else {}
    leave_out_unknown(sweep, own)
    splits_of = {
        oracle.sharding_of(operation, spec).split
        for spec in oracle.as_list(sweep.get("sharding", "none"))
    }
    if splits_of != {None} and has_shards_form(sweep, own, splits_of) and draw(lots.booleans()):
        sweep["thresholds"].append("shards")
    solvable = ["peak", "memory_rate", *(["network_rate"] if splits_of != {None} else [])]
    sweep["thresholds"] += draw(lots.lists(lots.sampled_from(solvable), max_size=1))
    requested = list(oracle.rows(sweep, own, DTYPES))
    assume(any(row.setting is not None for row in requested))
    if oracle.exactly(sweep) and operation.contracted:
        assume(all(fewest_elements(row) >= row.keys["shards"] for row in requested))
    return {"sweeps": {"random": sweep}, "chips": {**own, "spare": DTYPES["spare"]}, "charts": []}


def leave_out_unknown(sweep, own):
    """Leave out a network that no chip has: a config that names one is refused."""
    known = {name for chip in own.values() for name in chip.get("networks", {})}
    if any(name in str(sweep.get("network")) for name in {"fabric", "second"} - known):
        del sweep["network"]


def has_shards_form(sweep, own, split):
    """Say whether thresholds in the number of chips have a closed form."""
    outer = {
        entry["topology"]
        for chip in oracle.resolve_chips(own, own).values()
        for names in oracle.routes(sweep)
        for entry in [chip["networks"].get(name) for name in (names or [])[1:]]
        if entry
    }
    return (
        not split & set(sweep.get("tile", {}))
        and not any(isinstance(form, str) for form in oracle.as_list(sweep["shards"]))
        and "all-to-all" not in str(sweep["sharding"])
        and "torus" not in outer
    )


def fewest_elements(row):
    """Return the size of the smallest contracted dimension of a row."""
    return min(row.sizes[d] for d in oracle.operation_of(row.keys["operation"]).contracted)


COLLECTIVES = ("gather x", "gather w", "all-reduce", "reduce-scatter", "dispatch", "combine")

EVERY_KIND = {
    *(f"{name} on {kind}" for name in COLLECTIVES for kind in ("switch", "mesh", "torus")),
    *("two networks", "all-to-all on two networks", "axes", "ring", "alone", "no collective"),
    *("tile", "exact", "vector", "l2", "shapes", "tie", "efficiency", "shares", "skipped"),
    *(*oracle.NAMED, "einsum", "shards", "peak", "memory_rate", "network_rate", "a dimension"),
}
"""Kinds of random sweeps [1]."""

RARE = {"all-to-all on two networks": configs(grouped=True)}
"""Random sweeps by the kind that they are for, which few others have."""


def kinds_of(config):
    """The kinds of what a config of one sweep asks for, and of what is supported."""
    (sweep,) = config["sweeps"].values()
    operation = oracle.operation_of(sweep["operation"])
    yield operation.name if operation.name in oracle.NAMED else "einsum"
    yield from {"tile", "efficiency", "shapes", "shares"} & {*sweep}
    yield "tie" if any(size in operation.dims for size in map(str, sweep["grid"].values())) else ""
    yield "exact" if oracle.exactly(sweep) else ""
    yield "vector" if sweep.get("unit") == "vector" else ""
    yield "l2" if "l2" in str(sweep.get("memory")) else ""
    for axis in sweep["thresholds"]:
        yield "a dimension" if axis in operation.dims else axis
    for row in oracle.rows(sweep, config["chips"], DTYPES):
        yield from kinds_of_setting(row.setting, row.keys["shards"])


def kinds_of_setting(setting, shards):
    """The kinds of a case; None: no chip supports it."""
    if setting is None:
        return ["skipped"]
    if shards == 1 or not setting.links:
        return ["alone"]
    how, (inner, *outer) = setting.sharding, setting.links
    names = [
        *([f"gather {how.gather}"] if how.gather else []),
        *([how.reduce] if how.reduce else []),
    ]
    names += ["dispatch"] * how.dispatch + ["combine"] * how.combine
    both = bool(outer) and shards > (inner.domain or shards)
    return [
        *(f"{name} on {inner.topology}" for name in names),
        *(["no collective"] if not names else []),
        *(["two networks"] if both and names else []),
        *(["all-to-all on two networks"] if both and (how.dispatch or how.combine) else []),
        *(["axes"] if len(setting.axes) > 1 else []),
        *(["ring"] if any(inner.ring(n) for n in setting.axes or (shards,)) else []),
    ]
