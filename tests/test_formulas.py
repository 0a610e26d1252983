"""The formulas without a table: known answers, exact arithmetic, the full text of every message.

`make mutate` runs these tests against changed formulas, so they are pure Python and take a second
or two.
"""

# Every public function of the model, with its known answers: long, but one thing.

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import oracle
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from random_sweeps import BITS, combinations, networks, operations, rates, shardings_of, sizes

from rooflines.basics.errors import RooflinesError
from rooflines.basics.numbers import exact, number, whole
from rooflines.catalogue.entries import Chip, Network
from rooflines.model.costs import COSTS, Workload, evaluate, exact_cost, extents
from rooflines.model.network import Link, NetworkLevel, Route, most_chips
from rooflines.model.operation import NAMED, operation
from rooflines.model.resources import MATH, RESOURCES
from rooflines.model.sharding import Sharding, sharding
from rooflines.model.target import MemoryLevel, Target

HALF, ZERO = Fraction(1, 2), Fraction(0)


def check(examples):
    """The settings of one property: the same examples every time.

    They are not shrunk, which takes long where many fail.
    """
    return settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
    )


def message(call, *arguments, **options):
    """The message of the error that a call raises."""
    with pytest.raises(RooflinesError) as caught:
        call(*arguments, **options)
    return str(caught.value)


# ---------------------------------------------------------------- numbers

SPELT: list[tuple[object, float]] = [
    *(
        (7, 7),
        (7.5, 7.5),
        ("7", 7),
        ("7.5", 7.5),
        ("1.97e14", 1.97e14),
        ("1.97e+14", 1.97e14),
        (" 8 ", 8),
        ("4_096", 4096),
        ("-3", -3),
    ),
    *(
        ("+3", 3),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e-3", 1e-3),
        ("1E3", 1000.0),
        (0, 0),
        (-0.5, -0.5),
        (9.99e299, 9.99e299),
        ("9" * 290, int("9" * 290)),
    ),
    *(("-" + "9" * 290, -int("9" * 290)), ("+" + "1_0", 10), ("1." + "0" * 398, 1.0)),
]
NO_NUMBERS = (
    *(
        True,
        False,
        None,
        "",
        "many",
        "1 2",
        "1.5x",
        "x1",
        "0x10",
        "1/3",
        "nan",
        "inf",
        "e5",
        "1e",
        "1e1234",
        "--1",
        "1.2.3",
        ".",
        "-",
        "_1",
    ),
    *(
        float("nan"),
        float("inf"),
        -float("inf"),
        1e300,
        -1e300,
        10**301,
        [1],
        {"a": 1},
        (1,),
        b"1",
        1 + 0j,
        "9" * 401,
        "\u0663",
    ),
)


@pytest.mark.parametrize(("written", "meant"), SPELT)
def test_a_number_is_the_one_that_was_meant(written, meant):
    assert number(written) == meant
    assert type(number(written)) is type(meant)
    assert exact(written) == Fraction(str(meant))


@pytest.mark.parametrize("written", NO_NUMBERS, ids=lambda value: str(value)[:20])
def test_what_is_no_number_is_refused(written):
    shown = (
        {True: "true", False: "false", None: "null"}.get(written, repr(written))
        if isinstance(written, bool | None)
        else repr(written)
    )
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    fix = "write a plain number such as 4096 or 1.97e14, without a unit"
    assert message(number, written) == f"is {shown}, which is no number.\n  fix: {fix}."


def test_a_decimal_is_exactly_what_was_written():
    assert [exact(value) for value in (0.95, "0.1", 8.19e11, 3)] == [
        Fraction(19, 20),
        Fraction(1, 10),
        819 * 10**9,
        3,
    ]
    assert isinstance(exact(3), Fraction)


@pytest.mark.parametrize(
    ("written", "meant"),
    [(1, 1), ("4096", 4096), (4.096e3, 4096), (2**53, 2**53), ("1e3", 1000), (1.0, 1)],
)
def test_a_whole_number_is_one(written, meant):
    assert whole(written) == meant
    assert type(whole(written)) is int


ANY = "write a whole number from 1 to 9,007,199,254,740,992"


