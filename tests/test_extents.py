"""Extents: a name for each, its value in a step, and the same value as an expression."""

from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_sweeps import check

from rooflines.models import Step
from rooflines.models.groups import StepExtents
from rooflines.theory.attention_window import FULL_ATTENTION, AttentionWindow
from rooflines.theory.extents import (
    SEQUENCES,
    TOKENS,
    ActivatedExperts,
    Attended,
    B,
    DraftPairs,
    Entries,
    Extent,
    Pairs,
    Product,
    S,
    Size,
    T,
    Tiles,
)
from rooflines.theory.poly import Poly

WINDOW, CHUNK = AttentionWindow(4096), AttentionWindow(8192, chunked=True)

NAMES: dict[str, Extent] = {
    "B": B,
    "micro_batch": Size("micro_batch"),
    "B/512": Tiles((B,), 512),
    "B*T/128": Tiles(TOKENS, 128),
    "pairs:4096": Pairs(WINDOW),
    "pairs:chunk-8192": Pairs(CHUNK),
    "entries:": Entries(FULL_ATTENTION),
    "drafts:4096": DraftPairs(WINDOW),
    "touched:128,8,1": ActivatedExperts(128, 8),
    "touched:128,8,1/2": ActivatedExperts(128, 8, Fraction(1, 2)),
    "touched:128,8,1/2,B": ActivatedExperts(128, 8, Fraction(1, 2), SEQUENCES),
}


@pytest.mark.parametrize("name", NAMES)
def test_an_extent_is_its_name(name):
    extent = NAMES[name]
    assert (extent, hash(extent)) == (name, hash(name))


def test_sizes_of_extents():
    assert NAMES["B*T/128"].sizes == {"B", "T"}
    assert Pairs(WINDOW).sizes == {"S", "T"}
    assert NAMES["touched:128,8,1/2,B"].sizes == {"B"}
    assert ActivatedExperts(128, 8).chosen_by(Fraction(1, 4), SEQUENCES).sizes == {"B"}


@check(200)
@given(
    batch=st.integers(1, 10**6),
    context=st.integers(1, 10**5),
    new=st.integers(1, 10**5),
    extent=st.sampled_from([each for name, each in NAMES.items() if name != "micro_batch"]),
)
def test_expressions_have_the_values_of_steps(batch, context, new, extent):
    step = Step(batch, context, min(new, context))
    extents = StepExtents(step)
    row: dict[str, float] = {"B": step.B, "S": step.S, "T": step.T}
    if isinstance(extent, Attended):  # a column of the sweep
        row[extent] = float(extents[extent])
    found = extent.expression({name: pl.col(name).cast(pl.Float64) for name in row})
    (value,) = pl.DataFrame(row).select(found.alias("value"))["value"]
    assert value == pytest.approx(float(extents[extent]), rel=1e-12)


def polynomial(terms: dict[Product, int]) -> Poly:
    return Poly({product: Fraction(coefficient) for product, coefficient in terms.items()})


def test_lines_along_a_size_keep_what_depends_on_it_apart():
    tiles, pairs, experts = Tiles(TOKENS, 128), Pairs(WINDOW), ActivatedExperts(128, 8)
    poly = polynomial({(): 7, (B, T): 2, (tiles,): 3, (B, pairs): 5, (experts,): 11, (S,): 13})
    along = poly.affine_in("B")
    assert along.slope == polynomial({(T,): 2, (pairs,): 5})
    assert along.constant == polynomial({(): 7, (S,): 13})
    assert along.expert == polynomial({(experts,): 11})
    assert along.per_tile == {tiles: polynomial({(): 3})}
    assert not along.per_attended
    context = poly.affine_in("S")
    assert context.slope == polynomial({(): 13})
    assert context.per_attended == {pairs: polynomial({(B,): 5})}
    assert polynomial({(Tiles((B,), 16), T): 3}).affine_in("B", 16).slope == polynomial({(T,): 3})


def test_a_size_without_a_value_is_refused():
    with pytest.raises(KeyError, match="micro_batch"):
        StepExtents(Step(1, 1))[Size("micro_batch")]
