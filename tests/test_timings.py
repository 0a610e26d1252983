"""Tables of timings: the tidy form, public layouts, and what is refused."""

import polars as pl
import pytest
from case_files import CASES, case
from catalogues import shipped
from command_line import said
from polars.testing import assert_frame_equal

from benchmarks.calibration import groups
from rooflines.basics.errors import RooflinesError
from rooflines.fits.nominal import with_nominal_times
from rooflines.fits.repeats import check_repeats
from rooflines.fits.timing_tables import read_timings
from rooflines.fits.timings import ROW, Timings, medians
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.measured.join import join_timings

H100 = {"chip": "h100-sxm"}
WRONG = case("wrong-timings")

LAYOUTS = CASES / "layouts"
TIDY = pl.read_csv(LAYOUTS / "tidy.csv")


def tidy(**columns):
    """A table of three timings, with some columns replaced."""
    rows = {**TIDY.to_dict(as_series=False), "note": ["", "warm", None]}
    return pl.DataFrame({**rows, **columns})


def refused(path, where=None):
    with pytest.raises(RooflinesError) as raised:
        read_timings(path, where or {})
    return str(raised.value)


def test_a_column_with_names_of_combinations_stands_for_four(tmp_path):
    path = tmp_path / "t.csv"
    combinations = shipped().dtypes.combinations
    lines = [f"h100-sxm,8,64,64,{name},1e-5\n" for name in combinations]
    path.write_text("".join(["chip,B,D,F,dtypes,seconds\n", *lines]))
    columns = {"dtype_x": "x", "dtype_w": "w", "dtype_out": "out", "compute": "compute"}
    assert read_timings(path).frame.select(*columns).to_dicts() == [
        {column: entry.dtypes[part] for column, part in columns.items()}
        for entry in combinations.values()
    ]
    path.write_text("chip,B,D,F,dtypes,seconds\nh100-sxm,8,64,64,bf61,1e-5\n")
    assert "close to it: bf16" in refused(path)


def test_the_tidy_form_is_read_from_csv_and_parquet(tmp_path):
    frame = tidy().with_columns(mood=pl.lit("good"))
    frame.write_csv(tmp_path / "t.csv")
    frame.write_parquet(tmp_path / "t.parquet")
    read = [read_timings(tmp_path / name).frame.drop(ROW) for name in ("t.csv", "t.parquet")]
    for one in read:
        assert one.drop("note").equals(tidy().select(one.columns).drop("note"))
        assert "mood" not in one.columns
    assert read[1]["note"].to_list() == ["", "warm", None]


def test_where_chooses_numbers_too(tmp_path):
    path = tmp_path / "t.parquet"
    tidy().write_parquet(path)
    assert read_timings(path, {"B": "64"}).frame["B"].to_list() == [64]
    assert "B has no '65'.\n  fix: use one of 1, 64, 1024." in refused(path, {"B": "65"})
    many = pl.concat([tidy().with_columns(B=pl.lit(n)) for n in range(1, 14)])
    many.write_parquet(path)
    assert "9, 10 and 3 more" in refused(path, {"B": "900"})


def test_where_chooses_rows_or_adds_a_column(tmp_path):
    path = tmp_path / "t.parquet"
    tidy().write_parquet(path)
    assert read_timings(path, {"chip": "b200"}).frame["B"].to_list() == [1024]
    tidy().drop("chip").write_parquet(path)
    assert read_timings(path, H100).frame["chip"].to_list() == ["h100-sxm"] * 3
    with pytest.raises(RooflinesError, match=r"software has no 'mie'\.\n  close to it: mine"):
        read_timings(path, {**H100, "software": "mie"})
    with pytest.raises(RooflinesError, match="is 'chips', which is no column of timings"):
        read_timings(path, {**H100, "chips": "b200"})


def written(folder, row):
    """A file with the text of a layout, or a text of its own, with changes."""
    text = row["text"] if "text" in row else (LAYOUTS / row["of"]).read_text(encoding="utf-8")
    for old, new in row.get("change", ()):
        text = text.replace(old, new)
    path = folder / row.get("name", "t.csv")
    path.write_text(text, encoding=row.get("encoding", "utf-8"))
    return path


