"""Any config: every chart that it gets can be drawn, and says what its rows hold."""

from hypothesis import given
from random_sweeps import check, configs

import rooflines
from rooflines import RooflinesError, charts
from rooflines.charts.files import draw
from rooflines.charts.kit.render import limited
from rooflines.explanation.sentences import broken


@check(100)
@given(configs())
def test_a_chart_of_any_config_is_drawn(config):
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
