"""The page "Models" against Python: every number that it shows, over random states."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import effort
import polars as pl
import pytest
from bundles import CONFIG, HOSTILE
from conftest import IN_BOTH
from playwright.sync_api import expect
from shown import rounds_to
from visits import Visit, visiting

from rooflines import load_config
from rooflines.model.columns import NEVER
from rooflines.models.shape import DECODE
from rooflines.results.tables import metadata_of
from rooflines.serving.layers import kernel_rows
from rooflines.serving.lines import CaseLines
from rooflines.serving.rows import step_rows
from rooflines.serving.solving import context_ceiling, critical_batch
from rooflines.serving.sweep import checked_model_sweep
from rooflines.site import steps

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from rooflines.serving.case import Case
    from rooflines.serving.sweep import ModelSweep

SEED = 18
STATES = effort.cases(70)
LONGEST = 2**20
"""The last context that the page looks at [1]."""

KERNELS = (
    "() => [...document.querySelectorAll('#time tbody tr')].map((row) =>"
    " [row.dataset.kernel, [...row.querySelectorAll('td')].map((one) => one.textContent)])"
)
"""The rows of the table of kernels by name."""

State = dict[str, Any]

COLUMNS = (
    *("t_lower_s", "t_ops_s", "t_upper_s", "t_estimate_s"),
    *("tokens_per_s_per_chip", "tokens_per_s_per_chip_ops"),
    *("footprint_bytes", "weights_footprint_bytes", "cache_footprint_bytes"),
)
"""Numbers that the page shows by the names of columns."""


@pytest.fixture(scope="module")
def visit(browser: Browser, site: Path) -> Iterator[Visit]:
    """The page, without errors or requests to other hosts."""
    with visiting(browser, site.as_uri(), "models.html") as one:
        yield one


@pytest.fixture(scope="module")
def sweeps() -> dict[str, ModelSweep]:
    """The sweeps of the site."""
    return dict(load_config(CONFIG).model_sweeps)


def go(page: Page, state: Mapping[str, object]) -> None:
    """Show a state, by its address."""
    address = page.evaluate(
        "(text) => { location.hash = text; return location.hash; }", urlencode(state)
    )
    expect(page.locator(".models")).to_have_attribute("data-drawn", address)


def shown(page: Page) -> dict[str, str]:
    """The numbers of the page by name."""
    values: dict[str, str] = page.evaluate(
        "() => Object.fromEntries([...document.querySelectorAll('[data-value]')]"
        ".map((one) => [one.dataset.value, one.textContent]))"
    )
    return values


# ---------------------------------------------------------------- random states


def random_state(drawn: random.Random, sweeps: Mapping[str, ModelSweep]) -> tuple[Case, State]:
    """A case of a sweep, and a state of the page; sizes are not those of the sweep."""
    sweep = sweeps[drawn.choice(list(sweeps))]
    case = drawn.choice(drawn.choice(sweep.blocks).cases)
    new: int = drawn.choice(sweep.new_tokens or (1,))
    batch = max(drawn.choice([2 ** drawn.randrange(14), drawn.randint(1, 3000)]), case.split.dp)
    context = drawn.choice([10 ** drawn.randrange(1, 6), drawn.randint(20, 200_000)])
    state = {
        "sweep": sweep.name,
        "model": case.name,
        "chip": case.chip,
        "memory": case.memory,
        "network": "null" if case.network is None else case.network,
        "dtypes": case.dtypes.label,
        "split": case.split.name,
        "phase": case.phase,
        "S": max(context, new),
        "B": batch,
    }
    return case, state | ({"T": new} if case.phase == DECODE else {})


def at_sizes(sweep: ModelSweep, case: Case, state: State) -> ModelSweep:
    """A sweep with only the row of a state."""
    grid = {"B": state["B"], "S": state["S"]}
    if "T" in state and state["T"] != 1:
        grid["T"] = state["T"]
    changed = sweep.config.model_dump() | {
        "models": [case.name],
        "chips": [case.chip],
        "memory": [case.memory],
        "network": None if case.network is None else [case.network.split("+")],
        "phase": [case.phase],
        "grid": grid,
        "requests": None,
        "splits": [case.split.model_dump()],
        "dtypes": [case.dtypes.model_dump()],
    }
    config = type(sweep.config).model_validate(changed)
    models = {case.name: sweep.models[case.name]}
    return checked_model_sweep(
        sweep.name, config, models, sweep.chips, sweep.dtypes, sweep.calibrations
    )


# ---------------------------------------------------------------- shown numbers


def answer_of(outcome: str, size: int | None) -> str:
    """The text of a threshold."""
    if size is None or outcome == "always":
        return {"always": "any", "never": "never", "beyond": "beyond 2^62"}[outcome]
    return f"{size:,}"


def numbers_in(row: Mapping[str, Any], new: int) -> dict[str, float]:
    """The numbers of a row of the table by the names of the page; `new` tokens of a sequence."""
    found = {name: row[name] for name in COLUMNS}
    found["verdict.t_lower_s"] = row["t_lower_s"]
    found["verdict.t_estimate_s"] = estimate = row["t_estimate_s"]
    if estimate is not None:
        tokens = row["B"] * new
        found["tokens_per_s_per_chip_estimate"] = tokens / estimate / row["chips"]
    if row["phase"] == DECODE:
        times = {"user": "t_lower_s", "user_ops": "t_ops_s", "user_estimate": "t_estimate_s"}
        found |= {user: new / row[name] for user, name in times.items() if row[name] is not None}
    return {name: value for name, value in found.items() if value is not None}


def texts_in(case: Case, row: Mapping[str, Any], new: int) -> dict[str, str]:
    """The bound, what fits, and the thresholds of a row by the names of the page."""
    lines = CaseLines(case)
    decode = case.phase == DECODE
    critical = critical_batch(lines.at(row["S"], new if decode else 1), case.split.dp)
    texts = {
        "bound": f"{row['bound']}-bound",
        "max_B": f"{row['max_B']:,}",
        f"fits.{case.split.name}": "yes" if row["fits"] else "no",
        "critical": answer_of(critical.outcome, critical.whole),
    }
    ceiling = context_ceiling(lines, new) if decode else None
    if ceiling is not None and ceiling.whole is not None and ceiling.whole < LONGEST:
        texts["ceiling"] = f"{ceiling.whole:,}"
    if ceiling is not None and ceiling.outcome == NEVER:
        texts["ceiling"] = "No context"
    return texts


@IN_BOTH
def test_every_shown_number_is_that_of_python(visit: Visit, sweeps: dict[str, ModelSweep]) -> None:
    """Times, throughputs, footprints, bounds and thresholds of random cases at random sizes."""
    drawn = random.Random(SEED)  # noqa: S311, not for secrets
    criticals, estimates, ceilings = set(), 0, set()
    for _ in range(STATES):
        case, state = random_state(drawn, sweeps)
        go(visit.page, state)
        assert visit.page.locator("#unknown").is_hidden(), state
        seen = shown(visit.page)
        row = step_rows(at_sizes(sweeps[state["sweep"]], case, state)).collect().row(0, named=True)
        new = state["T"] if case.phase == DECODE else state["S"]
        numbers, texts = numbers_in(row, new), texts_in(case, row, new)
        assert seen.keys() >= numbers.keys() | texts.keys(), state
        assert {name: seen[name] for name in texts} == texts, state
        assert ("t_estimate_s" in seen) == ("t_estimate_s" in numbers), state
        assert ("ceiling" in seen) == ("ceiling" in texts), state
        wrong = {
            name: (seen[name], value)
            for name, value in numbers.items()
            if not rounds_to(seen[name], value)
        }
        assert wrong == {}, state
        criticals.add(texts["critical"] if texts["critical"] in {"any", "never"} else "found")
        estimates += "t_estimate_s" in numbers
        ceilings.add(texts.get("ceiling"))
    assert criticals == {"found", "any", "never"}
    assert estimates > 1
    assert {None, "No context"} < ceilings


def test_the_table_of_kernels_is_that_of_python(
    visit: Visit, sweeps: dict[str, ModelSweep]
) -> None:
    """Time over all layers, bound, and the time of each resource."""
    drawn = random.Random(SEED + 1)  # noqa: S311, not for secrets
    for _ in range(STATES // 3):
        case, state = random_state(drawn, sweeps)
        go(visit.page, state)
        texts = dict(visit.page.evaluate(KERNELS))
        kernels = kernel_rows(at_sizes(sweeps[state["sweep"]], case, state)).collect().to_dicts()
        assert texts.keys() == {kernel["group"] for kernel in kernels}, state
        for kernel in kernels:
            time, share, bound, *parts = texts[kernel["group"]]
            assert bound == kernel["bound"], state
            total = sum(each["t_ops_s"] * each["count"] for each in kernels)
            assert rounds_to(share, kernel["t_ops_s"] * kernel["count"] / total), state
            memory = kernel["t_memory_s"] + kernel["t_activation_s"]
            wanted = [kernel["t_ops_s"], kernel["t_math_s"], memory, kernel["t_network_s"]]
            if kernel["t_estimate_s"] is not None:
                wanted.append(kernel["t_estimate_s"])
            for text, value in zip([time, *parts], wanted, strict=True):
                layers = value * kernel["count"]
                assert text == "–" if not layers else rounds_to(text, layers), (state, kernel)


def front_of(points: Iterable[Mapping[str, Any]]) -> str:
    """Cases that no other one is at least as fast and as productive as."""
    best, front = 0.0, []
    for point in sorted(points, key=lambda one: (one["t_lower_s"], -one["tokens_per_s_per_chip"])):
        if point["tokens_per_s_per_chip"] > best * (1 + 1e-12):
            best = point["tokens_per_s_per_chip"]
            front.append(f"{point['split']} {point['B']}")
    return ", ".join(front)


def test_the_front_and_what_fits_are_those_of_the_table(
    visit: Visit, sweeps: dict[str, ModelSweep]
) -> None:
    """Over all batches and splits of the sweep; the largest batch on every chip."""
    rows = step_rows(sweeps["steps"]).collect()
    rows = rows.with_columns(pl.col(pl.Categorical).cast(pl.String))
    cases = rows.filter(S=1024).partition_by("model", "phase", "dtypes", "chip")
    for case in random.Random(SEED).sample(cases, 16):  # noqa: S311, not for secrets
        first = case.row(0, named=True)
        kept = {name: first[name] for name in ("model", "phase", "dtypes")}
        place = {name: first[name] for name in ("chip", "split", "S")}
        go(visit.page, {**kept, **place, "B": 64})
        front = visit.page.locator("#front").get_attribute("data-front")
        assert front == front_of(case.filter("fits").to_dicts()), (kept, place)
        seen = shown(visit.page)
        for row in rows.filter(**kept, S=1024, B=64).to_dicts():
            assert seen[f"most.{row['chip']}.{row['split']}"] == f"{row['max_B']:,}", row


# ---------------------------------------------------------------- what a reader does


def test_requests_are_a_table(visit: Visit, site: Path) -> None:
    """Of the chip, dtypes and split that are chosen; a sweep without requests has none."""
    page = visit.page
    go(page, {"sweep": "asked", "chip": "tpu-v5e", "split": "tp2"})
    table = pl.read_parquet(site / "data" / "models-asked-part-00000.parquet")
    rows = table.filter(chip="tpu-v5e", split="tp2").to_dicts()
    texts = page.evaluate(
        "() => [...document.querySelectorAll('#requests tbody tr')]"
        ".map((row) => [...row.cells].map((one) => one.textContent))"
    )
    assert len(texts) == len(rows) == 6
    for row, (*sizes, fits, ttft, tpot, ops, rate) in zip(rows, texts, strict=True):
        assert sizes == [f"{row[name]:,}" for name in ("input", "output", "B")]
        assert fits == ("yes" if row["fits"] else "no")
        names = ("ttft_s", "tpot_s", "tpot_ops_s", "tokens_per_s_per_chip")
        for text, name in zip((ttft, tpot, ops, rate), names, strict=True):
            assert rounds_to(text, row[name]), (row, name)
    go(page, {"sweep": "steps"})
    assert page.locator("#requests-panel").is_hidden()


def test_a_link_to_what_is_not_there_says_so(visit: Visit) -> None:
    """Each unknown choice with what is shown in its place; a valid link says nothing."""
    state = {"model": "gpt-5", "S": "1.5", "B": "0", "split": "tp3", "<img src=x>": "1"}
    go(visit.page, {**state, "chip": "constructor", "phase": "training"})
    said = visit.page.locator("#unknown").inner_text()
    for text in (
        "model gpt-5: unknown; shown is small-model",
        "S 1.5: no whole number from 1 to 16,777,216; shown is 1,024",
        "B 0: no whole number from 1 to 16,777,216; shown is 64",
        "split tp3: unknown; shown is tp8",
        "<img src=x> 1: no choice of this page",
        "chip constructor: unknown; shown is h100-sxm",
        "phase training: unknown; shown is decode",
    ):
        assert text in said
    go(visit.page, {"model": "gpt-oss-120b", "split": "tp1-dp8-ep8", "B": "4"})
    assert "B 4: fewer sequences than replicas; shown is 8" in visit.page.inner_text("#unknown")
    go(visit.page, {"chip": "mine", "theme": "dark"})
    assert visit.page.locator("#unknown").is_hidden()


def test_a_context_that_a_model_is_not_trained_for_is_named(visit: Visit) -> None:
    """It can be computed; up to that length nothing is said."""
    said = "llama-3.1-8b is trained for 131,072 tokens."
    for context in (131_072, 131_073):
        go(visit.page, {"sweep": "asked", "S": context})
        assert (said in visit.page.inner_text("#verdict")) == (context > 131_072)


def test_what_does_not_run_has_its_reason(visit: Visit) -> None:
    """In place of the answers; names of a config are text."""
    for state, reason in (
        ({"split": "tp1-dp8-ep8"}, "ep is 8, but the model has no experts"),
        ({"split": "tp2x2"}, "no axes on nvlink: 2x2 needs one torus"),
        ({"chip": "mine", "split": "tp8"}, "ici"),
    ):
        go(visit.page, state)
        assert reason in visit.page.locator("#lack").inner_text()
        assert visit.page.locator("#answers").is_hidden()
    go(visit.page, {"dtypes": HOSTILE, "chip": "mine", "split": "tp1"})
    assert visit.page.locator("#answers").is_visible()
    assert visit.page.locator("img[src=x]").count() == 0
    assert visit.page.title() != "ran"


@IN_BOTH
def test_the_controls_change_the_address_and_the_answers(visit: Visit) -> None:
    """By keyboard: a chip, a size and a slider; the focus stays where it is."""
    page = visit.open("models.html#model=gpt-oss-120b")
    assert "uniform" not in page.inner_text("#routing")
    assert "at random, each equally likely" in page.inner_text("#routing")
    page.get_by_role("combobox", name="Chip", exact=True).focus()
    page.keyboard.press("t")
    expect(page.locator("#verdict")).to_contain_text("Cloud TPU v5e")
    assert page.evaluate("document.activeElement.value") == "tpu-v5e"
    page.get_by_label("Sequences B", exact=True).fill("4,096")
    page.keyboard.press("Enter")
    expect(page.locator("#verdict")).to_contain_text("4,096 sequences")
    assert "B=4096" in page.url
    slider = page.get_by_label("Context S, on a logarithmic scale")
    slider.focus()
    page.keyboard.press("Home")
    expect(page.locator("#verdict")).to_contain_text("of 1 tokens")
    assert page.evaluate("document.activeElement.type") == "range"
    page.locator("#most a").first.click()
    expect(page.locator("#verdict")).to_contain_text("H100")


def test_models_beyond_the_limit_are_named(
    monkeypatch: pytest.MonkeyPatch, site: Path, sweeps: dict[str, ModelSweep]
) -> None:
    """They stay in the tables; every sweep has its first model."""
    recipes = metadata_of(site / "data" / "model-thresholds.parquet")["made_from"]
    names = ["small-model", "gemma-3-27b"]
    cases = [case.name for block in sweeps["steps"].blocks for case in block.cases]
    monkeypatch.setattr(steps, "MOST_CASES", sum(case in names for case in cases))
    (_, index), *files = steps.step_files(recipes, {})
    first = index["sweeps"][0]
    assert [model["name"] for model in first["models"]] == names
    assert first["left"] == ["gpt-oss-120b", "deepseek-v3"]
    assert [len(sweep["models"]) for sweep in index["sweeps"]] == [2, 1, 1]
    assert len(files) == 4
