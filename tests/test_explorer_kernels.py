"""Kernels in the explorer: Python's numbers, sentences and commands; one page for all."""

import csv
import random
import re
from pathlib import Path
from urllib.parse import urlencode

import effort
import explorer_kernels as kernels
import pytest
from faces import show
from playwright.sync_api import expect
from visits import PHONE, visiting

from rooflines.answers.kernel_question import parse_kernel_words
from rooflines.cli.main import run
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.kinds.kind_table import KINDS

STATES = effort.cases(1500)

UNFINISHED = r"null|undefined|NaN|Infinity|\[object|  |\.\.|\{"
"""Texts that no sentence has."""


@pytest.fixture(scope="module")
def visit(browser, site):
    with visiting(browser, site.as_uri(), "index.html") as one:
        show(one.page, {"subject": "attention"})  # loads the kernels
        yield one
        assert one.faults == []


def rows(visit, states):
    return visit.page.evaluate(kernels.ROWS, [urlencode(state) for state in states])


def test_numbers_of_kernels_are_those_of_python(visit):
    """Kinds, letters, options, dtypes and chips at random: works, times, thresholds, estimates."""
    states = [kernels.random_kernel() for _ in range(STATES)]
    answers = [kernels.explained(state) for state in states]
    for state, seen, value in zip(states, rows(visit, states), answers, strict=True):
        assert kernels.wrong(seen, value) == [], state
        if value is not None:
            assert seen["unavailable"] == [], state
            assert not re.search(UNFINISHED, seen["verdict"]), state
            mean = state.get("routing", "uniform") == "uniform" and state["subject"] in {
                "experts",
                "embedding",
            }
            assert ("at the mean of uniform routing" in seen["verdict"]) == mean, state
    assert any(value and value["estimate"] for value in answers)
    assert None in answers


def test_commands_of_kernels_ask_the_same(visit):
    states = [kernels.random_kernel() for _ in range(STATES)]
    for state, seen in zip(states, rows(visit, states), strict=True):
        if "unsupported" in seen:
            continue
        program, command, *words = seen["command"].split()
        assert (program, command) == ("rooflines", "explain")
        words = [word for word in words if not word.startswith("--")]
        question = parse_kernel_words(words, chip_entries(), {})
        assert question, seen["command"]
        asked = {**question.options, **{name: one for name, (one,) in question.sizes.items()}}
        (case,) = question.cases()
        dtypes = {**case.dtypes}
        assert (question.subject, question.chips) == (state["subject"], [state["chips"]])
        kind = KINDS[state["subject"]]
        letters = {letter: state[letter] for letter in kind.letters if letter in state}
        assert {letter: asked[letter] for letter in letters} == letters
        for name, values in kind.choices.items():
            assert asked.get(name, next(iter(values))) == state[name], seen["command"]
        for role in ("x", "w", "cache", "out", "compute"):
            assert dtypes.get(role) == state.get(role), seen["command"]
        assert dtypes.get("") == state.get("dtypes"), seen["command"]


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ({"basis": "bound"}, "at least 80.2 µs, memory-bound"),
        ({"T": 4, "N": 128, "K": 1}, "Compute-bound from S = 701"),
        ({"phase": "prefill", "B": 1, "N": 64, "T": 64, "along": "K"}, "up to K = 13."),
        ({"subject": "experts", "basis": "bound"}, "3.31 ms at the mean of uniform routing,"),
        ({"subject": "experts"}, "at least 106 µs whatever the routing"),
        ({"subject": "experts", "chips": "b200"}, "Compute-bound from B = 9,579."),
        ({"subject": "rmsnorm"}, "at least 40.1 µs, memory-bound; 134 MB of compulsory traffic"),
        ({"subject": "rmsnorm"}, "Untimed: no timings of this kernel are fitted"),
        ({"chips": "mi300x"}, "Untimed: no timings of this on MI300X."),
        ({"window": 4096, "basis": "calibrated"}, "beyond the timed sizes"),
        ({"chips": "tpu-v2", "subject": "softmax"}, "Vector work is untimed"),
        ({"K": 5}, "K=5 does not divide N=32"),
        ({"mask": "full", "window": 9}, "a window needs causal"),
        ({"variant": "backward"}, "decode has no backward"),
        ({"chips": "h100-sxm,b200", "basis": "bound"}, "B200 is the fastest of the chosen chips"),
    ],
    ids=str,
)
def test_a_verdict_on_a_kernel_says_what_matters(visit, state, says):
    show(visit.page, {"subject": "attention", "chips": "h100-sxm", **state})
    words = [visit.page.locator(f"#{name}").inner_text() for name in ("unable", "lead", "rest")]
    assert says in " ".join(words)


def test_a_kernel_is_asked_by_the_form(visit):
    page = visit.page
    show(page, {"chips": "h100-sxm,tpu-v5p", "B": 4096, "D": 4096})
    page.locator("#subject").select_option("attention")
    expect(page.locator("#lead")).to_contain_text("attention (decode causal): at least 80.2 µs")
    assert "D=" not in page.url
    assert not page.locator("#size-B").is_visible()
    page.get_by_label("S tokens after the step").fill("4096")
    page.keyboard.press("Enter")
    expect(page.locator("#command")).to_contain_text("attention B=8 S=4096 N=32 K=8 H=128")
    page.get_by_label("window, slider").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#command")).to_contain_text("window=")
    page.locator("#letter-window").fill("")
    page.keyboard.press("Enter")
    expect(page.locator("#command")).not_to_contain_text("window=")
    page.locator("#kernel-cache").select_option("fp8")
    expect(page.locator("#command")).to_contain_text("bf16 cache=fp8")
    assert page.locator("#letter-T").get_attribute("placeholder") == "1"
    assert not page.locator("#unknown").is_visible()
    with page.expect_download() as download:
        page.locator("#save-csv").click()
    first, _ = csv.DictReader(Path(download.value.path()).read_text().splitlines())
    (seen,) = rows(visit, [dict(re.findall(r"(\w+)=([^&]*)", page.url)) | {"chips": "h100-sxm"}])
    assert float(first["time_s"]) == pytest.approx(seen["numbers"][6], rel=1e-12)
    assert first["compute_bound_from"] == "never"
    page.get_by_role("radio", name="Bytes and FLOP").check()
    expect(page.locator("#panel")).to_contain_text("67,108,864")
    page.go_back()
    expect(page.locator("#panel")).to_contain_text("Compute-bound from this size on")


def test_all_kinds_fit_a_phone_and_run_as_commands(visit, capsys):
    window = visit.page.viewport_size
    visit.page.set_viewport_size(PHONE)
    overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    for name in random.sample([*KINDS], 4):
        show(visit.page, {"subject": name, "chips": "h100-sxm"})
        visit.page.locator("#ask").evaluate("(one) => { one.open = true; }")
        assert visit.page.evaluate(overflow) <= 0, name
        _, *words = visit.page.locator("#command").inner_text().split()
        assert run(words) == 0, words
        capsys.readouterr()
    visit.page.set_viewport_size(window)