@pytest.mark.parametrize(
    ("written", "bounds", "says"),
    [
        (0, {}, f"is 0, which is less than 1.\n  fix: {ANY}."),
        (
            2**53 + 1,
            {},
            f"is 9007199254740993, which is more than 9,007,199,254,740,992.\n  fix: {ANY}.",
        ),
        (1.5, {}, f"is 1.5, which is no whole number.\n  fix: {ANY}."),
        (
            "2.5",
            {"least": 2, "largest": 3000},
            "is '2.5', which is no whole number.\n  fix: write a whole number from 2 to 3,000.",
        ),
        (
            1,
            {"least": 2, "largest": 3000},
            "is 1, which is less than 2.\n  fix: write a whole number from 2 to 3,000.",
        ),
        (
            3001,
            {"least": 2, "largest": 3000},
            "is 3001, which is more than 3,000.\n  fix: write a whole number from 2 to 3,000.",
        ),
    ],
)
def test_a_whole_number_has_bounds(written, bounds, says):
    assert message(whole, written, **bounds) == says
    assert whole(bounds.get("least", 1), **bounds) == bounds.get("least", 1)
    assert whole(bounds.get("largest", 2**53), **bounds) == bounds.get("largest", 2**53)


# ---------------------------------------------------------------- operations

HOW = f"name one of {', '.join(NAMED)}, or write an einsum of two operands such as 'BD,DF->BF'"
OWN = "give each dimension a letter of its own"
SHARED = "contract only what both operands share: sum over {0} beforehand, or keep it in the result"
NO_OPERATIONS = {
    "matmull": f"is 'matmull', which is no operation.\n  close to it: matmul\n  fix: {HOW}.",
    "BD,DF": f"is 'BD,DF', which is no operation.\n  fix: {HOW}.",
    "": f"is '', which is no operation.\n  fix: {HOW}.",
    "BD,DF->BF,": f"is 'BD,DF->BF,', which is no operation.\n  fix: {HOW}.",
    "BBD,DF->BF": f"is 'BBD,DF->BF', where x has B twice.\n  fix: {OWN}.",
    "BD,DFF->BF": f"is 'BD,DFF->BF', where w has F twice.\n  fix: {OWN}.",
    "BD,DF->BFB": f"is 'BD,DF->BFB', where out has B twice.\n  fix: {OWN}.",
    "ZZAA,DF->DF": f"is 'ZZAA,DF->DF', where x has A twice.\n  fix: {OWN}.",
    "BD,DF->BZ": (
        "is 'BD,DF->BZ', whose result has Z, which neither operand has.\n"
        "  fix: drop Z from the result, or give it to an operand."
    ),
    "BD,DF->F": (
        "is 'BD,DF->F', where B is in one operand only and not in the result.\n"
        f"  fix: {SHARED.format('B')}."
    ),
    "BD,DF->B": (
        "is 'BD,DF->B', where F is in one operand only and not in the result.\n"
        f"  fix: {SHARED.format('F')}."
    ),
}


@pytest.mark.parametrize("text", NO_OPERATIONS)
def test_an_einsum_that_makes_no_sense_is_refused(text):
    assert message(operation, text) == NO_OPERATIONS[text]


@pytest.mark.parametrize(
    "text",
    [
        *oracle.NAMED,
        *oracle.NAMED.values(),
        "BD, DF -> BF",
        "AB,BC->CA",
        "A,B->AB",
        "ab,ab->",
        "BDF,BD->BF",
    ],
)
def test_an_operation_has_the_letters_of_its_einsum(text):
    op, truth = operation(text), oracle.operation_of(text)
    assert (op.name, op.x, op.w, op.out) == (truth.name, truth.x, truth.w, truth.out)
    assert op.dims == tuple(truth.dims)
    assert op.contracted == tuple(truth.contracted)
    assert [op.operand(name) for name in ("x", "w", "out")] == [
        tuple(truth.letters(name)) for name in ("x", "w", "out")
    ]
    assert op.in_order(set(op.dims[1:])) == op.dims[1:]
    dot = truth.name == "dot"
    assert (op.unit, op.flops) == (("vector", "exact") if dot else ("matrix", "leading"))
    assert NAMED.get(op.name, op) == op


# ---------------------------------------------------------------- shardings

