"""The Python face: what a config and its results look like at a prompt, and how a wrong name is refused."""

from __future__ import annotations

import rooflines

SHORT = 1_500
"""Characters of a `repr` that anybody reads."""


def test_a_config_is_shown_in_a_few_lines() -> None:
    """The default config, of 22 sweeps: ten of them, and how many more; one sweep alone is one line."""
    config = rooflines.load_config()
    shown = repr(config)
    assert len(shown) < SHORT
    assert shown.splitlines()[0].endswith(f"{len(config.sweeps)} sweeps, 3,523,305 rows, {len(config.charts)} charts>")
    assert f"... and {len(config.sweeps) - 10} more" in shown.splitlines()[-1]
    assert "\n" not in repr(config.sweep("model-shapes"))
