"""The page "What if" against Python: every number that it shows, over random states."""

import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import effort
import pytest
from conftest import IN_BOTH
from playwright.sync_api import Browser, Page, expect
from shown import rounds_to
from visits import Visit, serving, visiting

from rooflines import RooflinesError, explain
from rooflines.catalogue.chips import chip_entries, dtype_entries
from rooflines.catalogue.entries import MAIN_MEMORY, Chip
from rooflines.explanation.answer import Explanation
from rooflines.explanation.question import dtypes_on
from rooflines.fits.entries import shipped_calibrations
from rooflines.model.network import BETWEEN
from rooflines.model.operation import MATRIX, NAMED, Operation
from rooflines.model.sharding import NAMED as SHARDINGS
from rooflines.model.sharding import SHARDS, sharding
from rooflines.site.formulas import routes_of

SEED = 7
STATES = effort.cases(60)
OWN = {"peak": 1e12, "memory": 1e9, "link": 1e9}
"""Units of own numbers: TFLOP/s and GB/s."""

FOUR_DIGITS = ("memory_intensity", "ridge")
"""Numbers with four digits, besides rates; the others have three."""

State = dict[str, Any]


@pytest.fixture(scope="module")
def visit(browser: Browser, site: Path) -> Iterator[Visit]:
    """The page, without errors or requests to other hosts."""
    with visiting(browser, site.as_uri(), "what-if.html") as one:
        yield one


def go(page: Page, state: Mapping[str, object]) -> None:
    """Show a state, by its address."""
    text = urlencode(state)
    address = page.evaluate("(text) => { location.hash = text; return location.hash; }", text)
    expect(page.locator(".what-if")).to_have_attribute("data-drawn", address)


def shown(page: Page, side: str) -> dict[str, str]:
    """The numbers of a side by name."""
    values: dict[str, str] = page.evaluate(
        "(id) => Object.fromEntries([...document.querySelectorAll(`#${id} [data-value]`)]"
        ".map((one) => [one.dataset.value, one.textContent]))",
        f"side-{side}",
    )
    return values


# ---------------------------------------------------------------- random states


def splits(op: Operation) -> list[str]:
    """The shardings of an operation."""
    names = []
    for name in SHARDINGS:
        try:
            sharding(name, op)
        except RooflinesError:
            continue
        names.append(name)
    return names


def random_side(drawn: random.Random, op: Operation) -> State:
    """Choices of one side; now and then of what the chip lacks."""
    calibrated = {key.partition("/")[0] for key in shipped_calibrations().calibrations}
    chip = drawn.choice(sorted(calibrated if drawn.random() < 0.4 else chip_entries()))
    names = dtypes_on(chip_entries()[chip], op.unit)
    if not names or drawn.random() < 0.1:
        names = list(dtype_entries().combinations)
    side: State = {"chip": chip, "dtypes": drawn.choice(names), "sharding": "none"}
    if drawn.random() < 0.7:
        side["sharding"] = drawn.choice(splits(op))
        side["shards"] = drawn.choice([1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 1000])
        if networks := list(routes_of(chip_entries()[chip])):
            side["network"] = drawn.choice(networks)
    if drawn.random() < 0.2:
        side["calibration"] = "none"
    for name in OWN:
        if drawn.random() < 0.15:
            side[name] = drawn.choice([0.5, 75, 1234.5, 98765])
    return side


def random_state(drawn: random.Random) -> tuple[Operation, dict[str, int], State, State]:
    """An operation, its sizes and two sides."""
    op = NAMED[drawn.choice(list(NAMED))]
    sizes = {
        dim: drawn.choice([2 ** drawn.randrange(18), drawn.randint(1, 30_000)]) for dim in op.dims
    }
    return op, sizes, random_side(drawn, op), random_side(drawn, op)


def address_of(op: Operation, sizes: Mapping[str, int], a: State, b: State) -> State:
    """The state as the address has it."""
    return {"op": op.name, **sizes, **a, **{f"b.{name}": value for name, value in b.items()}}


