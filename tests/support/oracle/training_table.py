"""The rows of sweeps of training, in order, those that are skipped too.

Conventions, where the contract leaves a choice:

- The order of rows, slowest first: chip, model, split, memory, network, dtypes, B, S.
- A name of a format is that of weights and products; all else that is not of the optimizer is in
  bf16 where it is narrower. Dtypes by class are bf16 where none is given, sums and states fp32.
- A network is needed from two chips on. Rows of one chip are there once.
- State and saved bytes are those of the first of the fullest stages.
- A skipped row has every reason that holds: a program may give any one of them.
"""

import re
from fractions import Fraction
from itertools import product
from typing import Any

from oracle import models, sweeps
from oracle.fits import ESTIMATES, NEARLY_TIED
from oracle.kernels import together
from oracle.network import fastest_axes, in_groups, why_not_joined
from oracle.plans import Case, Plan, layers_on, parameters_on, states
from oracle.quantities import as_list, exact, sizes_of
from oracle.setting import RESOURCES
from oracle.step_table import UNITS, Row, entry_of, price_of
from oracle.step_values import TWINS, price_and_power, without_rates
from oracle.steps import shared_evenly
from oracle.training import OneChip, Pass, saved
from oracle.values import LABELS, SENT, bound_of, layer_values, summed

STORED = (
    *("weights", "experts", "head", "lm_head", "activations", "combine"),
    *("saved", "gradients", "master", "moments"),
)
WIDE = 16  # bits of bf16
KEYS = (
    *("model", "phase", "chip", "memory", "network", "dtypes", "split"),
    *("chips", "tp", "dp", "ep", "pp", "cp", "interleave", "micro_batch", "shard", "recompute"),
)


def dtypes_of(spec, formats):
    """The name of dtypes, and the dtype of every class of tensors and of both kinds of math."""
    wide: str = "bf16"
    given: dict[str, Any]
    if isinstance(spec, str):
        wide = wide if exact(formats[spec]["bits"]) < WIDE else spec
        given = {"name": spec, "weights": spec, "compute": spec}
    else:
        given = spec
    usual: dict[str, Any] = dict.fromkeys(
        ("weights", "activations", "compute", "head", "attention"), wide
    )
    usual |= dict.fromkeys(("gradients", "master", "moments"), "fp32")
    found = {**usual, **given}
    instead = {"experts": "weights", "combine": "activations", "saved": "activations"}
    instead |= {"lm_head": "head"}
    dtypes = {part: found.get(part) or found[instead[part]] for part in (*STORED, *UNITS)}
    mixed = found.get("mixed", {})
    if "lm_head" not in found and "head" in mixed:
        mixed = {**mixed, "lm_head": mixed["head"]}
    return found["name"], {**dtypes, **mixed}


OF_SERVING = (*ESTIMATES, SENT, "kv_cache_bytes")
"""Columns of serving only."""

NAMES = {
    "shard": {"none": "zero0", "gradients": "zero2", "weights": "fsdp"},
    "recompute": {"selective": "selective", "full": "full"},
    "save": {"gathered": "gathered"},
    "context": {"heads": "heads"},
}


def plan_name(plan):
    """The name of a plan: its chips, then what is not the default."""
    chips = [f"{key}{n}" for key in ("tp", "pp", "cp", "ep") if (n := getattr(plan, key)) > 1]
    more = [f"v{plan.interleave}"] if plan.interleave > 1 else []
    more += [f"b{plan.micro_batch}"] if plan.micro_batch > 1 else []
    for key, names in NAMES.items():
        if (value := getattr(plan, key)) in names:
            more.append(names[value])
    if plan.optimizer != "adam":
        more.append(f"optimizer{plan.optimizer:.15g}")
    return "-".join([*chips, f"dp{plan.dp}", *more])


