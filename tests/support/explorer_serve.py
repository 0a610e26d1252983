"""Random states of the explorer's served models, the same plan from Python, and what differs."""

import math
import random

from explorer import FORMATS, MODELS, SERVING, on_torus

from rooflines import RooflinesError, serve
from rooflines.site.explorer import SERVER_CHIPS

TIE_SHARE = 1e-6
"""Largest relative difference: coefficients of estimates have seven digits [1]."""

FITTED = ["h100-sxm", "h200-sxm", "b200", "b300", "mi300x"]
"""Chips that most states have: all but the last have estimates."""

PLAN = """() => {
  const state = EXPLORER.readState();
  const plan = DEPLOYMENTS.plan(state);
  const texts = ["unable", "lead", "rest", "command"].map((id) =>
    [id, document.getElementById(id).textContent]);
  const point = ({ chip, kind, points }) => points.map(({ name, B, time, chipRate }) =>
    [chip.id, kind, name, B, time, chipRate]);
  return {
    ...Object.fromEntries(texts), basis: state.basis,
    fronts: DEPLOYMENTS.fronts(state, plan).flatMap(point),
    rows: plan.rows.filter(({ unsupported }) => !unsupported).map((row) => ({
      label: row.chip.label, chip: row.chip.id, deployment: row.name, tie: row.tie,
      limit: row.limit, batch: row.B, tpot_s: row.time, concurrency: row.inFlight,
      tpot_p10_s: row.band?.[0] ?? null, tpot_p90_s: row.band?.[1] ?? null,
      tokens_per_s_per_user: row.userRate, output_tokens_per_s_per_chip: row.chipRate,
      output_tokens_per_s_per_chip_bound: row.chipRateBound, ttft_s: row.firstToken,
      ttft_lower_s: row.firstTokenBound, usd_per_mtok_input: row.inputCost,
      usd_per_mtok_output: row.outputCost, footprint_bytes: row.bytes, prefill_busy: row.busy,
    })),
    lost: plan.searches.flatMap(({ chip, searched = [] }) =>
      searched.filter(({ lost }) => lost).map(({ server, lost }) => [chip.id, server.name, lost])),
    unsupported: plan.rows.filter(({ unsupported }) => unsupported).map(({ chip }) => chip.id),
  };
}"""
"""The plan and the texts of the page."""


def random_served():
    """A served model on one or two chips, mostly those with estimates; none lies on a torus."""
    able = [chip for chip in SERVING if not on_torus(chip)]
    chips = random.sample(FITTED if random.random() < 0.6 else able, random.choice([1, 1, 2]))
    return {
        "subject": "serve",
        "chips": ",".join(chips),
        "model": random.choice(MODELS),
        "format": random.choice(list(FORMATS)),
        "given": random.choice([1, 2, 4, *[SERVER_CHIPS] * 3]),
        "isl": random.choice([128, 1024, 8192, random.randint(1, 40_000)]),
        "osl": random.choice([1, 2, 128, 1024, random.randint(1, 8000)]),
        "tpot": random.choice([10, 20, 30, 50, 100, "none", round(random.uniform(1, 80), 2)]),
        "ttft": random.choice([200, 1000, 2000, 5000, "none"]),
        "basis": random.choice(["bound", "calibrated", None]),
    }


def limit_s(milliseconds):
    """A limit of the address in Python [s]."""
    return None if milliseconds == "none" else milliseconds / 1000


def plan_of(state, seen):
    """The plan of a state from Python, on the chips that the page serves; None: there is none."""
    chips = [chip for chip in state["chips"].split(",") if chip not in seen["unsupported"]]
    try:
        return serve(
            state["model"],
            chips,
            isl=state["isl"],
            osl=state["osl"],
            chips=state["given"],
            tpot_s=limit_s(state["tpot"]),
            ttft_s=limit_s(state["ttft"]),
            dtypes=FORMATS[state["format"]],
            pp=1,
            calibration=None if seen["basis"] == "calibrated" else "none",
        )
    except RooflinesError:
        return None


def is_close(seen, value):
    """True for equal texts, and numbers within the digits of coefficients."""
    if isinstance(seen, str) or None in (seen, value):
        return seen == value
    return math.isclose(seen, value, rel_tol=TIE_SHARE, abs_tol=1e-12)


def differences(seen, plan):
    """Differences between the page and Python: rows, losers and the sentence."""
    rows = plan.rows if plan else []
    if len(rows) != len(seen["rows"]):
        return [("rows", len(seen["rows"]), len(rows))]
    wrong: list[tuple[object, ...]] = [
        (row["deployment"], name, value, row[name])
        for shown, row in zip(seen["rows"], rows, strict=True)
        for name, value in shown.items()
        if name != "label" and not is_close(value, row[name])
    ]
    if plan is None:
        return wrong
    lost = plan.not_possible.filter(plan.not_possible["reason"] != "unsupported")
    if seen["lost"] != [list(row) for row in lost.select("chip", "split", "text").iter_rows()]:
        wrong.append(("lost", seen["lost"], lost.rows()))
    sentence, lead = plan.question.split("\n")[1], seen["lead"]
    for row in seen["rows"]:
        lead = lead.replace(f" on {row['label']}:", f" on {row['chip']}:")
    return wrong if lead == sentence else [*wrong, ("sentence", lead, sentence)]
