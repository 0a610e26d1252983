"""How sweeps of whole models are cut into parts, and what each depends on."""

import json

import polars as pl
import pytest

import rooflines
from rooflines.results.folders import LAYERS, MODELS
from rooflines.run.jobs import write_part
from rooflines.run.plan import plan
from rooflines.sweep.recipes import sweep_of
from rooflines.sweep.rows import KernelTable, StepTable

TINY = {"layers": 2, "D": 64, "V": 128, "attention": {"N": 4, "K": 2, "H": 16}, "mlp": {"F": 96}}


def config(rows_per_part=5_000_000, rate=1e12, **changes):
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


def of_recipe(part, table):
    """The rows that the spec of a part describes."""
    recipe = json.loads(part.spec)
    return table(sweep_of(recipe)).frame(recipe["start"], recipe["stop"]).collect()


@pytest.mark.parametrize("rows_per_part", [1000, 40, 14, 4, 3])
def test_parts_together_are_the_tables(rows_per_part):
    given = config(rows_per_part)
    planned = plan(given)
    steps = [of_recipe(part, StepTable) for part in planned.parts_in("models")]
    assert [frame.height for frame in steps] == [part.rows for part in planned.parts_in("models")]
    assert max(frame.height for frame in steps) <= rows_per_part
    whole = rooflines.rows(given, "serve").collect()
    assert whole.height == given.sweep("serve").rows == 2 * 2 * 2 * (4 + 4 + 2)
    assert [row for frame in steps for row in frame.rows()] == whole.rows()
    kernels = [of_recipe(part, KernelTable) for part in planned.parts_in("layers")]
    assert [frame.height for frame in kernels] == [part.rows for part in planned.parts_in("layers")]
    every = rooflines.model_layers(given, "serve").collect()
    assert pl.concat(kernels).sort(every.columns).rows() == every.sort(every.columns).rows()


def depends(part):
    """The models and chips that a part depends on."""
    recipe = json.loads(part.spec)
    return (*recipe["models"], *recipe["chips"])


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"rate": 2e12}, {("tiny", "own"), ("gpt-oss-20b", "own")}),
        (
            {"models": [{"name": "tiny", **TINY, "D": 128}, "gpt-oss-20b"]},
            {("tiny", "h100-sxm"), ("tiny", "own")},
        ),
    ],
    ids=["of a chip", "of a model"],
)
def test_an_edit_changes_the_parts_that_depend_on_it_and_no_other(changes, wanted):
    before, after = plan(config(3)), plan(config(3, **changes))
    every = {depends(part) for part in before.parts_in("models")}
    assert every == {(m, c) for m in ("tiny", "gpt-oss-20b") for c in ("h100-sxm", "own")}
    for old, new in (
        (before.parts_in("models"), after.parts_in("models")),
        (before.parts_in("layers"), after.parts_in("layers")),
    ):
        pairs = zip(old, new, strict=True)
        assert {depends(one) for one, other in pairs if one.spec != other.spec} == wanted


def test_a_written_part_stores_what_its_config_asks_for(tmp_path):
    given = config(columns=["flops", "t_ops_s"], phase="decode")
    planned = plan(given)
    write_part(planned.parts_in("models")[0].spec, tmp_path / "models.parquet")
    write_part(planned.parts_in("layers")[0].spec, tmp_path / "layers.parquet")
    models, layers = (pl.read_parquet(tmp_path / f"{name}.parquet") for name in (MODELS, LAYERS))
    keys = ["model", "phase", "chip", "memory", "network", "dtypes", "split"]
    keys += ["chips", "tp", "dp", "ep", "B", "S"]
    assert models.columns == [*keys, "flops", "t_ops_s"]
    assert layers.columns == [*keys, "group", "count", "flops", "t_ops_s"]
    assert isinstance(models.schema["model"], pl.Categorical)
    expected = rooflines.rows(given, "serve").collect()
    assert models.rows() == expected.rows()
    requests = [{"input": 64, "output": 8}]
    given = config(columns=["flops"], grid={"B": 8}, requests=requests, phase="decode")
    times = ["ttft_s", "tpot_s", "ttft_ops_s", "tpot_ops_s"]
    times += ["ttft_estimate_s", "prompts_estimate_s"]
    names = rooflines.rows(given, "serve").collect_schema().names()
    assert names == [*keys, "input", "output", *times, "flops"]
    assert plan(given).parts_in("layers") == ()
    with pytest.raises(rooflines.RooflinesError, match="asks for requests"):
        rooflines.model_layers(given, "serve")
