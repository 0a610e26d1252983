import pytest

from benchmarks.rooms import functions_entered, walks
from rooflines.basics.text import counted

MOST = {"t_memory_s of a matmul": 54, "t_lower_s of a step": 71, "thresholds of a matmul": 65}
"""Limits on the functions that a number passes; they only fall [1]."""


@pytest.fixture(scope="module")
def counts():
    return {name: len(entries) for name, entries in walks().items()}


@pytest.mark.parametrize("name", MOST)
def test_a_number_passes_few_functions(counts, name):
    assert counts[name] <= MOST[name]


def test_a_walk_counts_entries_by_function_and_leaves_comprehensions_out():
    ((function, entries),) = functions_entered(lambda: [counted(n, "chip") for n in (1, 2)]).items()
    assert (function.module, function.name, entries) == ("basics/text.py", "counted", 2)
