"""Parts of a config, and their dependencies."""

import json
import shutil
from itertools import chain

import polars as pl
import pytest
from small_config import matmul

import rooflines
from rooflines.basics.files import CONFIG_DIR
from rooflines.evaluation.row_frames import KernelTable, OperationTable, StepTable
from rooflines.results.folders import LAYERS_FOLDER, MODELS_FOLDER
from rooflines.run import code_digests
from rooflines.run.jobs import write_part
from rooflines.run.plan import plan
from rooflines.solvers.threshold_frames import sweep_thresholds
from rooflines.sweep.recipes import SHARED_SWEEPS, shared_sweep_of, sweep_of


def config(rows_per_part, **chips):
    """A sweep of three chips with 12, 24 and 12 rows."""
    sweep = matmul(
        grid={"B": [1, 2, 4], "D": [512, 1024], "F": [512, 1024]},
        dtypes=["bf16", "fp8"],
        chips=["a100-sxm-80gb", "h100-sxm", "own"],
        rows_per_part=rows_per_part,
    )
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
    parts = plan(config(rows_per_part)).parts
    firsts = [json.loads(part.spec)["row"] for part in parts]
    found = [(first, first + part.rows) for first, part in zip(firsts, parts, strict=True)]
    assert found == expected


def large(chips, sizes):
    grid = {
        "B": {"from": 1, "to": 1000, "step": 1},
        "D": {"from": 1, "to": sizes, "step": 1},
        "F": 1024,
    }
    own = {f"own-{number}": {"base": "h100-sxm"} for number in range(chips)}
    sweep = matmul(grid=grid, chips=[*own])
    return rooflines.load_config({"sweeps": {"large": sweep}, "chips": own})


@pytest.mark.parametrize(
    ("chips", "sizes", "expected"),
    [
        (40, 2500, [2_500_000] * 40),
        (30, 1, [30_000]),
        (5, 40, [80_000, 80_000, 40_000]),
        (2, 9_000, [4_500_000] * 4),
    ],
)
def test_chips_share_a_part_only_while_it_is_small(chips, sizes, expected):
    assert [part.rows for part in plan(large(chips, sizes)).parts] == expected


def assert_whole(parts, table, whole):
    """Demand that the rows that specs of parts describe are, in order, those of a table."""
    rows = []
    for part in parts:
        recipe = json.loads(part.spec)
        rows.append(table(sweep_of(recipe)).frame(recipe["start"], recipe["stop"]).collect().rows())
    assert [len(each) for each in rows] == [part.rows for part in parts]
    assert [*chain(*rows)] == whole.collect().rows()


@pytest.mark.parametrize("size", [40, 7])
def test_parts_together_are_the_table(size):
    given = config(size)
    assert_whole(plan(given).parts, OperationTable, rooflines.rows(given, "three"))


def test_thresholds_in_chips_are_counted_for_every_sharding():
    shared = {"sharding": ["column/gather-x", "contracting/all-reduce"], "shards": [2]}
    sweep = matmul(grid=dict.fromkeys("BDF", 4096), **shared, thresholds=["shards"])
    given = rooflines.load_config({"sweeps": {"one": sweep}})
    assert given.sweep("one").max_thresholds() == rooflines.thresholds(given).height == 2


def test_an_edited_chip_changes_the_parts_it_is_in_and_no_other():
    before = plan(config(24)).parts
    after = plan(config(24, **{"memory.hbm.bytes_per_s": 1e12})).parts
    assert [b.spec == a.spec for b, a in zip(before, after, strict=True)] == [True, True, False]


def test_an_edited_sweep_changes_its_own_parts_and_no_other():
    def specs(size):
        sweeps = {"one": matmul(), "two": matmul(grid={"B": size, "D": 64, "F": 64})}
        return [part.spec for part in plan(rooflines.load_config({"sweeps": sweeps})).parts]

    assert [one == other for one, other in zip(specs(1), specs(2), strict=True)] == [True, False]


def served(chips, **keys):
    """Specs of the jobs for a sweep over a model: steps, kernels and thresholds."""
    sweep = {
        "models": ["llama-3.1-8b"],
        "grid": {"B": [1, 8], "S": [128, 1024]},
        "dtypes": ["bf16", "fp8"],
        "chips": chips,
        "thresholds": ["B", "S"],
        "calibration": ["trtllm", "nccl"],
    }
    given = {"model-sweeps": {"serve": {**sweep, **keys}}}
    outputs = plan(rooflines.load_config(given)).outputs
    return [json.loads(output.spec) for output in outputs if output.sweep == "serve"]


def test_jobs_share_a_sweep_over_the_same_models_and_chips():
    specs = served(["h100-sxm", "b200"])
    assert [spec.get("folder") for spec in specs] == [MODELS_FOLDER, LAYERS_FOLDER, None]
    shared, *same = map(shared_sweep_of, specs)
    assert all(sweep is shared for sweep in same)
    for order in ([0, 1, 2], [2, 1, 0]):  # whichever job reads a time first
        for spec in (specs[index] for index in order):
            if "folder" not in spec:
                expected, found = map(sweep_thresholds, (sweep_of(spec), shared))
            else:
                table = KernelTable if spec["folder"] == LAYERS_FOLDER else StepTable
                expected, found = (
                    table(sweep).frame().collect() for sweep in (sweep_of(spec), shared)
                )
            assert found.height
            assert found.equals(expected)