LONG = (
    "{split: S, first: all-gather x | all-gather w | all-to-all x, "
    "then: all-reduce | reduce-scatter | all-to-all}"
)
KNOWN = (
    "none, contracting/all-reduce, contracting/reduce-scatter, "
    "column, column/gather-x, batch, batch/gather-w"
)
NAMES = f"use one of {KNOWN}, or the long form, {LONG}"
LACKS = (
    "is 'contracting/all-reduce', which needs a dimension that x and w share "
    "and the result lacks, and A,B->AB has none"
)
UNDO = "gather the operand that lacks the split dimension, or nothing"
ROLE = f"choose another sharding, or the long form, {LONG}"
PARTIAL = "add `then: all-reduce` or `then: reduce-scatter`"
NO_SHARDINGS: list[tuple[str, Any, str]] = [
    (
        "matmul",
        "colunm",
        f"is 'colunm', which is no sharding.\n  close to it: column\n  fix: {NAMES}.",
    ),
    (
        "dot",
        "column",
        (
            "is 'column', which needs a dimension of w and the result only, and dot has none.\n"
            f"  fix: {ROLE}."
        ),
    ),
    (
        "dot",
        "batch",
        (
            "is 'batch', which needs a dimension of x and the result, and dot has none.\n"
            f"  fix: {ROLE}."
        ),
    ),
    (
        "A,B->AB",
        "contracting/all-reduce",
        f"{LACKS}.\n  fix: {ROLE}.",
    ),
    (
        "sequence-matmul",
        "batch",
        (
            "is 'batch', which could split any of B, S in sequence-matmul.\n"
            f"  fix: say which in the long form, {LONG}."
        ),
    ),
    (
        "matmul",
        {"split": "Z"},
        "split is 'Z', which is no dimension of matmul.\n  fix: use one of B, D, F.",
    ),
    ("matmul", {}, "split is null, which is no dimension of matmul.\n  fix: use one of B, D, F."),
    (
        "matmul",
        {"split": "B", "first": "x"},
        (
            "first is 'x', which is no collective of an operand.\n"
            "  fix: use one of all-gather x, all-gather w, all-to-all x, or leave it out."
        ),
    ),
    (
        "matmul",
        {"split": "D", "then": "reduce"},
        (
            "then is 'reduce', which is no collective of the result.\n"
            "  close to it: all-reduce, reduce-scatter\n"
            "  fix: use one of all-reduce, reduce-scatter, all-to-all, or leave it out."
        ),
    ),
    (
        "matmul",
        {"split": "B", "first": "all-gather x"},
        (
            "is 'B/gather-x', but x itself is split over B, "
            f"so a gather would undo the split.\n  fix: {UNDO}."
        ),
    ),
    (
        "matmul",
        {"split": "F", "then": "all-reduce"},
        (
            "is 'F/all-reduce', but F is not contracted: there are no partial sums.\n"
            "  fix: leave `then` out, or write `then: all-to-all`."
        ),
    ),
    (
        "matmul",
        {"split": "D"},
        f"is 'D', which leaves partial sums of the result on every chip.\n  fix: {PARTIAL}.",
    ),
]


@pytest.mark.parametrize(("text", "given_form", "says"), NO_SHARDINGS)
def test_a_sharding_that_makes_no_sense_is_refused(text, given_form, says):
    assert message(sharding, given_form, operation(text)) == says


@check(60)
@given(text=operations())
def test_a_sharding_is_what_its_name_says(text):
    truth = oracle.operation_of(text)
    for form in shardings_of(truth):
        expected = oracle.sharding_of(truth, form)
        sends = [(expected.gather, "all-gather")] if expected.gather else []
        sends += [("x", "all-to-all")] if expected.dispatch else []
        sends += [("out", expected.reduce)] if expected.reduce else []
        sends += [("out", "all-to-all")] if expected.combine else []
        assert sharding(form, operation(text)) == Sharding(
            expected.name, expected.split, tuple(sends)
        )


def test_a_batch_of_every_operand_is_the_last_choice():
    assert sharding("batch", operation("per-example-matmul")).split == "B"
    assert sharding("batch", operation("HBD,HDF->HBF")).split == "B"
    assert (
        sharding({"split": "D", "first": None, "then": "all-reduce"}, operation("matmul")).name
        == "D/all-reduce"
    )


