"""Published figures of late models, in tests/cases/published-configs.yaml, against a model."""

from fractions import Fraction

import pytest
from case_files import case

from rooflines import models
from rooflines.models.memory import cached_tensors

READ = case("published-configs")["read"]

CONTEXT = 131_072

BYTE = Fraction(8)
"""Bits of an element of the cache [bit]."""


def assert_as_printed(model, row):
    """Demand the parameters of a model, the elements and bytes that it caches, and the reads."""
    assert model.parameters().total / 1e9 == pytest.approx(row["total"], abs=row["close"])
    stores = cached_tensors(model.shape)
    elements = [s.layers * s.elements for s in stores if not s.state and s.window.tokens is None]
    assert sum(elements) == row["per_token"]
    held = [
        float(s.elements_at(CONTEXT) * s.mean_bits(BYTE)) / 8e6
        for s in stores
        if s.state or s.window.tokens
    ]
    assert sum(held) == pytest.approx(row["fixed"], abs=0.51)
    step, groups = models.Step(1, CONTEXT), model.groups("decode")
    moved = sum(
        g.count * g.layer_cost("cache", step) * ((g.bits or 8) + 8 * g.rotary_share)
        for g in groups
        if g.cache
    )
    assert float(moved) / 8e9 == pytest.approx(row["read"], abs=6e-4)
