"""Checks of whole thresholds against `oracle`: each by its meaning, from lines of exact works."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

import oracle
from comparison import close

if TYPE_CHECKING:
    from collections.abc import Mapping

    from whole import Whole


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
