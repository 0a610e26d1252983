"""Two runs compared: numbers that changed, rows that only one has, and inputs that differ."""

import copy
import json
from typing import Any

import polars as pl
import pytest
from command_line import refused, said, table
from outputs_made import make_outputs
from scenes import misfits, texts

import rooflines
from rooflines.charts.change_pictures import MAX_BARS, changes_view
from rooflines.charts.kit.render import limited
from rooflines.results.change_texts import factor_text, group_row, largest_change_text, table_lines
from rooflines.results.run_changes import InputChange, compare_runs
from rooflines.results.table_changes import OCCURRENCE, ROW_KIND, THRESHOLD_KIND, changes_between

CONFIG: dict[str, Any] = {
    "chips": {"mine": {"base": "h100-sxm", "memory.hbm.bytes_per_s": 4e12, "source": "mine"}},
    "sweeps": {
        "layers": {
            "operation": "matmul",
            "shapes": [{"name": "up", "D": 4096, "F": 14336}, {"name": "down", "D": 64, "F": 256}],
            "grid": {"B": [1, 64, 256]},
            "dtypes": ["bf16"],
            "chips": ["h100-sxm", "mine"],
        }
    },
    "model-sweeps": {
        "serving": {
            "models": ["llama-3.1-8b"],
            "chips": ["h100-sxm", "mine"],
            "dtypes": ["fp8"],
            "splits": [{"tp": 1}, {"tp": 2}],
            "grid": {"B": [1, 64], "S": 2048},
        }
    },
}
FILES = ("thresholds.parquet", "model-thresholds.parquet")


def changed(**values):
    """The config with other values in its chip and its sweeps, and further keys."""
    config = copy.deepcopy(CONFIG)
    config["chips"]["mine"].update(values.pop("chip", {}))
    config["sweeps"]["layers"].update(values.pop("layers", {}))
    config["model-sweeps"]["serving"].update(values.pop("serving", {}))
    return {**config, **values}


