"""The jobs of pictures: the charts and the site.

Each runs once in a run. What they draw with is imported in their own processes: the fork server
imports this module, and other jobs need nothing of that.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from rooflines.results.records import recorded
from rooflines.run.lock import STATE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def draw_charts(spec: str, results: str, processes: int) -> None:
    """Draw the charts of all families that have changed.

    Args:
        spec: What they depend on, from `Plan.charts_spec`.
        results: The folder that a run writes to.
        processes: Processes that draw [1].

    Raises:
        RooflinesError: A chart that the config lists would hold more than a page can draw.
    """
    from rooflines.charts.job import write_charts  # noqa: PLC0415, see above

    # One working directory may have several results: of a workflow that imports this one.
    place = hashlib.sha256(results.encode()).hexdigest()[:16]
    write_charts(spec, results, STATE / "drawn" / place, processes)


@recorded
def write_site(
    spec: str,
    folder: str,
    families: Sequence[str],
    thresholds: str,
    others: Mapping[str, Sequence[str]],
) -> None:
    """Write the site.

    Args:
        spec: What it says of itself and the config, from `Plan.spec`.
        folder: The folder to write.
        families: The folders of the families of charts.
        thresholds: The thresholds, as Parquet.
        others: Files that not every run has: `models`, thresholds and tables of whole models, as
            Parquet, `measured`, the errors at timings, as CSV, and `timings`, as Parquet.
    """
    from rooflines.site.site import write_bundle  # noqa: PLC0415, see above

    write_bundle(
        folder,
        families,
        thresholds,
        others["models"],
        spec,
        measured=others["measured"],
        timings=others["timings"],
        kept=STATE / "site" / f"{json.loads(spec)['code']}.json",
    )
