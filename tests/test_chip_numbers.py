"""Every number of the catalogue reaches users with its source; sources that disagree are listed."""

import re
from typing import Any

import polars as pl
import pytest
from case_files import case
from command_line import said

import rooflines
from rooflines.basics.yaml_file import read_yaml
from rooflines.hardware.chip_catalogue import CHIPS_FILE, chip_entries, chip_sources, resolve_chips
from rooflines.hardware.chip_parts import iter_parts, number_records, part_numbers, source_of
from rooflines.hardware.entries import Chip, Power
from rooflines.results.catalogue_frames import chip_numbers
from rooflines.site.chip_page import chip_details, chip_table

WRITTEN: dict[str, Any] = read_yaml(CHIPS_FILE)["chips"]
REMARKS = {"halved", "estimate", "printed_with_sparsity"}


def written_numbers(chip):
    """The numbers of a chip in the file by dotted path; a single link is the default."""
    found: dict[str, float] = {}

    def walk(path, value):
        if isinstance(value, dict):
            for key, part in value.items():
                if key not in REMARKS:
                    walk(f"{path}.{key}" if path else key, part)
        elif isinstance(value, list):
            for index, part in enumerate(value):
                walk(f"{path}.{index}", part)
        elif type(value) in (int, float) and not (path.endswith(".links") and value == 1):
            found[path] = value

    entry = WRITTEN[chip]
    walk("", {tree: entry[tree] for tree in entry if tree not in {"year", "source"}})
    return found


def test_the_walk_over_a_chip_finds_every_number_of_the_file():
    frame = rooflines.chips()
    for chip, entry in WRITTEN.items():
        if "base" not in entry:
            walked = {
                f"{part.path}.{key}": value
                for part in iter_parts(chip_entries()[chip])
                for key, value in part_numbers(part.entry).items()
                if key not in REMARKS
            }
            assert walked == written_numbers(chip), chip
            rows = frame.filter(frame["chip"] == chip)
            assert dict(zip(rows["path"], rows["value"], strict=True)) == {
                path: value for path, value in walked.items() if not path.startswith("measured")
            }, chip


def test_every_number_has_a_source_in_the_frame():
    frame = rooflines.chips()
    assert frame["source"].null_count() == 0
    found = dict(frame.filter(frame["chip"] == "tpu-v4").select("path", "source").iter_rows())
    assert [found[f"networks.ici.{key}"] for key in ("links", "domain", "hop_latency_s")] == [
        "book-tpus",
        "gcp-v4",
        "book-sharding",
    ]


def test_the_frame_has_rates_and_no_measured_share():
    own = {"base": "h100-sxm", "source": "a test", "efficiency": {"math": 0.8}}
    chips = resolve_chips({"mine": own}, chip_entries())
    assert any(each["path"] == "efficiency.math" for each in number_records(chips["mine"]))
    assert "efficiency.math" not in chip_numbers(chips)["path"]


def test_a_source_is_that_of_the_part_else_of_the_chip():
    whole: dict[str, Any] = {"units": {}, "memory": {}}
    power = Power.model_validate({"watts": 1})
    assert source_of(Chip.model_validate({**whole, "source": "mine"}), power, "watts") == ["mine"]
    assert source_of(Chip.model_validate(whole), power, "watts") == []
    own = Power.model_validate({"watts": 1, "source": {"watts": ["a", "b"]}})
    assert source_of(Chip.model_validate(whole), own, "watts") == ["a", "b"]


def test_the_page_shows_every_number_and_warns_of_boosted_cards():
    bases = {chip: entry for chip, entry in chip_entries().items() if entry.base is None}
    details = chip_details(bases, chip_sources())["chips"]
    for chip, of in details.items():
        assert len(of["numbers"]) == len(written_numbers(chip)), chip
        boosted = "a time below the bound is possible." in " ".join(of["remarks"])
        assert boosted == (WRITTEN[chip].get("clock") == "boost"), chip


def test_the_table_of_chips_has_the_rates_of_the_file():
    chips = chip_entries()
    table = chip_table(chips)
    columns = [column["name"] for column in table["columns"]]
    rows = {
        row["chip"]: row for row in (dict(zip(columns, row, strict=True)) for row in table["rows"])
    }
    assert rows.keys() == chips.keys()
    for chip, entry in WRITTEN.items():
        if "base" in entry:
            continue
        peak = entry["units"]["matrix"].get("bf16", {}).get("flops_per_s")
        memory, networks = entry["memory"]["hbm"], [*entry.get("networks", {}).values()]
        rate = memory["bytes_per_s"]
        first = networks[0]["bytes_per_s"] * networks[0].get("links", 1) if networks else None
        expected = {
            "bf16 peak": peak and peak / 1e12,
            "bandwidth": rate / 1e9,
            "ridge": peak and peak / rate,
            "network": first and first / 1e9,
        }
        for name, number in expected.items():
            assert rows[chip][name] == (number and pytest.approx(number, rel=1e-3)), (chip, name)


def test_a_chip_is_described_once():
    chip = chip_entries()["h100-sxm"]
    frame = rooflines.chips().filter(chip="h100-sxm")
    page = [
        (one["quantity"], one["exact"])
        for one in chip_details({"x": chip}, {})["chips"]["x"]["numbers"]
    ]
    shares = [record["path"] for record in number_records(chip)][frame.height :]
    assert page[: frame.height] == [
        (f"{part}: {meaning}", f"{value} {unit}")
        for part, meaning, value, unit in frame.select("part", "meaning", "value", "unit").rows()
    ]
    assert all(path.split(".")[0] in {"measured", "efficiency", "calibration"} for path in shares)
    assert ("network nvlink (switch): links", "18.0 ") in page
    assert ("memory hbm (HBM3): bandwidth", "3350000000000.0 B/s") in page


def test_the_list_has_the_capacity_and_the_label(capsys):
    lines = {line.split()[0]: line for line in said(capsys, "list", "chips").splitlines() if line}
    assert re.search(r" 85\.02 GB +80 GB ", lines["h100-sxm"])
    assert re.search(r" 128 GB \(estimate\) +128 GB ", lines["gaudi3"])
    assert "85.02 GB (label 80 GB)" in said(capsys, "list", "chips", "h100-sxm")


APART = 1.25
"""Largest ratio of figures for the same quantity; larger ratios are explained below."""

EXPLAINED = case("disagreements")


FIGURE = re.compile(r"(?<![\w.])\d+(?:\.\d+)?e\d+")
SAME_KIND = 2.5
"""Figures further apart than this factor describe another quantity."""


def disputed():
    """Chip, path, value and other figures in the note of each number of a chip with several."""
    noted = rooflines.chips().filter(pl.col("base").is_null(), pl.col("note").is_not_null())
    for chip, path, value, note in noted.select("chip", "path", "value", "note").rows():
        figures = {float(figure) for figure in FIGURE.findall(note)} - {value}
        if others := [each for each in figures if 1 / SAME_KIND < each / value < SAME_KIND]:
            yield chip, path, value, others


def test_sources_are_close_unless_they_count_differently():
    wide = {
        (chip, path)
        for chip, path, value, others in disputed()
        if any(max(other / value, value / other) > APART for other in others)
    }
    assert wide == {(chip, path) for chip, paths in EXPLAINED.items() for path in paths}