def impossible(entry, plan):
    """Reason for a model without such a plan; empty if it has one."""
    moe = entry.get("moe") or {}
    window = entry.get("window") or {}
    runs, heads = plan.pp * plan.interleave, entry["attention"]["N"]
    experts = moe.get("E", 1)
    problems = {
        "family": bool(
            entry.get("variants")
            or entry.get("streams")
            or moe.get("zero_experts")
            or entry["attention"].get("kind") == "shared-kv"
            or window.get("attention")
            or window.get("stride")
        ),
        "heads": not shared_evenly(entry, plan.tp),
        "cp": (plan.context == "heads" and heads % (plan.tp * plan.cp) > 0)
        or (plan.cp > 1 and bool(entry.get("state") or entry.get("sparse"))),
        "stages": plan.interleave == 1 and runs > entry["layers"],
        "interleave": plan.interleave > 1 and (runs > entry["layers"] + 2 or plan.pp == 1),
        "dense": plan.ep > 1 and not models.each_mlp(entry).count("moe"),
        "experts": plan.ep > 1 and (experts % plan.ep > 0 or plan.stage_chips % plan.ep > 0),
    }
    return tuple(name for name, holds in problems.items() if holds)


def case_of(asked, chip, links, formats, sweep):
    """A case that a chip supports."""
    level, dtypes = chip["memory"][asked["memory"]], asked["dtypes"]
    efficiency = (chip.get("efficiency") or {}) | (sweep.get("efficiency") or {})
    power = chip.get("power")
    return Case(
        entry=asked["entry"],
        plan=asked["plan"],
        bits={part: sweeps.stored_bits(formats, dtypes[part]) for part in STORED},
        peaks={u: exact(chip["units"]["matrix"][dtypes[u]]["flops_per_s"]) for u in UNITS},
        memory_rate=exact(level["bytes_per_s"]),
        capacity=exact(level["capacity_bytes"]) if "capacity_bytes" in level else None,
        links=links,
        efficiency={r: exact(efficiency.get(r, 1)) for r in RESOURCES},
        price=price_of(chip, **(sweep.get("prices") or {})),
        watts=exact(power["watts"]) if power else None,
        stretch=asked["stretch"],
    )


ZERO = {"zero0": "none", "zero1": "optimizer", "zero2": "gradients", "zero3": "weights"}
ZERO["fsdp"] = "weights"

PARTS_OF_NAMES = {
    **{f"{key}(\\d+)": key for key in ("tp", "pp", "cp", "ep", "dp")},
    "v(\\d+)": "interleave",
    "b(\\d+)": "micro_batch",
    "optimizer([\\d.]+)": "optimizer",
}
"""The keys of what names of plans have, by their form."""


def keys_of(split):
    """The keys of a plan, written out or by its name."""
    if not isinstance(split, str):
        return dict(split)
    found: dict[str, Any] = {}
    words = {word: (key, value) for key, of in NAMES.items() for value, word in of.items()}
    for part in split.split("-"):
        if part in words:
            found |= [words[part]]
            continue
        key, number = next(
            (key, match[1])
            for form, key in PARTS_OF_NAMES.items()
            if (match := re.fullmatch(form, part))
        )
        found[key] = float(number) if key == "optimizer" else int(number)
    return found


def plan_of(keys):
    """The plan of some keys; the name of a stage of ZeRO stands for what is shared."""
    shard = keys.get("shard", "optimizer")
    return Plan(**{**keys, "shard": ZERO.get(shard.lower(), shard)})


def plans_of(sweep, catalogue=None):
    """The plans of a sweep, with the keys that it has for all of them."""
    shared = {key: sweep[key] for key in Plan.__dataclass_fields__ if key in sweep}
    if sweep.get("splits") == "auto":
        return every_plan(sweep, shared, catalogue or {})
    return [plan_of({**shared, **keys_of(split)}) for split in as_list(sweep["splits"])]


def every_plan(sweep, shared, catalogue):
    """Every plan over some chips that a model of a sweep allows.

    In the order of pp, dp, tp and ep; those that share no weights come last, of each model.
    """
    chips, found = sweep["num_chips"], dict[str, Plan]()
    sizes = [n for n in range(1, chips + 1) if chips % n == 0]
    for spec in as_list(sweep["models"]):
        entry, own = entry_of(spec, catalogue)[1], list[Plan]()
        for pp, dp, tp, cp in product(sizes, repeat=4):
            if pp * dp * tp * cp != chips:
                continue
            for ep in sizes if entry.get("moe") else [1]:
                keys = {"tp": tp, "pp": pp, "dp": dp, "cp": cp, "ep": ep}
                runs = shared.get("interleave", 1) if pp > 1 else 1
                plan = plan_of({**shared, **keys, "interleave": runs})
                own += [] if impossible(entry, plan) else [plan]
        found |= {plan_name(plan): plan for plan in sorted(own, key=lambda p: p.replicas == 1)}
    return [*found.values()]