def with_own_numbers(side: State, unit: str) -> Chip:
    """The chip of a side with its own numbers."""
    plain = chip_entries()[side["chip"]].model_copy(deep=True).plain
    if "peak" in side:
        compute = dtype_entries().combinations[side["dtypes"]].compute
        peaks = plain["units"].setdefault(unit, {})
        peaks[compute] = {"flops_per_s": side["peak"] * OWN["peak"]}
    if "memory" in side:
        plain["memory"].setdefault(MAIN_MEMORY, {})["bytes_per_s"] = side["memory"] * OWN["memory"]
    if "link" in side and side.get("network") in plain["networks"]:
        plain["networks"][side["network"]]["bytes_per_s"] = side["link"] * OWN["link"]
    return Chip.model_validate(plain)


def softwares(side: State, unit: str) -> list[str] | None:
    """The software of the estimate first, then those whose collectives may count."""
    shipped = shipped_calibrations()
    compute = dtype_entries().combinations[side["dtypes"]].compute
    names = [name for name in shipped.softwares if shipped.matmul(side["chip"], [name], compute)]
    chosen = side.get("calibration")
    if unit != MATRIX or not names or chosen == "none":
        return None
    first = chosen if chosen in names else names[0]
    return [first, *(name for name in shipped.softwares if name != first)]


def explained(op: Operation, sizes: Mapping[str, int], side: State) -> Explanation | None:
    """The same from Python; None if the chip cannot do it."""
    split = side["sharding"] != "none"
    try:
        return explain(
            side["chip"],
            sizes,
            side["dtypes"],
            operation=op.name,
            sharding=side["sharding"] if split else None,
            shards=side["shards"] if split else 1,
            network=side["network"].split(BETWEEN) if split and "network" in side else None,
            calibration=softwares(side, op.unit),
            chips={side["chip"]: with_own_numbers(side, op.unit)},
        )
    except RooflinesError:
        return None


# ---------------------------------------------------------------- shown numbers


def digits_of(name: str) -> int:
    """Significant digits that the page shows of a number [1]."""
    return 4 if name in FOUR_DIGITS or name.startswith("rate_") else 3


def answer_of(axis: str, threshold: Mapping[str, Any]) -> str:
    """The text of a threshold."""
    outcome, critical = threshold["outcome"], threshold["critical"]
    if critical is not None and axis == SHARDS:
        return f"≤ {critical:,}"
    if outcome == "found":
        return f"{critical:,}"
    return {
        "always": "any",
        "endless": "any",
        "never": "never",
        "domain-unknown": "unknown",
        "beyond": "beyond 2^62",
    }[outcome]


def numbers_in(answer: Explanation) -> dict[str, float]:
    """The numbers of an explanation by the names of the page."""
    row = answer.row
    found = {
        name: row[name]
        for name in (
            "t_lower_s",
            "t_upper_s",
            "memory_intensity",
            "footprint_bytes",
            "attained_flops_per_s",
            "utilization",
        )
    }
    for use in answer.uses:
        found[f"t_{use.resource}_s"] = use.time_s
        found[use.column] = use.work
        found[f"rate_{use.resource}"] = use.per_s
        if use.resource == "memory":
            found["ridge"] = use.needed_intensity
    if answer.capacity_bytes is not None:
        found["capacity_bytes"] = answer.capacity_bytes
    found |= {f"critical.{axis}.tends": share for axis, share in answer.limit_shares.items()}
    estimates = ("t_estimate_s", "t_estimate_p10_s", "t_estimate_p90_s")
    return found | {name: row[name] for name in estimates if row[name] is not None}


def texts_in(answer: Explanation) -> dict[str, str]:
    """The bound and the thresholds of an explanation by the names of the page."""
    texts = {"bound": f"{answer.row['bound']}-bound"}
    for threshold in answer.thresholds:
        less = "" if threshold["share"] == 1 else f".{threshold['share']}"
        texts[f"critical.{threshold['axis']}{less}"] = answer_of(threshold["axis"], threshold)
    if answer.row["t_estimate_s"] is not None:
        texts["estimate_bound"] = f"{answer.row['estimate_bound']}-bound"
    return texts


