"""Every row of the default run keeps the laws, and agrees with the thresholds."""

import predicates
import pytest

import rooflines

CONFIG = rooflines.load_config()


@pytest.mark.parametrize("name", CONFIG.sweeps)
def test_every_row_and_every_threshold_keeps_the_laws(name):
    sweep, table = CONFIG.sweep(name), rooflines.rows(CONFIG, name).collect()
    predicates.check_table(table, sweep.columns)
    thresholds = rooflines.thresholds(CONFIG, name)
    predicates.check_thresholds(thresholds, sweep)
    for axis in sweep.solved:
        wrong = predicates.disagreements(table, thresholds, axis, list(sweep.op.dims))
        assert wrong.is_empty(), wrong.head(1).to_dicts()
