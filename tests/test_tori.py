"""Tests of tori: slices, mappings onto axes, times of collectives and of all of them together."""

from __future__ import annotations

import os
import random
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from scipy import optimize

import rooflines
from rooflines.basics.errors import RooflinesError
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.models.architecture import Shape
from rooflines.models.model import Model
from rooflines.theory.network import ALL_TO_ALL, Link, NetworkLevel
from rooflines.theory.tori import (
    AxisMapping,
    Slice,
    TorusLoad,
    TorusRoute,
    mappings_onto,
    nearest_slices,
    network_times,
    parse_typed,
    slice_shapes,
)
from rooflines.training.parallel_plan import TrainingPlan

SEED = os.environ.get("ROOFLINES_SEED", "tori")

MICROSECONDS = 1_000_000


def ici(chip: str) -> Link:
    """Torus of a chip."""
    return chip_entries()[chip].networks["ici"].exact


def shaped(chip: str, text: str) -> Slice:
    """Slice of a chip."""
    return Slice(ici(chip), tuple(map(int, text.split("x"))))


def first_mapping(torus: Slice, **typed: str) -> AxisMapping:
    """First mapping of parallelisms that are typed, tp first, onto a whole slice."""
    bounds, ends = [1], []
    for text in typed.values():
        chips, _ = parse_typed(text)
        count = 1
        for number in chips.chips:
            count *= number
        ends.append((bounds[-1], bounds[-1] * count, chips))
        bounds.append(bounds[-1] * count)
    if bounds[-1] < torus.chips:
        bounds.append(torus.chips)
    return mappings_onto(torus, tuple(bounds), tuple(ends))[0]


@pytest.mark.parametrize(
    ("chip", "chips", "shapes"),
    [
        ("tpu-v5e", 128, "8x16"),
        ("tpu-v6e", 2, ""),
        ("tpu-v6e", 256, "16x16"),
        ("tpu-v6e", 300, ""),
        ("tpu-v4", 4, "1x2x2"),
        ("tpu-v5p", 16, "2x2x4"),
        ("tpu-7x", 32, "2x4x4"),
        ("tpu-v5p", 96, ""),
        ("tpu-v5p", 256, "4x8x8 4x4x16"),
        ("tpu-v4", 192, "4x4x12"),
        ("tpu-v5p", 512, "8x8x8 4x8x16 4x4x32"),
        ("tpu-v5p", 6144, "16x16x24"),
        ("tpu-v5p", 8960, "16x20x28"),
        ("tpu-7x", 9216, "16x24x24"),
    ],
)
def test_shapes(chip: str, chips: int, shapes: str) -> None:
    """A number of chips has its shapes, the default first."""
    found = ["x".join(map(str, shape)) for shape in slice_shapes(ici(chip), chips)]
    assert found[: max(len(shapes.split()), 1)] == shapes.split()


def test_nearest_slices() -> None:
    """A number without a shape names the nearest two; beyond a pod the pod alone."""
    assert nearest_slices(ici("tpu-v5p"), 96) == [64, 128]
    assert nearest_slices(ici("tpu-v6e"), 300) == [256]


@pytest.mark.parametrize(
    ("chip", "text", "rings"),
    [
        ("tpu-v5e", "8x16", [False, True]),
        ("tpu-v5p", "2x4x4", [False] * 3),
        ("tpu-v5p", "4x4x12", [True] * 3),
        ("tpu-v6e", "8x8", [False] * 2),
    ],
)
def test_rings(chip: str, text: str, rings: list[bool]) -> None:
    """On three axes only whole cubes close, on two only an axis of 16."""
    torus = shaped(chip, text)
    assert [torus.is_ring(axis) for axis in range(len(torus.shape))] == rings


GIGABYTE = Fraction(10**9)
GATHER = "all-gather"


