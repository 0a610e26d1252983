"""Checks of whole tables against `oracle`: every row and column, in whole numbers.

Works depend on dtypes, sharding and sizes and on no chip, so each is computed once, as an exact
fraction. The metrics of a chip are comparisons and quotients of whole numbers of any length, which
Python rounds correctly.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
import oracle
import polars as pl
from comparison import EXACT_INTEGER, KEYS, ROW_TOLERANCE, same

Level = tuple[str, str, list[str] | None]  # chip, memory level, networks
Ints = Any  # an array of Python's whole numbers

MOST_ESTIMATES = 60
"""Rows of a combination whose estimates are checked [1]."""


@dataclass(frozen=True)
class Works:
    """The works of one (dtypes, sharding, chips), row by row, over a common denominator.

    Attributes:
        dtypes, sharding, shards: The combination.
        work: Numerators, an array by `math`, `memory`, `network`, its levels `inner` and `outer`,
            and `footprint`.
        over: Their denominators.
    """

    dtypes: str
    sharding: str
    shards: int
    work: Mapping[str, Ints]
    over: Mapping[str, int]


class Whole:
    """A sweep of a config, to check its table.

    Args:
        sweep: Its config.
        chips: Chip entries by id, not yet resolved.
        dtypes: The dtype catalogue.
        fits: Files of calibrations.
    """

    def __init__(
        self,
        sweep: Mapping[str, Any],
        chips: Mapping[str, Any],
        dtypes: Mapping[str, Any],
        fits: oracle.Fits | None = None,
    ) -> None:
        self.sweep, self.dtypes, self.fits = sweep, dtypes, fits
        self.chips = oracle.resolve_chips(
            {name: chips[name] for name in chain_of(chips, sweep["chips"])}
        )
        self.operation = oracle.operation_of(sweep["operation"])
        self.unit = sweep.get("unit") or oracle.default_unit(sweep)
        self.leads = oracle.points(sweep)
        self.points = [point for lead in self.leads for point in lead]
        self.cached_works: dict[tuple[Any, ...], Works] = {}
        forms = oracle.as_list(sweep.get("shards", 1))
        self.several = any(len(oracle.axes_of(form)) > 1 for form in forms)

    def setting(
        self,
        level: Level,
        spec: str | Mapping[str, str],
        sharding: oracle.Sharding,
        axes: tuple[int, ...],
    ) -> tuple[oracle.Setting | None, str | None]:
        """Return the setting of rows, None if the chip does not support them, and the network."""
        chip, memory, route = level
        combination = oracle.combination_of(spec, self.dtypes["combinations"])[1]
        case = oracle.Case(chip, memory, combination, self.dtypes["formats"], sharding, axes, route)
        setting, _, network = oracle.setting_of(self.sweep, self.chips[chip], case, self.fits)
        return setting, network

    def levels(self) -> Iterator[Level]:
        """Yield every chip, memory level and network, in order."""
        memories = oracle.as_list(self.sweep.get("memory", "hbm"))
        yield from product(self.sweep["chips"], memories, oracle.routes(self.sweep))

    def supported(
        self, level: Level
    ) -> list[tuple[str, oracle.Sharding, tuple[int, ...], oracle.Setting, str | None]]:
        """Return supported combinations in order: dtypes, sharding, chips, setting and network."""
        found = []
        for spec, (sharding, count) in product(
            oracle.as_list(self.sweep["dtypes"]), oracle.splits(self.sweep)
        ):
            setting, network = self.setting(level, spec, sharding, count)
            if setting is not None:
                found.append(
                    (
                        oracle.combination_of(spec, self.dtypes["combinations"])[0],
                        sharding,
                        count,
                        setting,
                        network,
                    )
                )
        return found

    def _count(self, dtypes: str, sharding: str, count: int, setting: oracle.Setting) -> Works:
        names = ("math", "memory", "network", "inner", "outer", "footprint", "useful")
        works: dict[str, list[Fraction]] = {name: [] for name in names}
        for _, sizes in self.points:
            for name, amount in setting.work(sizes, count).items():
                works[name].append(amount)
            inner, outer = (*setting.sent(sizes, count), Fraction(0), Fraction(0))[:2]
            works["inner"].append(inner)
            works["outer"].append(outer)
            works["footprint"].append(setting.footprint_bytes(sizes, count))
            works["useful"].append(setting.useful_flops(sizes, count))
        over = {
            name: math.lcm(*(amount.denominator for amount in amounts))
            for name, amounts in works.items()
        }
        work = {
            name: whole_numbers([int(amount * over[name]) for amount in amounts])
            for name, amounts in works.items()
        }
        return Works(dtypes, sharding, count, work, over)

    def check_level(
        self,
        level: Level,
        frame: pl.DataFrame,
        most: int | None = None,
    ) -> int:
        """Check the rows of a chip and memory level, and return how many numbers were compared.

        Args:
            level: The chip, its memory level, and its networks.
            frame: Their rows.
            most: Combinations to check at most, drawn at random; all by default.
        """
        chip, memory, _ = level
        variants = self.supported(level)
        shape = (len(self.leads), len(variants), len(self.leads[0]))
        assert frame.height == math.prod(shape), (chip, memory, frame.height, shape)
        columns = {name: column_of(frame[name]).reshape(shape) for name in frame.columns}
        indices: Sequence[int] = range(len(variants))
        if most is not None:
            indices = random.sample(indices, min(most, len(indices)))
        for index in indices:
            dtypes, sharding, axes, setting, network = variants[index]
            count = math.prod(axes)
            found = {name: values[:, index, :].reshape(-1) for name, values in columns.items()}
            keys = (
                self.operation.name,
                chip,
                self.unit,
                memory,
                network,
                dtypes,
                sharding.name,
                count,
            )
            for name, key in zip(KEYS, keys, strict=False):
                assert (
                    (found[name] == key).all()
                    if key is not None
                    else all(value is None for value in found[name])
                ), (
                    chip,
                    memory,
                    name,
                    key,
                )
            assert found["shape"].tolist() == [shape for shape, _ in self.points]
            for dim in self.operation.dims:
                assert found[dim].tolist() == [sizes[dim] for _, sizes in self.points], (chip, dim)
            if self.several:
                assert set(found["axes"]) == {"x".join(map(str, axes))}
            works = self.works_of(dtypes, sharding.name, count, setting)
            expected = exact_columns(works, setting)
            for name, truth in expected.items():
                wrong = differing(found[name], truth)
                assert not wrong.any(), difference(
                    name, found, truth, wrong, (chip, memory, dtypes, sharding.name, count)
                )
            self.check_estimates(found, setting, count)
            check_whole(found, works)
        return frame.height * frame.width

    def check_estimates(
        self, found: Mapping[str, Any], setting: oracle.Setting, count: int
    ) -> None:
        """Check the estimates of some rows of a combination, drawn at random."""
        every = range(len(self.points))
        for index in random.sample(every, min(len(every), MOST_ESTIMATES)):
            _, sizes = self.points[index]
            for name, truth in setting.estimate(sizes, count).items():
                value = found[name][index]
                right = value == truth if name == "estimate_bound" else same(value, truth)
                assert right, (name, value, truth, sizes, setting)
        if setting.calibration is None:
            assert all(value is None for name in oracle.ESTIMATES for value in found[name])

    def works_of(self, dtypes: str, sharding: str, count: int, setting: oracle.Setting) -> Works:
        """Return the works of a combination, computed once for all chips."""
        sent = tuple(setting.sent(dict.fromkeys(self.operation.dims, 1), count))
        key = (dtypes, sharding, count, sent)
        if key not in self.cached_works:
            self.cached_works[key] = self._count(dtypes, sharding, count, setting)
        return self.cached_works[key]


def chain_of(chips: Mapping[str, Any], names: list[str]) -> list[str]:
    """Return the chips and their bases."""
    found = list(names)
    for name in found:
        base = chips[name].get("base")
        if base is not None and base not in found:
            found.append(base)
    return found


def whole_numbers(values: list[int]) -> Ints:
    """Return an array of whole numbers of any length."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def column_of(series: pl.Series) -> Any:
    """Return a column as an array: of numbers if it has no nulls, else of objects with None."""
    if series.dtype in (pl.Float64, pl.Int64) and not series.null_count():
        return series.to_numpy()
    array = np.empty(len(series), dtype=object)
    array[:] = (
        series
        if series.dtype.is_numeric() or series.dtype == pl.Boolean
        else series.cast(pl.String)
    ).to_list()
    return array