RATE = Fraction(1)
SWITCH, MESH = Link(RATE, "switch", 18), Link(RATE, "mesh", 7)
LINE, RING, ANY_RING, EVEN_RING = (Link(RATE, "torus", 6, ring_multiple=n) for n in (None, 4, 1, 2))


def test_what_collectives_send():
    """(N-1)/N of the payload for a gather or a scatter, twice that for an all-reduce.

    An all-to-all of a chip's share sends (N-1)/N of it over direct links; on a torus chips forward.
    """
    for link in (SWITCH, MESH, LINE, RING):
        for n in (1, 2, 3, 8):
            level = NetworkLevel(link, (n,))
            assert level.sent("all-gather") == level.sent("reduce-scatter") == Fraction(n - 1, n)
            assert level.sent("all-reduce") == Fraction(2 * (n - 1), n)
    for link in (SWITCH, MESH):
        assert NetworkLevel(link, (8,)).sent("all-to-all") == Fraction(7, 8)
    by_ring = {n: NetworkLevel(ANY_RING, (n,)).sent("all-to-all") for n in (3, 4, 5, 8)}
    assert by_ring == {3: Fraction(2, 3), 4: 1, 5: Fraction(6, 5), 8: 2}  # 2 links, N/8 on each
    by_line = {n: NetworkLevel(LINE, (n,)).sent("all-to-all") for n in (2, 3, 4, 5)}
    assert by_line == {2: HALF, 3: Fraction(2, 3), 4: 1, 5: Fraction(6, 5)}


def test_what_two_levels_send():
    inner = Link(RATE, "switch", 18, domain=8)
    route = Route((inner, SWITCH), (16,))
    assert [level.chips for level in route.levels] == [8, 2]
    assert route.sent("all-reduce") == (Fraction(7, 4), Fraction(1, 8))
    assert route.sent("all-gather") == (Fraction(7, 8), Fraction(1, 16))
    assert route.sent("all-to-all") == (Fraction(7, 16), HALF)
    assert Route((inner, SWITCH), (4,)).sent("all-gather") == (Fraction(3, 4), ZERO)


def test_how_many_hops_a_collective_takes():
    def hops(link, *axes):
        return NetworkLevel(link, axes).hops

    assert [hops(SWITCH, n) for n in (1, 2, 72)] == [0, 1, 1]
    assert [hops(MESH, n) for n in (1, 2, 8)] == [0, 1, 1]
    assert [hops(LINE, n) for n in (1, 2, 5)] == [0, 1, 4]
    assert [hops(ANY_RING, n) for n in (2, 3, 4, 7, 8)] == [1, 1, 2, 3, 4]
    assert hops(RING, 4, 8, 3) == 2 + 4 + 2
    slow = Link(
        RATE, "torus", 6, ring_multiple=4, hop_latency_s=RATE, typical_hop_latency_s=7 * RATE
    )
    assert Route((slow,), (8,)).latencies_s("all-reduce") == (Fraction(8),)
    assert Route((slow,), (8,)).latencies_s("all-gather", typical=True) == (Fraction(28),)


def test_how_many_chips_an_interconnect_joins():
    """A mesh: links + 1, unless `domain` says otherwise; unlimited: any number.

    A domain that nobody published is a pair, and says so.
    """

    def link(**entry):
        exactly = Network.model_validate({"bytes_per_s": 1, **entry}).exact
        return exactly.domain, exactly.published

    assert link(topology="mesh", links=7) == (8, True)
    assert link(topology="mesh", links=7, domain=4) == (4, True)
    assert link(topology="switch", domain="unlimited") == (None, True)
    assert link(topology="switch") == (2, False)
    assert link(topology="torus", domain=64) == (64, True)


def test_how_many_chips_two_levels_join():
    inner = Link(RATE, "switch", 18, domain=8)
    outers = {n: Link(RATE, "switch", 1, domain=n) for n in (4, 12, 16, 40, None)}
    most = {n: most_chips((inner, outer)) for n, outer in outers.items()}
    assert most == {4: (8, True), 12: (8, True), 16: (16, True), 40: (40, True), None: (None, True)}
    assert most_chips((inner, Link(RATE, "mesh", 3, domain=4))) == (32, True)
    assert most_chips((inner, Link(RATE, "switch", domain=2, published=False))) == (8, False)


