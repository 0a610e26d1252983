"""Kernels as page data: formulas from the table of kinds, chips' rates, and fits.

Neither this module nor the page has a formula: the page evaluates expressions from
`kinds.kind_table`, which Python reads and resolves for all options together.
"""

from __future__ import annotations

import ast
from itertools import product
from typing import TYPE_CHECKING, Any

from rooflines.answers.kernel_question import parse_kernel_words
from rooflines.basics.errors import RooflinesError
from rooflines.fits.calibration_choice import CalibrationChoice, auto_softwares
from rooflines.fits.calibration_files import REFERENCE_DTYPE
from rooflines.fits.time_form import COUNTED
from rooflines.hardware.dtype_catalogue import dtype_entries, stored_bits
from rooflines.hardware.entries import MAIN_MEMORY
from rooflines.kinds.kernel_forms import (
    DEFAULT_FORMAT,
    MESSAGE_VALUES,
    MIN_WIDE_BITS,
    VECTOR_DTYPE,
    KernelForm,
    kernel_form,
    min_size,
    with_letters,
)
from rooflines.kinds.kind_table import KINDS
from rooflines.kinds.kinds import VECTOR
from rooflines.kinds.placed_kernels import find_follower, limit_formulas
from rooflines.kinds.timed_kernels import timed_form
from rooflines.site.coefficients import Pool, double
from rooflines.sweep.calibrated_times import BOUNDS, RANGED_TERMS
from rooflines.theory.kernel import Kernel
from rooflines.theory.operation import MATRIX
from rooflines.theory.resources import NETWORK, math_rate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from fractions import Fraction

    from rooflines.basics.yaml_file import JSON
    from rooflines.fits.calibration_choice import CalibrationFit
    from rooflines.fits.calibration_files import Calibrations
    from rooflines.fits.time_form import Affine, Numbers
    from rooflines.hardware.entries import Chip
    from rooflines.kinds.kinds import KernelKind

KERNEL_FILE = "kernels"
"""File name for the kernel data, loaded when a kernel is chosen."""

UNIFORM, SAME = "routing uniform", "routing same"
"""Routing whose work is a mean, and the one that reads least, as parts of a form's key."""

ROLES = ("x", "w", "cache", "out", "compute")
"""Dtype roles with a menu."""

OPERATORS: Mapping[type[ast.operator | ast.cmpop], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Mod: "%",
    ast.FloorDiv: "//",
    ast.BitAnd: "&",
    ast.Eq: "==",
    ast.LtE: "<=",
    ast.GtE: ">=",
}
"""Operators in formulas, as the page names them."""

EXTRA_NAMES = ("variant", "along", *(role for role in ROLES))
"""Names in the page's address that only kernels have, besides letters and choices."""


def kernel_names() -> list[str]:
    """Names in the page's address that kernels have: letters, choices, roles, and menus."""
    letters = (name for kind in KINDS.values() for name in (*kind.letters, *kind.choices))
    return [*dict.fromkeys([*letters, *EXTRA_NAMES])]


def kernel_data(chips: Mapping[str, Chip], calibrations: Calibrations) -> JSON:
    """Kinds with their forms, storage formats, and rates and fits by chip.

    Args:
        chips: The chips on the page, by id.
        calibrations: By chip and software.

    Returns:
        `formulas`, which forms refer to by index, as nested lists: an operator or function with
        its arguments; a text is a letter or an intermediate name. `kinds` by name; `formats` by
        name; vector-unit `rates` by chip; `fits` by chip and their `numbers`.
    """
    formulas, numbers = Pool(), Pool()
    kinds = {name: _kind(kind, chips, formulas) for name, kind in KINDS.items()}
    return {
        "kinds": kinds,
        "formats": _formats(),
        "message_values": {
            name: formulas.index(expression(text)) for name, text in MESSAGE_VALUES.items()
        },
        "rates": {chip: _rates(entry) for chip, entry in chips.items()},
        "fits": {chip: _fits(chip, entry, calibrations, numbers) for chip, entry in chips.items()},
        "numbers": numbers.values,
        "formulas": formulas.values,
    }


# ------------------------------------------------------------------------------------- formulas


def expression(formula: str) -> Any:  # noqa: ANN401, any JSON
    """Formula as nested lists: `2*B` is ["*", 2, "B"]."""
    return _expression(ast.parse(formula, mode="eval").body)


