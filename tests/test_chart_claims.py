"""Marks beside a chart's rows are recomputed from these rows."""

from itertools import pairwise
from typing import Any

import cases
import charted
import polars as pl
import pytest
from scenes import struck, texts

import rooflines
from rooflines import charts
from rooflines.basics.text import significant
from rooflines.charts.frames import few_sizes, with_missing
from rooflines.charts.kinds import attained
from rooflines.charts.kinds.front import TARGET
from rooflines.charts.kit.chart_text import chip_label

CHARTS = {chart.chart: chart for chart in charted.loaded().charts}
SWEEP = {"operation": "matmul", "grid": {"B": [1, 64], "D": 64, "F": 64}, "dtypes": ["bf16"]}


def pictures(kind, **choice):
    views = charted.views(CHARTS[kind])
    found = [view for case, view in views if choice.items() <= case.items()]
    assert found
    return found


def test_a_ridge_is_that_of_the_main_memory_wherever_it_is_listed():
    levels = {"sram": {"bytes_per_s": 1e14}, "hbm": {"bytes_per_s": 1e12}}
    peak = {"matrix": {"bf16": {"flops_per_s": 3e14}}}
    main_first = dict(reversed(levels.items()))
    own = {
        f"own-{number}": {"units": peak, "memory": memory, "source": "made up"}
        for number, memory in enumerate((levels, main_first))
    }
    config = rooflines.load_config({"sweeps": {"s": {**SWEEP, "chips": [*own]}}, "chips": own})
    rows = charts.view("chips", charts.of_config(config), "s", by="ridge").rows
    assert rows["ridge"].to_list() == [300, 300]


@pytest.mark.parametrize("levels", [["sram", "hbm"], ["hbm", "sram"]])
def test_a_chart_is_of_the_first_level_of_its_sweep(levels):
    own = {"source": "made up", "units": {"matrix": {"bf16": {"flops_per_s": 3e14}}}}
    own["memory"] = {"sram": {"bytes_per_s": 1e14}, "hbm": {"bytes_per_s": 1e12}}
    sweep = {**SWEEP, "chips": ["own"], "memory": levels}
    results = charts.of_config(
        rooflines.load_config({"sweeps": {"s": sweep}, "chips": {"own": own}})
    )
    rows = results.select("s", ["own"], ["bf16"]).rows().collect()
    assert rows["memory"].unique().to_list() == levels[:1]


@pytest.mark.parametrize("layouts", [["2x8", "4x4", 16], ["4x4", 16, "2x8"], [16, "2x8", "4x4"]])
def test_a_chart_is_of_the_first_layout_of_as_many_chips(layouts):
    split = {"sharding": "contracting/all-reduce", "shards": [1, 4, *layouts]}
    sweep = {**SWEEP, **split, "chips": ["tpu-v5e"]}
    results = charts.of_config(rooflines.load_config({"sweeps": {"s": sweep}}))
    rows = results.select("s", ["tpu-v5e"], ["bf16"]).rows().collect()
    first = str(layouts[0])
    along = f"ici {first}" if "x" in first else "ici"
    assert set(rows.select("shards", "network").rows()) == {(1, "ici"), (4, "ici"), (16, along)}


@pytest.mark.parametrize(
    "sizes", [range(1, 40), [2**n for n in range(12)], [1, 3, 64, 96, 128, 200]]
)
@pytest.mark.parametrize("count", [1, 2, 3, 5, 12, 50])
def test_few_sizes_are_as_far_apart_and_end_with_the_largest(sizes, count):
    powers = [size for size in sizes if size.bit_count() == 1]
    offered = powers if len(powers) > 1 else [*sizes]
    chosen = few_sizes([*sizes], count)
    places = [offered.index(size) for size in chosen]
    assert chosen[-1] == offered[-1]
    assert len({right - left for left, right in pairwise(places)}) <= 1
    assert count / 2 <= len(chosen) <= count or chosen == offered
    assert len(chosen) <= count


