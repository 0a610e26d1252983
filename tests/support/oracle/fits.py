"""Calibrated times of kernels, exact, and which fit a kernel has.

- A kernel with a weight matrix and nothing else is a matmul: it has every number of the fit. Others
  have the shares of the resources and the overhead of their compute dtype's fit, those of memory
  and the overhead of that of bf16 if there is one, and no band; grouped-query attention and routed
  experts have fits of their own. A group without FLOP has the fit of `compute`.
- Software is of the main memory. A chip's own calibration has shares and an overhead.
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from itertools import chain
from typing import Any, NamedTuple

from oracle.kernels import collective_s, sent
from oracle.network import tiers
from oracle.quantities import exact

ESTIMATES = (
    *("t_estimate_s", "t_estimate_p10_s", "t_estimate_p90_s"),
    *("estimate_bound", "estimate_extrapolated"),
)

NEARLY_TIED = Fraction(1, 10**13)
"""Pieces that differ by a smaller share count as tied."""

SHARES = ("math", "memory", "network", "overhead_s")


class Fit(NamedTuple):
    """Fitted numbers, bands by bound, and how far they reach."""

    numbers: Mapping[str, Fraction]
    bands: Mapping[str, tuple[Fraction, Fraction]]
    reach: Mapping[str, Any] | None = None


class Fits(NamedTuple):
    """The fits of a case: of kernels by unit, None without, collectives, attention, and bf16."""

    kernels: Mapping[str, Fit | None]
    collectives: Mapping[str, Fit]
    attention: Mapping[bool, Fit]
    wide: Fit | None = None
    experts: Fit | None = None


NO_FITS = Fits({"compute": None}, {}, {})

ABOUT = (
    *("bands", "held", "fitted", "held_out", "held_out_below", "contents", "source", "date"),
    *("sizes", "outside", "elsewhere", "version"),
)
"""Keys of a fit in a file, besides its numbers."""


def fit_in(entry, *, foreign=False):
    """The fit of an entry of a file, of the first engine that was asked for or of another."""
    numbers = {name: exact(number) for name, number in entry.items() if name not in ABOUT}
    ends = {bound: tuple(map(exact, band)) for bound, band in entry.get("bands", {}).items()}
    beyond = {name: entry.get(name) for name in ("outside", "elsewhere")}
    sizes = {**(entry.get("sizes") or {}), "window": (0, 0)}
    return Fit(numbers, ends, {"sizes": sizes, "foreign": foreign, **beyond})


ENGINES = ("vllm", "trtllm", "sglang")


def entries_of(files, kind, chip, software):
    """The fits of a software by name: those of the chip, else those of the chip that is its kin."""
    found: dict[str, Any] = {}
    for name in (files.get("kin", {}).get(chip), chip):
        entries = files.get(kind, {}).get(f"{name}/{software}", {})
        if kind == "calibrations" and "bf16" in entries:  # of one width and peak
            entries = {"fp16": entries["bf16"], **entries}
        found |= entries
    return found


def softwares_of(sweep, asked, chip, files):
    """The software of a case, in order: as named, else the first engine; None: no estimate.

    Args:
        sweep: The sweep, whose `calibration` may be left out.
        asked: As in `fits_of`.
        chip: The chip.
        files: Fits by kind, chip and software, and name.
    """
    named = sweep.get("calibration", "auto")
    if named is None or named not in ("auto", ["auto"]):
        return named if named is None or isinstance(named, list) else [named]
    dtypes = {asked["dtypes"][unit] for unit in ("compute", "attention")}
    if dtypes <= set(chip.get("calibration") or {}):
        return []
    for engine in ENGINES:
        if dtypes <= {*entries_of(files, "calibrations", asked["chip"], engine)}:
            return [engine, "nccl"]
    return []


def fits_of(asked, chip, softwares, files):
    """The fits of a case.

    Args:
        asked: The name of the chip, memory, networks, unit, and dtypes of its kinds of math.
        chip: The chip.
        softwares: Software in order; empty: the chip's own calibration; None: no calibration.
        files: Fits by kind, chip and software, and name.
    """
    units = {unit: asked["dtypes"][unit] for unit in ("compute", "attention")}
    if softwares is None:
        return Fits(dict.fromkeys(units), {}, {})
    if not softwares:
        plain = {"overhead_s": 0, **dict.fromkeys(SHARES[:3], 1)}
        own = {
            name: fit_in({**plain, **of}) for name, of in (chip.get("calibration") or {}).items()
        }
        return Fits({unit: own.get(dtype) for unit, dtype in units.items()}, {}, {})

    def named(kind):
        found: dict[str, Fit] = {}
        for software in softwares:
            for name, entry in entries_of(files, kind, asked["chip"], software).items():
                found.setdefault(name, fit_in(entry, foreign=software != softwares[0]))
        return found

    known = asked["memory"] == "hbm" and asked["unit"] == "matrix"
    matmuls, attention = (named(kind) if known else {} for kind in ("calibrations", "attention"))
    first = list(chip.get("networks") or {})[:1]
    wide = {"fp16": "bf16"}
    stored = asked["dtypes"].get("experts") or ""
    stored = (stored if isinstance(stored, str) else next(iter(stored))).partition("-")[0]
    stored, computed = wide.get(stored, stored), wide.get(units["compute"], units["compute"])
    experts = named("experts") if known else {}
    own = {}
    for shares in (False, True):
        ends = ("",) if shares or asked.get("phase") != "decode" else ("-mha", "")
        caches = (asked["dtypes"].get("cache") or "bf16", "bf16")
        start = "decode" if asked.get("phase") == "decode" else f"prefill-{units['attention']}"
        names = (f"{start}-{cache}{end}" for cache in caches for end in ends)
        name = next((name for name in names if name in attention), None)
        if name is not None:
            own[shares] = attention[name]
    return Fits(
        {unit: matmuls.get(dtype) for unit, dtype in units.items()},
        named("collectives") if asked["networks"] == first else {},
        own,
        matmuls.get("bf16"),
        experts.get(stored if stored == computed else f"{stored}-{computed}"),
    )


def attention_fit(case, kernel):
    """The fit of attention of its own, which holds for grouped-query attention."""
    name = kernel.name.removeprefix("draft-")
    own = name != "attention" and (case.entry.get("window") or {}).get("attention")
    latent = not own and case.entry["attention"].get("kind") in ("mla", "shared-kv")
    if latent or not name.startswith("attention") or case.fits.kernels[kernel.unit] is None:
        return None
    return case.fits.attention.get(kernel.fused.shares)


def fit_of(case, kernel):
    """The numbers and the bands that hold for a kernel; None without a calibration."""
    fit = case.fits.kernels[kernel.unit]
    if fit is None or kernel.matmul is not None:
        return fit
    own = attention_fit(case, kernel)
    if kernel.name.removeprefix("draft-") == "experts":
        own = case.fits.experts
    if own is not None:
        return own
    numbers = {name: fit.numbers[name] for name in fit.numbers.keys() & {*SHARES}}
    if wide := case.fits.wide:
        numbers |= {name: wide.numbers[name] for name in ("memory", "overhead_s")}
    return Fit(numbers, {})


def fitted_collective_s(links, collective, share, fit):
    """The calibrated time of a collective; without a fit the hops take their typical time."""
    if fit is None:
        return collective_s(links, collective, share, typical=True)
    numbers = fit.numbers
    ((link, axes),) = tiers(links, collective.axes)
    wire = sum(sent(links, collective), Fraction(0)) / link.bytes_per_s(axes)
    protocols = (wire / numbers["low_latency"], numbers["bulk_overhead_s"] + wire / numbers["bulk"])
    steps = collective.passes * (math.prod(collective.axes) - 1)
    return numbers["overhead_s"] + min(protocols) + numbers["hop_s"] * steps


def pieces(machine, kernel, fit):
    """The pieces of a calibrated time, in the order that decides ties [s]."""
    activation_bytes = kernel.activation_bytes
    if activation_bytes and kernel.matmul is not None:  # the input as the kernel reads it
        activation_bytes = kernel.matmul.inputs + kernel.matmul.outputs
    moved = kernel.weight_bytes + kernel.kv_cache_bytes + activation_bytes
    math_s, memory_s = kernel.flops / machine.peaks[kernel.unit], moved / machine.memory_rate
    activations_s, depth, heads = Fraction(0), Fraction(0), Fraction(0)
    if kernel.matmul is not None:
        rows, tile = kernel.matmul.rows, int(fit.get("tile", 1))
        math_s *= 1 if rows is None else math.ceil(rows / tile) * tile / rows if tile > 1 else 1
        activations_s = (kernel.matmul.inputs + kernel.matmul.outputs) / machine.memory_rate
        depth = kernel.matmul.depth
    share = fit.get("network", Fraction(1))
    network = [
        fitted_collective_s(machine.links, each, share, machine.fits.collectives.get(each.name))
        for each in kernel.timed
    ]
    if fused := kernel.fused:
        activations_s = (fused.inputs + fused.outputs) / machine.memory_rate
        depth, heads = fused.depth, fused.heads
    memory = [memory_s / fit["memory"]]
    if fit.get("bulk"):
        memory.append(fit.get("bulk_overhead_s", 0) + memory_s / fit["bulk"])
    compute_s = math_s / fit["math"]
    return [
        ("compute", compute_s),
        ("compute", compute_s + fit.get("sustained", 0) * (math_s - Fraction(1, 1000))),
        ("memory", min(memory)),
        ("network", sum(network, Fraction(0))),
        (
            "mixed",
            fit.get("mixed_math", 0) * math_s
            + fit.get("mixed_memory", 0) * memory_s
            + fit.get("mixed_activations", 0) * activations_s
            + fit.get("mixed_depth_s", 0) * depth
            + fit.get("mixed_head_s", 0) * heads,
        ),
    ]


def estimate(machine, kernel):
    """The calibrated time of a kernel, its band and its bound; None without a calibration.

    The bands of the only collective win.
    """
    fit = fit_of(machine, kernel)
    if fit is None:
        return dict.fromkeys(ESTIMATES)
    numbers, bands, of_network = fit.numbers, dict(fit.bands), None
    if kernel.matmul is not None and len(kernel.collectives) == 1:
        of_network = machine.fits.collectives.get(kernel.collectives[0].name)
        bands |= of_network.bands if of_network else {}
    times = pieces(machine, kernel, numbers)
    largest = max(time for _, time in times)
    bound = next(name for name, time in times if time >= largest * (1 - NEARLY_TIED))
    total = numbers["overhead_s"] + largest
    read = kernel.matmul or kernel.fused
    if read is not None:
        total += numbers.get("activation_passes", 0) * read.inputs / machine.memory_rate
    if fused := kernel.fused:
        total += numbers.get("token_passes", 0) * fused.once / machine.memory_rate
        total += numbers.get("expert_s", 0) * fused.activated
    low, high = bands.get(bound, (None, None))
    found = [beyond_of(sizes_of(kernel), fit.reach)]
    if of_network and bound == "network":
        (sent_once,) = kernel.collectives
        sizes = {"bytes": sent_once.payload, "shards": math.prod(sent_once.axes)}
        own = beyond_of(sizes, of_network.reach)
        found.append({of: band for of, band in own.items() if of == "sizes" or band})
    for _, wider in chain.from_iterable(each.items() for each in found):
        if low is not None and wider:
            low, high = min(low, exact(wider[0])), max(high, exact(wider[1]))
    beyond = [of for of in ("engine", "sizes") if any(of in each for each in found)]
    return {
        "t_estimate_s": total,
        "t_estimate_p10_s": None if low is None else low * total,
        "t_estimate_p90_s": None if high is None else high * total,
        "estimate_bound": bound,
        "estimate_extrapolated": ", ".join(beyond) or None,
    }


def sizes_of(kernel):
    """The sizes of a kernel that fits reach to."""
    if kernel.matmul is not None:
        return {"D": kernel.matmul.depth, "F": kernel.matmul.columns}
    return {} if kernel.fused is None else kernel.fused.sizes


def beyond_of(sizes, reach):
    """Extrapolations in words, each with its band."""
    if not sizes or reach is None:
        return {}
    inside = all(
        low <= sizes[name] <= high for name, (low, high) in reach["sizes"].items() if name in sizes
    )
    engine = {"engine": reach["elsewhere"]} if reach["foreign"] else {}
    return engine | ({} if inside else {"sizes": reach["outside"]})


def sent_estimate(case, kernel):
    """The calibrated time of the collectives of a kernel; None without a calibration."""
    fit = fit_of(case, kernel)
    if fit is None:
        return None
    found = pieces(case, kernel, fit.numbers)
    return max((time for bound, time in found if bound == "network"), default=Fraction(0))
