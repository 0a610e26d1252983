"""Answers about one kind of kernel on one chip."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from rooflines.answers.answer_values import ResourceTime
from rooflines.answers.kernel_answer import (
    KernelAnswer,
    bound_words,
    chip_records,
    rate_words,
)
from rooflines.answers.kernel_estimate import UNTIMED, kernel_estimate
from rooflines.answers.measured_kernel import measured_kernel
from rooflines.answers.phrases import DIGITS, Line, Title, crossover, distinguishable
from rooflines.basics.errors import RooflinesError
from rooflines.basics.text import seconds, si, significant
from rooflines.dictionary.columns import ALWAYS, FOUND, NEVER
from rooflines.kinds.kernel_forms import kernel_form, kernel_sizes, with_letters
from rooflines.kinds.kinds import VECTOR
from rooflines.kinds.placed_kernels import PlacedKernel, kernel_rates
from rooflines.theory.operation import MATRIX
from rooflines.theory.routing import UNIFORM

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rooflines.answers.kernel_estimate import KernelChip
    from rooflines.hardware.chip_parts import NumberRecord
    from rooflines.hardware.entries import Chip
    from rooflines.kinds.kernel_forms import KernelForm, Work
    from rooflines.kinds.kinds import KernelKind
    from rooflines.kinds.placed_kernels import Critical, KernelTimes

MLA_DEFAULTS = "as in DeepSeek-V3"
"""Origin of the default sizes of latent attention."""

LIMITS = {"compute": "math", "vector": "vector", "memory": "memory", "exp": "exp"}
"""Resource by bound."""


def kind_answer(  # noqa: PLR0913, the parts of a question
    kind: KernelKind,
    sizes: Mapping[str, int],
    dtypes: Mapping[str, str],
    options: Mapping[str, Any],
    target: KernelChip,
    *,
    measured: str | None = None,
    counts_exp: bool = False,
) -> KernelAnswer:
    """Answer about a kind.

    Args:
        kind: The kind.
        sizes: Size by letter, as typed [1].
        dtypes: Format by role, with `compute`; under "" the format of all others.
        options: Choices and flags.
        target: The chip, with its calibrations.
        measured: Measured number; None: none.
        counts_exp: Whether exponentials are a resource of the bound.

    Raises:
        RooflinesError: Something is invalid, or the chip cannot do it.
    """
    form = with_letters(kernel_form(kind, dtypes, options), sizes)
    checked = kernel_sizes(form, sizes)
    complete = form.complete(checked)
    name, chip = target.name, target.chip
    placed = PlacedKernel(form, kernel_rates(chip, name, form, target.memory), counts_exp)
    if counts_exp and placed.rates.exp is None:
        problem = f"has no sourced rate of exponentials: {name}"
        raise RooflinesError("resource exp", problem, "leave out --resource exp")
    work, times = form.work(complete), placed.times(complete)
    estimate = kernel_estimate(form, complete, target)
    thresholds = [placed.critical(axis, checked) for axis in placed.axes(checked)]
    row: dict[str, Any] = {"operation": form.kind.name, "chip": name, "memory": target.memory}
    row |= _columns(placed, complete, work, times)
    row |= {} if estimate is None else estimate.columns()
    row["compute_bound_from"] = short_threshold(thresholds[0]) if thresholds else None
    typed = " ".join(f"{letter}={size}" for letter, size in checked.items())
    subject = " ".join(filter(None, [form.kind.name, typed, form.choice_text]))
    peak = placed.rates.matrix
    return KernelAnswer(
        row=row,
        title=Title(name, subject, form.dtypes_text, "").text(),
        bound_text=_bound_text(form, checked, placed, row),
        rate_text=rate_words(
            row, None if peak is None else float(peak), is_mean=form.strict is not None
        ),
        resources=[*_resources(work, times, placed)],
        facts=[*_facts(form, checked, complete, work, placed)],
        chip_name=chip.name or name,
        numbers=_numbers(chip, form, target.memory, work),
        estimate=estimate,
        untimed=UNTIMED,
        thresholds=thresholds,
        threshold_lines=[
            _threshold_line(threshold, complete, row["bound"]) for threshold in thresholds
        ],
        measured=measured_kernel(measured, row, chip, estimate),
    )


def _columns(
    placed: PlacedKernel, complete: Mapping[str, int], work: Work, times: KernelTimes
) -> dict[str, Any]:
    """Columns of a table, besides the place."""
    form, by_bound = placed.form, placed.by_bound(times)
    lower = max(by_bound.values())
    flops = work.vector_flops if form.kind.unit == VECTOR else work.flops
    return {
        "dtypes": form.dtypes_text,
        "options": form.choice_text,
        **{letter: complete[letter] for letter in form.kind.letters if letter in complete},
        "flops": float(work.flops),
        "memory_bytes": float(work.memory_bytes),
        "network_bytes": 0.0,
        "vector_flops": float(work.vector_flops),
        "exponentials": float(work.exponentials),
        "pairs": None if work.pairs is None else float(work.pairs),
        "touched": None if work.touched is None else float(work.touched),
        **{
            f"t_{resource}_s": float(by_bound[bound]) if bound in by_bound else None
            for bound, resource in LIMITS.items()
            if bound != "exp"
        },
        "t_exp_s": None if times.exp is None else float(times.exp),
        "t_lower_s": float(lower),
        "t_upper_s": float(sum(by_bound.values(), Fraction(0))),
        "bound": next(bound for bound, time in by_bound.items() if time == lower),
        "memory_intensity": float(Fraction(flops) / work.memory_bytes),
    }


def _bound_text(
    form: KernelForm, sizes: Mapping[str, int], placed: PlacedKernel, row: Mapping[str, Any]
) -> str:
    """Bound in words; under uniform routing the mean, and the strict bound."""
    lower, words = float(row["t_lower_s"]), bound_words(row["bound"])
    strict = form.strict
    if strict is None:
        return f"at least {seconds(lower)}, {words}"
    least_kernel = replace(placed, form=strict)
    least = max(least_kernel.by_bound(least_kernel.times(strict.complete(sizes))).values())
    return (
        f"at the mean of {UNIFORM} routing {seconds(lower)}, {words}; "
        f"at least {seconds(float(least))} whatever the routing"
    )


def _resources(work: Work, times: KernelTimes, placed: PlacedKernel) -> Iterator[ResourceTime]:
    """Times by resource, for the bars."""
    rates, is_vector = placed.rates, placed.form.kind.unit == VECTOR
    math = ("vector_flops", work.vector_flops, rates.vector)
    parts = {
        "compute": math if is_vector else ("flops", work.flops, rates.matrix),
        "vector": math,
        "memory": ("memory_bytes", work.memory_bytes, rates.memory),
        "exp": ("exponentials", work.exponentials, rates.exp),
    }
    for bound, time in placed.by_bound(times).items():
        column, amount, rate = parts[bound]
        if amount and rate is not None:
            yield ResourceTime(
                LIMITS[bound], bound, column, float(amount), float(rate), 0.0, float(time)
            )


def _numbers(chip: Chip, form: KernelForm, memory: str, work: Work) -> list[NumberRecord]:
    """Chip numbers behind the answer."""
    used = {f"memory.{memory}"}
    if form.kind.unit == MATRIX:
        used.add(f"units.matrix.{form.compute}")
    if work.vector_flops:
        used.add("units.vector.fp32")
    if work.exponentials and chip.special is not None:
        used.add("special")
    return chip_records(chip, used)


def _facts(
    form: KernelForm,
    sizes: Mapping[str, int],
    complete: Mapping[str, Any],
    work: Work,
    placed: PlacedKernel,
) -> Iterator[Line]:
    """Defaults, intensity, routing, exponentials, and what is not counted."""
    defaults = {
        letter: complete[letter]
        for letter in form.kind.letters
        if letter in complete and letter not in sizes and letter not in form.kind.optional
    }
    if defaults:
        text = " ".join(f"{letter}={size}" for letter, size in defaults.items())
        is_mla = form.kind.name.startswith("mla")
        yield Line("defaults", "", f"{text}, {MLA_DEFAULTS}" if is_mla else text)
    is_vector = form.kind.unit == VECTOR
    flops = work.vector_flops if is_vector else work.flops
    needed = placed.needed_intensity
    if flops and needed is not None:
        have = significant(float(Fraction(flops) / work.memory_bytes), DIGITS)
        peak = "the vector unit's peak" if is_vector else "compute-bound"
        text = f"{have} FLOP/B of memory traffic; {peak} from {significant(needed, DIGITS)}"
        yield Line("intensity", "", text)
    if work.vector_flops and placed.rates.vector is None:
        yield Line("vector", "", "untimed: no fp32 peak of the vector unit is published")
    if form.strict is not None and work.touched is not None:
        rows = "experts" if form.kind.name == "experts" else "rows"
        yield Line("routing", "", f"{significant(float(work.touched), DIGITS)} {rows} in the mean")
    if work.exponentials and not is_vector and not placed.counts_exp:
        count = f"{si(float(work.exponentials), '')} exponentials"
        rate = placed.rates.exp
        timed = "untimed: no sourced rate"
        if rate is not None:
            time = seconds(float(Fraction(work.exponentials) / rate))
            timed = f"{time} at {si(float(rate), '/s')}, not in the bound"
        yield Line("exp", "", f"{count}, {timed}")
    for note in form.kind.notes:
        _, _, text = note.partition("Not counted: ")
        yield Line("uncounted" if text else "note", "", text or note)


def short_threshold(threshold: Critical) -> str:
    """Critical size in a table."""
    if threshold.outcome == FOUND:
        return f"{'up to ' if threshold.largest else ''}{threshold.critical}"
    return "any" if threshold.outcome == ALWAYS else threshold.outcome


def _threshold_line(threshold: Critical, complete: Mapping[str, Any], bound: str) -> Line:
    """Critical size along a letter, in words.

    Args:
        threshold: The threshold.
        complete: Complete sizes [1].
        bound: Bottleneck at these sizes.
    """
    axis, critical = threshold.axis, threshold.critical
    if threshold.outcome == FOUND and critical is not None and threshold.real is not None:
        text = f"crossover {crossover(threshold.real)}"
        if more := _heads(axis, critical, complete):
            text += f"; {more}"
        return Line(axis, f"{'≤ ' if threshold.largest else ''}{critical}", text)
    if threshold.outcome == ALWAYS:
        return Line(axis, "any", "compute-bound at every size")
    if threshold.outcome != NEVER:
        return Line(axis, threshold.outcome, "beyond the largest size")
    limit, needed = threshold.limit_intensity, threshold.needed_intensity
    if limit is None or needed is None or limit >= needed:
        return Line(axis, "never", f"{bound_words(bound)} at every size")
    have, need = distinguishable(limit, needed)
    return Line(axis, "never", f"memory intensity tends to {have} of {need} FLOP/B")


def _heads(axis: str, critical: int, complete: Mapping[str, Any]) -> str:
    """Counts of heads near a critical one that share KV heads evenly; empty: it does itself."""
    heads, kv_heads = complete.get("N"), complete.get("K")
    if not heads or not kv_heads:
        return ""
    if axis == "K" and heads % critical:
        divisor = max(count for count in range(1, critical + 1) if heads % count == 0)
        return f"the largest divisor of N={heads} is {divisor}"
    if axis == "N" and critical % kv_heads:
        multiple = -(-critical // kv_heads) * kv_heads
        return f"the next multiple of K={kv_heads} is {multiple}"
    return ""
