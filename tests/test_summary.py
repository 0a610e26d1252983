"""summary.csv counts exactly what the tables and the thresholds say."""

import warnings

import polars as pl
import pytest
from case_files import case
from outputs_made import make_outputs

import rooflines
from rooflines.dictionary.columns import SUMMARY
from rooflines.results.overview import write_summary
from rooflines.results.tables import NO_TEXT, write_csv
from rooflines.run.plan import plan

CONFIG = case("configs/summary")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    results = tmp_path_factory.mktemp("summarized")
    make_outputs(CONFIG, results, "thresholds.parquet", "summary.csv")
    return results


def counted(found, rows, solved):
    """Rows and thresholds behind a line of the summary."""
    bounds, outcomes = [row["bound"] for row in rows], [row["outcome"] for row in solved]
    critical = sorted(row["critical"] for row in solved if row["critical"] is not None)
    places = {"min": 0, "median": (len(critical) - 1) // 2, "max": -1}
    sizes = {f"critical_{name}": critical[at] if critical else None for name, at in places.items()}
    return {
        **found,
        "rows": len(bounds),
        "compute_bound": bounds.count("compute") / len(bounds),
        "bottleneck": max(("compute", "memory", "network"), key=bounds.count),
        "never": outcomes.count("never") / len(outcomes) if outcomes else None,
        **sizes,
    }


def having(rows, of):
    return [row for row in rows if of.items() <= row.items()]


def test_every_number_is_what_a_count_in_python_gives(results):
    rows = rooflines.scan(results, "split").collect().to_dicts()
    sizes = pl.read_parquet(results / "thresholds.parquet").to_dicts()
    summary = pl.read_csv(results / "summary.csv").filter(sweep="split").to_dicts()
    keys = ("chip", "dtypes", "sharding", "shards")
    expected = {tuple(row[key] for key in keys) for row in rows if row["shards"] > 1}
    expected |= {(row["chip"], row["dtypes"], "none", 1) for row in rows if row["shards"] == 1}
    assert len(summary) == len(expected)
    assert {tuple(row[key] for key in keys) for row in summary} == expected
    for found in summary:
        of = {key: found[key] for key in keys}
        if found["shards"] == 1:
            of["sharding"] = "batch/gather-w"
        solved = having(sizes, {**of, "axis": "B"})
        assert found == counted(found, having(rows, of), solved)
        assert (found["axis"], found["model"], found["split"]) == ("B", NO_TEXT, NO_TEXT)
        assert found["rule_of_thumb"] == min(row["rule_of_thumb"] for row in solved)


def test_a_sweep_without_bounds_and_thresholds_has_its_rows(results):
    row = pl.read_csv(results / "summary.csv").row(-1, named=True)
    assert list(row) == [column.name for column in SUMMARY]
    assert {name: value for name, value in row.items() if value not in (None, NO_TEXT)} == {
        "sweep": "without",
        "chip": "tpu-v5p",
        "dtypes": "bf16-compute-fp32",
        "shards": 1,
        "rows": 2,
    }


def test_sizes_beyond_the_integers_of_float64_are_exact(results, tmp_path):
    planned = plan(rooflines.load_config(CONFIG))
    (tmp_path / "tables").symlink_to(results / "tables")
    pl.read_parquet(results / "thresholds.parquet").with_columns(
        critical=pl.lit(2**53 + 1, pl.Int64)
    ).write_parquet(tmp_path / "thresholds.parquet")
    write_summary(planned.spec("summary.csv"), tmp_path / "summary.csv")
    found = pl.read_csv(tmp_path / "summary.csv").filter(sweep="split")
    for name in ("critical_min", "critical_median", "critical_max"):
        assert set(found[name]) == {2**53 + 1}


STEPS = {
    "models": ["llama-3.1-8b", "qwen3-30b-a3b"],
    "phase": ["decode", "prefill"],
    "grid": {"B": [1, 64, 1024], "S": [512, 8192]},
    "dtypes": ["bf16", "fp8"],
    "chips": ["h100-sxm", "b200"],
    "splits": [{"tp": 1}, {"tp": 2, "dp": 2}],
    "layers": False,
}


@pytest.mark.parametrize("axis", ["B", "S", "chips"])
def test_whole_models_are_counted_by_model_phase_and_split(axis, tmp_path):
    sweep = {**STEPS, "thresholds": [axis]}
    config = {"model-sweeps": {"serve": sweep}, "charts": []}
    make_outputs(config, tmp_path, "model-thresholds.parquet", "summary.csv")
    rows = rooflines.scan(tmp_path, "serve").collect().to_dicts()
    solved = pl.read_parquet(tmp_path / "model-thresholds.parquet").to_dicts()
    keys = ("model", "phase", "chip", "dtypes", "split")
    summary = pl.read_csv(tmp_path / "summary.csv").to_dicts()
    in_order = [tuple(found[key] for key in keys) for found in summary]
    assert sorted(in_order) == sorted({tuple(row[key] for key in keys) for row in rows})
    for found in summary:
        of = {key: found[key] for key in keys}
        fixed = of if axis != "chips" else {key: of[key] for key in keys[:-1]}
        assert found == counted(found, having(rows, of), having(solved, fixed))
        assert (found["axis"], found["shards"], found["sharding"]) == (axis, None, NO_TEXT)


@pytest.mark.parametrize(("no_text", "warned"), [("", 1), (NO_TEXT, 0)])
def test_pandas_reads_a_large_csv_without_a_warning(no_text, warned, tmp_path):
    import pandas as pd  # noqa: PLC0415, it takes a second

    texts = [None] * 100_000 + ["llama"] * 100_000 + [None] * 100_000
    write_csv(
        pl.DataFrame({"shape": texts, "critical": range(300_000)}), tmp_path / "a.csv", no_text
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", pd.errors.DtypeWarning)
        pd.read_csv(tmp_path / "a.csv")
    assert len(caught) == warned


def test_the_summary_has_a_word_in_place_of_missing_text(results):
    frame = pl.read_csv(results / "summary.csv")
    assert set(frame["split"]) == {NO_TEXT}
    assert frame["axis"].null_count() == 0
