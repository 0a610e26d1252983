"""Reports of random examples that fail."""

import random
from typing import Any

import pytest
import random_serving
import yaml
from failing import check_each
from lots import example
from random_training import BESIDE, config

import rooflines


def drawn():
    """A config of training with calibrations."""
    kinds: dict[str, Any] = {
        "family": "dense",
        "other": "one more",
        "beyond": "none",
        "network": "switch",
    }
    kinds |= {"chips": "one", "dtypes": "format", "spelling": "keys", "parts": "dp"}
    kinds |= {"shard": "none", "recompute": "full", "save": "split", "context": "ring"}
    kinds |= {"optimizer": "adam", "micro_batch": 2}
    return [config(**kinds, beside=beside) for beside in BESIDE]


def check(form):
    """Fail for what has 2 sequences a micro-batch and some fits."""
    (sweep,) = form["model-sweeps"].values()
    number = random.random()
    assert sweep["phase"] == "train"
    if "fits" in form and sweep["chips"]:
        assert not any(split.get("micro_batch") == 2 for split in sweep["splits"]), number


def test_a_failure_is_reported_with_what_it_needs_as_files_of_a_run(tmp_path, monkeypatch):
    monkeypatch.setenv("ROOFLINES_SEED", "123")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError) as caught:
        check_each(drawn(), check)
    first, _, files = str(caught.value).partition("# calibrations.yaml\n")
    assert first.startswith("ROOFLINES_SEED=123\nAssertionError: 0.")
    fits, _, text = files.partition("# config.yaml\n")
    (sweep,) = yaml.safe_load(text)["model-sweeps"].values()
    assert sweep == {"phase": "train", "chips": ["own"], "splits": [{"micro_batch": 2}]}
    assert yaml.safe_load(fits) == {}


def test_a_report_is_a_config_that_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def whole_only(form):
        """Fail otherwise where anything is missing, so that nothing is cut."""
        assert form != whole
        raise KeyError

    for whole in [*drawn(), example(random_serving.configs())]:
        with pytest.raises(AssertionError) as caught:
            check_each([whole], whole_only)
        before, _, text = str(caught.value).partition("# config.yaml\n")
        if "fits" in whole:
            fits = before.partition("# calibrations.yaml\n")[2]
            (tmp_path / "calibrations.yaml").write_text(fits)
        assert rooflines.load_config(yaml.safe_load(text)).model_sweeps