@pytest.mark.parametrize("row", case("read-timings"), ids=lambda row: row.get("name", row["of"]))
def test_a_public_layout_is_read(tmp_path, row):
    timings = read_timings(written(tmp_path, row), H100)
    for name, values in row["columns"].items():
        numbers = pytest.approx(values) if name.startswith("seconds") else values
        assert timings.frame[name].to_list() == numbers, name
    for name in ("sources", "left_out"):
        assert getattr(timings, name) == row.get(name, getattr(timings, name))


def test_tuned_matmuls_of_aiter_are_read_with_the_chip_of_their_compute_units(tmp_path):
    frame = read_timings(LAYOUTS / "aiter-tuned-gemm.csv").frame
    names = ["chip", "software", "B", "D", "F", "dtype_x", "dtype_w", "dtype_out", "compute"]
    assert frame.select(names).rows() == [
        ("mi300x", "aiter", 64, 8192, 4096, *["bf16"] * 4),
        ("mi355x", "aiter", 128, 2048, 7168, "bf16", "bf16", "fp32", "bf16"),
    ]
    assert frame["seconds"].to_list() == pytest.approx([31.5e-6, 20.25e-6])
    assert read_timings(LAYOUTS / "aiter-tuned-gemm.csv").left_out == {
        "have no time: no kernel was tuned": 1,
        "are of a chip that its compute units do not tell": 1,
    }
    scaled = read_timings(LAYOUTS / "aiter-blockscale.csv")
    (row,) = scaled.frame.to_dicts()
    assert (row["dtype_x"], row["compute"], row["dtype_out"]) == ("fp8", "fp8", "bf16")
    assert row["contents"] == "matmul, block scales"
    assert scaled.left_out == {"do not tell their dtype": 1}
    text = (LAYOUTS / "aiter-tuned-gemm.csv").read_text().splitlines()
    own = [f"{line},{word}" for line, word in zip(text, ["chip", *["mi325x"] * 4], strict=True)]
    (tmp_path / "own.csv").write_text("\n".join(own))
    assert set(read_timings(tmp_path / "own.csv").frame["chip"]) == {"mi325x"}


def test_the_recipe_reads_tuned_matmuls_as_timings_of_their_collection():
    found = [*groups(LAYOUTS / "aiter-tuned-gemm.csv", "2026-01-01")]
    assert [(str(key), name) for key, name, _ in found] == [
        ("mi300x/aiter", "bf16"),
        ("mi355x/aiter", "bf16"),
    ]
    assert {request.source for *_, request in found} == {"ROCm/aiter/tuned"}


def test_layers_of_llmservingsim_have_the_sizes_of_the_model_in_their_path(tmp_path):
    """Llama 3.1 8B: width 4,096, 32 and 8 heads of 128, an MLP of 14,336, 128,256 tokens."""
    folder = tmp_path / "TPU-v6e-1" / "meta-llama" / "Llama-3.1-8B" / "tp1"
    folder.mkdir(parents=True)
    text = (LAYOUTS / "llmservingsim-layers.csv").read_text()
    (folder / "layers.csv").write_text(text)
    timings = read_timings(folder / "layers.csv")
    assert timings.frame.select("note", "B", "D", "F").rows() == [
        ("q_proj", 4, 4096, 4096),
        ("k_proj", 4, 4096, 1024),
        ("o_proj", 4, 2048, 4096),
        ("gate_proj", 4, 4096, 7168),
        ("down_proj", 4, 7168, 4096),
        ("lm_head", 4, 4096, 128_256),
    ]
    assert set(timings.frame["chip"]) == {"tpu-v6e"}
    assert set(timings.frame["compute"]) == {"bf16"}
    assert timings.frame["seconds"].to_list() == pytest.approx(
        [23.5e-6, 7.25e-6, 12.5e-6, 40.25e-6, 39.75e-6, 677e-6]
    )
    assert timings.left_out == {"are of layers that are no matmuls": 1}
    (tmp_path / "layers.csv").write_text(text)
    assert "does not say of which model" in refused(tmp_path / "layers.csv")


@pytest.mark.parametrize("row", WRONG["texts"], ids=lambda row: row["says"])
def test_a_text_that_is_no_table_of_timings_says_why(tmp_path, row):
    path = written(tmp_path, row)
    assert row["says"] in refused(path, H100 if "where" in row else None)


