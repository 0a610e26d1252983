"""The rows of sweeps of whole models, in order: of steps, of their kernels, of requests.

Conventions, where the model leaves a choice:

- The order of rows, slowest first: chip, model, phase, memory, network, dtypes, split, B, T, S; of
  requests B, then the requests.
- A network is needed from two chips on, of tp or of ep. Rows that need none have a null network on
  a chip that lacks the one asked for, and are there once even if several are asked for.
- The column T is there if the grid has T. A prefill has T = S.
- A value in a row of a group is that of one layer; the model's is the sum over count times value.
- The price is the lowest of the chip's, of equal ones the latest, among those of the provider and
  of the kind in `prices:` where given. A kind is words that stand in the sku.
- The bound of a group counts its activations as memory.
- A skipped row has every reason that holds: a program may give any one of them.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

from oracle import step_values, sweeps
from oracle.fits import NEARLY_TIED, fits_of, softwares_of
from oracle.network import why_not_joined
from oracle.quantities import as_list, exact, sizes_of
from oracle.setting import RESOURCES
from oracle.steps import STORED, Case, Step, kernels, shared_evenly
from oracle.values import Values, bound_of, layer_values

UNITS = ("compute", "attention")
WIDE = ("fp64", "fp32", "tf32", "bf16", "fp16")  # of everything where typed alone
STORED_ONLY = (*(f"int{bits}" for bits in range(2, 8)), "nf4", "int8-g")  # no matmul in these


@dataclass(frozen=True)
class Row:
    """One requested row: its keys, and its values or the reasons why it is skipped."""

    keys: Values
    values: Values | None
    reasons: tuple[str, ...] = ()


def dtypes_of(spec):
    """The name of dtypes, and the dtype of every tensor and of both kinds of math."""
    if isinstance(spec, str):
        wide = spec if spec in WIDE else "bf16"
        computed = wide if spec.startswith(STORED_ONLY) else spec
        narrow = {"weights": spec, "experts": spec, "compute": computed}
        return spec, dict.fromkeys((*STORED, "compute", "attention"), wide) | narrow
    instead = {"experts": "weights", "head": "weights", "combine": "activations"}
    instead |= {"attention": "compute"}
    parts = (*STORED, "compute", "attention")
    short = "-".join(spec[part] for part in ("weights", "cache", "activations", "compute"))
    found = {part: spec[part] if part in spec else spec.get(instead.get(part)) for part in parts}
    found |= spec.get("mixed", {})
    found["lm_head"] = spec.get("lm_head", found["head"])
    return spec.get("name", short), found


def split_name(split):
    """The name of a split: tp, and dp and ep from two on."""
    more = [f"{key}{split[key]}" for key in ("dp", "ep") if split.get(key, 1) != 1]
    return "-".join([f"tp{split.get('tp', 1)}", *more])


def entry_of(spec, models):
    """The name and the shape of a model: by id, by a published name, or written out."""
    if not isinstance(spec, str):
        return spec["name"], spec
    name = next(n for n, e in models.items() if spec == n or spec in e.get("aliases", ()))
    return name, models[name]


def reasons(case, chip, links):
    """Reason for a chip that does not support a case; empty if it does."""
    entry, axes, ep = case["entry"], case["axes"], case["ep"]
    experts = (entry.get("moe") or {}).get("E")
    supported = chip["units"].get("matrix", {})
    problems = {
        "compute dtype": any(case["dtypes"][u] not in supported for u in ("compute", "attention")),
        "memory": "bytes_per_s" not in chip["memory"].get(case["memory"], {}),
        "heads": not shared_evenly(entry, math.prod(axes)),
        "dense": math.prod(ep) > 1 and experts is None,
        "experts": experts is not None and math.prod(ep) > experts,
    }
    found = [reason for reason, holds in problems.items() if holds]
    joined = [why_not_joined(links, form) for form in (axes, ep)]
    return tuple(dict.fromkeys([*found, *(reason for reason in joined if reason)]))


def bits_of(formats, dtypes):
    """The bits of tensors, and of a matmul's input as its kernel reads it."""
    bits = {part: sweeps.stored_bits(formats, dtypes[part]) for part in (*STORED, "compute")}
    return bits | {"input": min(bits["activations"], bits["compute"])}


def case_of(asked, chip, links, formats, sweep):
    """A case that a chip supports."""
    level, dtypes = chip["memory"][asked["memory"]], asked["dtypes"]
    efficiency = (chip.get("efficiency") or {}) | (sweep.get("efficiency") or {})
    power, draft = chip.get("power"), sweep.get("draft")
    return Case(
        entry=asked["entry"],
        phase=asked["phase"],
        bits=bits_of(formats, dtypes),
        peaks={u: exact(chip["units"]["matrix"][dtypes[u]]["flops_per_s"]) for u in UNITS},
        memory_rate=exact(level["bytes_per_s"]),
        capacity=exact(level["capacity_bytes"]) if "capacity_bytes" in level else None,
        links=links,
        efficiency={r: exact(efficiency.get(r, 1)) for r in RESOURCES},
        fits=asked["fits"],
        axes=asked["axes"],
        dp=asked["dp"],
        ep_axes=asked["ep"],
        cache_split=asked["cache_split"],
        routing=sweep.get("routing", "uniform"),
        price=price_of(chip, **(sweep.get("prices") or {})),
        watts=exact(power["watts"]) if power else None,
        drafts=draft["tokens"] if draft else None,
        accepted=exact(draft["accepted"]) if draft else Fraction(0),
    )


