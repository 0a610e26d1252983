"""Calibrated times of the kernels of whole models, exact: collectives, pieces, bands; an oracle.

- A kernel with a weight matrix and nothing else is a matmul: it has every number of the fit. Others
  have the shares of the resources and the overhead of their compute dtype's fit, and no band;
  grouped-query attention has a fit of its own, of decode or of a dtype in prefill. A group without
  FLOP has the fit of `compute`.
- Collectives run one after another. The bands of the only one win.
- Rows of a replica are computed in whole tiles.
- Software is of the main memory. A chip's own calibration has shares and an overhead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import oracle
from oracle import ESTIMATES, NEARLY_TIED, bands_of, exact, numbers_of
from serving_kernels import Case, Collective, Kernel

SHARES = ("math", "memory", "network", "overhead_s")


class Fit(NamedTuple):
    """Fitted numbers, and bands by bound."""

    numbers: Mapping[str, Fraction]
    bands: Mapping[str, tuple[Fraction, Fraction]]


class Fits(NamedTuple):
    """The fits of a case: of kernels by unit, None without, of collectives, and of attention."""

    kernels: Mapping[str, Fit | None]
    collectives: Mapping[str, Fit]
    attention: Mapping[str, Fit]


def fits_of(
    asked: Mapping[str, Any],
    chip: Mapping[str, Any],
    softwares: Sequence[str],
    files: oracle.Fits,
) -> Fits:
    """The fits of a case.

    Args:
        asked: The name of the chip, memory, networks and dtypes by unit.
        chip: The chip.
        softwares: Software in order; none: the chip's own calibration.
        files: Fits by kind, chip and software, and name.
    """
    units = {unit: asked["dtypes"][unit] for unit in ("compute", "attention")}
    if not softwares:
        own = chip.get("calibration") or {}
        plain = {"overhead_s": Fraction(0), **dict.fromkeys(SHARES[:3], Fraction(1))}
        return Fits(
            {
                unit: Fit({**plain, **{key: exact(n) for key, n in own[dtype].items()}}, {})
                if dtype in own
                else None
                for unit, dtype in units.items()
            },
            {},
            {},
        )

    def named(kind: str) -> dict[str, Fit]:
        found: dict[str, Fit] = {}
        for software in softwares:
            for name, entry in files.get(kind, {}).get(f"{asked['chip']}/{software}", {}).items():
                found.setdefault(name, Fit(numbers_of(entry) or {}, bands_of(entry)))
        return found

    matmuls = named("calibrations") if asked["memory"] == "hbm" else {}
    first = list(chip.get("networks") or {})[:1]
    collectives = named("collectives") if asked["networks"] == first else {}
    attention = named("attention") if asked["memory"] == "hbm" else {}
    by_phase = {"decode": "decode", "prefill": f"prefill-{units['attention']}"}
    return Fits(
        {unit: matmuls.get(dtype) for unit, dtype in units.items()},
        collectives,
        {phase: attention[name] for phase, name in by_phase.items() if name in attention},
    )


# ---------------------------------------------------------------- collectives


def needed_by(case: Case, parts: int) -> Fraction:
    """The chance that a token of one of equal parts of the chips needs an expert of another."""
    moe = case.entry["moe"]
    experts, chosen = moe["E"], moe["k"]
    if case.routing == "all" or parts == 1:
        return Fraction(1)
    each = experts // parts
    if case.routing == "same":  # its own part is full first, then another
        return Fraction(math.ceil(Fraction(chosen, each)) - 1, parts - 1)
    none = Fraction(1)
    for drawn in range(chosen):
        none *= max(Fraction(experts - each - drawn, experts - drawn), Fraction(0))
    return 1 - none


def to_experts(case: Case, collective: Collective) -> list[Fraction]:
    """Bytes that one chip sends on each level so that a token is once on each chip that needs it.

    An all-to-all of so many copies of the payload as there are parts, each needed by chance. Inside
    a group a copy goes to every chip that needs it but the one where the token arrives.
    """
    levels = oracle.tiers(case.links, collective.axes)
    chips, found = math.prod(collective.axes), []
    for link, joined in levels:
        copies = link.scattered(joined) * chips * needed_by(case, chips)
        found.append(copies * collective.payload)
        chips //= math.prod(joined)
    return found


def sent(case: Case, collective: Collective) -> list[Fraction]:
    """Bytes that one chip sends on each level."""
    if collective.kind == "experts":
        return to_experts(case, collective)
    parts = oracle.sent_per_byte(case.links, collective.axes, collective.kind)
    return [collective.passes * part * collective.payload for part in parts]


def levels_s(
    case: Case, collective: Collective, share: Fraction, *, typical: bool = False
) -> list[tuple[Fraction, Fraction]]:
    """Of each level the time of what is sent at a share of its rate, and of the hops, if any."""
    terms = []
    levels = oracle.tiers(case.links, collective.axes)
    for (link, axes), amount in zip(levels, sent(case, collective), strict=True):
        hop = link.typical_s if typical else link.hop_s
        hops = collective.passes * link.hops(axes) if amount else 0
        terms.append((amount / (link.bytes_per_s(axes) * share), hops * hop))
    return terms


def collective_s(
    case: Case, collective: Collective, share: Fraction, *, typical: bool = False
) -> Fraction:
    """The time of a collective at a share of the rates: the slowest level or its hops."""
    return max(max(level) for level in levels_s(case, collective, share, typical=typical))


def kind_of(collective: Collective) -> str:
    """The name of a collective in a file of fits."""
    if collective.kind in {"scattered", "experts"}:
        return "all-to-all"
    return "all-reduce" if collective.passes > 1 else "all-gather"


def fitted_collective_s(case: Case, collective: Collective, share: Fraction) -> Fraction:
    """The calibrated time of a collective."""
    fit = case.fits.collectives.get(kind_of(collective))
    if fit is None:
        return collective_s(case, collective, share, typical=True)
    numbers = fit.numbers
    ((link, axes),) = oracle.tiers(case.links, collective.axes)
    wire = sum(sent(case, collective), Fraction(0)) / link.bytes_per_s(axes)
    protocols = (
        wire / numbers["low_latency"],
        numbers["bulk_overhead_s"] + wire / numbers["bulk"],
    )
    steps = collective.passes * (math.prod(collective.axes) - 1)
    return numbers["overhead_s"] + min(protocols) + numbers["hop_s"] * steps


# ---------------------------------------------------------------- kernels


def pieces(case: Case, kernel: Kernel, fit: Mapping[str, Fraction]) -> list[tuple[str, Fraction]]:
    """The pieces of a calibrated time, in the order that decides ties."""
    moved = kernel.weight_bytes + kernel.cache_bytes + kernel.activation_bytes
    math_s, memory_s = kernel.flops / case.peaks[kernel.unit], moved / case.memory_rate
    activations_s, depth = Fraction(0), Fraction(0)
    if kernel.matmul is not None:
        own, tile = Fraction(kernel.matmul.rows, case.dp), int(fit.get("tile", 1))
        math_s *= math.ceil(own / tile) * tile / own if tile > 1 else 1
        activations_s = (kernel.matmul.inputs + kernel.matmul.outputs) / case.memory_rate
        depth = kernel.matmul.depth
    mixed = (
        fit.get("mixed_math", 0) * math_s
        + fit.get("mixed_memory", 0) * memory_s
        + fit.get("mixed_activations", 0) * activations_s
        + fit.get("mixed_depth_s", 0) * depth
    )
    share = fit.get("network", Fraction(1))
    network = [fitted_collective_s(case, each, share) for each in kernel.collectives]
    return [
        ("compute", math_s / fit["math"]),
        (
            "compute",
            math_s / fit["math"] + fit.get("sustained", 0) * (math_s - Fraction(1, 1000)),
        ),
        ("memory", memory_s / fit["memory"]),
        ("network", sum(network, Fraction(0))),
        ("mixed", mixed),
    ]


def attention_fit(case: Case, kernel: Kernel) -> Fit | None:
    """The fit of attention of its own, which holds for grouped-query attention."""
    own = kernel.name != "attention" and (case.entry.get("window") or {}).get("attention")
    latent = not own and case.entry["attention"].get("kind") == "mla"
    if latent or not kernel.name.startswith("attention") or case.fits.kernels[kernel.unit] is None:
        return None
    return case.fits.attention.get(case.phase)


def fit_of(case: Case, kernel: Kernel) -> Fit | None:
    """The numbers and the bands that hold for a kernel; None without a calibration."""
    fit = attention_fit(case, kernel) or case.fits.kernels[kernel.unit]
    if fit is None or kernel.matmul is not None or attention_fit(case, kernel):
        return fit
    return Fit({name: fit.numbers[name] for name in fit.numbers.keys() & {*SHARES}}, {})


def bound_times(case: Case, kernel: Kernel) -> dict[str, Fraction] | None:
    """The largest piece of every bound; None without a calibration."""
    fit = fit_of(case, kernel)
    if fit is None:
        return None
    found: dict[str, Fraction] = {}
    for bound, time in pieces(case, kernel, fit.numbers):
        found[bound] = max(time, found.get(bound, time))
    return found


def estimate(case: Case, kernel: Kernel) -> dict[str, Any]:
    """The calibrated time of a kernel, its band and its bound; None without a calibration."""
    fit = fit_of(case, kernel)
    if fit is None:
        return dict.fromkeys(ESTIMATES)
    numbers, bands = fit.numbers, dict(fit.bands)
    if kernel.matmul is not None and len(kernel.collectives) == 1:
        of_network = case.fits.collectives.get(kind_of(kernel.collectives[0]))
        bands |= of_network.bands if of_network else {}
    times = pieces(case, kernel, numbers)
    largest = max(time for _, time in times)
    bound = next(name for name, time in times if time >= largest * (1 - NEARLY_TIED))
    total = numbers["overhead_s"] + largest
    if kernel.matmul is not None:
        total += numbers.get("activation_passes", 0) * kernel.matmul.inputs / case.memory_rate
    low, high = bands.get(bound, (None, None))
    return {
        "t_estimate_s": total,
        "t_estimate_p10_s": None if low is None else low * total,
        "t_estimate_p90_s": None if high is None else high * total,
        "estimate_bound": bound,
    }