def _expression(node: ast.expr) -> Any:  # noqa: ANN401, any JSON
    match node:
        case ast.Constant(value=bool() as value):
            return int(value)
        case ast.Constant(value=int() as value):
            return value
        case ast.Name(id=name):
            return name
        case ast.BinOp(left=left, op=operator, right=right):
            return [OPERATORS[type(operator)], _expression(left), _expression(right)]
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            return [OPERATORS[type(operator)], _expression(left), _expression(right)]
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return [name, *map(_expression, arguments)]
    raise NotImplementedError(ast.unparse(node))


# ---------------------------------------------------------------------------------------- kinds


def _kind(kind: KernelKind, chips: Mapping[str, Chip], formulas: Pool) -> JSON:
    """Kind record: letters, roles, options with forms by their combination, an example."""
    words = [next(iter(chips)), kind.name, *kind.example.split()]
    question = parse_kernel_words(words, chips, {})
    if question is None:
        raise LookupError(kind.example)
    flags = [flag for flag in kind.flags if flag not in kind.letters]
    letters = {
        letter: {"meaning": meaning, "min": max(1, min_size(letter)) if letter != "pad" else 0}
        for letter, meaning in kind.letters.items()
    }
    return {
        "summary": kind.summary,
        "unit": kind.unit,
        "letters": letters,
        "optional": kind.optional,
        "roles": kind.roles,
        "choices": {name: [*values] for name, values in kind.choices.items()},
        "flags": flags,
        "example": {
            "sizes": {letter: sizes[0] for letter, sizes in question.sizes.items()},
            "options": question.options,
            "dtypes": (question.dtypes or [DEFAULT_FORMAT])[0],
            "roles": question.roles,
        },
        "notes": kind.notes,
        "forms": dict(_forms(kind, flags, formulas)),
    }


def _forms(kind: KernelKind, flags: Sequence[str], formulas: Pool) -> Iterator[tuple[str, JSON]]:
    """Yield forms by key, the choices, flag and optional letters; a reason where there is none."""
    letters: list[tuple[list[str], list[str]]] = [([], [letter]) for letter in kind.optional]
    for values in product(*kind.choices.values()):
        options = dict(zip(kind.choices, values, strict=True))
        for flag in (None, *flags):
            for absent in product(*letters):
                given = [letter for part in absent for letter in part]
                chosen = {**options, **({flag: True} if flag else {})}
                key = form_key(chosen, given)
                try:
                    form = with_letters(kernel_form(kind, None, chosen), dict.fromkeys(given, 1))
                except RooflinesError as error:
                    yield key, {"reason": f"{error.problem}: {error.fix}"}
                else:
                    yield key, _form(form, key, formulas)


def form_key(options: Mapping[str, Any], given: Sequence[str]) -> str:
    """Form key: `phase decode, mask causal, backward, window`."""
    parts = [name if value is True else f"{name} {value}" for name, value in options.items()]
    return ", ".join([*parts, *given])


def _form(form: KernelForm, key: str, formulas: Pool) -> JSON:
    """Form record: costs, names, conditions and axes, formulas by index."""
    kind = form.kind

    def index(formula: str) -> int:
        return formulas.index(expression(formula))

    timed = timed_form(form)
    tensors = [
        [name, tensor.role, index(tensor.elements), way]
        for way, listed in (("read", kind.reads), ("write", kind.writes))
        for name, tensor in listed.items()
    ]
    record: dict[str, Any] = {
        "flops": index(kind.flops),
        "vector_flops": index(kind.vector_flops),
        "exponentials": index(kind.exponentials),
        "tensors": tensors,
        "names": {
            name: index(formula) for name, formula in {**form.defaults, **form.steps}.items()
        },
        "columns": {name: index(formula) for name, formula in kind.columns.items()},
        "checks": [[index(check.formula), check.message] for check in form.checks],
        "axes": {axis: _axis(form, axis, formulas) for axis in kind.axes},
        "along": next((axis for axis in kind.axes if not form.scales_with(axis)), kind.axes[0]),
    }
    if UNIFORM in key:
        record["strict"] = key.replace(UNIFORM, SAME)
    if timed is not None:
        terms = dict(timed.terms)
        if "context" in terms:  # as `time_form.nominal_quantities` names it
            terms["depth"] = terms["context"]
        record["timed"] = {
            "fits": timed.fits,
            "phase": form.options.get("phase", ""),
            "condition": index(timed.condition),
            "activation_bytes": index(timed.activation_bytes),
            **{
                unit: {
                    name: index(formula)
                    for name, formula in terms.items()
                    if (name in COUNTED) == (unit == "counts")
                }
                for unit in ("counts", "bytes")
            },
        }
    return record