@pytest.mark.parametrize(
    ("chip", "text", "typed", "group", "kind", "microseconds", "hops"),
    [
        ("tpu-v5e", "16x16", {"dp": "16x16"}, (256, 1), GATHER, "5533.854", 16),
        ("tpu-v5e", "8x16", {"dp": "8x16"}, (128, 1), GATHER, "7349.537", 15),
        ("tpu-v5p", "4x4x4", {"dp": "4x4x4"}, (64, 1), GATHER, "1822.917", 6),
        ("tpu-v5p", "2x4x4", {"dp": "2x4x4"}, (32, 1), GATHER, "3587.963", 7),
        ("tpu-v5p", "8x8x16", {"tp": "8c"}, (8, 1), GATHER, "9722.222", 7),
        ("tpu-v5p", "8x8x16", {"tp": "8c", "dp": "8a8b2c"}, (128, 8), GATHER, "2593.954", 16),
        ("tpu-v5p", "8x8x16", {"tp": "4a2b"}, (8, 1), GATHER, "4861.111", 4),
        ("tpu-v6e", "16x16", {"dp": "16x16"}, (256, 1), ALL_TO_ALL, "22222.222", 16),
        ("tpu-v6e", "16x16", {"dp": "8a"}, (8, 1), ALL_TO_ALL, "22222.222", 7),
        ("tpu-v4", "4x4x12", {"dp": "4x4x12"}, (192, 1), "all-reduce", "7368.827", 20),
        ("tpu-v5p", "4x4x8", {"dp": "4x4x8"}, (128, 1), ALL_TO_ALL, "6365.741", 8),
    ],
)
def test_collectives(  # noqa: PLR0913, PLR0917, a row of the table
    chip: str,
    text: str,
    typed: dict[str, str],
    group: tuple[int, int],
    kind: str,
    microseconds: str,
    hops: int,
) -> None:
    """Collectives of 1e9 bytes take their worked times, and as many hops."""
    torus = shaped(chip, text)
    load = first_mapping(torus, **typed).route(*group).load(kind)
    per_byte, _ = load.own_time(Fraction(1))
    assert round(float(per_byte * GIGABYTE) * MICROSECONDS, 3) == float(microseconds)
    assert load.hops == hops


def test_twisted_distances() -> None:
    """Twisted slices have the mean distances of a search; the straight ones are a sum of axes."""
    distances = [
        shaped("tpu-v5p", text).twisted_distance
        for text in ("4x4x8", "4x8x8", "8x8x16", "8x16x16", "4x4x12")
    ]
    worked = [Fraction(55, 16), Fraction(69, 16), Fraction(223, 32), Fraction(279, 32), None]
    assert distances == worked


def test_one_axis_is_a_line_or_ring() -> None:
    """Along one axis the times are those of a line or a ring."""
    link = ici("tpu-v5e")
    for chips in (4, 8, 16):
        torus = Slice(link, (1, chips))
        route = AxisMapping(torus, (1, chips), ((1, chips),)).route(chips, 1)
        level = NetworkLevel(link, (chips,))
        for kind in (GATHER, "all-reduce", ALL_TO_ALL):
            expected = level.bytes_per_payload_byte(kind) / level.links_used
            assert route.load(kind).alone == expected


def two_loads(
    torus: Slice, typed: dict[str, str], groups: list[tuple[int, int]], seconds: list[Fraction]
) -> Fraction:
    """Time of gathers together, each of which takes some seconds alone [s]."""
    mapping = first_mapping(torus, **typed)
    loads = [mapping.route(*group).load(GATHER) for group in groups]
    return max(
        sum(
            (
                time / load.alone * load.by_level[level]
                for load, time in zip(loads, seconds, strict=True)
            ),
            Fraction(0),
        )
        for level in range(len(mapping.weights))
    )