def price_of(chip, provider=None, kind=None):
    """The price of a chip to count with; None if it has none."""
    listed = [
        price
        for price in chip.get("prices") or []
        if provider in (None, price["provider"]) and (kind or "") in price.get("sku", "")
    ]
    lowest = min((exact(price["usd_per_hour"]) for price in listed), default=None)
    equal = [price for price in listed if exact(price["usd_per_hour"]) == lowest]
    return max(equal, key=lambda price: str(price["date"]), default=None)


def cases(sweep, models, chips, formats, fits=None):
    """Yield the keys of every case in order, and the case or the reasons why there is none."""
    resolved = sweeps.resolve_chips(chips, as_list(sweep["chips"]))
    for name, spec, phase, memory in product(
        as_list(sweep["chips"]),
        as_list(sweep["models"]),
        as_list(sweep.get("phase", "decode")),
        as_list(sweep.get("memory", "hbm")),
    ):
        chip, (model, entry), alone = resolved[name], entry_of(spec, models), False
        for route in sweeps.routes(sweep):
            names, links = sweeps.network_of(chip, route)
            missing = not links
            for dtypes, split in product(as_list(sweep["dtypes"]), as_list(sweep["splits"])):
                axes, dp = sweeps.axes_of(split.get("tp", 1)), split.get("dp", 1)
                ep, tp = sweeps.axes_of(split.get("ep", 1)), math.prod(axes)
                spread = math.prod(ep)
                assert spread in (1, tp * dp)
                if missing and alone and tp == spread == 1:
                    continue
                name_of_dtypes, parts = dtypes_of(dtypes)
                asked = {
                    "entry": entry,
                    "chip": name,
                    "networks": names,
                    "phase": phase,
                    "memory": memory,
                    "unit": "matrix",
                    "dtypes": parts,
                    "axes": axes,
                    "dp": dp,
                    "ep": ep,
                    "cache_split": sweep.get("cache_split", "heads"),
                }
                softwares = softwares_of(sweep, asked, chip, fits or {})
                asked["fits"] = fits_of(asked, chip, softwares, fits or {})
                keys = {
                    "model": model,
                    "phase": phase,
                    "chip": name,
                    "memory": memory,
                    "network": None if missing else "+".join(names),
                    "dtypes": name_of_dtypes,
                    "split": split_name(split),
                    "chips": tp * dp,
                    "tp": tp,
                    "dp": dp,
                    "ep": spread,
                }
                why = reasons(asked, chip, links)
                case = None if why else case_of(asked, chip, links, formats, sweep)
                yield keys, case, why
            alone = alone or missing


def steps_of(sweep, phase):
    """The sizes of a sweep in order, as they are written and as a step."""
    grid = sweep["grid"]
    written = [axis for axis in ("B", "T", "S") if axis in grid]
    found = []
    for sizes in product(*(sizes_of(grid[axis]) for axis in written)):
        keys = dict(zip(written, sizes, strict=True))
        if draft := sweep.get("draft"):
            keys["T"] = draft["tokens"] + 1
        new = keys["S"] if phase == "prefill" else keys.get("T", 1)
        found.append((keys, Step(keys["B"], new, keys["S"])))
    return found


def no_step(case_reasons, keys, step):
    """Reason for a skipped step; empty if it is not skipped."""
    more = [("B", keys["dp"] > step.B), ("T", step.T > step.S)]
    return (*case_reasons, *(reason for reason, holds in more if holds))


def model_rows(sweep, models, chips, formats, fits=None):
    """Yield every requested row of a model sweep in order."""
    for keys, case, why in cases(sweep, models, chips, formats, fits):
        for sizes, step in steps_of(sweep, keys["phase"]):
            problems = no_step(why, keys, step)
            values = None if problems or case is None else step_values.model_values(case, step)
            yield Row({**keys, **sizes}, values, problems)


def layer_rows(sweep, models, chips, formats, fits=None):
    """Yield the rows of every group of every supported row in order."""
    for keys, case, why in cases(sweep, models, chips, formats, fits):
        for sizes, step in steps_of(sweep, keys["phase"]):
            if case is None or no_step(why, keys, step):
                continue
            for kernel in kernels(case, step):
                row = layer_values(case, kernel)
                moved = row["t_memory_s"] + row["t_activation_s"]
                group = {"group": kernel.name, "count": kernel.count}
                bound = bound_of({**row, "t_memory_s": moved}, NEARLY_TIED)
                yield {**keys, **sizes, **group, **row, "bound": bound}


