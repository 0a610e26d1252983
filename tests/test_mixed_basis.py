"""Tables with and without calibrations: estimates stay, and other rows say their basis."""

import json

from command_line import said


def rows_of(capsys, *words):
    return json.loads(said(capsys, *words, "--json"))["rows"]


def test_a_chip_without_a_calibration_leaves_the_estimates_of_others(capsys):
    words = "h100-sxm", "llama-3.1-8b", "B=16", "S=4096", "bf16", "tp1"
    screen = said(capsys, "explain", ",".join([words[0], "trainium2"]), *words[1:])
    assert "no calibration of trainium2 in bf16" in screen
    assert "do not rank beside estimates" in screen
    fitted, unfitted = rows_of(capsys, "explain", "h100-sxm,trainium2", *words[1:])
    (alone,) = rows_of(capsys, "explain", "h100-sxm,b200", *words[1:])[:1]
    assert (fitted["basis"], unfitted["basis"]) == ("estimate", "serialized")
    assert fitted["t_basis_s"] == fitted["t_estimate_s"] == alone["t_estimate_s"]
    assert unfitted["t_basis_s"] == unfitted["t_serial_s"]
    assert fitted["usd_per_mtok_basis"] == fitted["usd_per_mtok_estimate"]
    assert unfitted["tokens_per_s_per_chip_basis"] == unfitted["tokens_per_s_per_chip_serial"]


def test_chips_that_train_are_sorted_by_what_is_asked_estimates_first(capsys):
    words = "train", "mi300x,h100-sxm,b200", "llama-3.1-8b", "B=8", "S=4096", "--chips", "2"
    _, headline, *_ = said(capsys, *words).splitlines()
    rows = rows_of(capsys, *words)
    assert [row["basis"] for row in rows] == ["estimate", "estimate", "serialized"]
    assert rows[0]["t_basis_s"] < rows[1]["t_basis_s"]
    assert headline.startswith(f"By the estimate: quickest {rows[0]['chip']}, ")
    cheapest = min(rows[:2], key=lambda row: row["usd_per_mtok_trained"])
    assert f"cheapest {cheapest['chip']}, $" in headline
    (first, *_) = rows_of(capsys, *words, "cheapest")
    assert first["chip"] == cheapest["chip"]