def test_sums() -> None:
    """Collectives on the same axes add up, on others they run at once; some deal their bytes."""
    cube, plane = shaped("tpu-v5p", "4x4x4"), shaped("tpu-v5e", "16x16")
    one, two = Fraction(1), Fraction(2)
    apart = {"tp": "4c", "dp": "4a4b"}
    assert two_loads(cube, apart, [(4, 1), (16, 4)], [one, two]) == 2
    same = {"tp": "2a2b2c", "dp": "2a2b2c"}
    assert two_loads(cube, same, [(8, 1), (8, 8)], [one, two]) == 3
    strided = {"tp": "4a", "dp": "4a16b"}
    assert two_loads(plane, strided, [(4, 1), (64, 4)], [one, one]) == Fraction(6, 5)


def least_time(mapping: AxisMapping, amounts: Any) -> float:
    """Least time in which every axis keeps up, by a linear program [byte]."""
    axes = len(mapping.slice.shape)
    shares: list[tuple[int, int, float]] = []
    fixed = [0.0] * axes
    dealt: list[list[int]] = []
    for form, chips, stride, amount in amounts:
        load = TorusLoad(mapping.route(chips, stride), form, Fraction(1))
        if form == "gather":
            dealt.append([])
            for part in load.route.parts:
                dealt[-1].append(len(shares))
                shares.append(
                    (part.axis, len(dealt) - 1, amount * float(load.bytes_dealt / part.links))
                )
        for axis, number in load.by_axis.items():
            fixed[axis] += amount * float(number)
    upper = [[number * (axis == at) for at, _, number in shares] + [-1.0] for axis in range(axes)]
    equal = [[float(index in group) for index in range(len(shares))] + [0.0] for group in dealt]
    found = optimize.linprog(
        [0.0] * len(shares) + [1.0],
        upper,
        [-load for load in fixed],
        equal or None,
        [1.0] * len(equal) or None,
    )
    return float(found.fun)


def random_mapping(rng: random.Random) -> AxisMapping:
    """Mapping of four parallelisms onto a slice."""
    torus = shaped(*rng.choice([("tpu-v5p", "4x8x8"), ("tpu-v5p", "4x4x12"), ("tpu-v6e", "8x16")]))
    bounds = [1]
    while bounds[-1] < torus.chips:
        rest = torus.chips // bounds[-1]
        factor = rng.choice([n for n in range(2, rest + 1) if rest % n == 0])
        bounds.append(bounds[-1] * factor)
    return rng.choice(mappings_onto(torus, tuple(bounds), (), fixed=True))


