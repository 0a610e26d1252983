"""A new chart is one new file: `auto`, the schema, a run, the site and README's gallery find it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest
from documents import config_schema
from gallery import with_gallery
from site_data import put

import rooflines
from rooflines import charts
from rooflines.charts import kinds, registry
from rooflines.charts.job import write_charts
from rooflines.run.plan import plan
from rooflines.run.solving import write_thresholds
from rooflines.site.site import site_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PEAKS = '''
"""Peaks of chips, a point for each."""

from __future__ import annotations

from rooflines.charts.chart import Chart
from rooflines.charts.claims import Finding
from rooflines.charts.frames import ridge_frame
from rooflines.charts.kit.drawing import assemble, data
from rooflines.basics.lazy import alt
from rooflines.charts.kit.themes import Margins

__all__ = ["peaks"]


def peaks(frame, *, title=None):
    """Peaks of chips."""
    points = alt.Chart(data(frame)).mark_point(style="dot").encode(x="chip:N", y="flops_per_s:Q")
    return assemble([points], {"": Finding("Peaks differ", "")}, [], Margins())


CHART = Chart(
    name="peaks",
    family="peaks",
    heading="Peaks of chips",
    caption="A point for each chip.",
    frame=lambda of, _: ridge_frame(of),
    draw=lambda frame, of, spec: peaks(frame),
)
'''

CONFIG = {
    "sweeps": {
        "mine": {
            "operation": "matmul",
            "grid": {"B": [1, 8], "D": [1024], "F": [1024]},
            "dtypes": ["bf16"],
            "chips": ["tpu-v5e", "h100-sxm"],
        }
    }
}


def forget() -> None:
    """Look for charts again."""
    registry._modules.cache_clear()  # noqa: SLF001, no other code adds a chart to a running process
    registry.charts.cache_clear()


@pytest.fixture
def new_chart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The file of a chart, as if it were in the package."""
    folder = tmp_path / "kinds"
    folder.mkdir()
    (folder / "peaks.py").write_text(PEAKS, encoding="utf-8")
    monkeypatch.setattr(kinds, "__path__", [*kinds.__path__, str(folder)])
    forget()
    yield
    monkeypatch.undo()
    sys.modules.pop(f"{kinds.__name__}.peaks", None)
    forget()


@pytest.mark.usefixtures("new_chart")
def test_a_new_chart_is_one_new_file(tmp_path: Path) -> None:
    """Nothing else names it."""
    chart = config_schema()["properties"]["charts"]["anyOf"][1]["items"]["properties"]["chart"]
    assert chart["enum"][-1] == "peaks"
    config = rooflines.load_config(CONFIG)
    spec = config.charts[-1]
    assert (spec.chart, spec.id) == ("peaks", "peaks-mine")
    assert "peaks" in dir(charts)
    snippet = 'charts.on_disk("results")\nnew = charts.peaks(charts.ridge_frame(of))'
    readme = f"```python\n{snippet}\n```\n<!-- gallery -->\n\n<!-- end -->"
    assert "`new`: Peaks of chips" in with_gallery(readme)
    thresholds = tmp_path / "thresholds.parquet"
    planned = plan(rooflines.load_config({**CONFIG, "charts": []}))
    write_thresholds(planned.spec("thresholds.parquet"), thresholds)
    family = {"formats": ["png"], "charts": [spec.plain()], "digests": ["peaks"]}
    drawn = json.dumps({"families": {"peaks": family}})
    write_charts(drawn, tmp_path, tmp_path / "charts", tmp_path / "drawn")
    files = site_files([tmp_path / "charts" / "peaks"], thresholds)
    _, data = put(next(text.decode() for name, text in files if name == "assets/charts-data.js"))
    (listed,) = data["charts"]
    assert (listed["heading"], listed["title"]) == ("Peaks of chips", "Peaks differ")
    assert listed["caption"] == "A point for each chip."
