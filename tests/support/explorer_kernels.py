"""Random kernels of the explorer, and the same from Python."""

import math
import random
from dataclasses import replace
from typing import Any

from rooflines import RooflinesError
from rooflines.answers.kernel_estimate import KernelChip, kernel_estimate
from rooflines.fits.calibration_files import shipped_calibrations
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.kinds.kernel_forms import kernel_form, kernel_sizes, with_letters
from rooflines.kinds.kind_table import KINDS
from rooflines.kinds.kinds import VECTOR
from rooflines.kinds.placed_kernels import PlacedKernel, kernel_rates
from rooflines.theory.operation import MATRIX

State = dict[str, Any]

ROWS = """(addresses) => addresses.map((address) => {
  const { data } = EXPLORER.readState();
  const state = STATE.read(new URLSearchParams(address), data);
  const row = STATE.evaluateChip(state, state.chips[0]);
  if (row.unsupported) return { unsupported: row.unsupported };
  const { times, workload } = row;
  const { work } = times;
  const fit = KERNELS.estimateAt(workload, state.question.sizes);
  const text = SENTENCES.verdict(state, [row]);
  return {
    unavailable: state.unavailable,
    numbers: [work.flops, work.vectorFlops, work.exponentials, work.memoryBytes,
      times.byResource.compute, times.byResource.memory, times.lower, row.strict, row.intensity],
    bound: times.bound,
    estimate: fit && [fit.time, ...(fit.band ?? [null, null])],
    critical: Object.fromEntries(KERNELS.listAxes(state.question).map((axis) => {
      const { outcome, size } = KERNELS.critical(workload, axis);
      return [axis, [outcome, size]];
    })),
    command: STATE.explainCommand(state, row.chip), verdict: [text.lead, ...text.lines].join(" "),
  };
})"""
"""Numbers, thresholds, sentences and command of each address, without drawing."""

MAX_POWER = 13
"""Largest drawn size of most letters, as a power of two."""

EXACT = 1e9
"""Critical sizes up to here are compared to the last unit: doubles decide them [1]."""


def random_size():
    """A power of two, or any number."""
    power: int = 2 ** random.randrange(MAX_POWER)
    return random.choice([power, random.randint(1, 2**MAX_POWER)])


def random_kernel():
    """A kind with letters, options and dtypes, on a chip; now and then one that is refused."""
    kind = random.choice([*KINDS.values(), *[KINDS["attention"], KINDS["experts"]] * 12])
    fitted = sorted({key.partition("/")[0] for key in shipped_calibrations().attention})
    every = [chip for chip, entry in chip_entries().items() if entry.base is None]
    chip = random.choice(fitted if random.random() < 0.7 else every)
    formats = [*dtype_entries().formats]
    state: State = {"subject": kind.name, "chips": chip}
    for name, values in kind.choices.items():
        usual = next(iter(values))
        state[name] = usual if random.random() < 0.7 else random.choice([*values])
    flags = [flag for flag in kind.flags if flag not in kind.letters]
    state["variant"] = random.choice([*flags, *["plain"] * 5]) if flags else None
    peaks = [*chip_entries()[chip].units.get(MATRIX, {"bf16": None})]
    if kind.roles or kind.unit == MATRIX:
        state["dtypes"] = random.choice([*peaks, *["bf16"] * 4, random.choice(formats)])
    for role in kind.roles:
        if random.random() < 0.2 or "quantise" in kind.name:
            state[role] = random.choice(formats)
    if kind.unit == MATRIX and random.random() < 0.2:
        state["compute"] = random.choice(peaks)
    required = kernel_form(kind).missing([])
    for letter in kind.letters:
        if letter in required or random.random() < 0.3:
            state[letter] = random_size()
    if "N" in state and "K" in state and random.random() < 0.9:
        state["N"] = state["K"] * random.choice([1, 2, 8])
    if "T" in state and "S" in state and random.random() < 0.9:
        state["S"] += state["T"]
    if kind.name == "conv2d":
        small = {"k": random.choice([1, 3, 5]), "groups": 1, "stride": random.choice([1, 2])}
        state |= small | {"pad": random.choice([0, 1, 2]), "HW": random.choice([5, 7, 56, 224])}
    return {name: value for name, value in state.items() if value is not None}


def explained(state):
    """The numbers of a state from Python; None where it refuses it."""
    kind = KINDS[state["subject"]]
    letters = {letter: state[letter] for letter in kind.letters if letter in state}
    options = {name: state[name] for name in kind.choices if name in state}
    if state.get("variant", "plain") != "plain":
        options[state["variant"]] = True
    dtypes = {role: state[role] for role in (*kind.roles, "compute") if role in state}
    dtypes |= {"": state["dtypes"]} if "dtypes" in state else {}
    chip, name = chip_entries()[state["chips"]], state["chips"]
    try:
        form = with_letters(kernel_form(kind, dtypes, options), letters)
        sizes = kernel_sizes(form, letters)
        placed = PlacedKernel(form, kernel_rates(chip, name, form))
    except RooflinesError:
        return None
    complete = form.complete(sizes)
    work, times = form.work(complete), placed.times(complete)
    by_bound = placed.by_bound(times)
    lower = max(by_bound.values())
    estimate = kernel_estimate(form, complete, KernelChip(name, chip))
    flops = work.vector_flops if kind.unit == VECTOR else work.flops
    numbers: list[Any] = [work.flops, work.vector_flops, work.exponentials, work.memory_bytes]
    numbers += [times.math, times.memory, lower, _strict(placed, sizes)]
    numbers += [flops / work.memory_bytes]
    return {
        "numbers": [None if number is None else float(number) for number in numbers],
        "bound": next(bound for bound, time in by_bound.items() if time == lower),
        "estimate": estimate
        and [estimate.time_s, *(estimate.time_s * end for end in estimate.band or ())],
        "critical": {axis: placed.critical(axis, sizes) for axis in placed.axes(sizes)},
    }


def _strict(placed, sizes):
    """Bound under the routing that reads least."""
    form = placed.form
    if form.options.get("routing", "uniform") == "uniform" and "routing" in form.kind.choices:
        options = {**form.options, "routing": "same"}
        placed = replace(placed, form=replace(form, options=options))
    return max(placed.by_bound(placed.times(placed.form.complete(sizes))).values())


def wrong(seen, value):
    """Differences between the page and Python."""
    if value is None or "unsupported" in seen:
        return [] if value is None and "unsupported" in seen else [seen, value]
    ends = (seen["estimate"], value["estimate"])
    pairs = [*zip(seen["numbers"], value["numbers"], strict=True)]
    if (ends[0] is None) != (ends[1] is None):
        return [ends]
    if None not in ends:
        pairs += zip([end for end in ends[0] if end is not None], ends[1], strict=True)
    differing: list[Any] = [
        pair
        for pair in pairs
        if pair[0] != pair[1] and (None in pair or not math.isclose(*pair, rel_tol=1e-12))
    ]
    if seen["bound"] != value["bound"] and len({*value["numbers"][4:6]}) > 1:
        differing.append((seen["bound"], value["bound"]))
    for axis, threshold in value["critical"].items():
        expected = (threshold.outcome, threshold.critical)
        got = tuple(seen["critical"].get(axis, ()))
        if got != expected and not (threshold.critical or 0) > EXACT:
            differing.append((axis, got, expected))
    if {*seen["critical"]} != {*value["critical"]}:
        differing.append(("axes", [*seen["critical"]], [*value["critical"]]))
    return differing