GROUPS = {"dtypes": "bf16", "sharding": "batch/gather-w", "network": "nvlink+infiniband"}
RINGS = {"dtypes": "bf16", "sharding": "contracting/all-reduce", "network": "ici"}
CHOSEN = (
    (
        NAMED["matmul"],
        {"B": 65536, "D": 65536, "F": 65536},
        {**RINGS, "chip": "tpu-v4", "shards": 64},
        {**RINGS, "chip": "tpu-v5p", "shards": 12},
    ),
    (
        NAMED["matmul"],
        {"B": 4096, "D": 8192, "F": 8192},
        {"chip": "inferentia2", "dtypes": "bf16", "sharding": "batch", "shards": 1},
        {**RINGS, "chip": "tpu-v5e", "shards": 16},
    ),
    (
        NAMED["matmul"],
        {"B": 2**20, "D": 16384, "F": 16384},
        {**GROUPS, "chip": "h100-sxm", "shards": 64},
        {**GROUPS, "chip": "h100-sxm", "shards": 6},
    ),
    (
        NAMED["matmul"],
        {"B": 4096, "D": 8192, "F": 28672},
        {**GROUPS, "chip": "b200", "shards": 32},
        {**GROUPS, "chip": "b200", "shards": 12},
    ),
)
"""Rings and lines of several lengths, groups of chips, and a chip without a network."""


@IN_BOTH
def test_every_shown_number_is_that_of_python(visit: Visit) -> None:
    """Both sides of random states: exact thresholds, and times, works, rates and shares."""
    drawn = random.Random(SEED)  # noqa: S311, not for secrets
    answered = estimated = 0
    for op, sizes, a, b in (*CHOSEN, *(random_state(drawn) for _ in range(STATES))):
        state = address_of(op, sizes, a, b)
        go(visit.page, state)
        for key, side in (("a", a), ("b", b)):
            answer = explained(op, sizes, side)
            seen = {
                name: value
                for name, value in shown(visit.page, key).items()
                if not (name.startswith("critical.") and name.endswith(".estimate"))
            }
            if answer is None:
                assert seen == {}, state
                assert visit.page.locator(f"#side-{key} .notice").inner_text(), state
                continue
            answered += 1
            estimated += answer.row["t_estimate_s"] is not None
            numbers, texts = numbers_in(answer), texts_in(answer)
            assert seen.keys() == numbers.keys() | texts.keys(), state
            assert {name: seen[name] for name in texts} == texts, state
            wrong = {
                name: (seen[name], value)
                for name, value in numbers.items()
                if not rounds_to(seen[name], value, digits_of(name))
            }
            assert wrong == {}, state
    assert answered > STATES
    assert estimated > STATES / 4


@IN_BOTH
def test_ties_and_ends_of_exact_arithmetic(visit: Visit) -> None:
    """Equal slopes, equal values, decimals, and searches that find nothing, one, or all."""
    code = """() => {
      const { ratio, rational, decimal, overtakes, last, ceil, number, minus } = EXACT;
      const affine = (slope, constant) =>
        ({ slope: rational(slope), constant: rational(constant) });
      const from = (a, b, c, d) => {
        const at = overtakes(affine(a, b), affine(c, d));
        return at && `${at.n}/${at.d}`;
      };
      const found = (top, to) => String(last(top, (k) => k <= to));
      return [
        from(2, 0, 1, "7/2"), from(2, 9, 1, 0), from(1, 1, 1, 1),
        from(1, 0, 1, "1/9"), from(1, 5, 2, 0),
        String(decimal("1.25e-2").d), decimal("1e"), decimal("-1"), decimal("0x10"),
        ["7/2", 4, "-1/2"].map((text) => String(ceil(rational(text)))).join(),
        number(minus(rational("1/3"), rational("2/3"))),
        number(rational("1/3")), number(ratio(10n ** 40n, 3n)),
        [found(-1n, 9n), found(9n, -1n), found(9n, 4n), found(9n, 99n)].join(),
      ];
    }"""
    assert visit.page.evaluate(code) == [
        *("7/2", "0/1", "0/1", None, None),
        *("80", None, None, None),
        "4,4,0",
        *(-1 / 3, 1 / 3, 10**40 / 3),
        "null,null,4,9",
    ]


