"""Which charts a config gets: those that fit its axes, or those it lists; and error messages."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any, NamedTuple

import polars as pl
import pytest
from charted import ALWAYS
from claims import CLAIMS
from documents import config_schema

import rooflines
from rooflines import RooflinesError
from rooflines.charts.families import fitted
from rooflines.charts.models import models_of
from rooflines.charts.registry import charts, headings
from rooflines.charts.results import of_config
from rooflines.run.plan import plan
from rooflines.settings.shapes import Shape

SWEEP: dict[str, Any] = {
    "operation": "matmul",
    "grid": {"B": {"from": 1, "to": 4096, "factor": 2}, "D": [1024, 4096], "F": "D"},
    "dtypes": ["bf16", "w8a16"],
    "chips": ["tpu-v5e", "h100-sxm"],
}

TILED: dict[str, Any] = {
    **SWEEP,
    "dtypes": ["bf16", "fp8"],
    "tile": {"B": 128},
    "chips": ["tpu-v5e", "h100-sxm", "mi300x"],
}


def kinds(**changes: Any) -> list[str]:  # noqa: ANN401, values of a config
    """The charts that a sweep gets by itself."""
    return [
        chart.chart
        for chart in rooflines.load_config({"sweeps": {"mine": {**SWEEP, **changes}}}).charts
    ]


def listed_in_schema() -> list[str]:
    """The charts that the JSON Schema of a config allows."""
    schema = config_schema()["properties"]["charts"]["anyOf"][1]["items"]
    names: list[str] = schema["properties"]["chart"]["enum"]
    return names


def test_every_chart_has_a_heading_a_place_in_the_schema_and_tests() -> None:
    """Titles are checked against claims, frames for missing values."""
    assert len(charts()) > 11
    assert set(headings()) == {chart.family for chart in charts().values()}
    assert listed_in_schema() == list(charts())
    assert set(CLAIMS) == set(charts())
    assert set(ALWAYS) == set(charts())


def test_sweeps_of_one_chip_are_one_chart_of_attained_flops() -> None:
    """Variants count as their base; another operation or another chip is another chart."""
    grid = {"B": {"from": 1, "to": 4096, "factor": 2}, "D": [1024, 4096], "F": "D"}
    sweep = {"operation": "matmul", "grid": grid, "dtypes": ["bf16"], "chips": ["tpu-v5e"]}
    variant = {"base": "tpu-v5e", "memory.hbm.bytes_per_s": 8.1e11, "source": "a test"}
    config = rooflines.load_config(
        {
            "sweeps": {
                "one": sweep,
                "two": {**sweep, "chips": ["mine"], "dtypes": ["int8", "bf16"]},
                "gpu": {**sweep, "chips": ["h100-sxm"]},
                "several": {**sweep, "chips": ["tpu-v5e", "h100-sxm"]},
                "other": {**sweep, "operation": "per-example-matmul"},
            },
            "chips": {"mine": variant},
        }
    )
    drawn = {s.sweep: s for s in config.charts if s.chart == "attained"}
    assert {name: spec.others for name, spec in drawn.items()} == {
        "one": ("two",),
        "gpu": (),
        "several": (),
        "other": (),
    }
    assert (drawn["one"].chips, drawn["one"].dtypes) == (("tpu-v5e", "mine"), ("bf16", "int8"))
    frame, spec = fitted(of_config(config), drawn["one"])
    assert frame.group_by("sweep").agg(pl.col("chip").unique()).sort("sweep").rows() == [
        ("one", ["tpu-v5e"]),
        ("two", ["mine"]),
    ]
    findings = next(p["value"] for p in spec["params"] if p["name"] == "findings")
    assert list(findings) == ["tpu-v5e|bf16|one", "mine|bf16|two", "mine|int8|two"]


def test_sweeps_that_are_one_chart_have_all_their_chips_on_the_site() -> None:
    """Those of either sweep; a chip that one of them has is shown of that one."""
    grid = {"B": {"from": 1, "to": 4096, "factor": 2}, "D": [1024, 4096], "F": "D"}
    sweep = {"operation": "matmul", "grid": grid, "dtypes": ["bf16"]}
    names = [f"mine-{n}" for n in range(6)]
    variants = {name: {"base": "tpu-v5e", "source": "a test"} for name in names}
    two = {**sweep, "chips": names, "dtypes": ["bf16", "int8", "w8a16"]}
    config = rooflines.load_config(
        {"sweeps": {"one": {**sweep, "chips": ["tpu-v5e"]}, "two": two}, "chips": variants}
    )
    (spec,) = (spec for spec in config.charts if spec.chart == "attained")
    assert (spec.sweep, spec.others) == ("one", ("two",))
    assert {*spec.all_chips} == {"tpu-v5e", *names}
    assert {*spec.all_dtypes} == {"bf16", "int8", "w8a16"}
    assert len(spec.more_chips) == 2
    assert len(spec.more_dtypes) == 1
    one = replace(spec, chips=spec.more_chips[:1], dtypes=spec.more_dtypes)
    frame, _ = fitted(of_config(config), one)
    shown = frame.select("chip", "dtypes", "sweep").unique()
    assert shown.rows() == [(*one.chips, *one.dtypes, "two")]


def test_reading_and_planning_a_config_imports_no_library_for_charts() -> None:
    """Not Altair, polars or Pillow: each would take longer than all the rest."""
    program = (
        "import rooflines, sys; from rooflines.run.plan import plan; plan(rooflines.load_config());"
        "print([name for name in ('altair.vegalite', 'polars.dataframe', 'PIL', 'vl_convert')"
        " if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    assert done.stdout.split() == [b"[]"]


def test_a_sweep_gets_the_charts_that_fit_its_axes() -> None:
    """Curves over B; maps over D and F; shards and layers if the sweep has them."""
    shapes = [{"name": "m-up", "D": 1024, "F": 4096}, {"name": "m-down", "D": 4096, "F": 1024}]
    grid = {"B": SWEEP["grid"]["B"]}
    assert kinds() == ["roofline", "chips", "attained", "ridges", "per-dollar"]
    free = {**grid, "D": [512, 1024, 4096], "F": [512, 1024, 4096]}
    assert {"critical", "critical-map"} <= set(kinds(grid=free))
    assert {"layers", "time"} <= set(kinds(grid=grid, shapes=shapes))
    split = kinds(grid=grid, shapes=shapes, sharding=["column/gather-x"], shards=[1, 2, 4])
    assert {"shards", "bounds", "time"} <= set(split)
    assert kinds(chips=["tpu-v5e"], grid={"B": [1, 2], "D": 1024, "F": 1024}) == ["roofline"]


def test_a_chart_is_left_out_where_its_columns_are_not_stored() -> None:
    """A table with fewer metrics gets fewer charts, not a failing job."""
    assert "attained" not in kinds(columns=["bound", "utilization"])
    with pytest.raises(RooflinesError, match="which reads columns that sweep mine does not store"):
        rooflines.load_config(
            {
                "sweeps": {"mine": {**SWEEP, "columns": ["bound"]}},
                "charts": [{"chart": "attained", "sweep": "mine"}],
            }
        )


def test_a_list_is_drawn_as_it_stands_and_an_empty_one_not_at_all() -> None:
    """In its order, with its ids."""
    charts = [
        {"chart": "ridges", "sweep": "mine", "id": "mine-first"},
        {"chart": "roofline", "sweep": "mine", "chips": ["h100-sxm"]},
    ]
    found = rooflines.load_config({"sweeps": {"mine": SWEEP}, "charts": charts}).charts
    assert [(chart.id, chart.chips) for chart in found] == [
        ("mine-first", ("tpu-v5e", "h100-sxm")),
        ("roofline-mine", ("h100-sxm",)),
    ]
    assert plan(rooflines.load_config({"sweeps": {"mine": SWEEP}, "charts": []})).families() == []


class Wrong(NamedTuple):
    """A list of charts, and what is said of it."""

    charts: Any
    where: str
    says: str


@pytest.mark.parametrize(
    "wrong",
    [
        Wrong("all", "charts", "write auto, a list of charts, or [] for none"),
        Wrong([{"chart": "rooflin", "sweep": "mine"}], "charts[0].chart", "close to it: roofline"),
        Wrong([{"chart": "roofline"}], "charts[0]", "add sweep:"),
        Wrong([{"chart": "roofline", "sweep": "min"}], "charts[0].sweep", "close to it: mine"),
        Wrong(
            [{"chart": "roofline", "sweep": "mine", "chips": ["h100"]}],
            "charts[0].chips[0]",
            "close to it: h100-sxm",
        ),
        Wrong(
            [{"chart": "roofline", "sweep": "mine", "dtypes": ["fp8"]}],
            "charts[0].dtypes[0]",
            "no dtype combination of sweep mine",
        ),
        Wrong(
            [{"chart": "roofline", "sweep": "mine", "shape": "x"}],
            "charts[0].shape",
            "leave it out",
        ),
        Wrong(
            [{"chart": "shards", "sweep": "mine"}],
            "charts[0].chart",
            "needs several numbers of chips in `shards`; sweep mine lacks that",
        ),
        Wrong(
            [{"chart": "critical-map", "sweep": "tiled"}],
            "charts[0].chart",
            "needs sizes without tiles",
        ),
        Wrong(
            [{"chart": "layers", "sweep": "mine"}],
            "charts[0].chart",
            "needs shapes that give every size",
        ),
        Wrong(
            [{"chart": "roofline", "sweep": "mine", "sizes": [3]}],
            "charts[0].sizes[0]",
            "no size of B in sweep mine",
        ),
        Wrong(
            [{"chart": "per-watt", "sweep": "mine"}],
            "charts[0].chart",
            "needs two chips with a design power",
        ),
        Wrong(
            [{"chart": "per-dollar", "sweep": "tiled", "chips": ["mi300x"]}],
            "charts[0].chips",
            "none of which has the numbers",
        ),
        Wrong(
            [{"chart": "roofline", "sweep": "tiled", "dtypes": ["fp8"], "chips": ["tpu-v5e"]}],
            "charts[0].dtypes",
            "can do none",
        ),
        Wrong(
            [{"chart": "ridges", "sweep": "mine"}] * 2, "charts[1].id", "give it an id of its own"
        ),
        Wrong(
            [{"chart": "ridges", "sweep": "mine", "color": "red"}],
            "charts[0].color",
            "known are chart, sweep",
        ),
    ],
)
def test_a_chart_that_makes_no_sense_is_refused(wrong: Wrong) -> None:
    """Where, what, what is close to it, and how to fix it."""
    with pytest.raises(RooflinesError) as caught:
        rooflines.load_config({"sweeps": {"mine": SWEEP, "tiled": TILED}, "charts": wrong.charts})
    assert caught.value.where == wrong.where
    assert wrong.says in str(caught.value)


def test_a_family_depends_on_what_it_draws_and_on_nothing_else() -> None:
    """An edit of a chip that is drawn changes it, one of another chip does not."""

    def specs(**own: float) -> dict[str, str]:
        chips = {
            name: {
                "base": "h100-sxm",
                "memory.hbm.bytes_per_s": own.get(name, 3e12),
                "source": "a test",
            }
            for name in ("mine", "other")
        }
        sweeps = {
            "one": {**SWEEP, "chips": ["mine", "tpu-v5e"]},
            "two": {**SWEEP, "chips": ["other"]},
        }
        charts = [{"chart": "ridges", "sweep": "one"}, {"chart": "attained", "sweep": "two"}]
        config = rooflines.load_config({"sweeps": sweeps, "chips": chips, "charts": charts})
        made = plan(config)
        return {family: made.spec(f"charts/{family}") for family in made.families()}

    before, after = specs(), specs(mine=2e12)
    assert {family for family in before if before[family] != after[family]} == {"compared"}


def test_models_are_guessed_from_the_names_of_shapes() -> None:
    """The longest ending that two names share is the layer; `27b` stays with the model."""
    names = [
        "gemma-2-27b-q",
        "gemma-2-27b-up",
        "gemma-3-27b-q",
        "gemma-3-27b-up",
        "gpt-oss-expert-up",
        "gpt-oss-q",
        "odd",
    ]
    assert models_of([Shape.model_validate({"name": name}) for name in names]) == {
        "gemma-2-27b": {"q": "gemma-2-27b-q", "up": "gemma-2-27b-up"},
        "gemma-3-27b": {"q": "gemma-3-27b-q", "up": "gemma-3-27b-up"},
        "gpt-oss": {"q": "gpt-oss-q", "expert-up": "gpt-oss-expert-up"},
        "": {"odd": "odd"},
    }


def test_models_that_shapes_state_are_not_guessed() -> None:
    """Whatever the names are; without a layer it is the rest of the name."""
    shapes = [
        Shape.model_validate({"name": "one-q", "model": "first", "layer": "query"}),
        Shape.model_validate({"name": "two-q", "model": "two"}),
        Shape.model_validate({"name": "three-q"}),
    ]
    assert models_of(shapes) == {
        "": {"three-q": "three-q"},
        "first": {"query": "one-q"},
        "two": {"q": "two-q"},
    }
