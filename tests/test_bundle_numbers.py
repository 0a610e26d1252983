"""The numbers in the files of the site are those of the tables and of the catalogue."""

import gzip

import polars as pl
from bundles import CONFIG
from html_page import Page
from polars.testing import assert_frame_equal
from site_data import put

import rooflines
from rooflines import load_config, thresholds
from rooflines.results.tables import NO_TEXT, csv_text, write_parquet
from rooflines.site.downloads import MOST_CSV_ROWS, download_files, downloads_of


def test_it_has_all_numbers_of_all_chips(site):
    numbers = pl.read_csv(site / "data" / "chips.csv", infer_schema=False)
    own = {"chip": "mine", "path": "memory.hbm.bytes_per_s", "value": "810000000000.0"}
    assert numbers.filter(**own).height == 1
    assert numbers.filter(pl.col("chip") != "mine").height == rooflines.chips().height


def test_the_thresholds_of_the_page_are_those_on_disk(site):
    data = put((site / "data" / "thresholds.js").read_text())[1]
    expected = thresholds(load_config(CONFIG)).with_columns(
        pl.col(pl.Categorical, pl.Enum).cast(pl.String)
    )
    assert (data["sweep"], data["axis"]) == ("shapes", "B")
    rows = expected.filter(sweep="shapes", axis="B", chip="h100-sxm")
    assert data["counts"] == [rows.height, 3 * rows.height, expected.height]
    shown = pl.DataFrame(data["lists"], schema={name: rows.schema[name] for name in data["lists"]})
    assert_frame_equal(shown, rows.select(shown.columns), check_exact=False, rel_tol=1e-5)
    assert shown["critical"].to_list() == rows["critical"].to_list()
    assert {column["name"] for column in data["columns"]} == set(shown.columns)


def test_all_thresholds_can_be_downloaded(site):
    assert (site / "data" / "thresholds.parquet").read_bytes() == (
        site.parent / "thresholds.parquet"
    ).read_bytes()
    assert (
        gzip.decompress((site / "data" / "thresholds.csv.gz").read_bytes())
        == csv_text(pl.read_parquet(site.parent / "thresholds.parquet"), NO_TEXT).encode()
    )


def test_a_large_table_is_offered_as_parquet_alone(tmp_path):
    path = tmp_path / "thresholds.parquet"
    for rows, csv in ((MOST_CSV_ROWS, True), (MOST_CSV_ROWS + 1, False)):
        write_parquet(pl.LazyFrame({"n": range(rows)}), path, {"columns": [{"name": "n"}]})
        (download,) = downloads_of(path, [])
        assert download.csv == csv
        names = [name for name, _ in download_files(download)]
        assert names == ["data/thresholds.parquet", "data/thresholds.csv.gz"][: 1 + csv]


def test_every_number_of_every_chip_is_there_with_its_source(site):
    table = put((site / "data" / "chips.js").read_text())[1]["lists"]
    assert table["chip"] == ["tpu-v5e", "h100-sxm", "h200-sxm", "b200", "mine"]
    assert table["bf16 peak"][0] == 1.97e14
    details = put((site / "data" / "chip-numbers.js").read_text())[1]
    text = str(details)
    for said in ("197 TFLOP/s", "819 GB/s", "810 GB/s", "1.979 PFLOP/s", "printed with sparsity"):
        assert said in text, said
    numbers = [one for chip in details["chips"].values() for one in chip["numbers"]]
    assert any(estimate for *_, estimate, _ in numbers)
    ids = {source for one in numbers for source in one[3]}
    assert "gcp-v5e-old" in ids & details["sources"].keys()


def test_a_variant_shows_only_what_is_its_own(site):
    own = put((site / "data" / "chip-numbers.js").read_text())[1]["chips"]["mine"]
    assert len(own["numbers"]) == 1
    assert own["about"][0].startswith("A variant of")


def test_the_model_page_lists_the_sweeps(site):
    text = Page(site / "method.html").text
    assert "What it ignores" in text
    assert all(sweep in text for sweep in CONFIG["sweeps"])
