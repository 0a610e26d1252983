"""Pictures of a trace: their marks add up to the account."""

import polars as pl
import pytest
from click.testing import CliRunner
from traced import kernel, launch, matmul, step, write_trace

from rooflines.charts.kit.render import svg
from rooflines.charts.trace_pictures import PARTS, groups_view, parts_view, timeline_view
from rooflines.cli.trace import command
from rooflines.traces.laid_traces import lay_trace

EVENTS = [
    step("ProfilerStep#1", 0, 400),
    *matmul(1, 10, 30, 40),
    *matmul(2, 20, 70, 25, ((64, 4096), (4096, 1024))),
    *matmul(3, 150, 180, 33),
    launch(4, 215, 10),
    kernel("ncclDevKernel_AllReduce", 4, 230, 20, stream=9),
    launch(5, 240),
    kernel("unnamed", 5, 245, 30),
]


@pytest.fixture(scope="module")
def laid(tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "small.json"
    write_trace(path, EVENTS)
    return lay_trace(str(path))


def test_bars_of_parts_follow_each_other_and_add_up_to_the_span(laid):
    rows = parts_view(laid).rows
    assert rows["ns"].sum() == laid.total.total_ns
    assert rows["start_ns"].to_list() == [0, *rows["ns"].cum_sum()[:-1]]
    assert {row["part"]: row["ns"] for row in rows.to_dicts()} == {
        part: getattr(laid.total, part) for part in PARTS if getattr(laid.total, part)
    }


def test_bars_of_groups_have_their_time_and_their_bound(laid):
    view = groups_view(laid)
    bars = view.data["bars"].with_columns(length=pl.col("end") - pl.col("start"))
    lengths = bars.group_by("row").agg(pl.col("length").sum()).sort("row")["length"]
    assert lengths.to_list() == pytest.approx(view.rows["seconds"].to_list(), rel=1e-12)
    bound = bars.filter(part="at_bound_ns")["length"].sum()
    assert bound == pytest.approx(laid.lower_s, rel=1e-12)


def test_moments_of_a_step_are_whole_and_add_up_to_the_account(laid):
    rows = timeline_view(laid).rows.with_columns(
        share=pl.col("high") - pl.col("low"), length=pl.col("end") - pl.col("start")
    )
    moments = rows.group_by("start").agg(pl.col("share").sum())["share"].to_list()
    assert moments == pytest.approx([1.0] * len(moments), abs=1e-9)
    seconds = dict(
        rows.group_by("part").agg((pl.col("share") * pl.col("length")).sum()).iter_rows()
    )
    for part in PARTS:
        assert seconds.get(part, 0.0) == pytest.approx(getattr(laid.total, part) / 1e9, abs=2e-9)


def test_texts_of_pictures_are_drawn_with_their_names(laid):
    for view in (parts_view, groups_view, timeline_view):
        drawn = svg(view(laid).spec(), dark=True)
        assert "small.json" in drawn
        assert "above the bound" in drawn


def test_option_draws_three_pictures(tmp_path):
    path = tmp_path / "small.json"
    write_trace(path, EVENTS)
    result = CliRunner().invoke(command, [str(path), "--pictures", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    names = sorted(file.name for file in (tmp_path / "out").iterdir())
    assert names == ["small-groups.png", "small-parts.png", "small-timeline.png"]


def test_a_trace_whose_kernels_were_all_launched_before_it_has_pictures(tmp_path):
    path = tmp_path / "before.json"
    events = [kernel("nvjet_gemm", None, 5, 10), kernel("nvjet_gemm", 9, 20, 10), launch(7, 90)]
    write_trace(path, events)
    laid = lay_trace(str(path))
    assert groups_view(laid).title == "No kernel was launched in the trace"
    for view in (parts_view, groups_view, timeline_view):
        assert svg(view(laid).spec())


def test_collectives_are_communication_in_groups_as_in_parts(laid):
    rows = groups_view(laid).rows.with_row_index("row")
    bars = groups_view(laid).data["bars"]
    sent = rows.filter(pl.col("kind").is_in(["collective", "communication"]))["row"].to_list()
    assert sent
    assert {*bars.filter(pl.col("row").is_in(sent))["part"]} == {"communication_ns"}


def test_a_trace_without_a_duration_is_refused_in_one_line(tmp_path):
    path = tmp_path / "instant.json"
    write_trace(path, [kernel("nvjet_gemm", None, 5, 0)])
    words = [str(path), "--pictures", str(tmp_path)]
    result = CliRunner().invoke(command, words, standalone_mode=False)
    assert result.return_value == 1
    assert result.stderr.startswith("--pictures has nothing to draw: all that instant.json has")
