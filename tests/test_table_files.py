"""Files of tables: read by their exact path, if they are of bounded size."""

from pathlib import Path

import polars as pl
import pytest

from rooflines.basics.errors import RooflinesError
from rooflines.fits.read import read_timings
from rooflines.measured.shapes import read_shapes
from rooflines.results.tables import scan, write_parquet

PATTERNS = {"f[1]": "f1", "f*": "f1", "f?": "f1", "f{a,b}": "fa", "~f": "f", "s3:": "s3"}
"""Names that are a pattern, a home or an address elsewhere, each with a name that it would mean."""

TIMINGS = pl.DataFrame(
    {"chip": ["tpu-v5e"]} | {c: ["bf16"] for c in ("dtype_x", "dtype_w", "dtype_out", "compute")}
).with_columns(B=16, D=8192, F=8192, seconds=2e-4)
ABOUT = {"columns": [{"name": "B"}]}


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", PATTERNS)
def test_a_name_is_no_pattern(name):
    for place, rows in ((name, TIMINGS), (PATTERNS[name], TIMINGS.with_columns(B=77))):
        folder = Path(place) / "tables" / "mlp"
        folder.mkdir(parents=True)
        write_parquet(rows.lazy(), folder / "part-00000.parquet", ABOUT)
        rows.write_csv(folder / f"{place}.csv")
    folder = Path(name) / "tables" / "mlp"
    assert scan(name, "mlp").collect()["B"].to_list() == [16]
    assert scan(folder / "part-00000.parquet").collect()["B"].to_list() == [16]
    for file in (folder / f"{name}.csv", folder / "part-00000.parquet"):
        assert read_timings(file).frame["B"].to_list() == [16]
    assert [shape.B for shape in read_shapes(folder / f"{name}.csv")[0]] == [16]


def test_the_size_of_a_table_is_bounded():
    with Path("holes.csv").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(RooflinesError, match="has more than 268,435,456 bytes"):
        read_timings("holes.csv")
