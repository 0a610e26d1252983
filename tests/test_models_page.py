"""The page "Models" against Python: every number that it shows, over random states."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from bundles import CONFIG, made_bundle
from playwright.sync_api import expect
from shown import rounds_to
from visits import Visit

from rooflines import load_config
from rooflines.models.footprint import max_batch
from rooflines.serving.layers import kernel_rows
from rooflines.serving.lines import CaseLines
from rooflines.serving.rows import step_rows
from rooflines.serving.solving import context_ceiling, critical_batch
from rooflines.serving.sweep import checked_model_sweep

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from conftest import Once
    from playwright.sync_api import Browser, Page

    from rooflines.serving.case import Case
    from rooflines.serving.sweep import ModelSweep

SEED = 18
STATES = 70

State = dict[str, Any]

COLUMNS = (
    *("t_lower_s", "t_ops_s", "t_upper_s", "t_estimate_s"),
    *("tokens_per_s_per_chip", "tokens_per_s_per_chip_ops"),
    *("footprint_bytes", "weights_footprint_bytes", "cache_footprint_bytes"),
)
"""Numbers that the page shows by the names of columns."""


@pytest.fixture(scope="module")
def site(once: Once) -> Path:
    """A site, not to be changed."""
    return once("small-site", made_bundle) / "bundle"


@pytest.fixture(scope="module")
def visit(browser: Browser, site: Path) -> Iterator[Visit]:
    """The page, without errors or requests to other hosts."""
    with browser.new_context(reduced_motion="reduce") as context:
        one = Visit(context, site.as_uri())
        one.open("models.html")
        yield one
        assert one.faults == []


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
    new = drawn.choice(sweep.new_tokens or (1,))
    largest = 9 if case.phase == "decode" else 5
    batch = max(drawn.choice([2 ** drawn.randrange(14), drawn.randint(1, 3000)]), case.split.dp)
    context = drawn.choice([10 ** drawn.randrange(1, largest - 3), drawn.randint(20, 200_000)])
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
    return case, state | ({"T": new} if case.phase == "decode" else {})


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


def test_every_shown_number_is_that_of_python(visit: Visit, sweeps: dict[str, ModelSweep]) -> None:
    """Times, throughputs, footprints, bounds and thresholds of random cases at random sizes."""
    drawn = random.Random(SEED)  # noqa: S311, not for secrets
    outcomes = set()
    for _ in range(STATES):
        case, state = random_state(drawn, sweeps)
        sweep = sweeps[state["sweep"]]
        go(visit.page, state)
        assert visit.page.locator("#unknown").is_hidden(), state
        seen = shown(visit.page)
        one = at_sizes(sweep, case, state)
        row = step_rows(one).collect().row(0, named=True)
        new = state.get("T", state["S"])
        numbers = {name: row[name] for name in COLUMNS if row[name] is not None}
        numbers |= {
            f"verdict.{name}": row[name]
            for name in ("t_lower_s", "t_estimate_s")
            if row[name] is not None
        }
        tokens = state["B"] * new
        if row["t_estimate_s"] is not None:
            per_chip = tokens / row["t_estimate_s"] / row["chips"]
            numbers["tokens_per_s_per_chip_estimate"] = per_chip
        if case.phase == "decode":
            for twin, name in (
                ("", "t_lower_s"),
                ("_ops", "t_ops_s"),
                ("_estimate", "t_estimate_s"),
            ):
                if row[name] is not None:
                    numbers[f"user{twin}"] = new / row[name]
        wrong = {
            name: (seen.get(name), value)
            for name, value in numbers.items()
            if name not in seen or not rounds_to(seen[name], value)
        }
        assert wrong == {}, state
        assert ("t_estimate_s" in seen) == (row["t_estimate_s"] is not None), state
        assert seen["bound"] == f"{row['bound']}-bound", state
        assert seen["max_B"] == f"{row['max_B']:,}", state
        assert seen[f"fits.{case.split.name}"] == ("yes" if row["fits"] else "no"), state
        lines = CaseLines(case)
        solution = critical_batch(lines.at(state["S"], state.get("T", 1)), case.split.dp)
        outcomes.add(solution.outcome)
        assert seen["critical"] == answer_of(solution.outcome, solution.whole), state
        if case.phase == "decode":
            ceiling = context_ceiling(lines, new)
            wanted = f"{ceiling.whole:,}" if ceiling.outcome == "found" else None
            if ceiling.whole is None or ceiling.whole < 2**20:
                assert seen.get("ceiling") == wanted, state
    assert outcomes == {"found", "always", "never"}


def test_the_table_of_kernels_is_that_of_python(
    visit: Visit, sweeps: dict[str, ModelSweep]
) -> None:
    """Time over all layers, bound, and the time of each resource."""
    drawn = random.Random(SEED + 1)  # noqa: S311, not for secrets
    for _ in range(STATES // 3):
        case, state = random_state(drawn, sweeps)
        go(visit.page, state)
        texts = {
            row.get_attribute("data-kernel"): row.locator("td").all_inner_texts()
            for row in visit.page.locator("#time tbody tr").all()
        }
        kernels = kernel_rows(at_sizes(sweeps[state["sweep"]], case, state)).collect().to_dicts()
        assert texts.keys() == {kernel["group"] for kernel in kernels}, state
        for kernel in kernels:
            time, _, bound, *parts = texts[kernel["group"]]
            assert bound == kernel["bound"], state
            wanted = [kernel["t_math_s"], kernel["t_memory_s"] + kernel["t_activation_s"]]
            wanted = [kernel["t_ops_s"], *wanted, kernel["t_network_s"]]
            for text, value in zip([time, *parts], wanted, strict=True):
                layers = value * kernel["count"]
                assert text == "–" if not layers else rounds_to(text, layers), (state, kernel)


def test_the_front_and_what_fits_are_those_of_the_sweep(
    visit: Visit, sweeps: dict[str, ModelSweep]
) -> None:
    """At the contexts of a sweep: fronts by comparison of all rows, and the largest batches."""
    sweep = sweeps["steps"]
    rows = step_rows(sweep).collect()
    for case in [block.cases[0] for block in sweep.blocks]:
        state = {
            "model": case.name,
            "chip": case.chip,
            "dtypes": case.dtypes.label,
            "split": case.split.name,
            "phase": case.phase,
        }
        go(visit.page, {**state, "S": 1024, "B": 64})
        of = {name: state[name] for name in ("model", "chip", "dtypes", "phase")}
        points = rows.filter(**of, S=1024, network=case.network).filter("fits").to_dicts()

        def beaten(point: dict[str, Any], points: list[dict[str, Any]] = points) -> bool:
            return any(
                other["t_lower_s"] <= point["t_lower_s"]
                and other["tokens_per_s_per_chip"] >= point["tokens_per_s_per_chip"] * (1 + 1e-12)
                for other in points
            )

        front = {f"{p['split']} {p['B']}" for p in points if not beaten(p)}
        found = visit.page.locator("#front").get_attribute("data-front")
        assert set((found or "").split(", ")) - {""} <= front
        fastest = min((point["t_lower_s"] for point in points), default=None)
        first = shown(visit.page).get("front.first")
        assert (first is None) == (fastest is None)
        for other in sweep.blocks:
            for one in other.cases:
                if (one.name, one.phase, one.dtypes.label) != (
                    case.name,
                    case.phase,
                    case.dtypes.label,
                ):
                    continue
                capacity = one.machine.level.capacity_bytes
                assert capacity is not None
                most = max_batch(
                    one.model.shape,
                    capacity,
                    1024,
                    one.sharing.bits,
                    one.split,
                    cache_split=one.sharing.cache_split,
                )
                key = f"most.{one.chip}.{one.split.name}"
                assert shown(visit.page)[key] == f"{most:,}", (state, key)
