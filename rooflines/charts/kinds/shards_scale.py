"""The vertical scale of thresholds over chips: sizes, and above them the rows of never."""

from __future__ import annotations

import math

from rooflines.basics.lazy import pl
from rooflines.charts.comparing import beneath
from rooflines.charts.frames import highest, lowest
from rooflines.charts.kit.text import over_text, part_name

__all__ = ["Scale"]

LANE = 0.05
"""Share of the plot's height that one chip's row has in the area of never."""

MOST_LANES = 8
"""Rows in the area of never; more chips share them."""


class Scale:
    """The vertical scale of one choice: critical sizes, and above them the rows of never."""

    def __init__(self, case: pl.DataFrame) -> None:
        chips = case["chip"].unique(maintain_order=True).to_list()
        self.low = lowest(case, "critical", 1) / 1.8
        most = max(highest(case, name, 10) for name in ("critical", "reached"))
        self.never = max(most * 1.8, self.low * 10)
        share = 1 - LANE * min(len(chips), MOST_LANES) if case["critical"].null_count() else 1.0
        self.high = self.low * (self.never / self.low) ** (1 / share)
        lanes = min(len(chips), MOST_LANES)
        self.lane = {
            c: self.never * (self.high / self.never) ** ((i % lanes + 0.5) / lanes)
            for i, c in enumerate(chips)
        }

    def located(self, case: pl.DataFrame) -> pl.DataFrame:
        """With the height `y` of every point, and the interconnect where the chips' differ."""
        lane = pl.col("chip").replace_strict(self.lane, return_dtype=pl.Float64)
        names = case["network"].drop_nulls().unique()
        heights = {
            str(chip): {
                row["shards"]: math.log(row["critical"] / self.low, self.high / self.low)
                for row in part.drop_nulls("critical").to_dicts()
            }
            for (chip,), part in case.group_by("chip", maintain_order=True)
        }
        links = {name: "" if over_text(names) else part_name(name) for name in names}
        return case.with_columns(
            y=pl.coalesce(pl.col("critical").cast(pl.Float64), lane),
            never=pl.col("critical").is_null(),
            beneath=pl.col("chip").replace_strict(beneath(heights), return_dtype=pl.Int64),
            link=pl.col("network")
            .replace_strict(links, default="", return_dtype=pl.String)
            .fill_null(""),
        )

    def band(self) -> dict[str, float]:
        """The edges of the plot and of the area of never."""
        return {
            "low": self.low,
            "never": self.never,
            "high": self.high,
            "middle": math.sqrt(self.never * self.high),
        }
