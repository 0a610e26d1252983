"""What attained FLOP/s show for each choice of a reader: curves, critical sizes and the peak."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import pl

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.charts.kinds.attained_curves import Point

__all__ = ["Case", "cases_of", "percent_of"]


@dataclass(frozen=True)
class Case:
    """What is shown for one choice of a reader.

    Attributes:
        choice: The values of the menus.
        setting: The sizes that all curves have.
        peak: The peak [FLOP/s].
        banded: Whether curves have bands.
        curves: Points by series.
        knees: The critical sizes, a row for each series.
        near: The smaller share of the peak that has hollow dots: `90 %`; "" without.
    """

    choice: Mapping[str, str]
    setting: str
    peak: float
    banded: bool
    curves: Mapping[str, Sequence[Point]]
    knees: Sequence[Mapping[str, Any]]
    near: str

    @property
    def key(self) -> str:
        """The values of the menus, as parameters have them."""
        return "|".join(self.choice.values())


def cases_of(views: pl.DataFrame, by: Sequence[str]) -> list[Case]:
    """The cases of rows, by the columns that a reader chooses; curves in order of their sizes."""
    curves: dict[tuple[str, ...], dict[str, list[Point]]] = {}
    columns = ("series", "size", "flops_per_s")
    for *key, series, size, attains in _of_kind(views, "curve", *by, *columns).iter_rows():
        curves.setdefault(tuple(key), {}).setdefault(series, []).append((size, attains))
    knees: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in views.filter(kind="knee").iter_rows(named=True):
        knees.setdefault(tuple(row[name] for name in by), []).append(row)
    near = {
        tuple(key): percent_of(attains, peak)
        for *key, attains, peak in _of_kind(views, "share", *by, "flops_per_s", "peak").iter_rows()
    }
    stated = views.group_by(by, maintain_order=True).agg(
        pl.col("setting").first(), pl.col("peak").max(), pl.col("slow").count() > 0
    )
    return [
        Case(
            choice=dict(zip(by, key, strict=True)),
            setting=setting,
            peak=peak,
            banded=banded,
            curves=curves.get(tuple(key), {}),
            knees=knees.get(tuple(key), []),
            near=near.get(tuple(key), ""),
        )
        for *key, setting, peak, banded in stated.iter_rows()
    ]


def _of_kind(views: pl.DataFrame, kind: str, *columns: str) -> pl.DataFrame:
    """Some columns of the rows of one kind."""
    return views.filter(kind=kind).select(columns)


def percent_of(attains: float, peak: float) -> str:
    """A share of the peak: `90 %`."""
    return f"{100 * attains / peak:g} %"