def test_chips_are_compared_by_what_two_of_them_have():
    own = {"base": "h100-sxm", "source": "made up"}
    other: dict[str, object] = {**own, "prices": [], "power": None}
    chips = {"one": {**own, "power.watts": 500}, "other": other, "third": other}
    config = rooflines.load_config({"sweeps": {"s": {**SWEEP, "chips": [*chips]}}, "chips": chips})
    menus = charts.menus("chips", charts.of_config(config), "s")
    assert menus[0].options == ("ridge",)


@pytest.mark.parametrize(("by", "unit"), [("ridge", ""), ("watt", "/W"), ("dollar", "/$")])
def test_every_chip_that_is_compared_is_drawn_with_its_unit(by, unit):
    config = rooflines.load_config({"sweeps": {"s": {**SWEEP, "chips": "all"}}})
    view = charts.view("chips", charts.of_config(config), "s", by=by)
    every = pl.concat([view.data["bars"], view.data["others"]])
    assert sorted(every["chip"]) == sorted(view.rows["chip"])
    assert f" all {every.height} chips" in view.title
    values = sorted(every["value"], reverse=True)
    near = sum(value * 1.2 >= values[0] for value in values)
    ahead = f"{near} of all {every.height} chips" if near > 1 else "has most bf16 peak"
    assert by == "ridge" or ahead in view.title
    assert all(text.endswith(unit) for text in every["text"])
    shown = {text.text for text in texts(view.spec(), "slide")}
    others = view.data["others"].height
    assert {*view.data["bars"]["text"], *([f"{others} other chips"] if others else [])} <= shown


def test_the_longest_bar_is_the_first_from_above():
    (view,) = pictures("chips", by="ridge", dtypes="bf16")
    names = [chip_label(chip) for chip in view.rows["chip"]]
    assert view.rows["ridge"].is_sorted(descending=True)
    shown = {text.text: text.corners[0].imag for text in texts(view.spec(), "slide")}
    heights = [shown[name] for name in names if name in shown]
    assert len(heights) > 1
    assert heights == sorted(heights)


def hiding():
    """A front of eight chips; one alone would hide it, but has no room for all experts."""
    changed = {"memory.hbm.capacity_bytes": 4e10, "networks.nvlink.hop_latency_s": 3e-5}
    own = {"small": {"base": "h100-sxm", "source": "made up", **changed}}
    sweep = {
        "models": ["gpt-oss-120b"],
        "grid": {"B": [1, 4, 8, 16], "S": 1024},
        "splits": [{"tp": 1}, {"tp": 8}],
        "dtypes": ["bf16"],
        "chips": ["small"],
    }
    config = rooflines.load_config({"model-sweeps": {"m": sweep}, "chips": own})
    return charts.view("front", charts.of_config(config), "m")


def test_a_point_is_on_the_front_unless_one_that_fits_is_better_in_both():
    for view in (hiding(), *pictures("front", basis="nominal")):
        points = pl.concat(
            [
                view.data["points"].select("chip", "user", "rate", fits=pl.col("state") == 1),
                view.data["fronts"].select("chip", "user", "rate", fits=pl.lit(value=True)),
            ]
        ).filter("fits")
        assert points.height == view.rows["fits"].sum()
        better = points.join(points, on="chip").filter(
            pl.col("user_right") >= pl.col("user"),
            pl.col("rate_right") >= pl.col("rate"),
            (pl.col("user_right") > pl.col("user")) | (pl.col("rate_right") > pl.col("rate")),
        )
        front = points.join(better, on=["chip", "user", "rate"], how="anti").unique()
        drawn = view.data["fronts"].select("chip", "user", "rate", fits=pl.lit(value=True))
        assert set(drawn.rows()) == set(front.rows())


def test_measured_points_stand_beside_a_front():
    """Tokens of 20 ms at B sequences on tp chips are 50 tokens/s/user, and 50 B / tp a chip."""
    sweep = {
        "models": ["llama-3.1-8b"],
        "grid": {"B": [16, 64], "S": 1024},
        "splits": [{"tp": 2}],
        "dtypes": ["bf16"],
        "chips": ["h100-sxm"],
    }
    config = rooflines.load_config({"model-sweeps": {"m": {**sweep, "measured": ["20ms", "25ms"]}}})
    view = charts.view("front", charts.of_config(config), "m")
    points = view.data["measured"].select("B", "user", "rate").rows()
    assert [*map(pytest.approx, [(16, 50.0, 400.0), (64, 40.0, 1280.0)])] == points
    assert "crosses: measured" in view.subtitle
    plain = rooflines.load_config({"model-sweeps": {"m": sweep}})
    view = charts.view("front", charts.of_config(plain), "m")
    assert view.data["measured"].height == 0
    assert "crosses" not in view.subtitle


