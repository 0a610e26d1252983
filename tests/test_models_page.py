"""The page "Models" against Python: every number that it shows, over random states."""

from __future__ import annotations

import math
import random
from fractions import Fraction
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
from rooflines.fits.quantities import whole_tiles
from rooflines.model.columns import ALWAYS, NEVER
from rooflines.models.shape import DECODE
from rooflines.results.tables import metadata_of
from rooflines.serving.calibrated_lines import CalibratedLines
from rooflines.serving.calibrated_solving import context_ceiling_estimate, critical_batch_estimate
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

    from rooflines.fits.estimate import Estimate, Sum
    from rooflines.models.groups import Step
    from rooflines.serving.case import Case
    from rooflines.serving.kernels import Kernel
    from rooflines.serving.solving import Solution
    from rooflines.serving.sweep import ModelSweep

SEED = 22
STATES = effort.cases(70)
OFTEN = 0.7
"""The probability of a calibrated case where there is one [1]."""
LONGEST = 2**20
"""The last context that the page looks at [1]."""

KERNELS = (
    "() => [...document.querySelectorAll('#time tbody tr')].map((row) =>"
    " [row.dataset.kernel, [...row.querySelectorAll('td')].map((one) => one.textContent)])"
)
"""The rows of the table of kernels by name."""

HEAD = "() => [...document.querySelectorAll('#time thead th')].map((one) => one.textContent)"
"""The columns of that table."""

MAIN = (
    "() => [...document.querySelectorAll('#key dd > [data-value]')].map((one) => one.dataset.value)"
)
"""The names of the large numbers."""

BOUNDS = ("compute", "memory", "network", "mixed")
"""Of a calibrated time; of equal ones the first binds."""

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
    """A case of a sweep, often a calibrated one, and a state; sizes are not those of the sweep."""
    sweep = sweeps[drawn.choice(list(sweeps))]
    blocks = [block.cases for block in sweep.blocks]
    calibrated = [[case for case in cases if None not in case.estimates] for cases in blocks]
    often = drawn.random() < OFTEN
    fitted = [cases for cases in calibrated if cases and often]
    case = drawn.choice(drawn.choice(fitted or blocks))
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
        "basis": drawn.choice(["nominal", "calibrated"]),
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
    if size is None or outcome == ALWAYS:
        return {ALWAYS: "any", NEVER: "never", "beyond": "beyond 2^62"}[outcome]
    return f"{size:,}"


def ceiling_of(solution: Solution) -> str | None:
    """The text of a context ceiling; None: the page has none."""
    if solution.outcome == NEVER:
        return "No context"
    return f"{solution.whole:,}" if (solution.whole or LONGEST) < LONGEST else None


def estimates_in(case: Case, batch: int, context: int, new: int) -> dict[str, str]:
    """The bound and the thresholds by estimate by the names of the page; empty: no calibration."""
    lines = CalibratedLines.of(case)
    if lines is None:
        return {}
    step = lines.at(context, new)
    times = {bound: step.time(curve, batch) for bound, curve in step.curves.items()}
    critical = critical_batch_estimate(step, case.split.dp)
    texts = {
        "estimate_bound": f"{max(BOUNDS, key=lambda bound: times.get(bound, 0))}-bound",
        "critical_estimate": answer_of(critical.outcome.replace(ALWAYS, "found"), critical.whole),
    }
    if case.phase == DECODE:
        ceiling = ceiling_of(context_ceiling_estimate(lines, new))
        texts |= {"ceiling_estimate": ceiling} if ceiling else {}
    return texts


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
    """The bounds, what fits, and the thresholds of a row by the names of the page."""
    lines = CaseLines(case)
    decode = case.phase == DECODE
    tokens = new if decode else 1
    critical = critical_batch(lines.at(row["S"], tokens), case.split.dp)
    texts = {
        "bound": f"{row['bound']}-bound",
        "max_B": f"{row['max_B']:,}",
        f"fits.{case.split.name}": "yes" if row["fits"] else "no",
        "critical": answer_of(critical.outcome, critical.whole),
        **estimates_in(case, row["B"], row["S"], tokens),
    }
    ceiling = ceiling_of(context_ceiling(lines, new)) if decode else None
    return texts | ({"ceiling": ceiling} if ceiling else {})