@pytest.mark.parametrize("row", WRONG["values"], ids=lambda row: f"{row['column']} {row['values']}")
def test_wrong_values_are_told_as_they_are(tmp_path, row):
    frame, path = tidy(**{row["column"]: row["values"]}), tmp_path / "t.parquet"
    frame.write_parquet(path)
    paths = [path]
    if row.get("csv"):
        paths.append(tmp_path / "t.csv")
        frame.write_csv(paths[-1])
    for each in paths:
        assert row["says"] in refused(each)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace(",", " , "),
    ],
)
def test_a_csv_of_a_spreadsheet_is_read(tmp_path, change):
    path = tmp_path / "t.csv"
    frame = tidy().drop("note")
    path.write_text(change(frame.write_csv()), encoding="utf-8", newline="")
    assert_frame_equal(read_timings(path).frame.drop(ROW), frame, check_column_order=False)


def test_other_types_of_parquet_are_read(tmp_path):
    path = tmp_path / "t.parquet"
    frame = tidy().cast({"B": pl.Int32, "D": pl.UInt64, "F": pl.Float64})
    frame.cast({"chip": pl.Categorical, "seconds": pl.String}).write_parquet(path)
    assert_frame_equal(read_timings(path).frame.drop(ROW), tidy(), check_column_order=False)


def test_timings_of_no_single_matmul_are_counted(tmp_path):
    path = tmp_path / "t.parquet"
    frame = pl.concat(
        [tidy(batch=[1, 2, 1], shards=[1, 1, 8]), tidy(B=[0, 4, 4], batch=[1] * 3, shards=[1] * 3)]
    )
    frame.write_parquet(path)
    timings = read_timings(path)
    assert timings.left_out == {"have B = 0": 1, "are batches": 1, "are of several chips": 1}
    assert timings.frame.height == 3
    assert timings.notes[0] == "1 row of the file left out: they have B = 0"


@pytest.mark.parametrize("row", WRONG["layouts"], ids=lambda row: row["says"])
def test_a_layout_with_another_type_or_without_rows_is_refused(tmp_path, row):
    frame = pl.read_csv(LAYOUTS / f"{row['layout']}.csv").sql(row["of"])
    path = tmp_path / ("t.csv" if "csv" in row else "t.parquet")
    (frame.write_csv if "csv" in row else frame.write_parquet)(path)
    assert row["says"] in refused(path, H100)


def test_a_collective_is_on_a_chip_at_least(tmp_path):
    row = {"chip": "h100-sxm", "collective": "all-reduce", "bytes": 2**20, "seconds": 1e-4}
    for shards in (0, None):
        pl.DataFrame([row | {"shards": n} for n in (8, shards)]).write_parquet(
            tmp_path / "t.parquet"
        )
        with pytest.raises(RooflinesError, match=r"shards has 1 value .* the first in row 2"):
            read_timings(tmp_path / "t.parquet")


def one_impossible(folder, *, rows=4):
    """Matmuls of which the third is a thousand times too fast."""
    made = [f"h100-sxm,trtllm,bf16,bf16,bf16,bf16,{2**i},4096,4096,1e-4" for i in range(rows)]
    made[2] = made[2].replace("1e-4", "1e-7")
    path = folder / "t.csv"
    head = "chip,software,dtype_x,dtype_w,dtype_out,compute,B,D,F,seconds"
    path.write_text("\n".join([head, *made]))
    return path


def test_times_that_no_cache_explains_are_counted_and_refuse_no_file(tmp_path):
    found = join_timings(read_timings(one_impossible(tmp_path)), shipped())
    assert found.frame["B"].to_list() == [1, 2, 8]
    (row,) = found.skipped.filter(lacks="row").to_dicts()
    assert (row["chip"], row["timings"]) == ("h100-sxm", 1)
    assert row["reason"] == "less than 3% of the bound, which no cache explains"


def test_a_fit_leaves_out_times_that_no_cache_explains(tmp_path):
    timings = read_timings(one_impossible(tmp_path, rows=14))
    frame, kept = with_nominal_times(timings, "h100-sxm", chip_entries()["h100-sxm"], "bf16")
    assert frame.height == 13
    assert "1 timing left out: less than 3% of the bound, which no cache explains" in kept.notes


def test_an_engine_is_the_software_and_columns_that_are_not_read_are_named(tmp_path, capsys):
    """A table without `batch`, and one with columns of its own."""
    head = "model,chip,engine,input_tokens,output_tokens,concurrency,ttft_s,tpot_s"
    run, path = "llama-3.1-8b,h100-sxm,vllm,1024,1024,1,0.1,0.02", tmp_path / "t.csv"
    parallel = "tp,attention_dp,moe_tp,moe_ep"
    for more, values in (("", ""), (f",{parallel}", ",1,1,1,1"), (",gpu_power", ",300")):
        path.write_text(f"{head}{more}\n{run}{values}\n")
        assert read_timings(path).frame["software"].to_list() == ["vllm"]
        printed = said(capsys, "measured", "join", str(path))
        assert ("columns not read: gpu_power" in printed) == ("power" in more)
        assert "vllm" in printed


