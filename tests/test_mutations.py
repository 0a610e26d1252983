"""`make mutate`: modules that it draws, and the report of survivors."""

import random
from collections import Counter
from importlib import util
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

PROGRAM = Path(__file__).parent / "verify" / "mutate.py"


@pytest.fixture(scope="module")
def mutate():
    spec = util.spec_from_file_location("mutate", PROGRAM)
    assert spec
    assert spec.loader
    made = util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


LINES = Counter(
    {
        "rooflines/training/training_kernels.py": 500,
        "rooflines/training/stage_memory.py": 99,
        "rooflines/training/gone.py": 101,
        "rooflines/cli/explain.py": 200,
        "rooflines/api.py": 100,
        "rooflines/deleted/whole.py": 7000,
    }
)
EVERY = [
    *(path for path in LINES if "gone" not in path and "whole" not in path),
    *(f"rooflines/theory/quiet_{number}.py" for number in range(9)),
    *(f"rooflines/training/{name}.py" for name in "abcdefgh"),
    *(f"rooflines/cli/{name}.py" for name in "abcdefgh"),
]


def test_sub_packages_are_drawn_in_proportion_to_their_changed_lines(mutate):
    """700 lines of training, 200 of the command line, 100 of a top module, none of the model."""
    for seed in range(20):
        found = mutate.drawn(EVERY, LINES, 10, random.Random(seed))
        assert len(set(found)) == len(found) == 10
        assert set(found) <= set(EVERY)
        assert Counter(map(mutate.package_of, found)) == {"training": 7, "cli": 2, "api": 1}


def test_modules_that_changed_most_are_drawn_most(mutate):
    draws = (mutate.drawn(EVERY, LINES, 1, random.Random(seed)) for seed in range(200))
    counts = Counter(path for found in draws for path in found)
    assert counts["rooflines/training/training_kernels.py"] > 120
    assert counts["rooflines/training/stage_memory.py"] > 10
    assert all(mutate.package_of(path) == "training" for path in counts)


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 1000), min_size=1),
    st.integers(1, 60),
)
def test_quotas_add_up_and_are_off_by_less_than_one(mutate, weights, number):
    if not sum(weights.values()):
        return
    found = mutate.quotas(weights, number)
    assert sum(found.values()) == number
    for name, weight in weights.items():
        assert abs(found[name] - number * weight / sum(weights.values())) < 1


def test_lines_are_added_up_over_commits(mutate):
    log = "3\t1\trooflines/a.py\n-\t-\trooflines/font.gz\n\n10\t0\trooflines/a.py\n"
    assert mutate.changed_lines(log) == {"rooflines/a.py": 14, "rooflines/font.gz": 0}


def test_survivors_are_a_page_with_the_lines_around_each(mutate):
    path, tests = "rooflines/theory/gone.py", ["tests/test_a.py", "tests/test_b.py"]
    shown = mutate.around("one\ntwo\n\nfour\nfive\nsix\n", 2)
    assert shown == ["     1 one", ">    2 two", "     3", "     4 four", "     5 five"]
    page = mutate.report(7, "abc1234", {"theory": 3, "cli": 2}, [(path, 2, shown, "a -> b", tests)])
    assert page.startswith("# 1 of 5 changes were noticed by no test\n")
    assert "mutate.py --seed 7` at abc1234" in page
    assert "| cli | 2 | 0 |\n| theory | 3 | 1 |\n" in page
    assert f"## {path}:2\n\n`a -> b`\n\n```text\n     1 one\n>    2 two\n" in page
    assert page.endswith("```\n\ntests/test_a.py, tests/test_b.py\n")


@pytest.mark.parametrize(
    ("path", "test"),
    [("evaluation/pools.py", "test_pools.py"), ("run/stale.py", "test_stale.py")],
)
def test_the_tests_with_the_name_of_a_module_are_nearest(mutate, path, test):
    found = mutate.nearest(mutate.ROOT / "rooflines" / path, mutate.importers())
    assert found[0] == f"tests/{test}"
