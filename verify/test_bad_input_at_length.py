"""Twenty thousand configs and catalogues that went wrong; `SEED=... make verify` repeats a run."""

from __future__ import annotations

import os
import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import fuzzing
import mutations
import pytest
from hypothesis import HealthCheck, given, seed, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

CASES = 20_000
BATCHES = 20
SEED = int(os.environ.get("SEED") or random.SystemRandom().randrange(2**32))


@pytest.fixture(autouse=True)
def _own_catalogue() -> Iterator[None]:
    with fuzzing.real_catalogues():
        yield


@pytest.mark.parametrize("batch", range(BATCHES))
def test_whatever_is_read_ends_in_a_valid_table_or_in_one_message(batch: int, capsys: pytest.CaptureFixture[str]) -> None:
    """No other exception, no hang, no memory beyond 2 GiB, no file outside the results."""
    ends: Counter[str] = Counter()

    @seed(SEED + batch)
    @settings(max_examples=CASES // BATCHES, deadline=None, database=None, print_blob=True, suppress_health_check=list(HealthCheck))
    @given(case=mutations.cases())
    def check(case: mutations.Case) -> None:
        with tempfile.TemporaryDirectory() as folder:
            ends[fuzzing.outcome(case, Path(folder))] += 1

    with fuzzing.little_memory():
        try:
            check()
        except BaseException:
            with capsys.disabled():
                print(f"\nSEED={SEED} repeats this")
            raise
    assert set(ends) <= {"table", "message"}
    assert min(ends["table"], ends["message"]) >= CASES // BATCHES // 50
