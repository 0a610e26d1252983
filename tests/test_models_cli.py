"""`rooflines models`, model-shapes.csv, and the counts in docs/serve.md."""

import csv
import io
import json
import re

import yaml
from command_line import said, table
from hf_configs import config_of
from outputs_made import make_outputs
from pages import words_of
from small_config import matmul

import rooflines
from rooflines.cli import main as cli
from rooflines.dictionary.columns import MODEL_SHAPES
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.models.architecture import Shape
from rooflines.models.hf.families import families
from rooflines.models.library import find_model, model_entries
from rooflines.models.model_sheet import fitting_chips, model_numbers
from rooflines.results.records import record_file


def test_the_page_counts_models_and_families_truly():
    entries = model_entries().values()
    exact = [entry for entry in entries if entry.published.match == "exact"]
    page = words_of("serve.md")
    assert f"lists {len(entries)} published models" in page
    assert f"For {len(exact)} models the parameters equal the publisher's count exactly" in page
    assert f"is read for {len(families())} families" in page


def test_the_list_has_every_model(capsys):
    lines = said(capsys, "models").splitlines()
    assert [line.split()[0] for line in lines[1:-2]] == list(model_entries())
    rows = table(capsys, "models")
    assert [row["model"] for row in rows] == list(model_entries())
    for row in json.loads(said(capsys, "models", "--json")):
        model = rooflines.models.load(row["model"])
        assert row["parameters"] == model.parameters().total
        cached = row["kv_cache_bytes_per_token_bf16"] + row["state_bytes"]
        assert cached == model.kv_cache_bytes(1, "bf16")


def test_the_largest_batches_of_a_sheet_stand_under_their_dtype(capsys):
    model = rooflines.models.load("llama-3.1-8b")
    listed = said(capsys, "models", "llama-3.1-8b").partition("Largest batch on one chip")[2]
    context, heads, *rows = listed.splitlines()
    assert heads.split() == ["memory", "bf16", "fp8", "chips"]
    assert " 8k context" in context
    batches = {chip: known for chip, _, known in fitting_chips(model)}
    seen: list[str] = []
    for row in rows:
        *shown, chips = re.findall(r"^[\d.]+ .B +(\S+) +(\S+) +(.+)$", row)[0]
        for chip in chips.split(", "):
            held = [int(batches[chip][dtype] or 0) for dtype in ("bf16", "fp8")]
            assert shown == [f"{batch:,}" if batch else "-" for batch in held]
            seen.append(chip)
    assert sorted(seen) == sorted(batches)


def test_a_sheet_has_the_numbers_of_its_model(capsys):
    model = rooflines.models.load("gpt-oss-120b")
    rows = json.loads(said(capsys, "models", "openai/gpt-oss-120b", "--json"))
    values = {row["path"]: row["value"] for row in rows}
    assert values["context"] == 131072
    assert values["parameters.total"] == model.parameters().total
    assert values["kv_cache_bytes.bf16.32768"] == model.kv_cache_bytes(32768, "bf16")
    assert values["weights_bytes.published"] == model.weights_bytes()
    h200 = chip_entries()["h200-sxm"].memory["hbm"].capacity_bytes
    assert h200 is not None
    assert values["max_batch.h200-sxm.fp8.8192"] == model.max_batch(h200, 8192, "fp8")
    assert len(table(capsys, "models", "gpt-oss-120b")) == len(rows)
    shape = yaml.safe_load(said(capsys, "models", "gpt-oss-120b").partition("\n")[0])
    assert Shape.model_validate(shape["gpt-oss-120b"]) == Shape.model_validate(
        {key: getattr(model.shape, key) for key in Shape.model_fields}
    )


def test_a_chip_holds_a_model_if_weights_and_one_cache_fit():
    """H100 with 85 GB hold 72.7 GB in fp8 and not 141 GB in bf16; none holds DeepSeek-V3."""
    held = {
        chip: batches for chip, _, batches in fitting_chips(rooflines.models.load("llama-3.1-70b"))
    }
    assert held["h100-sxm"] == {"bf16": 0, "fp8": 4}
    assert "l40s" not in held
    assert not list(fitting_chips(rooflines.models.load("deepseek-v3")))
    assert not [
        line for line in model_numbers(rooflines.models.load("deepseek-v3")) if "max_" in line[0]
    ]


def test_the_config_of_a_model_can_be_given(tmp_path, capsys):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config_of("deepseek-v3")), encoding="utf-8")
    for path in (file, tmp_path):
        shown = said(capsys, "models", str(path))
        assert "parameters.total                  671,026,419,200" in shown
        assert "without the layers for multi-token prediction" in shown
        assert "Fits on no single chip" in shown
        assert "weights_bytes.published" in shown
    file.write_text('{"model_type": "mamba"}')
    assert cli.run(["models", str(file)]) == 2
    assert capsys.readouterr().err.startswith(f"{file}: model_type is 'mamba': every layer is")


def test_the_file_of_the_workflow_has_the_models(tmp_path):
    make_outputs({"sweeps": {"one": matmul()}}, tmp_path, "model-shapes.csv")
    file = tmp_path / "model-shapes.csv"
    assert record_file(tmp_path, file).is_file()
    rows = list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8"))))
    assert [row["model"] for row in rows] == list(model_entries())
    assert list(rows[0]) == [column.name for column in MODEL_SHAPES]
    for column in MODEL_SHAPES:
        assert column.null or all(row[column.name] for row in rows)
    assert not [cell for row in rows for cell in row.values() if cell[:1] in tuple("=+-@")]
    by_id = {row["model"]: row for row in rows}
    windowed = {name: row["windowed_elements_per_token"] for name, row in by_id.items()}
    assert windowed["gpt-oss-20b"] == "12288"
    assert windowed["gemma-4-26b-a4b"] == "102400"  # 25 layers, 8 heads of 256 where others have 2
    assert by_id["llama-3.1-8b"]["window"] == ""
    assert by_id["llama-3.1-8b"]["context"] == "131072"
    assert by_id["glm-4.5-air"]["note"].endswith("the count is without both token tables")


def test_every_chip_that_holds_a_model_is_on_its_screen(capsys):
    shown = said(capsys, "models", "llama-3.1-8b").replace(",", " ").split()
    held = {chip for chip, *_ in fitting_chips(find_model("llama-3.1-8b"))}
    assert len(held) > 20
    assert held - {*shown} == set()