def test_how_many_links_a_collective_uses():
    """Links used: all on a switch, one to each other chip in a mesh.

    One direction along a line, two around a ring of three or more; those of all axes add up.
    """

    def used(link, *axes):
        return NetworkLevel(link, axes).links_used

    assert [used(SWITCH, n) for n in (1, 2, 8, 100)] == [18] * 4
    assert [used(MESH, n) for n in (1, 2, 3, 8, 9)] == [1, 1, 2, 7, 7]
    assert [used(LINE, n) for n in (1, 2, 4, 16)] == [1] * 4
    assert [used(RING, n) for n in (1, 2, 4, 6, 8)] == [1, 1, 2, 1, 2]
    assert [used(ANY_RING, n) for n in (1, 2, 3, 4)] == [1, 1, 2, 2]
    assert [used(EVEN_RING, n) for n in (2, 3, 4)] == [1, 1, 2]
    assert [used(RING, *axes) for axes in ((4, 4), (4, 3), (8, 4, 2))] == [4, 3, 5]


# ---------------------------------------------------------------- work and rates


@st.composite
def settings_and_cases(draw):
    """Draw an operation split over chips, for the exact model and for the package; with sizes."""
    text = draw(operations())
    truth = oracle.operation_of(text)
    form = draw(st.sampled_from(shardings_of(truth)))
    scheme = oracle.sharding_of(truth, form)
    shards = 1 if form == "none" else draw(st.sampled_from([1, 2, 3, 4, 8, 48]))
    entries = [draw(networks()) for _ in range(draw(st.integers(1, 2)))]
    if len(entries) > 1:
        entries[0] = {"bytes_per_s": 1e9, "topology": "mesh", "domain": 4, "links": 3}
    along: tuple[int, ...] = (shards,)
    if len(entries) == 1 and "all-to-all" not in str(form):
        along = draw(axes_of(shards))
    spec = draw(combinations())
    dtypes = oracle.combination_of(
        spec, {"bf16": dict.fromkeys(("x", "w", "out", "compute"), "bf16")} | named_combinations()
    )[1]
    bits = {operand: oracle.stored_bits(BITS, dtypes[operand]) for operand in ("x", "w", "out")}
    tile = {
        dim: draw(st.sampled_from([1, 16, 100]))
        for dim in draw(st.sets(st.sampled_from(truth.dims)))
    }
    exactly = draw(st.booleans())
    efficiency = {
        name: draw(st.sampled_from([Fraction(1), HALF, Fraction(19, 20), Fraction(1, 3)]))
        for name in oracle.RESOURCES
    }
    peak, memory_rate = (oracle.exact(draw(rates(*powers))) for powers in ((12, 16), (10, 13)))
    tied = [
        entry if entry["topology"] == "mesh" else {"domain": "unlimited", **entry}
        for entry in entries
    ]
    setting = oracle.Setting(
        operation=truth,
        sharding=scheme,
        bits=bits,
        peak=peak,
        memory_rate=memory_rate,
        capacity=None,
        links=tuple(oracle.link_of("fabric", entry) for entry in tied),
        axes=along,
        efficiency=efficiency,
        exact_flops=exactly,
        tile=tile,
    )
    at = {dim: draw(sizes) for dim in truth.dims}
    assume(
        not exactly
        or scheme.split not in truth.contracted
        or at[scheme.split] >= shards
        or scheme.split in tile
    )
    split = sharding(form, operation(text))
    route = Route(tuple(Network.model_validate(entry).exact for entry in tied), along)
    sent = route.sent(split.transfers[0][1]) if split.transfers else ()
    how = "exact" if exactly else "leading"
    case = Workload(operation(text), bits, split, shards, sent, tile, how)
    target = Target(
        peak, MemoryLevel(memory_rate), route if shards > 1 else None, split, efficiency
    )
    return setting, case, target, shards, at