OF_TIMES = {
    "nominal": ["t_lower_s", "tokens_per_s_per_chip", "user"],
    "calibrated": ["t_estimate_s", "tokens_per_s_per_chip_estimate", "user_estimate"],
}
"""The large numbers that follow from the time of a step, by basis."""


def main_numbers(basis: str, *, decode: bool) -> list[str]:
    """The names of the large numbers, in order."""
    critical = "critical_estimate" if basis == "calibrated" else "critical"
    return [*OF_TIMES[basis][: 3 if decode else 2], "footprint_bytes", "max_B", critical]


@IN_BOTH
def test_every_shown_number_is_that_of_python(visit: Visit, sweeps: dict[str, ModelSweep]) -> None:
    """Times, throughputs, footprints, bounds and thresholds of random cases at random sizes."""
    drawn = random.Random(SEED)  # noqa: S311, not for secrets
    found: dict[str, set[str | None]] = {name: set() for name in THRESHOLDS}
    for _ in range(STATES):
        case, state = random_state(drawn, sweeps)
        go(visit.page, state)
        assert visit.page.locator("#unknown").is_hidden(), state
        seen = shown(visit.page)
        row = step_rows(at_sizes(sweeps[state["sweep"]], case, state)).collect().row(0, named=True)
        new = state["T"] if case.phase == DECODE else state["S"]
        numbers, texts = numbers_in(row, new), texts_in(case, row, new)
        basis = state["basis"] if "t_estimate_s" in numbers else "nominal"
        assert visit.page.evaluate(MAIN) == main_numbers(basis, decode=case.phase == DECODE), state
        assert ("t_estimate_s" in numbers) == (visit.page.inner_text("#basis") == ""), state
        texts.pop("ceiling" if basis == "calibrated" else "ceiling_estimate", None)
        assert seen.keys() >= numbers.keys() | texts.keys(), state
        assert {name: seen[name] for name in texts} == texts, state
        for name in ("t_estimate_s", "ceiling", "ceiling_estimate"):
            assert (name in seen) == (name in numbers | texts), state
        wrong = {
            name: (seen[name], value)
            for name, value in numbers.items()
            if not rounds_to(seen[name], value)
        }
        assert wrong == {}, state
        for name, values in found.items():
            text = texts.get(name)
            values.add("found" if text and text[0].isdigit() else text)
    assert all(found[name] >= values for name, values in THRESHOLDS.items())


THRESHOLDS: dict[str, set[str | None]] = {
    "critical": {"found", "any", "never"},
    "critical_estimate": {"found", "never", None},
    "ceiling": {"No context", None},
    "ceiling_estimate": {"found", None},
}
"""What random states have at least."""


def in_words(kernel: Kernel, estimate: Estimate, step: Step) -> tuple[dict[str, float], float]:
    """The largest piece of each bound of a kernel and its overhead, of all layers [s]."""
    extents = kernel.extents(step)
    rows = {"tokens": step.B * step.T, "sequences": step.B}

    def extent(dim: str) -> int | Fraction:
        kind, _, span = dim.partition(":")
        return whole_tiles(rows[kind], int(span)) if kind in rows else extents[dim]

    def seconds(total: Sum) -> Fraction:
        terms = total.plain.items()
        return kernel.group.count * sum(
            (per * math.prod(map(extent, dims)) for dims, per in terms), Fraction(0)
        )

    parts: dict[str, float] = {}
    for piece in estimate.pieces:
        time = float(min(map(seconds, piece.least)))
        parts[piece.bound] = max(parts.get(piece.bound, 0.0), time)
    return parts, float(seconds(estimate.common))


