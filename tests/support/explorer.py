"""Random states of the first page, the same from Python, and what of it the page has otherwise."""

import math
import random
import re
from typing import Any
from unittest.mock import patch

import polars as pl
from shown import rounds_to, unexplained

from rooflines import RooflinesError, explain, explain_model, train
from rooflines.answers.question import QuestionCatalogues
from rooflines.basics.quantities import PER_USER, measured_value
from rooflines.charts.kit.chart_text import chip_label
from rooflines.fits.calibration_files import shipped_calibrations
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.hardware.entries import MAIN_MEMORY, Chip
from rooflines.hardware.timing_errors import MIN_LONG_BOUND_S, measured_quantiles
from rooflines.site.explorer import FORMATS, MODELS, PLANS, SERVING, SPLITS, TRAINED
from rooflines.solvers.plateau import PLATEAU_SHARE
from rooflines.sweep import cases
from rooflines.theory.network import TORUS
from rooflines.theory.operation import MATRIX
from rooflines.theory.sharding import NAMED_SHARDINGS
from rooflines.training.parallel_plan import TrainingPlan

State = dict[str, Any]

MANY = 2**40
"""Tokens that make all else of a matmul small [1]."""

OWN = {"peak": 3.3e14, "memory": 2.4e12, "capacity": 5e10, "link": 3.1e10}
"""Own numbers, in SI units."""

BASES = ["bound", "calibrated", None]
"""Bases of a state; None: that by default, calibrated where there is an estimate."""

MEASURED = [None, "250us", "41ms", "3 s", "41%mfu", "0.2mbu", "7%hfu", "12,000tok/s", "2ktok/s/gpu"]
MEASURED += ["31tok/s/user", "320TFLOP/s"]
"""Measured numbers of a state, some of which its subject lacks."""

SHARDINGS = [name for name in NAMED_SHARDINGS if name != "none"]

NUMBERS = """() => EXPLORER.chipRows().map((row) => row.unsupported ? row : {
  chip: row.chip.id, time: row.time, bound: row.bound, share: row.share, fits: row.fits,
  wider: row.bandwidthGain, all: row.critical.outcome === "never" ? null : row.critical.size,
  most: !row.critical90 ? row.footprint.maxBatch
    : row.critical90.outcome === "never" ? null : row.critical90.size,
  lower: row.times.lower, footprint: row.footprint.bytes,
  band: row.estimate?.band ?? null, rate: row.chipRate ?? null,
  saturates: row.plateau?.size ?? null, cost: row.cost ?? null,
  sent: row.times.byResource.network,
  label: row.chip.label, off: row.measuredRatio,
  limit: row.critical.outcome === "never" ? row.critical.limit : null,
  binds: row.bound ?? row.times.bound,
  states: row.footprint.fixedBytes, saved: row.footprint.cacheBytes,
  longest: row.footprint.maxContext, first: row.firstToken,
  firstLower: row.firstTokenBound,
  measured: row.measured && [row.measured.time, row.measured.boundShare,
    row.measured.estimateRatio, row.measured.place],
})"""
"""Values of each chip on the page."""

CELLS = """() => [...document.querySelectorAll("#chips-table tbody tr")].map((row) =>
  Object.fromEntries([...row.querySelectorAll("[data-value]")].map((cell) =>
    [cell.dataset.value, cell.textContent])))"""
"""Columns of the table of chips."""

WORDS = """() => ["unable", "lead", "rest"].map((id) => document.getElementById(id).textContent)
  .join(" ").trim()"""
"""Texts of the page."""


