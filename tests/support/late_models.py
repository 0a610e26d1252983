"""What is printed of late models, in tests/cases/published-configs.yaml, against a model."""

import pytest
from case_files import case

from rooflines import models
from rooflines.models.memory import stores_of

READ = case("published-configs")["read"]

CONTEXT = 131_072


def assert_as_printed(model, row):
    """Demand the parameters of a model, the elements and bytes that it caches, and the reads."""
    assert model.parameters().total / 1e9 == pytest.approx(row["total"], abs=row["close"])
    stores = stores_of(model.shape)
    elements = [s.layers * s.elements for s in stores if not s.state and s.reach.tokens is None]
    assert sum(elements) == row["per_token"]
    held = [s.held(CONTEXT) * (s.bits or 8) / 8e6 for s in stores if s.state or s.reach.tokens]
    assert sum(held) == pytest.approx(row["fixed"], abs=0.51)
    step, groups = models.Step(1, CONTEXT), model.groups("decode")
    moved = sum(g.count * g.of("cache", step) * (g.bits or 8) for g in groups if g.cache)
    assert float(moved) / 8e9 == pytest.approx(row["read"], abs=6e-4)