@pytest.mark.parametrize("servers", [None, {"prefill": 2, "decode": 1}])
def test_a_front_of_two_pools_has_the_rates_of_its_servers(servers):
    sweep = {
        "models": ["llama-3.1-8b"],
        "grid": {"B": [16, 64]},
        "requests": [{"input": 512, "output": 64}],
        "dtypes": ["bf16"],
        "chips": ["h100-sxm"],
        "pools": {"prefill": {"chip": "h100-sxm"}, "servers": servers},
    }
    config = rooflines.load_config({"model-sweeps": {"m": sweep}})
    rows = rooflines.rows(config, "m").collect()
    columns = {"nominal": "tokens_per_s_per_chip_pools"}
    if servers:
        columns = {
            "nominal": "output_tokens_per_s_per_chip_serial",
            "calibrated": "output_tokens_per_s_per_chip_estimate",
        }
    for basis, column in columns.items():
        choice = {"basis": basis} if servers else {}
        view = charts.view("front", charts.of_config(config), "m", **choice)
        drawn = pl.concat([view.data[name].select("B", "rate") for name in ("points", "fronts")])
        assert dict(drawn.rows()) == pytest.approx(dict(rows.select("B", column).rows()))


def test_a_front_of_mixed_requests_has_prompts_between_tokens():
    sweep = {
        "models": ["llama-3.1-8b"],
        "grid": {"B": [16, 64]},
        "requests": [{"input": 512, "output": 64, "mixed": True}],
        "dtypes": ["bf16"],
        "chips": ["h100-sxm"],
    }
    config = rooflines.load_config({"model-sweeps": {"m": sweep}})
    rows = rooflines.rows(config, "m").collect()
    view = charts.view("front", charts.of_config(config), "m", basis="nominal")
    drawn = pl.concat([view.data[name].select("B", "user") for name in ("points", "fronts")])
    times = rows.select("B", 1 / pl.col("tpot_mixed_serial_s")).rows()
    assert dict(drawn.rows()) == pytest.approx(dict(times))
    assert "kernels one after another, prompts between tokens" in view.subtitle


def test_a_front_under_another_is_widened():
    own = {"twin-1": {"base": "h100-sxm", "name": "Twin", "source": "made up"}}
    sweep = {**charted.SERVED, "models": ["llama-3.1-8b"], "chips": ["h100-sxm", "twin-1"]}
    sweep = {**sweep, "dtypes": ["bf16"], "calibration": None}
    config = rooflines.load_config({"model-sweeps": {"m": sweep}, "chips": own})
    fronts = charts.view("front", charts.of_config(config), "m").data["fronts"]
    assert dict(fronts.select("chip", "overlap_count").unique().rows()) == {
        "h100-sxm": 1,
        "twin-1": 0,
    }


def test_names_of_fronts_say_what_a_chip_gives_at_the_target():
    for view in pictures("front", basis="nominal"):
        quick = view.data["fronts"].filter(pl.col("user") >= 50).group_by("chip")
        best = dict(quick.agg(pl.col("rate").max()).rows())
        names = view.data["names"]
        assert {chip for chip, text in names.select("chip", "text").rows() if "/s" in text} == {
            *best
        }
        assert best.items() <= dict(names.select("chip", "rate").rows()).items()


def slow_beside_quick():
    """Fronts below, across and above the target, as on the first page of the default config."""
    chips = ["h100-sxm", "h200-sxm", "b200", "mi355x", "tpu-v6e", "tpu-7x"]
    batches = [1, 2, 4, 8, 16, 32, 64, 128, 256]
    sweep = {
        "models": ["llama-3.1-70b"],
        "grid": {"B": batches, "S": 8192},
        "splits": [{"tp": 1}, {"tp": 8}],
        "dtypes": ["bf16"],
        "chips": chips,
    }
    config = rooflines.load_config({"model-sweeps": {"m": sweep}})
    return charts.view("front", charts.of_config(config), "m")