@st.composite
def axes_of(draw, shards):
    """Draw one or two axes whose product is `shards`."""
    first = draw(st.sampled_from([n for n in range(1, shards + 1) if shards % n == 0]))
    return (shards,) if first in (1, shards) else (first, shards // first)


def named_combinations():
    """Return the combinations that `combinations` may name."""
    same = {name: dict.fromkeys(("x", "w", "out", "compute"), name) for name in ("bf16", "int8")}
    return {**same, "w8a16": {"x": "bf16", "w": "int8", "out": "bf16", "compute": "bf16"}}


def total(case, name, at):
    """A cost at some sizes, from its terms."""
    for _, dims in COSTS[name](case):
        assert dims == case.op.in_order(set(dims))
    return exact_cost(case, name, at)


@check(120)
@given(drawn=settings_and_cases())
def test_work_rates_and_times_are_exactly_the_models(drawn):
    setting, case, target, shards, at = drawn
    truth = setting.work(at, shards)
    names = {"flops": "math", "memory_bytes": "memory", "network_bytes": "network"}
    assert {name: total(case, work, at) for work, name in names.items()} == truth
    assert total(case, "footprint_bytes", at) == setting.footprint_bytes(at, shards)
    levels = [*setting.sent(at, shards), ZERO][:2] if shards > 1 else [ZERO, ZERO]
    parts = ("network_inner_bytes", "network_outer_bytes")
    assert [total(case, name, at) for name in parts] == levels
    assert target.peak == setting.peak
    for resource in RESOURCES:
        rate = resource.rate(target)
        if rate is None:
            assert (resource.name, truth["network"]) == ("network", ZERO)
        elif truth[resource.name]:
            assert (
                max(truth[resource.name] / rate.per_s, rate.latency_s)
                == setting.times(at, shards)[resource.name]
            )


@check(40)
@given(drawn=settings_and_cases())
def test_what_an_extent_holds(drawn):
    setting, case, _, shards, at = drawn
    held, sizes_held = extents(case, "flops", at), extents(case, "network_bytes", at)
    assert sizes_held == at
    for dim, (count, tile) in setting.tiles(at, shards).items():
        if dim in case.tile:
            assert (held[dim], case.per_extent(dim)) == (count, tile)
        else:
            assert held[dim] * case.per_extent(dim) == tile
        assert case.share(dim) == (shards if dim == setting.sharding.split else 1)


def test_the_resources_are_math_memory_and_network():
    assert [(r.name, r.work, r.bound) for r in RESOURCES] == [
        ("math", "flops", "compute"),
        ("memory", "memory_bytes", "memory"),
        ("network", "network_bytes", "network"),
    ]
    assert MATH is RESOURCES[0]
    assert {r.work for r in RESOURCES} < set(COSTS)


@pytest.mark.parametrize(("network", "shards"), list(product([None, "fabric"], [1, 2])))
def test_no_network_and_no_other_chip_are_no_rate(network, shards):
    chip = Chip.model_validate(
        {
            "units": {"matrix": {"bf16": {"flops_per_s": "1e14"}}},
            "memory": {"hbm": {"bytes_per_s": 1e12}},
            "networks": {"fabric": {"bytes_per_s": 3e9, "topology": "switch"}},
        }
    )
    target = Target(
        chip.units["matrix"]["bf16"].exact,
        chip.memory["hbm"].exact,
        Route((chip.networks[network].exact,), (shards,)) if network and shards > 1 else None,
        Sharding("F/x", "F", (("x", "all-gather"),)),
        dict.fromkeys(oracle.RESOURCES, HALF),
    )
    found = [resource.rate(target) for resource in RESOURCES]
    assert [(rate.per_s, rate.latency_s) for rate in found[:2] if rate] == [
        (Fraction(5 * 10**13), ZERO),
        (Fraction(5 * 10**11), ZERO),
    ]
    link = found[2]
    assert (link is None) is (network is None or shards == 1)
    assert link is None or (link.per_s, link.latency_s) == (Fraction(15 * 10**8), ZERO)


def test_a_sum_of_products_is_evaluated_exactly():
    terms = {("B", "D"): Fraction(1, 3), ("B",): Fraction(2), (): Fraction(5)}
    assert evaluate(terms, {"B": 10**30, "D": 7}) == Fraction(7 * 10**30, 3) + 2 * 10**30 + 5
    assert evaluate({}, {"B": 1}) == 0
    assert math.isfinite(float(evaluate(terms, {"B": 1, "D": 1})))
