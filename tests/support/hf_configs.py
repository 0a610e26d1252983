"""The config.json of models: rows of tests/cases/families.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

Config = dict[str, Any]

FAMILIES: Config = yaml.safe_load(
    (Path(__file__).parents[1] / "cases" / "families.yaml").read_text(encoding="utf-8")
)


def config_of(name: str, **changes: object) -> Config:
    """The config.json of a published model, with changes."""
    own = FAMILIES["models"][name]
    usual: Config = FAMILIES["usual"]
    if "text_config" in own:
        return merged({**own, "text_config": {**usual, **own["text_config"]}}, changes)
    return merged({**usual, **own}, changes)


def small(family: str, **changes: object) -> Config:
    """A small config.json of a family, with changes."""
    keys = FAMILIES["families"].get(family, {}).get("keys", {})
    return merged({**FAMILIES["small"], "model_type": family, **keys}, changes)


def merged(config: Config, changes: Config) -> Config:
    """A config with changed keys, those in mappings too; a key that is `absent` is removed."""
    found = dict(config)
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(found.get(key), dict):
            found[key] = merged(found[key], value)
        else:
            found[key] = value
    return {key: value for key, value in found.items() if value != "absent"}
