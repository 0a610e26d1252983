"""Tables of core columns of whole models: the others follow from them, to the last bit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import rooflines
from rooflines.results.tables import metadata_of
from rooflines.run.jobs import write_layer_part, write_model_part
from rooflines.run.plan import plan
from rooflines.site.downloads import download_files, downloads_of

if TYPE_CHECKING:
    from pathlib import Path

PER_TOKEN = ("tokens_per_s", "tokens_per_s_per_chip", "mfu", "mbu", "usd_per_mtok", "j_per_token")
OF_STEPS = {
    "memory_bytes",
    "footprint_bytes",
    *PER_TOKEN,
    *(f"{name}_ops" for name in PER_TOKEN),
}
OF_REQUESTS = OF_STEPS | {"tpot_s", "tpot_ops_s"}
OF_KERNELS = {"memory_bytes", "t_upper_s"}

BOTH: dict[str, Any] = {
    "models": ["llama-3.1-70b", "mixtral-8x7b"],
    "phase": ["decode", "prefill"],
    "grid": {"B": [1, 3, 300], "S": [128, 1000]},
    "dtypes": ["bf16", "fp8"],
    "chips": ["h100-sxm", "tpu-v5e", "slow"],
    "splits": [{"tp": 8}, {"tp": 4, "dp": 2}, {"tp": 1}],
    "calibration": "trtllm",
    "rows_per_part": 300,
}

SWEEPS: dict[str, dict[str, Any]] = {
    "both": BOTH,
    "decode": {**BOTH, "phase": "decode", "chips": "slow", "dtypes": "bf16", "splits": {"tp": 8}},
    "prefill": {**BOTH, "phase": "prefill"},
    "new-tokens": {**BOTH, "phase": "decode", "grid": {**BOTH["grid"], "T": [1, 7]}},
    "requests": {
        **BOTH,
        "phase": "decode",
        "grid": {"B": [1, 3, 300]},
        "requests": [{"input": 100, "output": 30}, {"input": 5000, "output": 1000}],
    },
}


def config_of(name: str, columns: str, **more: object) -> rooflines.Config:
    """A config with this sweep, and a chip that does not reach its peak and has no price."""
    slow = {"base": "h100-sxm", "efficiency": {"math": 0.61}, "prices": [], "source": "a guess"}
    sweep = {**SWEEPS[name], "columns": columns, **more}
    content = {"model-sweeps": {"mine": sweep}, "chips": {"slow": slow}, "charts": []}
    return rooflines.load_config(content)


def written(config: rooflines.Config, results: Path) -> dict[str, list[Path]]:
    """The parts of a config, written; by folder."""
    write = {"models": write_model_part, "layers": write_layer_part}
    paths: dict[str, list[Path]] = {"models": [], "layers": []}
    for part in plan(config).parts:
        write[part.folder](part.spec, results / part.path)
        paths[part.folder].append(results / part.path)
    return paths


def tables_of(config: rooflines.Config) -> dict[str, pl.DataFrame]:
    """The tables of the config's sweep, by folder; requests have no kernels."""
    tables = {"models": rooflines.model_rows(config, "mine").collect()}
    if config.model_sweep("mine").has_layers:
        tables["layers"] = rooflines.model_layers(config, "mine").collect()
    return tables


@pytest.mark.parametrize("name", SWEEPS)
def test_tables_of_core_columns_are_the_whole_tables(name: str, tmp_path: Path) -> None:
    """Every value is equal to the last bit, of polars and DuckDB; files lack what follows."""
    core, whole = (config_of(name, columns) for columns in ("core", "all"))
    paths, by_python = written(core, tmp_path), tables_of(core)
    left_out = {"models": OF_REQUESTS if name == "requests" else OF_STEPS, "layers": OF_KERNELS}
    for folder, expected in tables_of(whole).items():
        kept = [column for column in expected.columns if column not in left_out[folder]]
        assert list(pl.read_parquet_schema(paths[folder][0])) == kept
        read = rooflines.scan(tmp_path, "mine", layers=folder == "layers").collect()
        for table in (read, by_python[folder]):
            assert_frame_equal(table, expected, check_exact=True, categorical_as_str=True)
        assert [row for path in paths[folder] for row in by_sql(path)] == expected.select(
            sorted(left_out[folder])
        ).rows()


def by_sql(path: Path) -> list[tuple[object, ...]]:
    """The columns that a file lacks, in alphabetical order, from the SQL of its metadata."""
    columns = metadata_of(path)["columns"]
    sql = {column["name"]: column["sql"] for column in columns if "sql" in column}
    query = ", ".join(f"{sql[name]} AS {name}" for name in sorted(sql))
    return duckdb.read_parquet(str(path)).project(query).fetchall()


def test_core_columns_in_float32_follow_from_rounded_values(tmp_path: Path) -> None:
    """They are those of the whole table to a few roundings of 2^-24."""
    core, whole = (config_of("both", columns, floats="float32") for columns in ("core", "all"))
    written(core, tmp_path)
    assert_frame_equal(
        rooflines.scan(tmp_path, "mine").collect(),
        rooflines.model_rows(whole, "mine").collect(),
        rel_tol=2**-21,
        abs_tol=0,
        categorical_as_str=True,
    )


def test_the_site_offers_all_columns_as_csv(tmp_path: Path) -> None:
    """Its Parquet file has the stored ones."""
    core = config_of("requests", "core")
    (path,) = written(core, tmp_path)["models"]
    (_, parquet), (_, csv) = download_files(downloads_of(path, [path])[1])
    assert parquet == path.read_bytes()
    assert pl.read_csv(csv).columns == rooflines.model_rows(core, "mine").collect_schema().names()
