"""The config.json of models: rows of tests/cases/families.yaml."""

from case_files import case

FAMILIES = case("families")


def config_of(name, **changes):
    """The config.json of a published model, with changes."""
    own = FAMILIES["models"][name]
    usual = FAMILIES["usual"]
    if "text_config" in own:
        return merged({**own, "text_config": {**usual, **own["text_config"]}}, changes)
    return merged({**usual, **own}, changes)


def small(family, **changes):
    """A small config.json of a family, with changes."""
    keys = FAMILIES["families"].get(family, {}).get("keys", {})
    return merged({**FAMILIES["small"], "model_type": family, **keys}, changes)


def merged(config, changes):
    """A config with changed keys, those in mappings too; a key that is `absent` is removed."""
    found = dict(config)
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(found.get(key), dict):
            found[key] = merged(found[key], value)
        else:
            found[key] = value
    return {key: value for key, value in found.items() if value != "absent"}
