"""20,000 mutated configs and catalogues; `ROOFLINES_SEED=... make verify` repeats a run."""

import os
import random
import tempfile
from collections import Counter
from pathlib import Path

import fuzzing
import mutations
import polars as pl
import pytest
from hypothesis import given, seed, settings
from run_folder import RunFolder

CASES = 20_000
RUNS = 10
BATCHES = 20
SEED = int(os.environ["ROOFLINES_SEED"])


@pytest.fixture(autouse=True)
def _own_catalogue():
    with fuzzing.real_catalogues():
        yield


@pytest.mark.parametrize("batch", range(BATCHES))
def test_whatever_is_read_ends_in_a_valid_table_or_in_one_message(batch, capsys):
    """No other exception, no hang, at most 2 GiB of memory, no file outside the results."""
    ends: Counter[str] = Counter()

    @seed(SEED + batch)
    @settings(max_examples=CASES // BATCHES)
    @given(case=mutations.cases())
    def check(case):
        with tempfile.TemporaryDirectory() as folder:
            ends[fuzzing.outcome(case, Path(folder))] += 1

    with fuzzing.little_memory():
        try:
            check()
        except BaseException:
            with capsys.disabled():
                print(f"\nROOFLINES_SEED={SEED} repeats this")
            raise
    assert set(ends) <= {"table", "message"}
    assert min(ends["table"], ends["message"]) >= CASES // BATCHES // 50


@pytest.mark.parametrize("number", range(RUNS))
def test_any_valid_texts_pass_through_snakemake(number, tmp_path):
    config = fuzzing.config_of_texts(random.Random(SEED + number))
    done = RunFolder(tmp_path, config).run()
    assert done.returncode == 0, f"ROOFLINES_SEED={SEED} repeats this\n{done.stdout}"
    found = pl.read_parquet(tmp_path / "results/thresholds.parquet")["shape"]
    assert set(found) == {shape["name"] for shape in config["sweeps"]["texts"]["shapes"]}