def exact_times(works: Works, setting: oracle.Setting) -> tuple[dict[str, Ints], int]:
    """Return the time of every resource as whole numbers of ticks, and the ticks per second."""
    share, moved = setting.efficiency, bool(works.work["network"].any())
    waits = setting.waits(works.shards) if moved else []
    per_s = {"math": setting.peak, "memory": setting.memory_rate}
    shares = {name: share[name] for name in per_s}
    if moved:
        tiers = oracle.tiers(setting.links, setting.axes or (works.shards,))
        for name, (link, axes) in zip(("inner", "outer"), tiers, strict=False):
            per_s[name], shares[name] = link.bytes_per_s(axes), share["network"]
    seconds = {name: 1 / (works.over[name] * rate * shares[name]) for name, rate in per_s.items()}
    second = math.lcm(*(each.denominator for each in (*seconds.values(), *waits)))
    ticks = {name: works.work[name] * int(each * second) for name, each in seconds.items()}
    network = [ticks.pop(name) for name in ("inner", "outer") if name in ticks]
    none = works.work["network"] * 0
    latest = reduce(np.maximum, [none, *network, *(none + int(wait * second) for wait in waits)])
    return {**ticks, "network": latest}, second


def exact_columns(works: Works, setting: oracle.Setting) -> dict[str, Any]:
    """Return every computed column of the rows: exact numbers rounded once, or None."""
    flops, memory, network, footprint = (
        works.work[name] for name in ("math", "memory", "network", "footprint")
    )
    times, second = exact_times(works, setting)
    lower = reduce(np.maximum, times.values())
    bound = np.where(times["network"] == lower, "network", "none")
    for name, label in (
        ("memory", "memory"),
        ("math", "compute"),
    ):  # a tie goes to the earlier resource
        bound = np.where(times[name] == lower, label, bound)
    capacity = setting.capacity
    attained = works.work["useful"] * second, lower * works.over["useful"]
    peak = setting.peak
    return {
        "flops": flops / works.over["math"],
        "memory_bytes": memory / works.over["memory"],
        "network_bytes": network / works.over["network"],
        **(
            {
                f"network_{name}_bytes": works.work[name] / works.over[name]
                for name in ("inner", "outer")
            }
            if setting.two_levels
            else {}
        ),
        "footprint_bytes": footprint / works.over["footprint"],
        **{f"t_{name}_s": time / second for name, time in times.items()},
        "t_lower_s": lower / second,
        "t_upper_s": reduce(np.add, times.values()) / second,
        "memory_intensity": flops * works.over["memory"] / (memory * works.over["math"]),
        "network_intensity": flops * works.over["network"] / (network * works.over["math"])
        if network.all()
        else None,
        "attained_flops_per_s": attained[0] / attained[1],
        "utilization": attained[0] * peak.denominator / (attained[1] * peak.numerator),
        "bound": bound,
        "fits": None
        if capacity is None
        else footprint * capacity.denominator <= capacity.numerator * works.over["footprint"],
    }