def trainers(chip, fits):
    """Software with a fit of training on a chip, in alphabetical order."""
    keys = (key.partition("/") for key in fits.get("training", {}))
    return sorted(software for name, _, software in keys if name == chip)


def unjudged(entry):
    """True for models that no judged step is like: with chosen tokens, or states alone."""
    return bool(entry.get("sparse") or (entry.get("state") and not entry.get("moe")))


def stretch_of(chip, softwares, fits):
    """The fit of steps of training of the first software that has one; None without."""
    found = (fits.get("training", {}).get(f"{chip}/{software}", {}) for software in softwares)
    return next((each["train"] for each in found if "train" in each), None)


def cases(sweep, catalogue, chips, formats, fits=None):
    """Yield the keys of every case in order, and the case or the reasons why there is none."""
    named = sweep.get("calibration", "auto")
    resolved = sweeps.resolve_chips(chips, as_list(sweep["chips"]))
    levels = as_list(sweep.get("memory", "hbm"))
    asked_plans = [*plans_of(sweep, catalogue)]
    for name, spec, plan in product(as_list(sweep["chips"]), as_list(sweep["models"]), asked_plans):
        model, entry = entry_of(spec, catalogue)
        never = impossible(entry, plan)
        for memory in levels:
            chip, alone = resolved[name], False
            for route in sweeps.routes(sweep):
                names, links = sweeps.network_of(chip, route)
                links = in_groups(links, plan.chips)
                if not links and alone and plan.chips == 1:
                    continue
                for spelled in as_list(sweep["dtypes"]):
                    label, dtypes = dtypes_of(spelled, formats)
                    asked = {"entry": entry, "plan": plan, "memory": memory, "dtypes": dtypes}
                    softwares = (
                        trainers(name, fits or {}) if named == "auto" else as_list(named or [])
                    )
                    softwares = [] if unjudged(entry) else softwares
                    asked["stretch"] = stretch_of(name, softwares, fits or {})
                    supported = chip["units"].get("matrix", {})
                    axes = fastest_axes(links, plan.chips)
                    why = [*never, why_not_joined(links, axes)]
                    why.append(
                        "compute dtype" if any(dtypes[u] not in supported for u in UNITS) else None
                    )
                    level = chip["memory"].get(memory, {})
                    why.append(None if "bytes_per_s" in level else "memory")
                    found = tuple(reason for reason in why if reason)
                    own = {key: getattr(plan, key) for key in KEYS[7:]}
                    network = "+".join(names) if links else None
                    values = (model, "train", name, memory, network, label, plan_name(plan))
                    keys = {**dict(zip(KEYS, values, strict=False)), **own}
                    case = None if found else case_of(asked, chip, links, formats, sweep)
                    yield keys, case, found
                alone = alone or not links


def training_rows(sweep, known):
    """Yield every requested row of a sweep of training in order, of what `cases` yielded."""
    sizes = [*product(*(sizes_of(sweep["grid"][axis]) for axis in ("B", "S")))]
    for keys, case, why in known:
        for batch, length in sizes:
            more = (
                ("B", batch % (keys["dp"] * keys["micro_batch"])),
                ("S", length % keys["cp"]),
            )
            problems = (*why, *(name for name, rest in more if rest))
            values = None
            if not problems and case is not None:
                values = step_values(case, batch, length)
                if "tokens" in sweep:
                    values |= whole_training(case, values, batch * length, exact(sweep["tokens"]))
            yield Row({**keys, "B": batch, "S": length}, values, problems)


def passes_on(chip, stage):
    """The passes of a micro-batch on a stage, each with how often it has them."""
    return [(layers * each.kernel.count, each) for layers, part in chip.on(stage) for each in part]