def random_size(most):
    """A power of two or any number."""
    power: int = 2 ** random.randrange(most)
    return random.choice([power, random.randint(1, 2**most // 4)])


def random_own(chip):
    """Now and then own numbers of a chip."""
    has_network = bool(chip_entries()[chip].networks)
    names = [name for name in OWN if random.random() < 0.1 and (name != "link" or has_network)]
    return {name: OWN[name] * random.choice([1, 1.5, 2]) for name in names}


def random_matmul():
    """A matmul on a chip, often one with a calibration; now and then of what the chip lacks."""
    fitted = sorted({key.partition("/")[0] for key in shipped_calibrations().calibrations})
    every = [chip for chip, entry in chip_entries().items() if entry.base is None]
    chip = random.choice(fitted if random.random() < 0.4 else every)
    peaks = chip_entries()[chip].units.get(MATRIX, {})
    able = [name for name, of in dtype_entries().combinations.items() if of.compute in peaks]
    split = random.random() < 0.5
    return {
        "subject": "matmul",
        "chips": chip,
        "dtypes": random.choice(able or ["bf16"]),
        **{dim: random_size(16) for dim in "BDF"},
        "sharding": random.choice(SHARDINGS) if split else "none",
        "shards": random.choice([1, 2, 3, 4, 6, 8, 16, 64]) if split else 1,
        "basis": random.choice(BASES),
        "measured": random.choice(MEASURED),
        "custom": random_own(chip),
    }


def random_step():
    """A step of a model on a chip."""
    model, chip = random.choice(MODELS), random.choice(SERVING)
    split = random.choice(SPLITS)
    dp = split.get("dp", 1)
    return {
        "subject": "model",
        "chips": chip,
        "model": model,
        "format": random.choice(list(FORMATS)),
        "split": "tp1-dp8-ep8" if dp > 1 else f"tp{split['tp']}",
        "phase": random.choice(["decode", "prefill"]),
        "B": max(dp, random_size(12)),
        "S": random_size(16),
        "basis": random.choice(BASES),
        "measured": random.choice(MEASURED),
        "custom": random_own(chip),
    }


TRAINABLE = ("gpt-oss-120b", "llama-3.1-70b", "llama-3.1-8b", "gemma-3-27b")
"""Models whose training is modelled."""


def on_torus(chip):
    """Tell whether a catalogue chip's first network is a torus."""
    first = next(iter(chip_entries()[chip].networks.values()), None)
    return first is not None and first.exact.topology == TORUS


def random_training():
    """A step of training of a model on a chip."""
    split: State = dict(random.choice(PLANS))
    micro_batch = random.choice([1, 1, 2, 3, 8])
    together = sum(split.get(key, 1) > 1 for key in ("tp", "pp", "cp", "dp", "ep")) > 1
    # The page has no step of several parallelisms on a torus, which share its axes.
    chips = [chip for chip in SERVING if not (together and on_torus(chip))]
    chip = random.choice([*chips, *(["b200"] * 6)])
    basis, own = random.choice(BASES), random_own(chip)
    if basis != "bound":
        own.pop("capacity", None)  # fits are of chips of the catalogue
    return {
        "subject": "model",
        "chips": chip,
        "model": random.choice(MODELS if random.random() < 0.1 else TRAINABLE),
        "format": random.choice(TRAINED),
        "phase": "train",
        "plan": TrainingPlan.model_validate(split).name,
        "micro_batch": micro_batch,
        "B": split.get("dp", 1) * micro_batch * random_size(8),
        "S": split.get("cp", 1) * random_size(16),
        "basis": basis,
        "measured": random.choice(MEASURED),
        "custom": own,
    }


def address_of(state):
    """The state as the address has it."""
    chip = state["chips"]
    own = ",".join(f"{chip}.{name}:{value:.12g}" for name, value in state["custom"].items())
    asked = {name: value for name, value in state.items() if value is not None}
    return {**asked, "custom": own}


def chip_of(state):
    """The chip of a state with its own numbers; a model has no peak in a format a chip lacks."""
    plain = chip_entries()[state["chips"]].model_copy(deep=True).plain
    own, compute = state["custom"], _compute(state)
    if "peak" in own and (
        state["subject"] == "matmul" or compute in plain["units"].get(MATRIX, {})
    ):
        plain["units"][MATRIX][compute] = {"flops_per_s": own["peak"]}
    for name, key in (("memory", "bytes_per_s"), ("capacity", "capacity_bytes")):
        if name in own:
            plain["memory"][MAIN_MEMORY][key] = own[name]
    if "link" in own:
        plain["networks"][next(iter(plain["networks"]))]["bytes_per_s"] = own["link"]
    return {state["chips"]: Chip.model_validate(plain)}


def _compute(state):
    if state["subject"] == "matmul":
        return str(dtype_entries().combinations[state["dtypes"]].compute)
    form = FORMATS[state["format"]]
    return form if isinstance(form, str) else form["compute"]


def explained(state):
    """The numbers of a state from Python; None if the chip cannot do it."""
    asked = _matmul if state["subject"] == "matmul" else _step
    try:
        found = (_training if state.get("phase") == "train" else asked)(state)
    except RooflinesError:
        return None
    return {**found, "state": state}


def cost_of(state, chips, time, tokens):
    """A million tokens at the lowest price of a state's one chip [USD]; None without either."""
    prices = chip_entries()[state["chips"]].prices
    if not prices or time is None:
        return None
    return min(price.usd_per_hour for price in prices) * chips * time / 3600 / tokens * 1e6


def judged(number, *, has_estimate):
    """A measured number as the page has it; None: a rate that the subject lacks."""
    if number is None:
        return None
    beside = (number.estimate_ratio, number.place) if has_estimate else (None, None)
    return [number.time_s, number.bound_share, *beside]


def typed(state):
    """The measured number of a state, where Python has such a rate."""
    text = state.get("measured")
    if text is None:
        return None
    kind = measured_value(text).kind
    if state["subject"] == "matmul":
        return text if kind in ("time", "mfu", "mbu", "flops_per_s") else None
    lacking = {"decode": [], "prefill": [PER_USER], "train": [PER_USER, "hfu"]}
    return None if kind in ("flops_per_s", *lacking[state["phase"]]) else text


def in_common(row, time, *, calibrated):
    """Common values of answers: time, fit, and band where there is one."""
    band = [row["t_estimate_p10_s"], row["t_estimate_p90_s"]]
    return {
        "time": time,
        "fits": row["fits"],
        "lower": row["t_lower_s"],
        "footprint": row["footprint_bytes"],
        "band": band if calibrated and time and None not in band else None,
    }


def is_calibrated(state, estimate):
    """True for a state whose times are estimates: by choice, or by default where there are any."""
    return state["basis"] == "calibrated" or (state["basis"] is None and estimate is not None)


def _asked(state):
    """A matmul as Python answers it, over one axis of a torus, as the page has it."""
    split = state["sharding"] != "none"
    with patch.object(cases, "resolve_axes", lambda _, axes, *__: axes):
        return explain(
            state["chips"],
            {dim: state[dim] for dim in "BDF"},
            state["dtypes"],
            sharding=state["sharding"] if split else None,
            shards=state["shards"],
            measured=typed(state),
            config=QuestionCatalogues(chip_of(state)),
        )


def _matmul(state):
    found = _asked(state)
    row = found.row
    calibrated = is_calibrated(state, row["t_estimate_s"])
    time = row["t_estimate_s"] if calibrated else row["t_lower_s"]
    along = {each["share"]: each for each in found.thresholds if each["axis"] == "B"}
    peak = row["attained_flops_per_s"] / row["utilization"]
    return in_common(row, time, calibrated=calibrated) | {
        "answer": found.to_dict(),
        "bound": row["estimate_bound"] if calibrated else row["bound"],
        "share": None if time is None else row["flops"] / time / peak,
        "cost": cost_of(state, state["shards"], time, state["B"]),
        "all": along[1]["critical"],
        "most": along[0.9]["critical"],
        "outcome": along[1]["outcome"],
        "limit": along[1]["limit"] if along[1]["outcome"] == "never" else None,
        "measured": judged(found.measured_number, has_estimate=row["t_estimate_s"] is not None),
        "saturates": along[1]["plateau_estimate"] if time and calibrated else None,
    }


def _of_many(state):
    """Time that each token adds to a matmul, and the limit of its estimated rate."""
    large = {**state, "measured": None}
    row, twice = (_asked({**large, "B": times * MANY}).row for times in (1, 2))
    seconds = ("t_math_s", "t_memory_s", "t_network_s")
    times = [(twice[name] - row[name]) / MANY for name in seconds]  # halves are rounded either way
    return times, row["t_estimate_s"] and row["flops"] / row["t_estimate_s"]


def _step(state):
    split = {"dp": 8, "ep": 8} if "dp" in state["split"] else {"tp": int(state["split"][2:])}
    found = explain_model(
        state["chips"],
        state["model"],
        B=state["B"],
        S=state["S"],
        dtypes=FORMATS[state["format"]],
        split=split,
        phase=state["phase"],
        measured=typed(state),
        config=QuestionCatalogues(chip_of(state)),
    )
    row = found.row
    altered = state["custom"].keys() - {"capacity"}
    estimate = None if altered else row["t_estimate_s"]
    calibrated = is_calibrated(state, estimate)
    time = estimate if calibrated else row["t_serial_s"]
    prompt = found.first_token if row["dp"] == 1 else None
    first = prompt and (prompt.estimate if calibrated else prompt.serial)
    along = [each for each in found.thresholds if each["axis"] == "B"]
    tokens = state["B"] * (1 if state["phase"] == "decode" else state["S"])
    return in_common(row, time, calibrated=calibrated) | {
        "answer": found.to_dict(),
        "bound": row["bound"],
        "share": None if time is None else row["t_math_s"] / time,
        "all": along[0]["critical"],
        "outcome": along[0]["outcome"],
        "most": row["max_B"],
        "measured": judged(found.measured_number, has_estimate=estimate is not None),
        "first": None if calibrated and altered else first,
        "firstLower": prompt and prompt.lower,
        "rate": None if time is None else tokens / time / row["chips"],
        "cost": cost_of(state, row["chips"], time, tokens),
    }


def _training(state):
    plans = {TrainingPlan.model_validate(each).name: each for each in PLANS}
    own = chip_of(state)[state["chips"]]
    found = train(
        state["chips"],
        state["model"],
        B=state["B"],
        S=state["S"],
        split=plans[state["plan"]],
        dtypes=FORMATS[state["format"]],
        micro_batch=state["micro_batch"],
        network=[*own.networks][:1] or None,
        measured=typed(state),
        config=QuestionCatalogues({state["chips"]: own}),
    )
    row = found.table_row()
    estimate = None if state["custom"].keys() - {"capacity"} else row["t_estimate_s"]
    calibrated = is_calibrated(state, estimate)
    most, time = row["max_micro_batch"], estimate if calibrated else row["t_serial_s"]
    return in_common(row, time, calibrated=calibrated) | {
        "answer": row,
        "bound": row["bound"],
        "share": time and row["mfu_serial"] * row["t_serial_s"] / time,
        "most": None if most is None else most * row["dp"],
        "longest": row["max_S"],
        "measured": judged(found.measured_number, has_estimate=estimate is not None),
        "states": row["state_bytes"],
        "saved": row["saved_bytes"],
        "cost": cost_of(state, row["chips"], time, state["B"] * state["S"]),
        "rate": time and row["tokens_per_s_serial"] * row["t_serial_s"] / time / row["chips"],
    }


BAND_SHARE = 0.8
"""Measurements inside a band, which is from p10 to p90 [1]."""


def behind(value):
    """The data behind a verdict: the answer, what follows from it, and the timings it names."""
    state = value["state"]
    of, form = ("matmul", "dtypes") if state["subject"] == "matmul" else ("step", "format")
    timed = measured_quantiles().filter(
        pl.col("chip").eq_missing(state["chips"]) & (pl.col("dtypes") == state[form])
        | pl.col("chip").is_null(),
        subject=of,
    )
    timed = timed if state.get("phase", "decode") == "decode" else timed.clear()
    yield value, timed.to_dicts(), BAND_SHARE
    yield chip_of(state)[state["chips"]].memory[MAIN_MEMORY].capacity_bytes
    if state["subject"] == "matmul":
        yield MIN_LONG_BOUND_S, PLATEAU_SHARE, _of_many(state)
    else:
        row = value["answer"].get("row", value["answer"])
        rate = (1 if state["phase"] == "decode" else state["S"]) / (
            value["time"] or row["t_serial_s"]
        )
        yield rate, rate * state["B"] / row["chips"]
    if value["measured"]:
        yield 1 / value["measured"][1]
    if state.get("phase") == "train":
        for key, fits in shipped_calibrations().training.items():
            if key.startswith(f"{state['chips']}/"):
                yield [(fit.times, fit.fitted.n) for fit in fits.values()]


def verdict(page, value):
    """Texts of a state, without the names of its chip and model."""
    text = page.evaluate(WORDS)
    for name in (value["state"]["chips"], value["state"].get("model")):
        text = text.replace(chip_label(name), "") if name else text
    measured = value["state"].get("measured")
    return re.sub(rf"(?<![\d.,]){re.escape(measured)}\b", "(", text) if measured else text


TIE_SHARE = 1e-6
"""Largest relative difference: coefficients of estimates have seven digits [1]."""

FORMS = {"time": "s", "share": "%"}


BESIDES = {"outcome", "answer", "state"}
"""Values that Python has and the page lacks."""


def close(seen, value):
    """True if a number of the page is Python's; whole numbers and texts are equal."""
    if isinstance(value, list) and isinstance(seen, list):
        return all(close(a, b) for a, b in zip(seen, value, strict=True))
    if isinstance(value, float) and isinstance(seen, int | float):
        return math.isclose(seen, value, rel_tol=TIE_SHARE)
    return seen == value


def wrong_numbers(seen, value):
    """The numbers that differ."""
    return {
        name: (seen[name], each)
        for name, each in value.items()
        if name not in BESIDES and not close(seen[name], each)
    }


def whole(value):
    """All of a peak, where Float64 misses it by a last digit."""
    return 1.0 if math.isclose(value, 1, rel_tol=1e-12) else value


def wrong_cells(cells, value):
    """The texts of the table that are not these numbers."""
    wrong = {
        name: (cells[name], value[name])
        for name in FORMS
        if value[name] is not None and not rounds_to(cells[name], whole(value[name]))
    }
    if "critical" in cells:
        said = {"always": "any", "never": "never"}
        text = said.get(value["outcome"]) or f"{value['all']:,}"
        if cells["critical"] != text:
            wrong["all"] = (cells["critical"], text)
    return wrong


def wrong_answer(page, value):
    """Differences of the page, in numbers and in the table that it shows."""
    (seen,) = page.evaluate(NUMBERS)
    if value is None or "unsupported" in seen:
        return None if value is None and seen.get("unsupported") else seen
    (cells,) = page.evaluate(CELLS)
    said = unexplained(verdict(page, value), [*behind(value)])
    return wrong_numbers(seen, value) | wrong_cells(cells, value) | ({"said": said} if said else {})