def differing(found: Any, truth: Any) -> Any:
    """Return where a column differs from the exact one; numbers may differ by 1e-12."""
    if truth is None:
        return np.array([value is not None for value in found])
    if truth.dtype == object and isinstance(truth[0], float):
        exact = truth.astype(float)
        return ~(
            np.abs(found.astype(float) - exact) <= float(ROW_TOLERANCE) * exact
        )  # a null is a NaN here, and a NaN differs
    return np.array(found != truth, dtype=bool)


def check_whole(found: Mapping[str, Any], works: Works) -> None:
    """Check that FLOPs and bytes that are whole numbers of one chip are these numbers."""
    names = {"flops": "math", "memory_bytes": "memory", "footprint_bytes": "footprint"}
    for column, name in names.items() if works.shards == 1 else ():
        if works.over[name] == 1:
            small = works.work[name] < EXACT_INTEGER
            assert (found[column][small] == works.work[name][small].astype(float)).all(), column


def difference(name: str, found: Mapping[str, Any], truth: Any, wrong: Any, where: object) -> str:
    """Describe the first difference."""
    index = int(np.argmax(wrong))
    row = {column: values[index] for column, values in found.items()}
    exact = None if truth is None else truth[index]
    return f"{name}: {found[name][index]!r} where {exact!r} is exact, in {where}: {row}"