def repeated(tmp_path, column, second=4):
    """All-reduces of 20 sizes, each timed twice; the column tells which is which."""
    rows = [
        {"bytes": 256 * size, "seconds": 1e-6 * size * times, column: value}
        for size in range(1, 21)
        for value, times in (("graph", 1), ("eager", second))
    ]
    path = tmp_path / "all-reduces.csv"
    system = {"chip": pl.lit("h100-sxm"), "collective": pl.lit("all-reduce"), "shards": pl.lit(8)}
    pl.DataFrame(rows).with_columns(**system).write_csv(path)
    return path


def test_equal_keys_that_differ_more_than_twofold_are_refused(tmp_path):
    path = repeated(tmp_path, "how")
    with pytest.raises(RooflinesError, match="differ up to 4-fold, in 100% of the keys") as raised:
        check_repeats(read_timings(path), path)
    assert "choose one value of the column how, which tells them apart, of eager, graph" in str(
        raised.value
    )
    with pytest.raises(RooflinesError, match="add a column that tells them apart"):
        check_repeats(read_timings(path))
    noisy = repeated(tmp_path, "how", 1.9)
    assert check_repeats(read_timings(noisy), noisy) == ""


@pytest.mark.parametrize(("differing", "told"), [(1, True), (1, False), (4, True), (4, False)])
def test_a_few_equal_keys_that_differ_are_refused_where_a_column_tells_them_apart(
    differing, told, tmp_path
):
    """Of 20 sizes one is within noise; four are a fifth, which is refused or said."""
    path = repeated(tmp_path, "how" if told else "distribution")
    near = pl.col("seconds") / pl.when(pl.int_range(pl.len()) < 2 * differing).then(1).otherwise(3)
    other = pl.int_range(pl.len()) % 2 == 1
    pl.read_csv(path).with_columns(
        seconds=pl.when(other).then(near).otherwise("seconds")
    ).write_csv(path)
    if differing > 1 and told:
        with pytest.raises(RooflinesError, match="in 20% of the keys") as raised:
            check_repeats(read_timings(path), path)
        assert "the column how, which tells them apart" in str(raised.value)
    else:
        note = check_repeats(read_timings(path), path)
        assert ("; no column besides distribution tells them apart" in note) == (differing > 1)


def test_a_fit_of_a_collective_is_of_graphs(tmp_path):
    path = repeated(tmp_path, "launch")
    of_chip = "h100-sxm", chip_entries()["h100-sxm"], "all-reduce"
    chosen, noted = with_nominal_times(read_timings(path), *of_chip)
    graphs = pl.read_csv(path).filter(launch="graph")
    assert chosen["seconds"].to_list() == graphs["seconds"].to_list()
    assert noted.notes[0] == "20 timings left out: launched eagerly, not in a graph"
    rows = join_timings(read_timings(path, {"software": "vllm"}), shipped()).frame
    assert rows.filter(launch="eager")["t_estimate_s"].null_count() == 20
    assert rows.filter(launch="graph")["t_estimate_s"].null_count() == 0


@pytest.mark.parametrize(
    ("chip", "note"),
    [
        ("h100-sxm", None),
        ("b200", "the file names NVIDIA H100, and the chip given is b200"),
        ("my-chip", None),
    ],
)
def test_another_device_in_a_file_than_the_chip_is_said(chip, note, tmp_path):
    path = tmp_path / "all_reduce_perf.txt"
    path.write_bytes((LAYOUTS / "nccl-tests.txt").read_bytes())
    notes = read_timings(path, {"chip": chip, "software": "nccl"}).notes
    assert [text for text in notes if text.startswith("the file names")] == ([note] if note else [])


def test_repeated_timings_are_merged_into_their_median():
    frame = pl.DataFrame({"B": [1, 2, 1, 1, 2], "seconds": [1.0, 4.0, 9.0, 2.0, 6.0]})
    found = medians(Timings("t", frame), ["B"])
    assert found.frame.rows() == [(1, 2.0), (2, 5.0)]
    assert found.notes == ("3 repeated timings: their median is taken",)
