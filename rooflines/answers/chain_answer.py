"""Answers about chains: kinds fused into one kernel, or kernels one after another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.answers.answer_values import ResourceTime
from rooflines.answers.kernel_answer import (
    KernelAnswer,
    bound_words,
    chip_records,
    rate_words,
)
from rooflines.answers.kernel_estimate import UNTIMED
from rooflines.answers.measured_kernel import measured_kernel
from rooflines.answers.phrases import Line, Title
from rooflines.basics.text import seconds, si
from rooflines.kinds.chains import parse_chain
from rooflines.kinds.kernel_forms import DEFAULT_FORMAT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.answers.kernel_estimate import KernelChip
    from rooflines.hardware.entries import Chip
    from rooflines.kinds.chains import Chain, ChainTimes
    from rooflines.kinds.placed_kernels import KernelRates


def chain_answer(
    text: str,
    sizes: Mapping[str, int],
    dtypes: Mapping[str, str],
    target: KernelChip,
    *,
    measured: str | None = None,
) -> KernelAnswer:
    """Answer about a chain.

    Args:
        text: Kinds between `+`, fused, or `,`, one after another.
        sizes: Rows B, widths, and further letters of the kinds [1].
        dtypes: Format by role; under "" that of everything else.
        target: The chip.
        measured: Measured number; None: none.

    Raises:
        RooflinesError: Something is invalid, or the chip cannot do it.
    """
    formats = {"x": DEFAULT_FORMAT, **{role or "x": form for role, form in dtypes.items()}}
    chain = parse_chain(text, sizes, formats)
    name, chip, memory = target.name, target.chip, target.memory
    rates = chain.rates(chip, name, memory)
    times = chain.times(rates)
    row: dict[str, Any] = {"operation": chain.text, "chip": name, "memory": memory}
    row |= _columns(chain, times, sizes, formats)
    used = {f"memory.{memory}"}
    used |= {f"units.matrix.{chain.compute}"} if chain.flops else set()
    used |= {"units.vector.fp32"} if chain.vector_flops else set()
    matrix = next((rate.matrix for rate in rates if rate.matrix is not None), None)
    bound_text = f"at least {seconds(float(times.lower))}, {bound_words(row['bound'])}"
    if not chain.fused:
        bound_text = f"{seconds(float(times.ops))} serialized; {bound_text}"
    typed = " ".join(f"{letter}={size}" for letter, size in sizes.items())
    return KernelAnswer(
        row=row,
        title=Title(name, f"{chain.text} {typed}", row["dtypes"], "").text(),
        bound_text=bound_text,
        rate_text=rate_words(row, None if matrix is None else float(matrix)),
        resources=[*_resources(chain, times, rates)],
        facts=[*(_fused_facts(chain) if chain.fused else _sequence_facts(chain, times, chip))],
        chip_name=chip.name or name,
        numbers=chip_records(chip, used),
        estimate=None,
        untimed=UNTIMED,
        measured=measured_kernel(measured, row, chip),
    )


def _by_bound(chain: Chain, times: ChainTimes) -> dict[str, Any]:
    """Times that count in the bound [s]."""
    by_bound = {"memory": times.memory}
    by_bound |= {"vector": times.vector} if chain.vector_flops else {}
    return ({"compute": times.math} if chain.flops else {}) | by_bound


def _columns(
    chain: Chain, times: ChainTimes, sizes: Mapping[str, int], formats: Mapping[str, str]
) -> dict[str, Any]:
    """Columns of a table, besides the place."""
    by_bound = _by_bound(chain, times)
    written = ",".join(f"{role}:{form}" for role, form in formats.items())
    plain = formats["x"] if {*formats} == {"x"} else written
    return {
        "dtypes": plain,
        "options": "fused" if chain.fused else "serialized",
        **sizes,
        "flops": float(chain.flops),
        "memory_bytes": float(chain.memory_bytes),
        "network_bytes": 0.0,
        "vector_flops": float(chain.vector_flops),
        "exponentials": float(chain.exponentials),
        "activation_bytes": float(chain.activation_bytes),
        "t_math_s": float(times.math),
        "t_memory_s": float(times.memory),
        "t_vector_s": float(times.vector),
        "t_activation_s": float(times.activation),
        "t_lower_s": float(times.lower),
        "t_overlapped_s": float(times.overlapped),
        "t_serial_s": float(times.ops),
        "t_upper_s": float(times.upper),
        "bound": max(by_bound, key=lambda bound: by_bound[bound]),
    }


def _resources(
    chain: Chain, times: ChainTimes, rates: Sequence[KernelRates]
) -> Iterator[ResourceTime]:
    """Times by resource, for the bars."""
    matrix = next((rate.matrix for rate in rates if rate.matrix is not None), None)
    vector = next((rate.vector for rate in rates if rate.vector is not None), None)
    parts = {
        "compute": ("math", "flops", chain.flops, matrix),
        "vector": ("vector", "vector_flops", chain.vector_flops, vector),
        "memory": ("memory", "memory_bytes", chain.memory_bytes, rates[0].memory),
    }
    for bound, time in _by_bound(chain, times).items():
        resource, column, amount, rate = parts[bound]
        if rate is not None:
            yield ResourceTime(
                resource, bound, column, float(amount), float(rate), 0.0, float(time)
            )


def _fused_facts(chain: Chain) -> Iterator[Line]:
    """Traffic that fusing saves, and what it needs."""
    saved, alone = si(float(2 * chain.inner_bytes), "B"), si(float(chain.part_bytes), "B")
    yield Line("saves", "", f"{saved} of the {alone} that the kernels move alone")
    if chain.needs_whole_rows:
        yield Line("needs", "", f"whole rows on the chip for {', '.join(chain.needs_whole_rows)}")


def _sequence_facts(chain: Chain, times: ChainTimes, chip: Chip) -> Iterator[Line]:
    """Times between all at once and no overlap, and traffic between kernels."""
    overlapped, upper = seconds(float(times.overlapped)), seconds(float(times.upper))
    yield Line("times", "", f"{overlapped} if all overlap, {upper} with no overlap at all")
    handed = si(float(chain.activation_bytes), "B")
    cached = ""
    cache = chip.last_level_cache
    if cache is not None and chain.inner_bytes < (cache.capacity_bytes or 0):
        cached = "; they may stay in the cache"
    yield Line("between", "", f"kernels hand each other {handed}, written and read{cached}")