def test_a_link_to_what_is_not_there_says_so(visit: Visit) -> None:
    """Each unknown choice with what is shown in its place; a valid link says nothing."""
    page = visit.page
    state = {"op": "convolution", "chip": "h200", "B": "1.5", "b.dtypes": "bf61", "peak": "-1"}
    state |= {"<img src=x>": "1", "sharding": "ring", "b.shards": "0", "b.network": "x"}
    go(page, {**state, "b.sharding": "constructor"})
    said = page.locator("#unknown").inner_text()
    for text in (
        "operation convolution: unknown; shown is matmul",
        "side A, chip h200: unknown; shown is tpu-v5e",
        "size B 1.5: no whole number from 1 to 9,007,199,254,740,992; shown is 128",
        "side B, dtypes bf61: unknown; shown is bf16",
        "side A, peak -1: no number from 0.000001 to 1,000,000,000; shown is the data sheet",
        "<img src=x> 1: no choice of this page",
        "side A, sharding ring: unknown; shown is none",
        "side B, sharding constructor: unknown; shown is none",
        "side B, shards 0: no whole number of chips; shown is 1",
        "side B, network x: unknown; shown is nvlink",
    ):
        assert text in said
    go(page, {"chip": "h200-sxm", "theme": "dark"})
    assert page.locator("#unknown").is_hidden()


@IN_BOTH
def test_the_controls_change_the_address_and_the_answers(visit: Visit) -> None:
    """By keyboard: a chip and a size are typed, a slider is moved, a number is one's own."""
    page = visit.open("what-if.html#chip=h100-sxm&D=4096&F=4096")
    side = page.locator("#side-a")
    side.get_by_label("Chip", exact=True).fill("tpu-v5e")
    page.keyboard.press("Enter")
    expect(side.locator("h2 .name")).to_have_text("Cloud TPU v5e (v5 lite)")
    page.get_by_label("B", exact=True).fill("4,096")
    page.keyboard.press("Enter")
    expect(side.locator("[data-value=bound]")).to_have_text("compute-bound")
    assert "B=4096" in page.url
    page.get_by_label("B, on a logarithmic scale").focus()
    page.keyboard.press("Home")
    expect(side.locator("[data-value=bound]")).to_have_text("memory-bound")
    assert "B=1&" in page.url + "&"
    side.get_by_text("Own numbers").click()
    side.get_by_label("Memory bandwidth").fill("2000")
    page.keyboard.press("Enter")
    expect(side.locator("[data-value=rate_memory]")).to_have_text("2 TB/s")
    assert page.locator("#roofline svg .point").count() == 2


def test_a_side_without_an_answer_says_why(visit: Visit) -> None:
    """Missing peaks, too many chips, parts of groups, no network, and negative FLOPs."""
    for state, reason in (
        ({"chip": "tpu-v5e", "dtypes": "fp8"}, "tpu-v5e has no fp8 peak of its matrix unit."),
        ({"chip": "h100-sxm", "sharding": "batch", "shards": 9}, "8 chips at most on one nvlink"),
        ({"chip": "inferentia2", "sharding": "batch", "shards": 2}, "has no interconnect."),
        ({**GROUPS, "chip": "h100-sxm", "shards": 12}, "groups of 8 chips on nvlink+infiniband"),
        (
            {
                "op": "dot",
                "D": 2,
                "chip": "h100-sxm",
                "dtypes": "bf16-compute-fp32",
                "sharding": "contracting/all-reduce",
                "shards": 6,
            },
            "D = 2 split over 6 chips: less than one element each.",
        ),
    ):
        go(visit.page, state)
        assert reason in visit.page.locator("#side-a .notice").inner_text()
        assert shown(visit.page, "a") == {}


def test_an_estimate_says_what_its_fit_includes(visit: Visit) -> None:
    """Dynamic scaling in TensorRT-LLM's fp8; nothing in its bf16."""
    for dtypes, includes in (("fp8", True), ("bf16", False)):
        go(visit.page, {"chip": "b200", "dtypes": dtypes, "calibration": "trtllm"})
        text = visit.page.locator("#side-a").inner_text()
        assert "calibrated to trtllm" in text
        assert ("calibrated to trtllm; includes dynamic scaling of x" in text) == includes


@IN_BOTH
def test_the_page_works_under_a_strict_policy(browser: Browser, site: Path) -> None:
    """Served by a web server, with bars as long as their times."""
    with serving(site) as address, browser.new_context(reduced_motion="reduce") as context:
        one = Visit(context, address)
        page = one.open("what-if.html#chip=h100-sxm")
        widths = page.locator("#side-a .bar").evaluate_all(
            "(bars) => bars.map((bar) => bar.getBoundingClientRect().width)"
        )
        assert widths[0] / widths[1] == pytest.approx(17.4 / 41.3, rel=0.01)
        assert one.faults == []
