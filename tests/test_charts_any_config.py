"""Any config: every chart that it gets can be drawn, and says what its rows hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given
from random_sweeps import configs

import rooflines
from rooflines import RooflinesError, charts
from rooflines.charts.files import draw
from rooflines.charts.kit.render import limited
from rooflines.explanation.sentences import broken

if TYPE_CHECKING:
    from collections.abc import Mapping


@given(configs())
def test_a_chart_of_any_config_is_drawn(config: Mapping[str, Any]) -> None:
    """Its first view; with finite numbers, a true sentence, and little enough for a page."""
    try:
        loaded = rooflines.load_config({**config, "charts": "auto"})
    except RooflinesError:
        return
    results = charts.of_config(loaded)
    for chart in loaded.charts:
        view = draw(results, chart)
        assert view.rows.height > 0
        assert broken(view.says) is None
        limited(view.spec(), chart.id)