def times_in(
    kernel: Mapping[str, Any], basis: str, of: Kernel, estimate: Estimate | None, step: Step
) -> tuple[float, dict[str, float]]:
    """The time of a row of the table of kernels, and those of its other columns by name."""
    count = kernel["count"]
    nominal, fitted = kernel["t_ops_s"] * count, (kernel["t_estimate_s"] or 0) * count
    if basis == "calibrated" and estimate is not None:
        parts, overhead = in_words(of, estimate, step)
        columns = {name.capitalize(): time for name, time in parts.items()}
        return fitted, {**columns, "Overhead": overhead, "Nominal": nominal}
    memory = kernel["t_memory_s"] + kernel["t_activation_s"]
    times = {"Compute": kernel["t_math_s"], "Memory": memory, "Network": kernel["t_network_s"]}
    columns = {name: time * count for name, time in times.items()}
    return nominal, {**columns, **({"Calibrated": fitted} if estimate else {})}


def test_the_table_of_kernels_is_that_of_python(
    visit: Visit, sweeps: dict[str, ModelSweep]
) -> None:
    """Time over all layers, bound, and the time of each resource or piece."""
    drawn = random.Random(SEED + 1)  # noqa: S311, not for secrets
    seen = set()
    for _ in range(STATES):
        case, state = random_state(drawn, sweeps)
        go(visit.page, state)
        head, texts = visit.page.evaluate(HEAD), dict(visit.page.evaluate(KERNELS))
        kernels = kernel_rows(at_sizes(sweeps[state["sweep"]], case, state)).collect().to_dicts()
        assert texts.keys() == {kernel["group"] for kernel in kernels}, state
        basis = "nominal" if None in case.estimates else state["basis"]
        step = case.step(state["B"], state["S"], state.get("T", 1))
        name = "estimate_bound" if basis == "calibrated" else "bound"
        sides = zip(kernels, case.kernels, case.estimates, strict=True)
        rows = [
            (row, *times_in(row, basis, kernel, estimate, step)) for row, kernel, estimate in sides
        ]
        total = sum(time for _, time, _ in rows)
        assert rounds_to(shown(visit.page)["sum"], total), state
        assert head[1] == f"Time, {basis}", state
        for kernel, wanted, columns in rows:
            time, share, bound, *parts = texts[kernel["group"]]
            assert bound == kernel[name], state
            assert rounds_to(time, wanted), state
            assert rounds_to(share, wanted / total), state
            assert {*columns} - {*head} <= {"Mixed"}, state
            for column, text in zip(head[4:], parts, strict=True):
                value = columns.get(column, 0.0)
                assert text == "–" if not value else rounds_to(text, value), (state, column)
        seen.add((basis, *head[4:]))
    assert {len(columns) for _, *columns in seen} == {3, 4, 6}


def front_of(points: Iterable[Mapping[str, Any]], time: str) -> str:
    """Cases that no other one is at least as fast and as productive as, by a time of a step."""
    best, front = 0.0, []
    rates = [
        (point[time], point["tokens"] / point[time] / point["chips"], point) for point in points
    ]
    for _, rate, point in sorted(rates, key=lambda one: (one[0], -one[1])):
        if rate > best * (1 + 1e-12):
            best = rate
            front.append(f"{point['split']} {point['B']}")
    return ", ".join(front)


@pytest.mark.parametrize(
    ("basis", "time"), [("nominal", "t_lower_s"), ("calibrated", "t_estimate_s")]
)
def test_the_front_and_what_fits_are_those_of_the_table(
    visit: Visit, sweeps: dict[str, ModelSweep], basis: str, time: str
) -> None:
    """Over all batches and splits of the sweep; the largest batch on every chip."""
    tokens = pl.col("B") * pl.when(phase="prefill").then("S").otherwise(1)
    rows = step_rows(sweeps["steps"]).collect().with_columns(tokens=tokens)
    rows = rows.with_columns(pl.col(pl.Categorical).cast(pl.String)).filter(
        pl.col(time).is_not_null()
    )
    cases = rows.filter(S=1024).partition_by("model", "phase", "dtypes", "chip")
    for case in random.Random(SEED).sample(cases, 12):  # noqa: S311, not for secrets
        first = case.row(0, named=True)
        kept = {name: first[name] for name in ("model", "phase", "dtypes")}
        place = {name: first[name] for name in ("chip", "split", "S")}
        go(visit.page, {**kept, **place, "B": 64, "basis": basis})
        front = visit.page.locator("#front").get_attribute("data-front")
        assert front == front_of(case.filter("fits").to_dicts(), time), (kept, place)
        seen = shown(visit.page)
        for row in rows.filter(**kept, S=1024, B=64).to_dicts():
            assert seen[f"most.{row['chip']}.{row['split']}"] == f"{row['max_B']:,}", row


