"""Whether subtitles name the network of the split that a chart shows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from titled import Case

NETWORKS = {"NVLink": "nvlink", "InfiniBand": "infiniband", "ICI link": "ici", "PCIe": "pcie"}


def says_network(case: Case) -> bool:
    """Whether a subtitle names the network, and the axes, of the split that it shows.

    It names none only if there are several.
    """
    said = re.search(r", split (\S+?)(?: over ([^,.]+?))?(?: along ([^,.]+))?[,.]", case.subtitle)
    assert said, case.subtitle
    split, over, along = said.groups()
    solved = case.thresholds().filter(pl.col("sharding") == split)
    frame = solved if solved.height else case.rows().filter(pl.col("sharding") == split)
    of_all = case.chart.chart in ("shards", "layers")
    if case.choice.get("chip") in set(frame["chip"]) and not of_all:
        frame = frame.filter(pl.col("chip") == case.choice["chip"])
    networks = set(frame["network"].drop_nulls())
    if not over:
        return len(networks) != 1
    named = "+".join(NETWORKS.get(name, name.lower()) for name in over.split(" + "))
    axes = {form for form in (along or "").split(" or ") if form}
    known = set(frame["axes"].drop_nulls()) if "axes" in frame.columns else set()
    return networks == {named} and axes == {form for form in known if "x" in form}
