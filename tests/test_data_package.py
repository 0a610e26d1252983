"""The data package of the site: what it says of its tables is so, and each snippet runs."""

import hashlib
import json
import re

import polars as pl
import pytest
from bundles import HOSTILE
from key_sets import key_differences
from processes import python

from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.hardware.timing_errors import measured_quantiles
from rooflines.models.layer_matrices import layers_of
from rooflines.models.library import find_model, model_entries
from rooflines.site.data_package import TYPES

OBSERVABLE = """async ([code, files]) => {
  const shown = [];
  const FileAttachment = (name) => ({
    json: async () => JSON.parse(files[name]),
    csv: async () => {
      const [head, ...rows] = files[name].trim().split("\\n").map((line) => line.split(","));
      return rows.map((row) => Object.fromEntries(row.map((cell, i) => [head[i], cell])));
    },
  });
  const Inputs = { table: (rows) => rows };
  const run = new Function("FileAttachment", "Inputs", "display",
    `return (async () => {${code}})()`);
  await run(FileAttachment, Inputs, (value) => shown.push(value));
  return shown.map((rows) => rows.length);
}"""
"""A snippet of Observable, with stand-ins for what its notebooks have."""


@pytest.fixture(scope="module")
def folder(site):
    return site / "data"


@pytest.fixture(scope="module")
def package(folder):
    return json.loads((folder / "datapackage.json").read_text())


def snippet(folder, language, word=""):
    readme = (folder / "README.md").read_text()
    found = re.findall(rf"```{language}\n(.*?)```", readme, re.DOTALL)
    return next(code for code in found if word in code)


def test_it_describes_every_table(folder, package):
    assert [one["name"] for one in package["resources"]] == [
        *("chips", "models", "layers", "measured", "thresholds", "model-thresholds", "formulas")
    ]
    for one in package["resources"]:
        content = (folder / one["path"]).read_bytes()
        assert one["bytes"] == len(content)
        assert one["hash"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
        if one["format"] != "parquet":
            continue
        table = pl.read_parquet(content)
        assert one["rows"] == table.height > 0
        fields = one["schema"]["fields"]
        assert {field["name"]: field["type"] for field in fields} == {
            name: TYPES.get(kind.base_type(), "string") for name, kind in table.schema.items()
        }
        assert [field["name"] for field in fields if not field["description"]] == [], one["name"]


def test_it_says_where_it_is_from(package):
    assert package["title"] == HOSTILE
    assert package["version"] in package["citation"]
    assert package["licenses"][0]["name"] == "MIT"
    assert package["config"] == "config.yaml"


def test_models_layers_and_thresholds_are_all_there(folder):
    models = {*model_entries()}
    table = pl.read_parquet(folder / "models.parquet")
    assert key_differences(table, ["model"], [(each,) for each in models]) == ([], [])
    layers = pl.read_parquet(folder / "layers.parquet")
    expected = [(each, layer) for each in models for layer in layers_of(find_model(each).shape)]
    assert key_differences(layers, ["model", "layer"], expected) == ([], [])
    for name in ("thresholds.parquet", "model-thresholds.parquet"):
        offered, stored = folder / name, folder.parents[1] / name
        assert pl.read_parquet(offered).height == pl.read_parquet(stored).height


def test_its_numbers_are_those_of_the_catalogue(folder):
    chips = pl.read_parquet(folder / "chips.parquet").filter(chip="h100-sxm")
    entry = chip_entries()["h100-sxm"]
    (peak,) = chips.filter(path="units.matrix.bf16.flops_per_s").to_dicts()
    assert peak["value"] == entry.units["matrix"]["bf16"].flops_per_s
    assert (peak["part"], peak["dtype"], peak["unit"]) == ("matrix", "bf16", "FLOP/s")
    (rate,) = chips.filter(path="memory.hbm.bytes_per_s").to_dicts()
    assert (rate["value"], rate["part"], rate["dtype"]) == (3.35e12, "hbm", None)
    assert pl.read_parquet(folder / "measured.parquet").equals(measured_quantiles())


@pytest.mark.parametrize("tool", ["pandas", "polars"])
def test_a_snippet_in_python_runs(folder, tool):
    pytest.importorskip(tool)
    code = snippet(folder, "python", f"import {tool}")
    printed = python("-c", code, cwd=folder).stdout
    assert "tpu-v5e" in printed or "h100-sxm" in printed


def test_the_query_of_duckdb_runs(folder):
    query = snippet(folder, "sql")
    duckdb = pytest.importorskip("duckdb")
    named = query.replace("'measured.parquet'", f"'{folder / 'measured.parquet'}'")
    rows = duckdb.sql(named).fetchall()
    assert [row[4] for row in rows] == sorted(row[4] for row in rows)


def test_the_snippet_of_observable_runs(folder, browser):
    with browser.new_context() as context:
        names = ("chips.csv", "formulas.json")
        files = {name: (folder / name).read_text() for name in names}
        code = snippet(folder, "js")
        (shown,) = context.new_page().evaluate(OBSERVABLE, [code, files])
    assert shown > len(chip_entries()) / 2
