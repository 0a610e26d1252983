"""Tables: written atomically, with what made them; read by their exact path, of bounded size."""

from itertools import product
from pathlib import Path

import polars as pl
import pytest
from cases import made_up
from outputs_made import make_outputs
from polars.testing import assert_frame_equal
from predicates import check_numbers
from pyarrow import parquet
from small_config import matmul

import rooflines
from rooflines.basics.errors import RooflinesError
from rooflines.fits.timing_tables import read_timings
from rooflines.measured.timed_shapes import read_shapes
from rooflines.results import tables
from rooflines.results.atomic import atomic_file
from rooflines.results.tables import metadata_of, runs_of, scan, write_parquet


def test_a_file_is_written_atomically(tmp_path):
    target = tmp_path / "new" / "file.txt"
    with atomic_file(target) as temporary:
        temporary.write_text("half", encoding="utf-8")
        assert not target.exists()
    assert target.read_text(encoding="utf-8") == "half"

    def fail():
        with atomic_file(target) as broken:
            broken.write_text("broken", encoding="utf-8")
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        fail()
    assert target.read_text(encoding="utf-8") == "half"
    assert [path.name for path in target.parent.iterdir()] == ["file.txt"]


def test_a_foreign_file_is_refused(tmp_path):
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "foreign.parquet")
    (tmp_path / "none.parquet").write_bytes(b"PAR1")
    with pytest.raises(rooflines.RooflinesError, match="does not say what made it"):
        metadata_of(tmp_path / "foreign.parquet")
    with pytest.raises(rooflines.RooflinesError, match="cannot be read as Parquet"):
        metadata_of(tmp_path / "none.parquet")


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_a_table_has_the_configured_compression(compression, tmp_path):
    config = {"sweeps": {"small": matmul(compression=compression)}}
    (part,) = make_outputs(config, tmp_path).parts
    stored = parquet.read_metadata(tmp_path / part.path).row_group(0).column(0)
    assert stored.compression == compression.upper()


@pytest.mark.parametrize(("flops", "hop"), [("leading", 1e30), ("exact", 1e-30)])
def test_the_limits_of_a_config_are_in_the_range_of_floats(flops, hop):
    link = {"links": 2**53, "topology": "switch", "hop_latency_s": hop}
    chips = {
        f"chip-{number}": {
            **made_up(peak, rate, {**link, "bytes_per_s": rate}),
            "efficiency": {"math": 1e-6},
        }
        for number, (peak, rate) in enumerate(product((1e-30, 1e30), repeat=2))
    }
    sweep = {
        "operation": "ABC,CDE->ABDE",
        "grid": dict.fromkeys("BCDE", 2**53) | {"A": [1, 2**53]},
        "dtypes": ["bf16"],
        "chips": list(chips),
        "sharding": {"split": "C", "then": "all-reduce"},
        "shards": [2, 2**53],
        "flops": flops,
        "thresholds": ["A", "C", "shards"],
    }
    sweep["grid"] |= {"C": [1, 2**53]} if flops == "leading" else {}
    config = rooflines.load_config({"chips": chips, "sweeps": {"ends": sweep}, "charts": []})
    rows = rooflines.rows(config, "ends").collect()
    check_numbers(rows)
    check_numbers(rooflines.thresholds(config))
    works = rows.select("flops", "memory_bytes", "t_math_s", "t_memory_s", "utilization")
    assert works.select(pl.all_horizontal(pl.all() > 0).all()).item()


def test_parts_that_hold_different_names_are_read_together(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "ROW_GROUP_ROWS", 300)
    chips = {f"chip-{number:03}": {"base": "h100-sxm"} for number in range(150)}
    grid = {"B": [1, 2], "D": 1024, "F": "D"}
    sweep = matmul(grid=grid, dtypes=["bf16", "w8a16"], chips=[*chips], rows_per_part=500)
    config = {"sweeps": {"many": sweep}, "chips": chips, "charts": []}
    parts = make_outputs(config, tmp_path).parts
    assert len(parts) == 2
    made = rooflines.rows(rooflines.load_config(config), "many").collect()
    assert_frame_equal(rooflines.scan(tmp_path, "many").collect(), made)
    for part in parts:
        kinds = {each.name: str(each.type) for each in parquet.read_schema(tmp_path / part.path)}
        of_texts = "dictionary<values=string, indices=uint32, ordered=0>"
        assert kinds["chip"] == kinds["shape"] == of_texts


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical])
def test_a_run_ends_where_any_value_changes_to_null_or_from_it(dtype):
    networks = pl.Series("network", ["ici", "ici", None, None, None, "ici", None], dtype)
    frame = pl.DataFrame([networks, pl.Series("tp", [1, 1, 1, 1, 2, 2, 2])])
    assert list(runs_of(frame, ["network"])) == [
        (("ici",), 0, 2),
        ((None,), 2, 5),
        (("ici",), 5, 6),
        ((None,), 6, 7),
    ]
    both = [(key, stop - start) for key, start, stop in runs_of(frame, frame.columns)]
    assert both == [
        (("ici", 1), 2),
        ((None, 1), 2),
        ((None, 2), 1),
        (("ici", 2), 1),
        ((None, 2), 1),
    ]


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
