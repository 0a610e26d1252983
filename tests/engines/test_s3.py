"""Results in an S3 bucket: a real server, on this machine."""

import duckdb
import polars as pl
import pyarrow.dataset
import pyarrow.fs
import pytest
from run_folder import REPOSITORY, RunFolder

from engines.bucket import KEYS
from engines.cluster import QUICKLY
from engines.runs import CONFIG, PARTS, TABLE_FOLDERS, assert_same, contents


def profile(name, bucket):
    """Options of a profile with results in a bucket."""
    return (
        "--profile",
        REPOSITORY / "profiles" / name,
        "--default-storage-prefix",
        f"s3://{bucket}/some/where",
    )


def brought(server, bucket, folder):
    """Copy the results from a bucket into a folder."""
    for key, content in server.objects(bucket).items():
        path = folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder / "some/where/results"


@pytest.fixture(scope="session")
def stored(server, tmp_path_factory):
    run = RunFolder(tmp_path_factory.mktemp("stored"), CONFIG, **server.environment)
    run.config["charts"] = [{"chart": "attained", "sweep": "own", "id": "first"}]
    assert "Storing in storage" not in run.finish(*profile("s3", "mine"))
    return run


def test_a_bucket_gets_the_tables_of_a_local_run(stored, server, local, tmp_path):
    results = brought(server, "mine", tmp_path)
    found = contents(results)
    assert_same(
        {name: content for name, content in found.items() if not name.startswith("charts/")},
        contents(local.results),
    )
    assert (results / "bundle/index.html").exists()
    assert (results / "charts/attained/first.png").exists()
    assert (results / "logs/sweep_table/own/part-00000.log").exists()
    assert {path.name for path in stored.path.iterdir()} == {"my.yaml", ".snakemake"}
    here = stored.path.rglob("*.parquet")  # drawn charts are kept below .snakemake
    assert not [path for path in here if ".snakemake" not in path.parts]


@pytest.mark.usefixtures("stored")
def test_polars_and_duckdb_read_the_tables_in_the_bucket(server, local):
    table = "mine/some/where/results/tables/catalogue"
    expected = pl.concat(
        [pl.read_parquet(local.results / "tables" / f"{part}.parquet") for part in PARTS[:2]]
    )
    read = pl.scan_parquet(f"s3://{table}/part-*.parquet", storage_options=server.polars)
    assert read.collect().equals(expected)
    bucket = pyarrow.fs.S3FileSystem(
        endpoint_override=server.address.removeprefix("http://"),
        scheme="http",
        access_key=KEYS["aws_access_key_id"],
        secret_key=KEYS["aws_secret_access_key"],
        region="us-east-1",
    )
    rows = pyarrow.dataset.dataset(table, filesystem=bucket, format="parquet")
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        bounds = connection.sql(
            "SELECT bound::VARCHAR AS bound, count(*) AS len FROM rows GROUP BY ALL ORDER BY ALL"
        ).pl()
    counted = expected.group_by(pl.col("bound").cast(pl.String)).len().sort("bound")
    assert bounds.rows() == counted.rows()


def test_a_further_run_makes_what_has_changed_and_removes_nothing(stored, server):
    stored.config["sweeps"]["renamed"] = stored.config["sweeps"].pop("own")
    stored.config["charts"] = [{"chart": "attained", "sweep": "renamed", "id": "second"}]
    stored.finish(*profile("s3", "mine"))
    keys = {key.removeprefix("some/where/results/") for key in server.objects("mine")}
    tables = {
        *(f"tables/{part}.parquet" for part in PARTS[:2]),
        "tables/renamed/part-00000.parquet",
    }
    gone = "tables/own/part-00000.parquet"
    assert {key for key in keys if key.startswith("tables/")} == tables | {gone}
    index = server.objects("mine")["some/where/results/parts.csv"]
    assert b"renamed/part-00000" in index
    assert b"own/" not in index
    assert {"charts/attained/second.png", "bundle/charts/second.png"} < keys
    assert not any("first" in key for key in keys)
    assert "s3://mine/some/where/results/tables/catalogue" not in fetched(stored)


def fetched(run):
    """The fetch messages in the log of the last run."""
    *_, log = sorted((run.path / ".snakemake/log").iterdir())
    return "".join(
        line
        for line in log.read_text().splitlines(keepends=True)
        if line.startswith("Retrieving from storage: ")
    )


def test_the_untested_profile_is_at_least_understood(server, tmp_path):
    run = RunFolder(tmp_path, CONFIG, cores=None, **server.environment)
    said = run.finish("--dry-run", *profile("kubernetes", "pods"), "results/skipped.csv")
    assert "s3://pods/some/where/results/skipped.csv" in said


def test_nodes_that_share_no_files_make_the_tables_of_a_local_run(cluster, server, local, tmp_path):
    environment = {**server.environment, **cluster.environment}
    run = RunFolder(tmp_path / "run", CONFIG, cores=None, **environment)
    run.finish(*profile("slurm-s3", "far"), *QUICKLY, "results/parts.csv")
    far = contents(brought(server, "far", tmp_path / "bucket"), TABLE_FOLDERS)
    assert_same(far, contents(local.results, TABLE_FOLDERS))
