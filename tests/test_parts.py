"""How a config is cut into parts, and what each depends on."""

import json
import shutil
from types import SimpleNamespace

import pytest

import rooflines
from rooflines.results import tables
from rooflines.run import code
from rooflines.run.jobs import write_part
from rooflines.run.plan import plan
from rooflines.run.workflow import local_only
from rooflines.sweep.recipes import sweep_of
from rooflines.sweep.rows import OperationTable


def config(rows_per_part, **chips):
    """A sweep of three chips with 12, 24 and 12 rows."""
    sweep = {
        "operation": "matmul",
        "grid": {"B": [1, 2, 4], "D": [512, 1024], "F": [512, 1024]},
        "dtypes": ["bf16", "fp8"],
        "chips": ["a100-sxm-80gb", "h100-sxm", "own"],
        "rows_per_part": rows_per_part,
    }
    return rooflines.load_config(
        {"sweeps": {"three": sweep}, "chips": {"own": {"base": "a100-sxm-40gb", **chips}}}
    )


@pytest.mark.parametrize(
    ("rows_per_part", "expected"),
    [
        (100, [(0, 48)]),
        (40, [(0, 36), (36, 48)]),
        (24, [(0, 12), (12, 36), (36, 48)]),
        (10, [(0, 6), (6, 12), (12, 20), (20, 28), (28, 36), (36, 42), (42, 48)]),
    ],
)
def test_a_part_begins_where_a_chip_begins(rows_per_part, expected):
    assert [place_of(part) for part in plan(config(rows_per_part)).parts] == expected


def place_of(part):
    """The first row of a part, and the row after its last."""
    first = json.loads(part.spec)["row"]
    return first, first + part.rows


def large(chips, sizes):
    """A sweep with a thousand rows per chip and size."""
    grid = {
        "B": {"from": 1, "to": 1000, "step": 1},
        "D": {"from": 1, "to": sizes, "step": 1},
        "F": 1024,
    }
    own = {f"own-{number}": {"base": "h100-sxm"} for number in range(chips)}
    sweep = {"operation": "matmul", "grid": grid, "dtypes": ["bf16"], "chips": list(own)}
    return rooflines.load_config({"sweeps": {"large": sweep}, "chips": own})


@pytest.mark.parametrize(
    ("chips", "sizes", "expected"),
    [
        (40, 2500, [2_500_000] * 40),
        (30, 1, [30_000]),
        (5, 12, [36_000, 24_000]),
        (2, 9_000, [4_500_000] * 4),
    ],
)
def test_chips_share_a_part_only_while_it_is_small(chips, sizes, expected):
    assert [part.rows for part in plan(large(chips, sizes)).parts] == expected


def test_parts_together_are_the_table():
    whole = rooflines.rows(config(100), "three").collect()
    for size in (40, 24, 10, 7):
        rows = [row for part in plan(config(size)).parts for row in part_rows(part.spec)]
        assert rows == whole.rows()


def part_rows(spec):
    """The rows that a spec describes."""
    recipe = json.loads(spec)
    return OperationTable(sweep_of(recipe)).frame(recipe["start"], recipe["stop"]).collect().rows()


def test_an_edited_chip_changes_the_parts_it_is_in_and_no_other():
    before = plan(config(24)).parts
    after = plan(config(24, **{"memory.hbm.bytes_per_s": 1e12})).parts
    assert [b.spec == a.spec for b, a in zip(before, after, strict=True)] == [True, True, False]


def test_an_edited_sweep_changes_its_own_parts_and_no_other():
    sweep = {"operation": "matmul", "dtypes": ["bf16"], "chips": ["a100-sxm-80gb"]}

    def specs(size):
        grids = {"one": {"B": 1, "D": 512, "F": 512}, "two": {"B": size, "D": 512, "F": 512}}
        sweeps = {name: {**sweep, "grid": grid} for name, grid in grids.items()}
        return [part.spec for part in plan(rooflines.load_config({"sweeps": sweeps})).parts]

    assert [one == other for one, other in zip(specs(1), specs(2), strict=True)] == [True, False]


@pytest.mark.parametrize(
    ("package", "within", "without"),
    [
        ("sweep", {"sweep", "model", "catalogue", "settings", "fits"}, {"critical", "explanation"}),
        ("critical", {"critical", "sweep", "model"}, {"explanation", "charts", "site"}),
        ("measured", {"measured", "sweep"}, {"explanation", "charts", "site"}),
        ("site", {"site", "charts", "critical"}, {"workbook"}),
    ],
)
def test_code_behind_an_output_is_a_sub_package_and_those_below_that_it_imports(
    package, within, without
):
    found = code.closure(package)
    assert found >= within
    assert not found & (without | {"run", "cli", "api", "config"})


def test_an_edit_of_code_changes_the_digests_of_what_it_is_behind(tmp_path, monkeypatch):
    shutil.copytree(code.ROOT, tmp_path / "rooflines", ignore=shutil.ignore_patterns("*.pyc"))

    def forget():
        for cached in (code.code_digest, code.closure, code.imported, code.files_of, code.content):
            cached.cache_clear()

    def digests():
        forget()
        return [
            code.code_digest("run.jobs.write_part"),
            code.code_digest("run.solving.write_thresholds"),
            code.code_digest("site.site.write_bundle"),
            code.code_digest("charts.job.write_charts", but="charts/kinds"),
        ]

    def changed(name):
        before = digests()
        with (tmp_path / "rooflines" / name).open("a", encoding="utf-8") as file:
            file.write("\n")
        return [one != other for one, other in zip(before, digests(), strict=True)]

    with monkeypatch.context() as patched:
        patched.setattr(code, "ROOT", tmp_path / "rooflines")
        assert changed("model/costs.py") == [True, True, True, True]
        assert changed("critical/sizes.py") == [False, True, True, True]
        assert changed("run/jobs.py") == [True, True, False, False]
        assert changed("charts/kinds/bounds.py") == [False, False, True, False]
        assert changed("site/site.py") == [False, False, True, False]
        assert changed("run/progress.py") == [False, False, False, False]
    forget()


def test_outputs_of_a_disk_alone_are_left_out_in_object_storage_alone():
    def paths(*, stored):
        flags = {"storage_object": object()} if stored else {}
        modifier = SimpleNamespace(modify=lambda _: SimpleNamespace(flags=flags))
        workflow = SimpleNamespace(modifier=SimpleNamespace(path_modifier=modifier))
        return local_only(["results/summary.csv", "results/bundle"], ["summary.csv"], workflow)

    assert paths(stored=False) == ["results/summary.csv", "results/bundle"]
    assert paths(stored=True) == ["results/bundle"]


def test_the_metadata_of_a_part_say_which_rows_it_has(tmp_path):
    for number, part in enumerate(plan(config(24)).parts):
        write_part(part.spec, tmp_path / f"{number}.parquet")
        rows = tables.metadata_of(tmp_path / f"{number}.parquet")["rows"]
        assert tuple(rows) == place_of(part)