def test_jobs_share_no_sweep_over_other_chips_sizes_or_operations():
    specs = [
        served(["h100-sxm"])[0],
        served(["b200"])[0],
        served(["b200"], grid={"B": 1, "S": 1})[0],
    ]
    assert len({id(shared_sweep_of(spec)) for spec in specs}) == len(specs) < SHARED_SWEEPS
    part = json.loads(plan(config(100)).parts[0].spec)
    assert shared_sweep_of(part) is not shared_sweep_of(part)


@pytest.mark.parametrize(
    ("package", "within", "without"),
    [
        ("evaluation", {"sweep", "theory", "hardware", "config", "fits"}, {"solvers", "answers"}),
        ("solvers", {"solvers", "evaluation", "theory"}, {"answers", "charts", "site"}),
        ("measured", {"measured", "evaluation"}, {"answers", "charts", "site"}),
        ("site", {"site", "charts", "solvers"}, {"workbook"}),
    ],
)
def test_code_behind_an_output_is_a_sub_package_and_those_below_that_it_imports(
    package, within, without
):
    found = code_digests.closure(package)
    assert found >= within
    assert not found & (without | {"run", "cli", "api", "loading"})


EVERYTHING = {
    "sweeps": {"one": matmul(chips=["h100-sxm", "tpu-v5e"])},
    "model-sweeps": {
        "serve": {
            "models": ["llama-3.1-8b"],
            "grid": {"B": [1, 8], "S": 128},
            "dtypes": ["bf16"],
            "chips": ["h100-sxm"],
            "layers": False,
        }
    },
    "charts": [{"chart": "roofline", "sweep": "one"}, {"chart": "chips", "sweep": "one"}],
}
PART, STEPS = "tables/one/part-00000.parquet", "models/serve/part-00000.parquet"
SOLVED_PARTS = {"thresholds/one/part-00000.parquet", "thresholds/serve/part-00000.parquet"}
SOLVED = {"thresholds.parquet", "model-thresholds.parquet"}
CHARTS, LISTS = {"charts/roofline", "charts/chips"}, {"parts.csv", "skipped.csv", "summary.csv"}
LATER = {"bundle", "rooflines.xlsx", "summary.csv"}
"""Outputs made from thresholds."""
NOT_SHAPES = {PART, STEPS, "bundle", "rooflines.xlsx"} | SOLVED_PARTS | SOLVED | CHARTS | LISTS

BEHIND = {
    "theory/costs.py": NOT_SHAPES | {"model-shapes.csv"},
    "dictionary/columns.yaml": NOT_SHAPES | {"model-shapes.csv"},
    "solvers/critical_sizes.py": SOLVED_PARTS | SOLVED | CHARTS | LATER,
    "run/threshold_jobs.py": SOLVED_PARTS | SOLVED | CHARTS | LATER,
    "run/snakemake/progress.py": set(),
    "charts/kinds/chips.py": CHARTS | {"bundle"},
    "charts/kinds.json": CHARTS | {"bundle"},
    "charts/kit/styles.json": CHARTS | {"bundle"},
    "site/site.py": {"bundle"},
    "site/explorer.json": {"bundle"},
    "site/data-readme.md": {"bundle"},
    "site/templates/index.html": {"bundle"},
    "site/assets/app.css": {"bundle"},
    "site/assets/sentences.js": {"bundle"},
    "site/assets/icon.svg": {"bundle"},
    "site/vendor/vega.js.gz": {"bundle"},
    "workbook/what_if_sheet.py": {"rooflines.xlsx"},
    "data/measured.csv": {"bundle"},
    "data/models.yaml": {"bundle"} | CHARTS,
}
"""Outputs remade after an edit to a module, or to a catalogue (`data`)."""


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """A copy of the package and of the catalogues, whose digests are those of outputs."""
    package = shutil.copytree(
        code_digests.ROOT, tmp_path / "rooflines", ignore=shutil.ignore_patterns("*.pyc", "data")
    )
    shutil.copytree(CONFIG_DIR, package / "data")
    caches = (
        code_digests.code_digest,
        code_digests.closure,
        code_digests.imported,
        code_digests.files_of,
        code_digests.content,
    )

    def forget():
        for cached in caches:
            cached.cache_clear()

    with monkeypatch.context() as patched:
        forget()
        patched.setattr(code_digests, "ROOT", package)
        patched.setattr(code_digests, "CONFIG_DIR", package / "data")
        yield package, forget
    forget()


