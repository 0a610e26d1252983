"""Tables of the default config: every row keeps the laws, many drawn ones are exact."""

import predicates
import pytest
from defaults import drawn
from test_default_tables import checked

import rooflines

CONFIG = rooflines.load_config()
DRAWN = 300
"""Cuts of each sweep, compared with exact arithmetic [1]."""


@pytest.mark.parametrize("name", CONFIG.sweeps)
def test_every_row_and_every_threshold_keeps_the_laws(name):
    sweep, table = CONFIG.sweep(name), rooflines.rows(CONFIG, name).collect()
    predicates.check_table(table, sweep)
    thresholds = rooflines.thresholds(CONFIG, name)
    predicates.check_thresholds(thresholds, sweep)
    for axis in sweep.solved:
        wrong = predicates.disagreements(table, thresholds, axis, list(sweep.op.dims))
        assert wrong.is_empty(), wrong.head(1).to_dicts()


@pytest.mark.parametrize("name", CONFIG.sweeps)
def test_drawn_rows_and_thresholds_are_the_exact_ones(name, record_property):
    compared = 0
    for _ in range(DRAWN):
        compared += checked(drawn(name))
    assert compared
    record_property("checked", f"{compared} cuts of {name}")