def test_no_line_of_a_front_passes_through_a_text():
    for view in (slow_beside_quick(), *pictures("front", basis="nominal")):
        for size in ("slide", "paper"):
            assert struck(view.spec(), size) == []
    assert "50 tokens/s/user" in {text.text for text in texts(slow_beside_quick().spec(), "web")}


def test_a_band_is_fastest_at_the_short_times():
    choice = {"chip": "h100-sxm", "dtypes": "bf16", "basis": "calibrated"}
    view = charts.view("roofline", charted.results(), "free", **choice)
    band = view.data["point"].drop_nulls(["fast", "slow"])
    assert band.height > 0
    assert (band["fast"] > band["slow"]).all()


def test_a_hollow_point_is_where_a_curve_attains_its_share_of_the_peak():
    found = 0
    for view in pictures("attained"):
        curves, peak = view.data["curves"], view.data["peak"]["flops_per_s"].item()
        for series, size, rate in view.data["near"].select("series", "size", "flops_per_s").rows():
            assert rate == pytest.approx(0.9 * peak)
            below, above = (
                curves.filter(side, series=series)["flops_per_s"]
                for side in (pl.col("size") <= size, pl.col("size") >= size)
            )
            assert below.max() <= 1.01 * rate
            assert above.max() >= 0.99 * rate
            found += 1
    assert found > 0


def test_roofs_of_all_chips_begin_at_the_left_edge():
    own = {f"own-{rate}": cases.made_up(1e15, rate * 1e11) for rate in (1, 100)}
    config = rooflines.load_config({"sweeps": {"s": {**SWEEP, "chips": [*own]}}, "chips": own})
    view = charts.view("roofline", charts.of_config(config), "s", chip="all")
    plane = view.params["plane"]
    starts = view.data["roofs"].group_by("chip").first().select("x", "y", "bytes_per_s")
    assert starts.height == 2
    for x, y, rate in starts.rows():
        assert x == plane["x"][0]
        assert y == pytest.approx(x * rate)
        assert y > plane["y"][0]


def test_the_title_of_a_curve_has_the_size_for_the_whole_peak():
    """1 / B + 2 / 8192 = 1 / 1000 from 1,323 on; half of the peak is reached from 570 on."""
    sizes = {"from": 1, "to": 65536, "factor": 2}
    sweep: dict[str, Any] = {**SWEEP, "grid": {"B": sizes, "D": 8192, "F": 8192}, "chips": ["own"]}
    sweep |= {"thresholds": ["B"], "shares": [1, 0.5]}
    own = {"own": cases.made_up(1e15, 1e12)}
    config = rooflines.load_config({"sweeps": {"s": sweep}, "chips": own})
    view = charts.view("attained", charts.of_config(config), "s")
    assert view.title == "bf16 on own is compute-bound from B = 1,323 at D = F = 8,192"


def test_a_curve_between_two_points_has_the_times_of_a_line():
    def rate(size):
        return 6.0 * size / (5 + 2 * size)  # FLOPs over a time that is affine in the size

    ends = [(1.0, rate(1)), (16.0, rate(16))]
    drawn = attained.smooth(ends, steps=4)
    assert [size for size, _ in drawn] == pytest.approx([1, 2, 4, 8, 16])
    assert [value for _, value in drawn] == pytest.approx([rate(size) for size, _ in drawn])


def test_shares_of_layers_add_to_all():
    for view in pictures("time", by="kernel"):
        parts = view.data["parts"].group_by("row").agg(pl.col("share").sum(), pl.col("right").max())
        assert parts["share"].to_list() == pytest.approx([1] * parts.height)
        assert parts["right"].to_list() == pytest.approx([1] * parts.height)