def times(case, batch, length):
    """The times of a step, in the mean of all stages, by resource; and of levels, their parts."""
    chip, m = OneChip(case, length), batch // (case.plan.dp * case.plan.micro_batch)
    runs = []
    for stage in case.stages:
        runs += [(times * each.often.runs(m), each) for times, each in passes_on(chip, stage)]
        runs += [(1, each) for each in chip.once(stage)]
    total = summed(case, [(n, each.kernel, seconds(case, each)) for n, each in runs if n])
    sent = ((n, collective) for n, each in runs if n for collective in each.kernel.collectives)
    levels = together(case.links, sent, case.efficiency["network"])
    parts = {"levels": [time / case.plan.pp for level in levels for time in level]}
    return {**{name: total[name] / case.plan.pp for name in LABELS}, **parts}


def step_values(case, batch, length):
    """Every computed column of a row."""
    plan, chip = case.plan, OneChip(case, length)
    m = batch // (plan.dp * plan.micro_batch)
    every, in_turn, held, flying = [], [], [], []
    shares = dict.fromkeys(("useful", "all_pairs", "done"), Fraction(0))
    for stage in case.stages:
        here = [(times * each.often.runs(m), each) for times, each in passes_on(chip, stage)]
        once = [(1, each) for each in chip.once(stage)]
        every += [(times, each) for times, each in (*here, *once) if times]
        stretch = (m + Fraction(plan.pp - 1, plan.interleave)) / m
        runs = [(times * stretch, each) for times, each in here] + once
        in_turn.append(
            [
                sum(n * seconds(case, each)[of] for n, each in runs)
                for of in ("t_serial_s", "t_upper_s")
            ]
        )
        held.append((states(case, stage), saved(case, stage, m, length)))
        flying.append(in_flight(case, stage, length))
    total = summed(case, [(times, each.kernel, seconds(case, each)) for times, each in every])
    row = {name: total[name] / plan.pp for name in total.keys() - {*OF_SERVING}}
    for times, each in every:
        rate = case.peaks[each.kernel.unit]
        for name in shares:
            shares[name] += times * getattr(each, name) / rate / plan.pp
    row |= dict(zip(("t_serial_s", "t_upper_s"), map(max, zip(*in_turn, strict=True)), strict=True))
    row |= footprints(case, held, length) | peaks(case, held, flying)
    row["bound"] = bound_of(row, NEARLY_TIED)
    row["micro_batches"] = m
    row["bubble"] = Fraction(plan.pp - 1, plan.interleave * m + plan.pp - 1)
    price = case.price or {"provider": None, "date": None}
    row |= {"price_provider": price["provider"], "price_date": price["date"]}
    row |= estimate_of(case, row)
    for time, suffix in TWINS:
        if row.get(time) is None:
            row |= without_rates(suffix, ("mfu_full", "hfu"))
            continue
        tokens_per_s = batch * length / row[time]
        row |= price_and_power(case, tokens_per_s, suffix, fits=row["fits"])
        row["mfu" + suffix] = shares["useful"] / row[time]
        row["mfu_full" + suffix] = shares["all_pairs"] / row[time]
        row["hfu" + suffix] = shares["done"] / row[time]
        row["mbu" + suffix] = row["memory_bytes"] / (row[time] * case.memory_rate)
    return row


def estimate_of(case, row):
    """The estimate of a step and its band; null without a fit."""
    if case.stretch is None:
        return dict.fromkeys(ESTIMATES[:3])
    times = exact(case.stretch["times"])
    if case.stretch.get("base", "upper") == "math":
        seconds = max(times * row["t_math_s"] / (1 - row["bubble"]), row["t_serial_s"])
    else:
        seconds = times * row["t_upper_s"]
    band, lower = case.stretch["bands"].get("step"), row["t_lower_s"]
    low, high = [max(seconds * exact(end), lower) for end in band] if band else (None, None)
    return {"t_estimate_s": seconds, "t_estimate_p10_s": low, "t_estimate_p90_s": high}


def seconds(case, each):
    """Work and times of a pass in a layer, computed once."""
    key = "seconds", id(each)
    if key not in case.known:
        case.known[key] = each, layer_values(case, each.kernel)
    return case.known[key][1]


