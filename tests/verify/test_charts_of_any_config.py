"""Charts of six hundred random configs, some of them rendered."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from charted import charted, drawn
from hypothesis import HealthCheck, Phase, given, seed, settings

from rooflines.charts.registry import charts

if TYPE_CHECKING:
    from collections.abc import Iterator

CASES, BATCHES = 600, 6
RENDERED = 20
"""Interval between the cases whose pictures are rendered too [1]."""

SEED = int(os.environ["ROOFLINES_SEED"])


@pytest.fixture(scope="module")
def kinds() -> Iterator[Counter[str]]:
    """The charts drawn in all batches of a process: every kind is among them."""
    found: Counter[str] = Counter()
    yield found
    assert set(found) == set(charts())


@pytest.mark.parametrize("batch", range(BATCHES))
def test_every_chart_of_a_random_config_can_be_drawn(
    batch: int, kinds: Counter[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """No traceback, a finite number wherever a chart draws one, and a valid specification."""
    cases = iter(range(CASES))

    @seed(SEED + batch)
    @settings(
        max_examples=CASES // BATCHES,
        deadline=None,
        database=None,
        print_blob=True,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(config=charted())
    def check(config: dict[str, Any]) -> None:
        kinds.update(drawn(config, listed=True, pictures=next(cases, 1) % RENDERED == 0))

    try:
        check()
    except BaseException:
        with capsys.disabled():
            print(f"\nROOFLINES_SEED={SEED} repeats this")
        raise