def test_a_timing_attains_its_flops_over_its_measured_time():
    for view in pictures("measured", by="roof"):
        dots = view.data["dots"]
        flops = 2.0 * dots["B"] * dots["D"] * dots["F"]
        assert dots["flops_per_s"].to_list() == pytest.approx((flops / dots["seconds"]).to_list())


def test_the_title_of_timings_has_a_tenth_of_them_on_either_side(tmp_path):
    """Of eleven times of a matmul bound by memory, 1 to 50 times the bound: the 2nd, the 10th."""
    size = 64
    bound = 3 * 2 * size**2 / 1e12
    stored = dict.fromkeys(("dtype_x", "dtype_w", "dtype_out", "compute"), "bf16")
    sizes = dict.fromkeys("BDF", size)
    rows = [{"chip": "own", **stored, **sizes, "seconds": n * bound} for n in (*range(1, 11), 50)]
    pl.DataFrame(rows).write_csv(tmp_path / "timed.csv")
    chip = cases.made_up(1e18, 1e12)
    measured = {"timed": {"file": str(tmp_path / "timed.csv")}}
    config = rooflines.load_config({"measurements": measured, "chips": {"own": chip}})
    view = charts.view("measured", charts.of_config(config), "timed", by="ratio")
    assert ": 2 to 10 × the bound, p10 to p90" in view.title
    assert view.data["medians"]["ratio_lower"].to_list() == pytest.approx([6])


def test_a_percentage_of_the_peak_is_cut_so_that_only_the_whole_peak_is_100():
    cells = pl.concat([view.data["cells"] for view in pictures("who-binds")], how="diagonal")
    for text, share in cells.select("text", "utilization").rows():
        percent = 100 * share + 1e-7
        assert text == "<1" if percent < 1 else int(text) <= percent < int(text) + 1


@pytest.mark.parametrize(
    ("rows", "title"),
    [
        ([200, 500, 1000], "own needs B = 250 at D = 200, 125 at D = 1,000"),
        ([1000, 200, 500], "own needs B = 250 at D = 200, 125 at D = 1,000"),
        ([64, 200, 500, 1000], "own at D = 64: memory limits to 53 % of peak at any B shown"),
        ([64, 50, 10], "own at D = 10, 50 or 64: memory limits to 53 % of peak at any B shown"),
    ],
)
def test_a_title_has_the_critical_sizes_at_both_ends_or_what_limits(rows, title):
    """Compute-bound where 1 / B + 1 / D + 1 / F = 1 / 100: with F = 1,000, D = 200 from 250 on.

    At D = 64 and B = 512 a quotient of 1 / (1 / 512 + 1 / 64 + 1 / 1,000) / 100 = 53.8 % is left.
    """
    own = {"units": {"matrix": {"bf16": {"flops_per_s": 1e14}}}, "source": "made up"}
    own["memory"] = {"hbm": {"bytes_per_s": 1e12}}
    sweep = {**SWEEP, "grid": {"B": [4, 64, 512], "D": rows, "F": 1000}, "chips": ["own"]}
    config = rooflines.load_config({"sweeps": {"s": sweep}, "chips": {"own": own}})
    view = charts.view("who-binds", charts.of_config(config), "s", by="D")
    assert view.title == title


def test_columns_that_a_table_lacks_are_nulls_of_their_type_beside_those_it_has():
    rows = pl.LazyFrame({"bound": ["memory"], "t_lower_s": [2.0]})
    names = ("t_lower_s", "t_estimate_s", "estimate_bound", "bound")
    assert with_missing(rows, *names).collect().to_dict(as_series=False) == {
        "bound": ["memory"],
        "t_lower_s": [2.0],
        "estimate_bound": [None],
        "t_estimate_s": [None],
    }
    types = with_missing(rows, *names).collect_schema()
    assert (types["estimate_bound"], types["t_estimate_s"]) == (pl.String, pl.Float64)