def _axis(form: KernelForm, axis: str, formulas: Pool) -> JSON:
    """Axis record: ends, the letter that follows, and whether the axis needs a given size.

    `default_low` is the letter with the smallest size, where by default it follows the axis.
    """
    low, high = limit_formulas(form, axis)
    return {
        "low": formulas.index(expression(low)),
        "default_low": low if form.depends_on(low, axis) else None,
        "high": None if high is None else formulas.index(expression(high)),
        "follower": find_follower(form, axis),
        "is_largest": axis in form.kind.largest,
        "needs_size": axis not in form.kind.defaults,
    }


# -------------------------------------------------------------------------- formats and chips


def _formats() -> JSON:
    """Bits per element by storage format, blocks with a scale, and the format in wide roles."""
    return {
        name: {
            "bits": double(stored_bits(entry)),
            "blocks": int(bool(entry.block)),
            "wide": DEFAULT_FORMAT if stored_bits(entry) < MIN_WIDE_BITS else name,
        }
        for name, entry in dtype_entries().formats.items()
    }


def _rates(entry: Chip) -> JSON:
    """Vector-unit peak, nominal and as reached, and exponentials per second."""
    machine = entry.chip_rates(VECTOR, MAIN_MEMORY, entry.efficiency)
    peak = machine.peaks.get(VECTOR_DTYPE)
    vector = None
    if peak is not None:
        reached = math_rate(machine, VECTOR_DTYPE)
        vector = {"nominal": double(peak), "rate": double(reached)}
    exp = None if entry.special is None else double(entry.special.exact)
    return {"vector": vector, "exp": exp}


def _fits(chip: str, entry: Chip, calibrations: Calibrations, numbers: Pool) -> dict[str, int]:
    """Fit indices by kernel: `attention decode bf16`, and with its cache and heads if others.

    A key with the cache's dtype, and `shared` or `single` heads, goes before one without.
    """
    fits: dict[str, int] = {}
    formats = dtype_entries().formats
    for compute in entry.units.get(MATRIX, {}):
        softwares = auto_softwares(calibrations, chip, entry, [compute])
        choice = CalibrationChoice(calibrations, softwares, chip, entry, MATRIX, MAIN_MEMORY, ())
        if choice.fit(compute) is None:
            continue
        for stored in formats:
            if fit := choice.experts(stored, compute):
                fits[f"experts {stored} {compute}"] = numbers.index(_fit(fit))
        for phase in ("decode", "prefill"):
            for cache, shared in product([REFERENCE_DTYPE, *formats], (True, False)):
                kernel = Kernel(
                    "", compute, {}, attention_phase=phase, cache=cache, shares_heads=shared
                )
                if fit := choice.attention(kernel):
                    plain = f"attention {phase} {compute}"
                    index = numbers.index(_fit(fit))
                    if fits.setdefault(plain, index) != index:
                        heads = "shared" if shared else "single"
                        fits[f"{plain} {cache} {heads}"] = index
    return fits


def _fit(fit: CalibrationFit[Numbers]) -> JSON:
    """Fit as data: what is common, pieces in the order that decides ties, bands, and ranges."""
    pieces = [piece for piece in fit.numbers.pieces if piece[0].bound != NETWORK.name]
    pieces.sort(key=lambda piece: BOUNDS.index(piece[0].bound))
    reach = fit.reach
    sizes = {} if reach is None else reach.sizes
    foreign = reach is not None and reach.from_other_engine
    return {
        "common": _affine(fit.numbers.common),
        "pieces": [
            {"bound": piece[0].bound, "sums": [_affine(affine) for affine in piece]}
            for piece in pieces
        ],
        "bands": fit.bands,
        "sizes": {term: sizes[name] for term, name in RANGED_TERMS.items() if name in sizes},
        "out_of_range_band": None if reach is None else reach.out_of_range_band,
        "other_engine_band": reach.other_engine_band if reach and foreign else None,
        "is_other_engine": foreign,
    }


def _affine(affine: Affine) -> JSON:
    """Factors by quantity; the constant has the name "" [s]."""
    factors: dict[str, Fraction | float] = {**affine.per, "": affine.constant_s}
    return {name: float(factor) for name, factor in factors.items() if factor}