# ---------------------------------------------------------------- what a reader does


def test_requests_are_a_table(visit: Visit, site: Path) -> None:
    """Of the chip, dtypes, split and basis that are chosen; a sweep without requests has none."""
    page = visit.page
    table = pl.read_parquet(site / "data" / "models-asked-part-00000.parquet")
    nominal = ("ttft_s", "tpot_s", "tpot_ops_s", "tokens_per_s_per_chip")
    for chip, basis, names in (
        ("tpu-v5e", "calibrated", nominal),
        ("h100-sxm", "nominal", nominal),
        ("h100-sxm", "calibrated", ("t_estimate_s", "rate")),
    ):
        go(page, {"sweep": "asked", "chip": chip, "split": "tp2", "basis": basis})
        rate = pl.col("B") / pl.col("t_estimate_s") / pl.col("chips")
        rows = table.filter(chip=chip, split="tp2").with_columns(rate=rate).to_dicts()
        texts = page.evaluate(
            "() => [...document.querySelectorAll('#requests tbody tr')]"
            ".map((row) => [...row.cells].map((one) => one.textContent))"
        )
        heads = page.locator("#requests thead th").all_inner_texts()
        said = "calibrated" if names != nominal else "nominal"
        assert all(head.endswith(f", {said}") for head in heads[4:]), heads
        assert len(texts) == len(rows) == 6
        for row, (*sizes, fits), times in (
            (row, text[:4], text[4:]) for row, text in zip(rows, texts, strict=True)
        ):
            assert sizes == [f"{row[name]:,}" for name in ("input", "output", "B")]
            assert fits == ("yes" if row["fits"] else "no")
            for text, name in zip(times, names, strict=True):
                assert rounds_to(text, row[name]), (row, name)
    go(page, {"sweep": "steps"})
    assert page.locator("#requests-panel").is_hidden()


def test_a_link_to_what_is_not_there_says_so(visit: Visit) -> None:
    """Each unknown choice with what is shown in its place; a valid link says nothing."""
    state = {"model": "gpt-5", "S": "1.5", "B": "0", "split": "tp3", "<img src=x>": "1"}
    go(visit.page, {**state, "chip": "constructor", "phase": "training", "basis": "measured"})
    said = visit.page.locator("#unknown").inner_text()
    for text in (
        "model gpt-5: unknown; shown is small-model",
        "S 1.5: no whole number from 1 to 16,777,216; shown is 1,024",
        "B 0: no whole number from 1 to 16,777,216; shown is 64",
        "split tp3: unknown; shown is tp8",
        "<img src=x> 1: no choice of this page",
        "chip constructor: unknown; shown is h100-sxm",
        "phase training: unknown; shown is decode",
        "basis measured: unknown; shown is nominal",
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


def test_the_basis_is_chosen_where_there_is_a_calibration(visit: Visit) -> None:
    """By keyboard; it stays in the address, and without a calibration the page says so."""
    page = visit.open("models.html#model=gemma-3-27b&split=tp8&B=512")
    page.get_by_role("combobox", name="Numbers", exact=True).focus()
    page.keyboard.press("c")
    expect(page.locator("#verdict")).to_contain_text("calibrated to timings of trtllm and nccl")
    assert "basis=calibrated" in page.url
    assert page.evaluate("document.activeElement.value") == "calibrated"
    for picture in ("#front", "#critical"):
        assert "calibrated" in (page.locator(picture).get_attribute("aria-label") or "")
    go(page, {"chip": "tpu-v5e", "split": "tp8", "basis": "calibrated"})
    assert page.get_by_role("combobox", name="Numbers", exact=True).count() == 0
    assert "no calibration: all numbers are nominal" in page.inner_text("#basis")
    assert "calibrated" not in page.inner_text("#answers")


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
