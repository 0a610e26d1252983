"""Checks of whole thresholds against `oracle`: each by its meaning, from lines of exact works."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

import oracle
from comparison import close
from whole import Whole

RATES = {"peak": "math", "memory_rate": "memory", "network_rate": "network"}
"""The resource of every rate that can be solved for."""


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
        self.setting_of = cache(self._setting_of)

    def _setting_of(
        self, level: tuple[str, str, str | None], dtypes: str, sharding: str, form: str
    ) -> oracle.Setting:
        chip, memory, network = level
        spec = next(
            s for s in oracle.as_list(self.whole.sweep["dtypes"]) if self._name(s) == dtypes
        )
        scheme = next(
            scheme for scheme, _ in oracle.splits(self.whole.sweep) if scheme.name == sharding
        )
        route = network.split("+") if network else None
        axes = tuple(map(int, form.split("x")))
        setting, _ = self.whole.setting((chip, memory, route), spec, scheme, axes)
        assert setting is not None
        return setting

    def _name(self, spec: Any) -> str:
        return oracle.combination_of(spec, self.whole.dtypes["combinations"])[0]

    def check(self, row: Mapping[str, Any]) -> None:
        """Check one row of the thresholds."""
        if row["axis"] in RATES:
            problem = self._problem_of_rate(row)
        elif row["axis"] == "shards":
            problem = self._problem_of_shards(row)
        else:
            problem = self._problem_of_size(row)
        assert not problem, f"{problem}: {dict(row)}"

    # along a dimension

    @staticmethod
    def _step(setting: oracle.Setting, axis: str, count: int) -> int:
        return setting.tile.get(axis, 1) * (
            count if axis == setting.sharding.split and axis in setting.tile else 1
        )

    def _lines(
        self, setting: oracle.Setting, axis: str, sizes: Mapping[str, int], count: int
    ) -> tuple[dict[str, list[Line]], dict[str, Line], int]:
        """Return t_math minus each term of other resources along an axis; the works; the step."""
        step = self._step(setting, axis, count)
        at = [{**sizes, axis: step * place} for place in (1, 2, 7)]
        works = lines_through([setting.work(each, count) for each in at])
        times = [setting.terms(each, count) for each in at]
        terms = {
            name: list(lines_through([dict(enumerate(each[name])) for each in times]).values())
            for name in oracle.RESOURCES
        }
        top = terms["math"][0]
        ahead = {
            name: [Line(top.one - term.one, top.slope - term.slope) for term in terms[name]]
            for name in oracle.RESOURCES[1:]
        }
        steepest = {f"#{name}": max(terms[name], key=lambda line: line.slope) for name in ahead}
        return ahead, {**works, **steepest}, step

    def _problem_of_size(self, row: Mapping[str, Any]) -> str:
        axis = row["axis"]
        setting = self.at_share(row, row.get("axes") or str(row["shards"]))
        sizes = {dim: row[dim] for dim in self.whole.operation.dims if dim != axis}
        ahead, works, step = self._lines(setting, axis, sizes, row["shards"])
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
        estimated = oracle.first_saturated(setting, axis, sizes, row["shards"])
        for name, value in estimated.items():
            if row[name] != value:
                wrong.append(f"{name}, which is {value}")
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

    def at_share(self, row: Mapping[str, Any], form: str) -> oracle.Setting:
        """Return the setting of a row on some chips, at its share of the peak."""
        level = row["chip"], row["memory"], row["network"]
        setting = self.setting_of(level, row["dtypes"], row["sharding"], form)
        return oracle.at_share(setting, oracle.exact(row["share"]))

    # along the number of chips

    def _problem_of_shards(self, row: Mapping[str, Any]) -> str:
        sizes = {dim: row[dim] for dim in self.whole.operation.dims}
        setting = self.at_share(row, "1")
        links = setting.links
        times = cache(lambda chips: setting.times(sizes, chips))
        most_joined, published = oracle.largest_domain(links)
        wrong = []
        for column, others in (
            ("critical", ("memory", "network")),
            ("critical_memory", ("memory",)),
            ("critical_network", ("network",)),
        ):

            def good(chips: int, others: tuple[str, ...] = others) -> bool:
                at = times(chips)
                return all(at["math"] >= at[other] for other in others)

            if row["outcome"] != "domain-unknown" and not last(links, row[column], good):
                wrong.append(column)
        most = row["critical"] or 0
        if row["outcome"] == "domain-unknown":
            most = most_joined or 0
            wrong += ["outcome"] if published or setting.bound(sizes, most) != "compute" else []
        endless = row["outcome"] == "without-end"
        following = next_joined(links, most)
        limit = None
        if not endless and following is not None:
            limit = setting.bound(sizes, following)
        if row["limit"] != limit:
            wrong.append(f"limit, which is {limit}")
        return ", ".join(wrong)

    # of a rate

    def _problem_of_rate(self, row: Mapping[str, Any]) -> str:
        name = RATES[row["axis"]]
        sizes = {dim: row[dim] for dim in self.whole.operation.dims}
        setting = self.at_share(row, row.get("axes") or str(row["shards"]))

        def bound(factor: Fraction | int) -> str:
            own = {**setting.efficiency, name: setting.efficiency[name] * factor}
            return replace(setting, efficiency=own).bound(sizes, row["shards"])

        if row["outcome"] == "always":
            good = bound(1) == "compute" and row["critical_exact"] == 1 and row["limit"] is None
            return "" if good else "outcome"
        if row["outcome"] == "never":
            waits = name == "network" and max(setting.terms(sizes, row["shards"])["math"]) < max(
                setting.waits(row["shards"]), default=Fraction(0)
            )
            left = bound(10**40)
            good = row["critical_exact"] is None and left != "compute"
            good &= row["limit"] == ("network" if waits else left)
            return "" if good else "limit or outcome"
        factor = oracle.exact(row["critical_exact"])
        hair = factor * Fraction(1 if name == "math" else -1, 10**12)
        wrong = [] if bound(factor - hair) == "compute" else ["critical_exact"]
        return ", ".join(wrong + ([] if bound(factor + hair) == row["limit"] else ["limit"]))


def lines_through(at: list[dict[Any, Fraction]]) -> dict[Any, Line]:
    """Return the lines through values at 1, 2 and 7, which have to be on them."""
    lines = {name: Line(at[0][name], at[1][name] - at[0][name]) for name in at[0]}
    assert all(lines[name].at(7) == at[2][name] for name in lines)
    return lines


def next_joined(links: tuple[oracle.Link, ...], chips: int) -> int | None:
    """Return the next number of chips that is joined; None: there is none."""
    most, _ = oracle.largest_domain(links)
    group = links[0].domain if len(links) > 1 else None
    following = chips + 1
    if group is not None and chips >= group:
        following = (chips // group + 1) * group
    return following if most is None or following <= most else None


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


def last(links: tuple[oracle.Link, ...], chips: int | None, good: Any) -> bool:
    """Say whether a number of chips is the last good one, looking at the next of every family.

    None: not even one chip is good, there is no last one, or the domain is not published.
    """
    most, published = oracle.largest_domain(links)
    top = oracle.ENDLESS if most is None else most
    members = oracle.families(links)
    group = links[0].domain if len(links) > 1 else None
    near = range(1, (group or 1) + 1)
    if chips is None:
        first = [*near, *(member(1) for member in members)]
        return (
            not any(good(number) for number in first if number <= top)
            or (most is None and any(good(after(member, oracle.ENDLESS)) for member in members))
            or (not published and good(top))
        )
    later = [*near, *(after(member, chips) for member in members)]
    return (
        1 <= chips <= top
        and good(chips)
        and not any(good(number) for number in later if chips < number <= top)
    )


def after(member: Any, chips: int) -> int:
    """Return the first member of a family that is larger than a number of chips."""
    low, high = 0, 1
    while member(high) <= chips:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if member(middle) <= chips else (low, middle)
    found: int = member(high)
    return found