RUNS = {
    "before": CONFIG,
    "faster": changed(chip={"memory.hbm.bytes_per_s": 5e12}),
    "larger": changed(layers={"grid": {"B": [1, 64, 512]}}),
    "bf16": changed(serving={"dtypes": ["bf16"]}),
    "dear": changed(prices={"mine": 20.0}),
    "alone": changed(sweeps={"other": CONFIG["sweeps"]["layers"]}),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Folders of results by name, made when first asked for."""
    home = tmp_path_factory.mktemp("runs")
    made = {}

    def run(name):
        if name not in made:
            made[name] = home / name
            make_outputs(RUNS[name], made[name], *FILES)
        return made[name]

    return run


def groups_of(changes, quantity):
    return [group for group in changes.groups if group.quantity == quantity]


def test_a_run_compared_with_itself_has_no_change(runs):
    changes = compare_runs(runs("before"), runs("before"))
    assert changes.groups == []
    assert list(changes.inputs) == []
    assert changes.frame().is_empty()
    assert [(t.shared, t.unchanged, t.removed, t.added) for t in changes.tables] == [
        (12, 12, 0, 0),
        (4, 4, 0, 0),
        (8, 8, 0, 0),
        (4, 4, 0, 0),
    ]
    assert changes_view(changes) is None


def test_every_changed_number_is_that_of_both_tables(runs):
    changes = compare_runs(runs("before"), runs("faster"))
    assert list(changes.inputs) == [
        InputChange("chips.mine.memory.hbm.bytes_per_s", "4000000000000.0", "5000000000000.0")
    ]
    frame = changes.frame()
    assert frame["chip"].unique().to_list() == ["mine"]
    compared = 0
    for sweep, sizes in (("layers", ["shape", "B"]), ("serving", ["split", "B", "S"])):
        sides = [
            rooflines.scan(runs(name), sweep).filter(pl.col("chip") == "mine").collect().to_dicts()
            for name in ("before", "faster")
        ]
        for before, after in zip(*sides, strict=True):
            for quantity in ("t_lower_s", "t_serial_s", "usd_per_mtok", "usd_per_mtok_serial"):
                if quantity in before and before[quantity] != after[quantity]:
                    row = frame.filter(
                        pl.col("sweep") == sweep,
                        pl.col("quantity") == quantity,
                        *(pl.col(name) == before[name] for name in sizes),
                    )
                    numbers = before[quantity], after[quantity], after[quantity] / before[quantity]
                    assert row.select("before", "after", "ratio").rows() == [numbers]
                    compared += 1
    assert compared == frame.filter(table="rows").height


def test_groups_count_changed_rows_and_name_the_largest(runs):
    changes = compare_runs(runs("before"), runs("faster"))
    (layers, *serving) = groups_of(changes, "t_lower_s")
    assert dict(layers.keys) == {"chip": "mine"}
    assert (layers.rows, layers.changed) == (6, 6)
    assert layers.least == pytest.approx(0.8)
    assert [dict(group.keys) for group in serving] == [
        {"chip": "mine", "split": "tp1"},
        {"chip": "mine", "split": "tp2"},
    ]
    factors = [group.factor for group in changes.groups]
    assert factors == pytest.approx(sorted(factors, reverse=True))
    (critical,) = groups_of(changes, "critical")
    sides = [
        pl.read_parquet(runs(name) / FILES[0]).filter(chip="mine", shape="up")["critical"].item()
        for name in ("before", "faster")
    ]
    assert (critical.before, critical.after) == tuple(sides)
    # never before, never after: no number in either
    assert (critical.rows, critical.changed) == (1, 1)


def test_an_estimate_leads_where_there_is_one(runs):
    changes = compare_runs(runs("before"), runs("faster"))
    listed = {
        (group.sweep, group.quantity, group.keys["chip"])
        for table_ in changes.tables
        for group in table_.groups
        if group.quantity.startswith("t_")
    }
    assert listed == {
        ("layers", "t_estimate_s", "h100-sxm"),
        ("layers", "t_lower_s", "h100-sxm"),
        ("layers", "t_lower_s", "mine"),
        ("serving", "t_estimate_s", "h100-sxm"),
        ("serving", "t_lower_s", "h100-sxm"),
        ("serving", "t_serial_s", "mine"),
        ("serving", "t_lower_s", "mine"),
    }


def test_rows_of_other_sizes_are_named(runs):
    changes = compare_runs(runs("before"), runs("larger"))
    rows = changes.tables[0]
    assert (rows.shared, rows.removed, rows.added) == (8, 4, 4)
    assert dict(rows.unshared) == {"B": ([256], [512])}
    first, *_ = table_lines(changes)
    names = changes.names
    assert first == (
        f"layers: 8 rows in both, 8 unchanged; 4 only in {names[0]} (B 256); "
        f"4 only in {names[1]} (B 512)"
    )


def test_a_key_with_one_value_on_both_sides_is_compared_across(runs):
    changes = compare_runs(runs("before"), runs("bf16"))
    serving = next(t for t in changes.tables if t.sweep == "serving")
    assert dict(serving.paired) == {"dtypes": ("fp8", "bf16")}
    assert (serving.shared, serving.removed) == (8, 0)
    assert all(group.most > 1 for group in groups_of(changes, "t_lower_s"))
    assert any("compared across dtypes fp8 -> bf16" in line for line in table_lines(changes))


def test_a_price_changes_costs_alone(runs):
    changes = compare_runs(runs("before"), runs("dear"))
    assert {group.quantity for group in changes.groups} == {"usd_per_mtok_serial"}
    (price,) = changes.inputs
    assert (price.path, price.after) == ("prices.mine", "20.0")
    ratios = changes.frame()["ratio"]
    assert ratios.min() == pytest.approx(20 / float(price.before))
    assert ratios.max() == pytest.approx(ratios.min())


def test_sweeps_of_one_run_are_named(runs):
    changes = compare_runs(runs("before"), runs("alone"))
    assert (list(changes.removed), list(changes.added)) == (["layers"], ["other"])
    assert f"only in {changes.names[0]}: layers" in list(table_lines(changes))


FRAME = pl.DataFrame({"chip": ["a", "a", "b"], "B": [1, 2, 1], "t_lower_s": [1.0, 2.0, 4.0]})


def compared(before, after, kind=ROW_KIND):
    return changes_between("s", kind, before.lazy(), after.lazy())


def test_rows_without_a_partner_change_nothing():
    changes = compared(FRAME, FRAME.filter(pl.col("chip") == "a").with_columns(S=pl.lit(4)))
    assert dict(changes.paired) == {"S": (None, 4)}
    assert (changes.shared, changes.removed, changes.added) == (2, 1, 0)
    assert changes.frame.is_empty()


def test_rows_with_equal_keys_are_compared_in_order():
    twice = pl.concat([FRAME, FRAME])
    changes = compared(twice, twice.with_columns(pl.col("t_lower_s") * 2))
    assert changes.shared == twice.height
    assert changes.frame["ratio"].to_list() == [2.0] * twice.height
    assert OCCURRENCE not in changes.frame.columns


@pytest.mark.parametrize("rows", [FRAME.clear(), FRAME.head(1)])
def test_tables_without_varying_keys_are_compared(rows):
    changes = compared(rows, rows.with_columns(pl.col("t_lower_s") / 2))
    assert [group.changed for group in changes.groups] == [1] * rows.height
    assert all(group_row(group)["rows of"] == "all" for group in changes.groups)


def test_a_threshold_that_appears_leads_without_a_ratio():
    solved = pl.DataFrame(
        {
            "chip": ["a", "b"],
            "axis": ["B", "B"],
            "outcome": ["never", "found"],
            "critical": [None, 100],
        }
    )
    after = solved.with_columns(
        outcome=pl.lit("found"), critical=pl.Series([64, 50], dtype=pl.Int64)
    )
    changes = compared(solved, after, THRESHOLD_KIND)
    appeared, lower = changes.groups
    assert (appeared.least, largest_change_text(appeared)) == (None, "never -> 64")
    assert (lower.least, lower.most) == (0.5, 0.5)
    assert [tuple(change) for change in changes.labels] == [("outcome", "never", "found", 1)]


def test_whole_sizes_beyond_float64_differ():
    large = 2**60
    frames = [
        pl.DataFrame({"chip": ["a"], "outcome": ["found"], "critical": [large + more]})
        for more in (0, 1)
    ]
    assert [group.changed for group in compared(frames[0], frames[1], THRESHOLD_KIND).groups] == [1]


def test_rounding_of_a_real_threshold_is_no_change():
    solved = pl.DataFrame(
        {"axis": ["peak"], "critical": [None], "critical_exact": [0.5]},
        schema={"axis": pl.String, "critical": pl.Int64, "critical_exact": pl.Float64},
    )
    for factor, count in ((1 + 1e-12, 0), (1 + 1e-6, 1)):
        after = solved.with_columns(pl.col("critical_exact") * factor)
        assert {group.changed for group in compared(solved, after, THRESHOLD_KIND).groups} == {
            count
        }


def test_different_axes_are_no_pair():
    solved = pl.DataFrame({"axis": ["B"], "outcome": ["found"], "critical": [4]})
    changes = compared(solved, solved.with_columns(axis=pl.lit("shards")), THRESHOLD_KIND)
    assert (changes.shared, changes.removed, changes.added) == (0, 1, 1)
    assert dict(changes.unshared) == {"axis": (["B"], ["shards"])}


def test_command_prints_what_changed(runs, capsys):
    names = [str(runs(name)) for name in ("before", "faster")]
    text = said(capsys, "compare", *names)
    assert "  chips.mine.memory.hbm.bytes_per_s: 4e+12 -> 5e+12\n" in text
    assert "× 0.8" in text
    rows = table(capsys, "compare", *names)
    assert {row["chip"] for row in rows} == {"mine"}
    plain = json.loads(said(capsys, "compare", *names, "--json"))
    assert plain["groups"][0]["changed"] > 0
    assert "No threshold, time or cost differs" in said(capsys, "compare", names[0], names[0])


def test_command_writes_picture_and_table(runs, capsys, tmp_path):
    names = [str(runs(name)) for name in ("before", "faster")]
    for form in ("svg", "html"):
        said(capsys, "compare", *names, "-o", str(tmp_path / f"changes.{form}"))
        assert "Ratio" in (tmp_path / f"changes.{form}").read_text(encoding="utf-8")
    said(capsys, "compare", *names, "-o", str(tmp_path / "changes.parquet"))
    written = pl.read_parquet(tmp_path / "changes.parquet")
    assert written.height == len(table(capsys, "compare", *names))
    assert "exists already" in refused(
        capsys, "compare", *names, "-o", str(tmp_path / "changes.svg")
    )


def test_wrong_folders_are_refused(runs, capsys, tmp_path):
    before = str(runs("before"))
    assert "names 1 folder of results, not two" in refused(capsys, "compare", before)
    assert "and has none" in refused(capsys, "compare", before, "h100-sxm")
    assert "is given for chips" in refused(capsys, "compare", "h100", "b200", "-o", "x.png")
    same = refused(capsys, "compare", before, before, "-o", str(tmp_path / "x.png"))
    assert "no number changed" in same


@pytest.mark.parametrize("size", ["slide", "web", "paper"])
def test_picture_has_a_row_for_the_largest_changes(runs, size):
    view = changes_view(compare_runs(runs("before"), runs("faster")))
    assert view is not None
    spec = limited(view.spec(), "changes")
    assert misfits({"changes": spec}, size) == {}
    drawn = {text.text for text in texts(spec, size)}
    assert {*view.rows["text"]} <= drawn
    assert view.rows.height <= MAX_BARS


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(0.8, "0.8"), (1.0584, "1.06"), (1.004, "1.004"), (0.99999, "0.99999"), (1.0, "1")],
)
def test_a_ratio_near_one_is_told_from_one(ratio, text):
    assert factor_text(ratio) == text
