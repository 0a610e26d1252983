"""Checks of whole tables against `oracle`: every row and column, in whole numbers.

Works depend on dtypes, sharding and sizes and on no chip, so each is computed once, as an exact
fraction. The metrics of a chip are comparisons and quotients of whole numbers of any length, which
Python rounds correctly.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, reduce
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import oracle
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ROW_TOLERANCE = 1e-12
REAL_TOLERANCE = 1e-9
EXACT_INTEGER = 2**53
Ints = Any  # an array of Python's whole numbers
KEYS = ("operation", "chip", "unit", "memory", "network", "dtypes", "sharding", "shards", "shape")


@dataclass(frozen=True)
class Works:
    """The works of one (dtypes, sharding, chips), row by row, over a common denominator.

    Attributes:
        dtypes, sharding, shards: The combination.
        work: Numerators, an array by `math`, `memory`, `network` and `footprint`.
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
    """

    def __init__(
        self, sweep: Mapping[str, Any], chips: Mapping[str, Any], dtypes: Mapping[str, Any]
    ) -> None:
        self.sweep, self.dtypes = sweep, dtypes
        self.chips = oracle.resolve_chips(
            {name: chips[name] for name in chain_of(chips, sweep["chips"])}
        )
        self.operation = oracle.operation_of(sweep["operation"])
        self.unit = sweep.get("unit") or oracle.default_unit(sweep)
        self.leads = oracle.points(sweep)
        self.points = [point for lead in self.leads for point in lead]
        self.cached_works: dict[tuple[str, str, int], Works] = {}

    def setting(
        self,
        chip: str,
        memory: str,
        spec: str | Mapping[str, str],
        sharding: oracle.Sharding,
        count: int,
    ) -> tuple[oracle.Setting | None, str | None]:
        """Return the setting of rows, None if the chip does not support them, and the network."""
        combination = oracle.combination_of(spec, self.dtypes["combinations"])[1]
        case = oracle.Case(memory, combination, self.dtypes["formats"], sharding, count)
        setting, _, network = oracle.setting_of(self.sweep, self.chips[chip], case)
        return setting, network

    def levels(self) -> Iterator[tuple[str, str]]:
        """Yield every chip and memory level, in order."""
        yield from product(self.sweep["chips"], oracle.as_list(self.sweep.get("memory", "hbm")))

    def supported(
        self, chip: str, memory: str
    ) -> list[tuple[str, oracle.Sharding, int, oracle.Setting, str | None]]:
        """Return supported combinations in order: dtypes, sharding, chips, setting and network."""
        found = []
        for spec, (sharding, count) in product(
            oracle.as_list(self.sweep["dtypes"]), oracle.splits(self.sweep)
        ):
            setting, network = self.setting(chip, memory, spec, sharding, count)
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
        works: dict[str, list[Fraction]] = {
            "math": [],
            "memory": [],
            "network": [],
            "footprint": [],
        }
        for _, sizes in self.points:
            for name, amount in setting.work(sizes, count).items():
                works[name].append(amount)
            works["footprint"].append(setting.footprint_bytes(sizes, count))
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
        self, chip: str, memory: str, frame: pl.DataFrame, most: int | None = None
    ) -> int:
        """Check the rows of a chip and memory level, and return how many numbers were compared.

        Args:
            chip: The chip.
            memory: The memory level.
            frame: Their rows.
            most: Combinations to check at most, drawn at random; all by default.
        """
        variants = self.supported(chip, memory)
        shape = (len(self.leads), len(variants), len(self.leads[0]))
        assert frame.height == math.prod(shape), (chip, memory, frame.height, shape)
        columns = {name: column_of(frame[name]).reshape(shape) for name in frame.columns}
        indices: Sequence[int] = range(len(variants))
        if most is not None:
            indices = random.sample(indices, min(most, len(indices)))
        for index in indices:
            dtypes, sharding, count, setting, network = variants[index]
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
            works = self.works_of(dtypes, sharding.name, count, setting)
            expected = exact_columns(works, setting)
            for name, truth in expected.items():
                wrong = differing(found[name], truth)
                assert not wrong.any(), difference(
                    name, found, truth, wrong, (chip, memory, dtypes, sharding.name, count)
                )
            check_whole(found, works)
        return frame.height * frame.width

    def works_of(self, dtypes: str, sharding: str, count: int, setting: oracle.Setting) -> Works:
        """Return the works of a combination, computed once for all chips."""
        key = (dtypes, sharding, count)
        if key not in self.cached_works:
            self.cached_works[key] = self._count(*key, setting)
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


def column_of(series: pl.Series) -> Any:  # noqa: ANN401, an array of numbers, or of objects where there may be nulls
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


def exact_times(
    works: Works, setting: oracle.Setting, *, calibrated: bool = False
) -> tuple[dict[str, Ints], int]:
    """Return the time of every resource as whole numbers of ticks, and the ticks per second."""
    share = setting.efficiency
    per_s = {"math": setting.peak, "memory": setting.memory_rate, "network": Fraction(1)}
    latency = Fraction(0)
    if works.work["network"].any():
        assert setting.link is not None
        per_s["network"] = setting.link.bytes_per_s(works.shards)
        latency = setting.hops(works.shards) * setting.link.hop_s
    if calibrated:
        assert setting.calibration is not None
        share = setting.calibration
        latency /= share["network"]
    seconds = {name: 1 / (works.over[name] * rate * share[name]) for name, rate in per_s.items()}
    second = math.lcm(*(each.denominator for each in (*seconds.values(), latency)))
    times = {name: works.work[name] * int(each * second) for name, each in seconds.items()}
    times["network"] = np.where(
        works.work["network"] > 0, np.maximum(times["network"], int(latency * second)), 0
    )
    return times, second


def exact_estimate(works: Works, setting: oracle.Setting) -> Any:  # noqa: ANN401, an array, or None without a calibration
    """Return the calibrated times."""
    if setting.calibration is None:
        return None
    times, second = exact_times(works, setting, calibrated=True)
    overhead = setting.calibration["overhead_s"]
    return (
        reduce(np.maximum, times.values()) * overhead.denominator + overhead.numerator * second
    ) / (second * overhead.denominator)


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
    attained = flops * second, lower * works.over["math"]
    peak = setting.peak
    return {
        "flops": flops / works.over["math"],
        "memory_bytes": memory / works.over["memory"],
        "network_bytes": network / works.over["network"],
        "footprint_bytes": footprint / works.over["footprint"],
        **{f"t_{name}_s": time / second for name, time in times.items()},
        "t_lower_s": lower / second,
        "t_upper_s": reduce(np.add, times.values()) / second,
        "t_estimate_s": exact_estimate(works, setting),
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


def differing(found: Any, truth: Any) -> Any:  # noqa: ANN401, arrays
    """Return where a column differs from the exact one; numbers may differ by 1e-12."""
    if truth is None:
        return np.array([value is not None for value in found])
    if truth.dtype == object and isinstance(truth[0], float):
        exact = truth.astype(float)
        return ~(
            np.abs(found.astype(float) - exact) <= ROW_TOLERANCE * exact
        )  # a null is a NaN here, and a NaN differs
    return np.array(found != truth, dtype=bool)


def check_whole(found: Mapping[str, Any], works: Works) -> None:
    """Check that FLOPs and bytes that are whole numbers of one chip are these numbers."""
    names = {"flops": "math", "memory_bytes": "memory", "footprint_bytes": "footprint"}
    for column, name in names.items() if works.shards == 1 else ():
        if works.over[name] == 1:
            small = works.work[name] < EXACT_INTEGER
            assert (found[column][small] == works.work[name][small].astype(float)).all(), column


def difference(name: str, found: Mapping[str, Any], truth: Any, wrong: Any, where: object) -> str:  # noqa: ANN401, arrays
    """Describe the first difference."""
    index = int(np.argmax(wrong))
    row = {column: values[index] for column, values in found.items()}
    exact = None if truth is None else truth[index]
    return f"{name}: {found[name][index]!r} where {exact!r} is exact, in {where}: {row}"


# ---------------------------------------------------------------- thresholds


@dataclass(frozen=True)
class Line:
    """A straight line through two evaluated points, at 1 and at 2."""

    one: Fraction
    slope: Fraction

    def at(self, step: int) -> Fraction:
        """Return its value."""
        return self.one + self.slope * (step - 1)


class Critical:
    """Checks thresholds by their meaning: compute-bound there, and not one size or chip further.

    Args:
        whole: The sweep.
    """

    def __init__(self, whole: Whole) -> None:
        self.whole = whole
        self.lines = cache(self._lines)
        self.setting_of = cache(self._setting_of)
        self.split = cache(self._split)
        self.works: dict[Any, tuple[dict[str, Line], dict[str, Line]]] = {}

    def _setting_of(
        self, chip: str, memory: str, dtypes: str, sharding: str, count: int
    ) -> oracle.Setting:
        spec = next(
            s for s in oracle.as_list(self.whole.sweep["dtypes"]) if self._name(s) == dtypes
        )
        scheme = next(
            scheme for scheme, _ in oracle.splits(self.whole.sweep) if scheme.name == sharding
        )
        setting, _ = self.whole.setting(chip, memory, spec, scheme, count)
        assert setting is not None
        return setting

    def _name(self, spec: Any) -> str:  # noqa: ANN401, a name or a mapping
        return oracle.combination_of(spec, self.whole.dtypes["combinations"])[0]

    def check(self, row: Mapping[str, Any]) -> None:
        """Check one row of the thresholds."""
        problem = (
            self._problem_of_shards(row) if row["axis"] == "shards" else self._problem_of_size(row)
        )
        assert not problem, f"{problem}: {dict(row)}"

    # along a dimension

    def _work_lines(
        self,
        setting: oracle.Setting,
        key: tuple[Any, ...],
        axis: str,
        sizes: Mapping[str, int],
        count: int,
    ) -> dict[str, Line]:
        """Return the works along an axis, which are lines and the same on every chip."""
        if key not in self.works:
            step = self._step(setting, axis, count)
            at = [setting.work({**sizes, axis: step * place}, count) for place in (1, 2, 7)]
            lines = {name: Line(at[0][name], at[1][name] - at[0][name]) for name in at[0]}
            assert all(lines[name].at(7) == at[2][name] for name in lines)
            self.works[key] = lines, {}
        return self.works[key][0]

    @staticmethod
    def _step(setting: oracle.Setting, axis: str, count: int) -> int:
        return setting.tile.get(axis, 1) * (
            count if axis == setting.sharding.split and axis in setting.tile else 1
        )

    def _lines(
        self, variant: tuple[Any, ...], axis: str, sizes: tuple[tuple[str, int], ...]
    ) -> tuple[dict[str, list[Line]], dict[str, Line], int]:
        """Return t_math minus each term of other resources along an axis; the works; the step."""
        setting, count = self.setting_of(*variant), variant[-1]
        works = self._work_lines(setting, (*variant[2:], axis, sizes), axis, dict(sizes), count)
        math_s = setting.peak * setting.efficiency["math"]
        memory_s = setting.memory_rate * setting.efficiency["memory"]
        terms = {"memory": [Line(works["memory"].one / memory_s, works["memory"].slope / memory_s)]}
        terms["network"] = [Line(Fraction(0), Fraction(0))]
        if works["network"].one:
            assert setting.link is not None
            rate = setting.link.bytes_per_s(count) * setting.efficiency["network"]
            terms["network"] = [Line(works["network"].one / rate, works["network"].slope / rate)]
            terms["network"].append(Line(setting.hops(count) * setting.link.hop_s, Fraction(0)))
        top = Line(works["math"].one / math_s, works["math"].slope / math_s)
        ahead = {
            name: [Line(top.one - term.one, top.slope - term.slope) for term in lines]
            for name, lines in terms.items()
        }
        return (
            ahead,
            {**works, "#memory": terms["memory"][0], "#network": terms["network"][0]},
            self._step(setting, axis, count),
        )

    def _problem_of_size(self, row: Mapping[str, Any]) -> str:
        axis = row["axis"]
        variant = tuple(row[key] for key in ("chip", "memory", "dtypes", "sharding", "shards"))
        sizes = tuple((dim, row[dim]) for dim in self.whole.operation.dims if dim != axis)
        ahead, works, step = self.lines(variant, axis, sizes)
        every = [line for lines in ahead.values() for line in lines]
        groups = {
            "critical": every,
            "critical_memory": ahead["memory"],
            "critical_network": ahead["network"],
        }
        wrong = [name for name, lines in groups.items() if not first(lines, row[name], step)]
        never = [name for name in ("memory", "network") if endless(ahead[name])]
        roots = [root(line) * step for line in every]
        if never or not close(row["critical_exact"], max(*roots, Fraction(0))):
            wrong += ["critical_exact"] if not never or row["critical_exact"] is not None else []
        limit = self._limit(ahead, works, never, row["critical"])
        if row["limit"] != limit:
            wrong.append(f"limit, which is {limit}")
        grows = works[limit].slope if limit else Fraction(0)
        tends = works["math"].slope / grows if grows else None
        if not close(row["limit_intensity"], tends):
            wrong.append("limit_intensity")
        return ", ".join(wrong)

    @staticmethod
    def _limit(
        ahead: Mapping[str, list[Line]],
        works: Mapping[str, Line],
        never: list[str],
        critical: int | None,
    ) -> str | None:
        if never:
            return max(never, key=lambda name: works[f"#{name}"].slope)
        if critical == 1:
            return None
        return max(ahead, key=lambda name: max(Fraction(0), *(root(line) for line in ahead[name])))

    # along the number of chips

    def _split(
        self, variant: tuple[Any, ...], sizes: tuple[tuple[str, int], ...]
    ) -> tuple[oracle.Setting, dict[str, Line]]:
        """Return the setting, and N times the works, which are lines in N."""
        setting = self.setting_of(*variant, 1)
        key = (*variant[2:], "shards", sizes)
        if key not in self.works:
            at = {
                n: {name: n * amount for name, amount in setting.work(dict(sizes), n).items()}
                for n in (1, 2, 3, 7)
            }
            lines = {name: Line(at[1][name], at[2][name] - at[1][name]) for name in at[1]}
            assert all(lines[name].at(n) == at[n][name] for name in lines for n in (3, 7))
            self.works[key] = lines, {}
        return setting, self.works[key][0]

    def _problem_of_shards(self, row: Mapping[str, Any]) -> str:
        variant = tuple(row[key] for key in ("chip", "memory", "dtypes", "sharding"))
        sizes = tuple((dim, row[dim]) for dim in self.whole.operation.dims)
        setting, works = self.split(variant, sizes)
        link = setting.link
        assert link is not None
        cached: dict[int, dict[str, Fraction]] = {}

        def times(chips: int) -> dict[str, Fraction]:
            if chips not in cached:
                at = {name: line.at(chips) for name, line in works.items()}
                cached[chips] = {
                    "math": at["math"] / (setting.peak * setting.efficiency["math"]),
                    "memory": at["memory"] / (setting.memory_rate * setting.efficiency["memory"]),
                    "network": Fraction(0),
                }
                if chips > 1 and at["network"]:
                    sent = at["network"] / (link.bytes_per_s(chips) * setting.efficiency["network"])
                    cached[chips]["network"] = max(sent, chips * setting.hops(chips) * link.hop_s)
            return cached[chips]

        wrong = []
        for column, others in (
            ("critical", ("memory", "network")),
            ("critical_memory", ("memory",)),
            ("critical_network", ("network",)),
        ):

            def good(chips: int, others: tuple[str, ...] = others) -> bool:
                at = times(chips)
                return all(at["math"] >= at[other] for other in others)

            if not last(link, row[column], good):
                wrong.append(column)
        most = row["critical"] or 0
        endless = row["critical"] is None and all(
            times(1)["math"] >= time for time in times(1).values()
        )
        limit = None
        if not endless and (link.domain is None or most + 1 <= link.domain):
            at = times(most + 1)
            limit = oracle.LABEL[
                next(name for name in oracle.RESOURCES if at[name] == max(at.values()))
            ]
        if row["limit"] != limit:
            wrong.append(f"limit, which is {limit}")
        return ", ".join(wrong)


def first(lines: list[Line], size: int | None, step: int) -> bool:
    """Say whether a size is the first with no line below zero; None: none below 2^62."""
    if size is None:
        return endless(lines) or any(
            line.at(-(-(oracle.LARGEST - 1) // step)) < 0 for line in lines
        )
    steps, before = -(-size // step), -(-(size - 1) // step)
    here = all(line.at(steps) >= 0 and (line.slope >= 0) for line in lines)
    return size >= 1 and here and (size == 1 or any(line.at(before) < 0 for line in lines))


def endless(lines: list[Line]) -> bool:
    """Say whether some line is below zero at every size."""
    return any(line.slope <= 0 and line.one < 0 for line in lines)


def root(line: Line) -> Fraction:
    """Return the step at which a line is zero; 0 if it is constant."""
    return 1 - line.one / line.slope if line.slope else Fraction(0)


def close(found: float | None, exact: Fraction | None) -> bool:
    """Say whether a float equals an exact number to a relative 1e-9, or both are null."""
    if found is None or exact is None:
        return found is None and exact is None
    return math.isclose(found, exact, rel_tol=REAL_TOLERANCE)


def last(link: oracle.Link, chips: int | None, good: Any) -> bool:  # noqa: ANN401, a condition on a number of chips
    """Say whether a number of chips is the last good one, looking at the next of every family.

    None: not even one chip is good, or there is no last one.
    """
    top = oracle.ENDLESS if link.domain is None else link.domain
    if chips is None:
        return (
            not good(1)
            and not any(good(member(1)) for member in oracle.families(link) if member(1) <= top)
        ) or (
            link.domain is None
            and good(1)
            and any(good(after(member, oracle.ENDLESS)) for member in oracle.families(link))
        )
    later = [after(member, chips) for member in oracle.families(link)]
    return (
        1 <= chips <= top
        and good(chips)
        and not any(good(number) for number in later if number <= top)
    )


def after(member: Any, chips: int) -> int:  # noqa: ANN401, the members of a family
    """Return the first member of a family that is larger than a number of chips."""
    low, high = 0, 1
    while member(high) <= chips:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if member(middle) <= chips else (low, middle)
    found: int = member(high)
    return found