def test_an_edit_makes_everything_again_that_it_is_behind_and_nothing_else(copied):
    package, forget = copied
    loaded = rooflines.load_config(EVERYTHING)

    def specs():
        forget()
        return {output.path: output.spec for output in plan(loaded).outputs}

    found = {}
    before = specs()
    for name in BEHIND:
        assert (package / name).is_file()
        with (package / name).open("ab") as file:
            file.write(b"\n")
        after = specs()
        found[name] = {path for path, spec in after.items() if spec != before[path]}
        before = after
    assert found == BEHIND


def test_every_file_of_a_page_and_of_a_chart_is_behind_it(copied):
    """Scripts, styles, templates, fonts and data, not only modules."""
    package, _ = copied
    known = {
        file.relative_to(package)
        for name in ("site", "charts")
        for file in code_digests.files_of(name)
    }
    assert {path.suffix for path in known} >= {
        ".py",
        ".js",
        ".css",
        ".html",
        ".json",
        ".svg",
        ".gz",
    }
    every = (path for name in ("site", "charts") for path in (package / name).rglob("*"))
    assert known == {path.relative_to(package) for path in every if path.is_file()}


TINY = {"layers": 2, "D": 64, "V": 128, "attention": {"N": 4, "K": 2, "H": 16}, "mlp": {"F": 96}}


def models_config(rows_per_part=5_000_000, rate=1e12, **changes):
    """A dense model and one with experts, in two phases on two chips.

    With one chip a replica four rows; two chips a replica four; two replicas the two rows of B = 8.
    """
    sweep = {
        "models": [{"name": "tiny", **TINY}, "gpt-oss-20b"],
        "phase": ["decode", "prefill"],
        "grid": {"B": [1, 8], "S": [128, 1024]},
        "dtypes": ["bf16", "nvfp4"],
        "chips": ["h100-sxm", "own"],
        "splits": [{"tp": 1}, {"tp": 2}, {"dp": 2}],
        "rows_per_part": rows_per_part,
        **changes,
    }
    own = {"base": "a100-sxm-80gb", "memory.hbm.bytes_per_s": rate, "source": "a guess"}
    return rooflines.load_config({"model-sweeps": {"serve": sweep}, "chips": {"own": own}})


@pytest.mark.parametrize("rows_per_part", [1000, 12])
def test_parts_of_models_together_are_the_tables(rows_per_part):
    given = models_config(rows_per_part)
    planned = plan(given)
    assert max(part.rows for part in planned.parts) <= rows_per_part
    assert given.sweep("serve").rows == 2 * 2 * 2 * (4 + 4 + 2)
    assert_whole(planned.parts_in("models"), StepTable, rooflines.rows(given, "serve"))
    assert_whole(planned.parts_in("layers"), KernelTable, rooflines.model_layers(given, "serve"))


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"rate": 2e12}, {"own"}),
        ({"models": [{"name": "tiny", **TINY, "D": 128}, "gpt-oss-20b"]}, {"own", "h100-sxm"}),
    ],
    ids=["of a chip", "of a model"],
)
def test_an_edit_changes_the_parts_of_models_that_depend_on_it_and_no_other(changes, wanted):
    def chip_of(part):
        (chip,) = json.loads(part.spec)["chips"]
        return chip

    before, after = plan(models_config(3)), plan(models_config(3, **changes))
    assert {chip_of(part) for part in before.parts_in("models")} == {"own", "h100-sxm"}
    for folder in ("models", "layers"):
        pairs = zip(before.parts_in(folder), after.parts_in(folder), strict=True)
        assert {chip_of(one) for one, other in pairs if one.spec != other.spec} == wanted


def test_a_written_part_stores_what_its_config_asks_for(tmp_path):
    given = models_config(columns=["flops", "t_serial_s"], phase="decode")
    planned = plan(given)
    write_part(planned.parts_in("models")[0].spec, tmp_path / "models.parquet")
    write_part(planned.parts_in("layers")[0].spec, tmp_path / "layers.parquet")
    models, layers = (
        pl.read_parquet(tmp_path / f"{name}.parquet") for name in (MODELS_FOLDER, LAYERS_FOLDER)
    )
    keys = ["model", "phase", "chip", "memory", "network", "dtypes", "split"]
    keys += ["chips", "tp", "dp", "ep", "B", "S"]
    assert models.columns == [*keys, "flops", "t_serial_s"]
    assert layers.columns == [*keys, "group", "count", "flops", "t_serial_s"]
    assert isinstance(models.schema["model"], pl.Categorical)
    expected = rooflines.rows(given, "serve").collect()
    assert models.rows() == expected.rows()
    requests = [{"input": 64, "output": 8}]
    given = models_config(columns=["flops"], grid={"B": 8}, requests=requests, phase="decode")
    times = ["ttft_s", "tpot_s", "ttft_serial_s", "tpot_serial_s"]
    times += ["prefill_estimate_s", "prompts_estimate_s"]
    names = rooflines.rows(given, "serve").collect_schema().names()
    assert names == [*keys, "input", "output", *times, "flops"]
    assert plan(given).parts_in("layers") == ()
    with pytest.raises(rooflines.RooflinesError, match="asks for requests"):
        rooflines.model_layers(given, "serve")