def decoding(sweep):
    """The sweep of servers that decode: the only ones of pools, or all of them."""
    server = (sweep.get("pools") or {}).get("decode")
    return sweep if server is None else of_server(sweep, server)


def of_server(sweep, server):
    """The sweep of servers of one kind."""
    own = {"chips": [server["chip"]], "splits": [server.get("split", {})]}
    network = server.get("network")
    return {**sweep, **own, "network": None if network is None else [network]}


def prefill_servers(sweep, models, chips, formats):
    """The servers that prefill, by model, memory and dtypes; None where a pool lacks these."""
    asked = {**of_server(sweep, sweep["pools"]["prefill"]), "phase": "prefill"}
    return {
        (keys["model"], keys["memory"], keys["dtypes"]): case
        for keys, case, _ in cases(asked, models, chips, formats)
    }


def request_rows(sweep, models, chips, formats, fits=None):
    """Yield the rows of a sweep of requests: each B, then each {input, output}.

    The keys have no phase: a request has both.
    """
    servers = prefill_servers(sweep, models, chips, formats) if sweep.get("pools") else {}
    asked = decoding(sweep)
    prefills = {
        tuple(value for name, value in keys.items() if name != "phase"): case
        for keys, case, _ in cases({**asked, "phase": "prefill"}, models, chips, formats, fits)
    }
    resolved = sweeps.resolve_chips(chips, chips)
    for keys, case, why in cases({**asked, "phase": "decode"}, models, chips, formats, fits):
        named = {name: value for name, value in keys.items() if name != "phase"}
        prefill = prefills[tuple(named.values())]
        server = servers.get((keys["model"], keys["memory"], keys["dtypes"]))
        for size, request in product(sizes_of(sweep["grid"]["B"]), sweep["requests"]):
            problems = no_step(why, keys, Step(size, 1, request["input"] + 1))
            values = None
            if not problems and case is not None and prefill is not None:
                values = request_values(prefill, case, size, request, server)
                if servers:
                    ends = (resolved[sweep["pools"]["prefill"]["chip"]], resolved[keys["chip"]])
                    values |= pool_values(server, case, values, size, request, ends)
            yield Row({**named, "B": size, **request}, values, problems)


def request_values(prefill, decode, size, request, server=None):
    """Times of a request: one prefill on each replica, then every token, one by one.

    What decodes has room if the server that reads the prompt has room for one, too.
    """
    prompt, new = request["input"], request["output"]
    first = step_values.times_of_a_prompt(prefill, prompt)
    last = prompt + new
    steps = [
        step_values.times(decode, Step(size, 1, context)) for context in range(prompt + 1, last + 1)
    ]
    found = step_values.footprints(decode, size, last)
    if server is not None:
        room = step_values.footprints(server, server.dp, prompt)["fits"]
        found["fits"] = False if False in (room, found["fits"]) else found["fits"] and room
    for of_step, middle in (("t_lower_s", ""), ("t_serial_s", "_serial")):
        mean = sum((step[of_step] for step in steps), Fraction(0)) / new
        found |= {f"ttft{middle}_s": first[of_step], f"tpot{middle}_s": mean}
        found |= step_values.price_and_power(decode, size / mean, middle, fits=found["fits"])
    return found


OF_POOLS = (
    *("ttft_pool_s", "kv_transfer_bytes", "kv_transfer_s", "prefill_servers"),
    *("tokens_per_s_per_chip_pools", "usd_per_mtok_input"),
)


def pool_values(server, decode, values, size, request, chips):  # noqa: PLR0913, PLR0917, a question
    """Prefill servers per decode server; null without a server.

    Args:
        server: What prefills.
        decode: What decodes.
        values: The values of the request where it decodes.
        size: B [1].
        request: The request.
        chips: The chips of both; caches go over the network around their first one.
    """
    if server is None:
        return dict.fromkeys(OF_POOLS)
    prompt, answer = request["input"], request["output"]
    first_s = step_values.times(server, Step(server.dp, prompt, prompt))["t_serial_s"]
    moved = step_values.cache_of_one(replace(server, axes=(1,)), prompt)
    times = list[Fraction]()
    for chip, case in zip(chips, (server, decode), strict=True):
        around = [*(chip.get("networks") or {}).values()][:2][-1:]
        for link in around:
            rate = exact(link["bytes_per_s"]) * link.get("links", 1) * case.tp
            times.append(moved / rate)
    slowest = max(times) if len(times) == len(chips) else None
    servers = first_s / server.dp * size / (answer * values["tpot_serial_s"])
    usd = None
    if server.price is not None and values["fits"] is not False:
        hourly = server.chips * exact(server.price["usd_per_hour"])
        usd = hourly / 3600 * first_s / server.dp / prompt * 10**6
    of_both = decode.chips + servers * server.chips
    found = (first_s, moved, slowest, servers, values["tokens_per_s_serial"] / of_both, usd)
    return dict(zip(OF_POOLS, found, strict=True))
