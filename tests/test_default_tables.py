"""The default config against exact arithmetic: drawn rows and thresholds of every sweep."""

import effort
import pytest
from comparison import row_differences, threshold_differences
from defaults import drawn, sweeps

import rooflines


@pytest.mark.parametrize("name", sweeps())
def test_rows_and_thresholds_of_the_default_config_are_the_exact_ones(name):
    for _ in range(effort.cases(30)):
        config = drawn(name)
        try:
            rooflines.load_config(config)
        except rooflines.RooflinesError as error:
            assert "is left with no rows" in str(error)  # noqa: PT017, the chip may have none
            continue
        assert row_differences(config) == []
        assert threshold_differences(config) == []