def test_a_title_has_the_factor_between_the_first_two_of_three_chips():
    """Own chips with 1, 2 and 8 times the bandwidth and the peak of another."""
    h100 = {"base": "h100-sxm", "source": "made up"}
    own = {
        f"times-{n}": {
            **h100,
            "memory.hbm.bytes_per_s": n * 3e12,
            "units.matrix.bf16.flops_per_s": n * 9e14,
        }
        for n in (1, 2, 8)
    }
    sweep: dict[str, Any] = {"models": ["llama-3.1-8b"]}
    sweep["grid"] = {"B": {"from": 1, "to": 512, "factor": 2}, "S": 4096}
    sweep |= {"splits": [{"tp": 1}], "dtypes": ["bf16"], "chips": [*own]}
    config = rooflines.load_config({"model-sweeps": {"m": sweep}, "chips": own})
    view = charts.view("front", charts.of_config(config), "m")
    first, second, third = sorted(view.data["names"]["rate"], reverse=True)
    assert first / second != pytest.approx(first / third, rel=0.5)
    ahead = f"By bounds times-8 gives {significant(first / second)}× the next chip"
    assert view.title == f"{ahead} at {TARGET} tokens/s/user"


@pytest.mark.parametrize(("by", "dtypes"), [("chip", ("bf16", "fp8")), ("D", ("bf16",))])
def test_bottlenecks_by_chip_have_the_dtypes_of_any_of_them(by, dtypes):
    """An A100 computes no fp8; it is the first chip."""
    sizes = {"B": [1, 64, 4096], "D": [64, 128, 256], "F": 64}
    sweep = {**SWEEP, "grid": sizes, "dtypes": ["bf16", "fp8"]}
    sweep["chips"] = ["a100-sxm-80gb", "h100-sxm"]
    config = rooflines.load_config({"sweeps": {"s": sweep}})
    menus = charts.menus("who-binds", charts.of_config(config), "s", by=by)
    assert {menu.name: tuple(menu.options) for menu in menus}["dtypes"] == dtypes


SERVED = {
    "models": "llama-3.1-8b",
    "grid": {"B": [1, 8, 64]},
    "requests": [{"input": 1024, "output": 256}, {"input": 512, "output": 256}],
    "dtypes": "bf16",
    "chips": "h100-sxm",
    "splits": [{"tp": 1}, {"tp": 2}],
    "calibration": "auto",
}


def test_a_front_of_requests_has_their_rows():
    """With prompts between tokens by the estimate; two pools count the chips of prefill."""
    pools = {"prefill": {"chip": "h100-sxm", "split": {"tp": 2}}}
    sweeps = {"mixed": SERVED, "apart": {**SERVED, "pools": pools}}
    config = rooflines.load_config({"model-sweeps": sweeps})
    results = charts.of_config(config)
    menus = {menu.name: menu.options for menu in charts.menus("front", results, "mixed")}
    assert menus["request"] == ("1,024 in, 256 out", "512 in, 256 out")
    assert menus["basis"] == ("calibrated", "nominal")
    for basis, time, text in (
        ("calibrated", "t_estimate_s", "estimates, prompts between tokens"),
        ("nominal", "t_serial_s", "kernels one after another, decode alone"),
    ):
        view = charts.view("front", results, "mixed", request="512 in, 256 out", basis=basis)
        rows = rooflines.rows(config, "mixed").filter(input=512).collect()
        expected = {
            (row["split"], row["B"]): (1 / row[time], row["B"] / row[time] / row["chips"])
            for row in rows.to_dicts()
        }
        drawn = view.data["fronts"].select("split", "B", "user", "rate").rows()
        assert len(drawn) > 2
        for split, batch, user, rate in drawn:
            assert expected[split, batch] == pytest.approx((user, rate))
        assert f"512 in, 256 out; {text}" in view.subtitle
    view = charts.view("front", results, "apart")
    assert "basis" not in {menu.name for menu in charts.menus("front", results, "apart")}
    assert "chips of prefill servers counted" in view.subtitle
    rates = rooflines.rows(config, "apart").filter(input=1024).collect()
    assert set(view.data["fronts"]["rate"]) <= {*rates["tokens_per_s_per_chip_pools"]}


def test_auto_draws_fronts_of_requests_where_no_sweep_has_contexts():
    config = rooflines.load_config({"model-sweeps": {"served": SERVED}})
    assert "front" in {chart.chart for chart in config.charts}