def footprints(case, held, length):
    """Memory of a chip in the fullest stage, and sizes that would fit."""
    plan = case.plan
    of_states, of_saved = max(held, key=sum)
    found = {
        "state_bytes": of_states,
        "saved_bytes": of_saved,
        "footprint_bytes": of_states + of_saved,
        **dict.fromkeys(("fits", "max_micro_batch", "max_S")),
    }
    if case.capacity is None:
        return found
    room = max(min((case.capacity - own) / more for own, more in held), 0)
    return found | {
        "fits": found["footprint_bytes"] <= case.capacity,
        "max_micro_batch": int(room * plan.micro_batch),
        "max_S": int(room * length / plan.cp) * plan.cp,
    }


def in_flight(case, stage, length):
    """Bytes of a stage beside states and saved tensors.

    Two layers' gathered weights and one layer's gradients, where replicas share weights; and of the
    logits of the last stage a copy in fp32 and its gradient.
    """
    plan, most = case.plan, Fraction(0)
    size = case.bytes_of("gradients")
    for layer in layers_on(case.entry, stage) if plan.shard == "weights" else []:
        parts = [part for part in parameters_on(case, layer) if part.replicas > 1]
        alone = sum(part.held * (2 * case.bytes_of(part.tensors) + size) for part in parts)
        most = max(most, alone)
    tokens = Fraction(plan.micro_batch * length, plan.tp * plan.cp)
    return most + stage.last * tokens * case.entry["V"] * (4 + 4)


def peaks(case, held, flying):
    """Columns of a peak, of a plan without a stack."""
    all_of = [sum(own) + more for own, more in zip(held, flying, strict=True)]
    return {
        "held_bytes": max(map(sum, held)),
        "in_flight_bytes": flying[all_of.index(max(all_of))],
        "working_bytes": None,
        "peak_bytes": max(all_of),
        "trained_parameters": models.parameters(case.entry),
        "fits_by": "held",
        "offload_bytes": 0,
    }


def whole_training(case, row, tokens_of_step, tokens):
    """Days and dollars of all training."""
    costs: dict[str, Any] = {}
    for suffix, time in (("", row["t_serial_s"]), ("_estimate", row["t_estimate_s"])):
        whole = None if time is None else time * tokens / tokens_of_step
        usd = None
        if whole is not None and case.price is not None and row["fits"] is not False:
            usd = whole / 3600 * case.chips * exact(case.price["usd_per_hour"])
        costs |= {f"days{suffix}": whole and whole / 86_400, f"usd{suffix}": usd}
    return costs


def layer_rows(sweep, known):
    """Yield the rows of every kernel of every supported row: of one layer and micro-batch.

    The optimizer, and what waits for it, is that of each kind of stage, numbered in order.
    """
    for row, case, m in supported(sweep, known):
        chip, found = OneChip(case, row["S"]), dict[str, tuple[Fraction, Pass]]()
        for stage in case.stages:
            for times, each in passes_on(chip, stage):
                name = each.kernel.name
                found[name] = times + (found[name][0] if name in found else 0), each
        kinds = list(dict.fromkeys(stage.kind for stage in case.stages))
        for number, kind in enumerate(kinds):
            alike = [stage for stage in case.stages if stage.kind == kind]
            for each in chip.once(alike[0]):
                name = each.kernel.name + (f"-{number + 1}" if number else "")
                found[name] = Fraction(len(alike)), each
        for name, (count, each) in found.items():
            values = seconds(case, each)
            moved = values["t_memory_s"] + values["t_activation_s"]
            of = {"group": name, "count": count, "runs": each.often.runs(m)}
            bound = bound_of({**values, "t_memory_s": moved}, NEARLY_TIED)
            own = {name: values[name] for name in values.keys() - {*OF_SERVING, "t_lower_s"}}
            yield {**row, **of, **own, "bound": bound, "offload_bytes": 0}


def supported(sweep, known):
    """The keys of every supported row, its case, and its micro-batches."""
    sizes = [*product(*(sizes_of(sweep["grid"][axis]) for axis in ("B", "S")))]
    for keys, case, why in known:
        for batch, length in sizes:
            together = keys["dp"] * keys["micro_batch"]
            if not (why or batch % together or length % keys["cp"]):
                yield {**keys, "B": batch, "S": length}, case, batch // together