def test_time_of_all_equals_a_solver() -> None:
    """The time of all collectives is the least that a linear program finds, between its ends."""
    rng = random.Random(SEED)
    for _ in range(60):
        mapping = random_mapping(rng)
        groups = [(high // low, low) for low, high in pairwise(mapping.bounds)]
        forms = ("gather", "gather", "shares", "copies", "sends")
        amounts = tuple((rng.choice(forms), *group, rng.uniform(0.1, 9)) for group in groups)
        least, own = network_times(mapping, amounts)
        assert least == pytest.approx(least_time(mapping, amounts), rel=1e-9)
        longest = max(
            amount * float(TorusLoad(mapping.route(chips, stride), form, Fraction(1)).alone)
            for form, chips, stride, amount in amounts
        )
        assert longest * (1 - 1e-12) <= least <= own * (1 + 1e-12)


def test_switch_of_as_many_links() -> None:
    """A gather over all chips of a closed torus takes as long as on a switch of as many links."""
    torus = shaped("tpu-v5p", "4x8x8")
    route = first_mapping(torus, dp="4x8x8").route(256, 1)
    assert isinstance(route, TorusRoute)
    assert route.load(GATHER).alone == Fraction(255, 256) / torus.link.links


def trained(width: int, layers: int, heads: int, hidden: int) -> Model:
    """Model as MaxText publishes them."""
    attention = {"N": heads, "K": heads, "H": 128}
    shape = {"layers": layers, "D": width, "V": 32_000, "attention": attention}
    return Model("own", Shape.model_validate({**shape, "mlp": {"F": hidden}}))


STEP = partial(rooflines.train, S=2048, shard="weights", calibration=None)


@pytest.mark.parametrize(
    ("model", "batch", "split", "micro_batch", "lower", "network"),
    [
        (trained(8192, 32, 64, 28_672), 384, "tp4-dp16", 24, "5.1301", "1.0905"),
        (trained(8192, 64, 128, 57_344), 128, "tp8-dp16", 8, "3.3990", "0.5971"),
        (trained(16_384, 64, 128, 57_344), 512, "tp8-dp64", 8, "6.7405", "1.6833"),
    ],
)
def test_published_steps(  # noqa: PLR0913, PLR0917, a row of the table
    model: Model, batch: int, split: str, micro_batch: int, lower: str, network: str
) -> None:
    """Bounds of published steps on v5p, without a typed mapping."""
    row = STEP("tpu-v5p", model, B=batch, split=split, micro_batch=micro_batch).row
    assert f"{row['t_lower_s']:.4f}" == lower
    assert f"{row['t_network_s']:.4f}" == network


def test_pods() -> None:
    """Two pods send gradients once a step; one pod after + changes nothing."""
    model = trained(8192, 32, 64, 28_672)
    one, same, two = (
        STEP("tpu-v5p", model, B=batch, split=split, micro_batch=1)
        for batch, split in ((16, "tp4-dp16"), (16, "tp4-dp16+1"), (32, "tp4-dp16+2"))
    )
    assert one.row["t_network_s"] == same.row["t_network_s"]
    parameters = model.parameters().total
    assert two.row["network_bytes"] - one.row["network_bytes"] == pytest.approx(
        parameters / 64 * 4, rel=1e-4
    )
    assert two.row["state_bytes"] == one.row["state_bytes"]


def test_default_mapping_is_the_fastest() -> None:
    """No typed mapping has a lower bound, and the default is one of them."""
    times = {}
    for split in ("tp4-dp16", "tp4c-dp4a4b", "tp2x2-dp16"):
        row = STEP("tpu-v5p", "llama-3.1-8b", B=16, split=split).row
        times[split] = row["t_network_s"]
    assert times["tp4-dp16"] == min(times.values())
    answer = STEP("tpu-v5p", "llama-3.1-8b", B=16, split="tp4-dp16")
    assert any("on 4x4x4: tp" in route for route in answer.routes)


@pytest.mark.parametrize(
    ("chip", "split", "batch", "topology", "said"),
    [
        ("h100-sxm", "dp4x4", 16, None, "is of a torus"),
        ("tpu-v5e", "dp16x8", 128, "16x16", "leave 2"),
        ("tpu-v5p", "tp2-dp48", 96, None, "the nearest are 64 and 128"),
        ("tpu-v5p", "dp128", 128, "4x4x4", "no slice 4x4x4 of 128"),
        ("tpu-v6e", "dp512", 512, None, "dp=256+2"),
        ("tpu-v5p", "tp16a-dp16a", 256, None, "does not fill"),
        ("tpu-v5p", "dp64d", 64, None, "no axis d"),
        ("tpu-v5e", "dp16x16+3", 512, None, "no multiple of 768"),
    ],
)
def test_refused(chip: str, split: str, batch: int, topology: str | None, said: str) -> None:
    """A plan that does not fit a torus is refused with the reason."""
    with pytest.raises(RooflinesError, match=said.replace("+", r"\+")):
        STEP(chip, "llama-3.1-8b", B=batch, split=split, topology=topology)


def test_a_search_maps_every_layout() -> None:
    """A search on a torus answers as the single plan does, typed axes included."""
    question: dict[str, Any] = {"B": 64, "S": 8192, "dtypes": "bf16"}
    rows = rooflines.best_splits("tpu-v5p", "llama-3.1-8b", chips=16, phase="train", **question)
    first = rows.row(0, named=True)
    row = rooflines.train("tpu-v5p", "llama-3.1-8b", split=first["split"], **question).row
    assert row["t_lower_s"] == pytest.approx(first["t_lower_s"])
    assert len({hash(TrainingPlan.model_validate({"dp": "4x4"})) for _ in range(2)}) == 1
