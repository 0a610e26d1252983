"""Bounds of kernels as numbers: one shape, or a frame of shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

from rooflines.answers.name_search import OPERATION_ALIASES
from rooflines.answers.question import catalogues_in, resolve_chip
from rooflines.basics.errors import Mistakes, RooflinesError, at_path, quote
from rooflines.basics.lazy import pl
from rooflines.basics.numbers import MAX_SIZE, whole
from rooflines.evaluation.compiler import first_longest
from rooflines.hardware.entries import MAIN_MEMORY
from rooflines.kinds.kernel_forms import (
    check_letters,
    kernel_form,
    kernel_sizes,
    min_size,
    with_letters,
)
from rooflines.kinds.kernel_results import (
    KERNEL_BOUNDS,
    RESULT_COLUMNS,
    KernelResult,
    PreparedKernel,
    plain_sizes,
)
from rooflines.kinds.kind_names import checked_kind, find_kind
from rooflines.kinds.placed_kernels import kernel_rates
from rooflines.theory.operation import NAMED_OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Sequence

    from rooflines.answers.question import HasCatalogues
    from rooflines.kinds.kernel_forms import KernelForm

Getter = Callable[[Mapping[str, Any]], tuple[Any, ...]]
"""Function from arguments to some of their values."""

ALLOWED = "#allowed"
"""Column that says whether sizes are allowed; names with # never leave the package."""

Frame = TypeVar("Frame", "pl.DataFrame", "pl.LazyFrame")

MAX_PREPARED = 4096
"""Kernels ready at once [1]."""

_prepared: dict[Hashable, tuple[PreparedKernel, object]] = {}
"""Prepared kernels by question, each with its config, which keeps the config's id its own."""


def kernel(  # noqa: PLR0913, the parts of a question
    chip: str,
    kind: str,
    *,
    dtypes: str | Mapping[str, str] | None = None,
    memory: str = MAIN_MEMORY,
    exp: bool = False,
    config: HasCatalogues | None = None,
    **sizes: Any,  # noqa: ANN401, numbers, names and flags
) -> KernelResult:
    """Bounds of a kernel on one shape, in microseconds once its kind and options were asked.

    Times are work / rate for each resource: t_lower_s is the longest, t_upper_s their sum.

    Args:
        chip: Its id, such as `h100-sxm`, or a name that the command line takes, such as `H100`.
        kind: A kind of kernel, such as `attention`, or a synonym.
        dtypes: A format for all roles, or a format by role with `compute`; None: bf16.
        memory: The memory level that feeds the unit.
        exp: True to let exponentials enter the bound.
        config: Chips, such as `load_config(path)`; None: those of the package.
        **sizes: Sizes by letter [1], and options of the kind: `phase="decode"`, `backward=True`.

    Raises:
        RooflinesError: Something is invalid, or the chip cannot do it.
    """
    formats = dtypes if dtypes is None or isinstance(dtypes, str) else tuple(dtypes.items())
    names = tuple(sizes)
    options_in, letters_in = _order(kind, names)
    key = (chip, kind, formats, memory, exp, id(config), names, options_in(sizes))
    entry = _prepared.get(key)
    if entry is None:
        letters, options = _split(kind, sizes)
        if len(letters) < len(letters_in(sizes)):  # None: not given
            return kernel(
                chip,
                kind,
                dtypes=dtypes,
                memory=memory,
                exp=exp,
                config=config,
                **options | letters,
            )
        form = _form(kind, dtypes, options, letters)
        kernel_sizes(form, plain_sizes(letters))
        entry = _place(form, chip, memory, config, [*letters], exp=exp), config
        if len(_prepared) >= MAX_PREPARED:
            _prepared.clear()
        _prepared[key] = entry
    return entry[0].result(letters_in(sizes))


def kernels(  # noqa: PLR0913, the parts of a question
    frame: Frame,
    chip: str,
    kind: str,
    *,
    dtypes: str | Mapping[str, str] | None = None,
    memory: str = MAIN_MEMORY,
    exp: bool = False,
    config: HasCatalogues | None = None,
    **sizes: Any,  # noqa: ANN401, numbers, names and flags
) -> Frame:
    """Kernel bounds for a frame of shapes, one row per shape: `kernel`'s numbers as columns.

    Amounts and times are Float64: whole numbers above 2^53 are rounded to 53 bits.

    Args:
        frame: Letters of the kind as columns of whole numbers; other columns stay.
        chip: As in `kernel`.
        kind: As in `kernel`.
        dtypes: As in `kernel`.
        memory: As in `kernel`.
        exp: As in `kernel`.
        config: As in `kernel`.
        **sizes: Letters that are the same in all rows, and options, as in `kernel`.

    Returns:
        The frame with columns for FLOP, bytes, times [s], bound and intensity, eager or lazy as it
        was given. In a lazy frame they are null where sizes break a condition of the kernel.

    Raises:
        RooflinesError: As in `kernel`; of an eager frame also for the first row whose sizes are
            invalid.
    """
    fixed: dict[str, Any]
    options: dict[str, Any]
    fixed, options = _split(kind, sizes)
    schema = frame.collect_schema()
    columns: list[str] = [letter for letter in checked_kind(kind).letters if letter in schema]
    _check_columns(schema, columns, sizes)
    form = _form(kind, dtypes, options, [*columns, *fixed])
    check_letters(form, [*columns, *fixed])
    with Mistakes() as mistakes:
        for letter, size in plain_sizes(fixed).items():
            with mistakes.at(letter):
                fixed[letter] = whole(size, minimum=min_size(letter))
    prepared = _place(form, chip, memory, config, [*columns, *fixed], exp=exp)
    bounds = _with_bounds(frame.lazy(), prepared, columns, fixed)
    if isinstance(frame, pl.LazyFrame):
        return bounds.drop(ALLOWED)
    return _checked(bounds.collect(), prepared, columns, fixed)


def _checked(
    result: pl.DataFrame,
    prepared: PreparedKernel,
    columns: Sequence[str],
    fixed: Mapping[str, int],
) -> pl.DataFrame:
    """Results without the column that says whether sizes are allowed.

    Raises:
        RooflinesError: Some are not.
    """
    refused = (~result[ALLOWED]).arg_true()
    if len(refused):
        row = int(refused[0])
        with at_path("rows", row):
            prepared.result((*result.select(columns).row(row), *fixed.values()))
    return result.drop(ALLOWED)


def _check_columns(schema: pl.Schema, columns: Sequence[str], sizes: Mapping[str, object]) -> None:
    """Check the columns of a frame of shapes.

    Raises:
        RooflinesError: A column would be overwritten, is an argument too, or has no whole numbers.
    """
    with Mistakes() as mistakes:
        for column in [column for column in RESULT_COLUMNS if column in schema]:
            with mistakes.at(column):
                fix = "drop or rename it"
                raise RooflinesError("", "is a column of the frame, and of the results", fix)
        for letter in columns:
            with mistakes.at(letter):
                if letter in sizes:
                    fix = "leave one of them out"
                    raise RooflinesError("", "is a column and an argument", fix)
                if not schema[letter].is_integer():
                    problem = f"is a column of {schema[letter]}, not of whole numbers"
                    fix = f'cast it: pl.col("{letter}").cast(pl.Int64)'
                    raise RooflinesError("", problem, fix)


@cache
def _order(kind: str, names: tuple[str, ...]) -> tuple[Getter, Getter]:
    """Getters for options and for letters among arguments with some names."""
    asked_kind = find_kind(kind)
    letters = asked_kind.letters if asked_kind else {}
    return (
        _getter([name for name in names if name not in letters]),
        _getter([name for name in names if name in letters]),
    )


def _getter(names: Sequence[str]) -> Getter:
    """Function from a mapping to a tuple with some values."""
    if len(names) > 1:
        return itemgetter(*names)
    return lambda values: tuple(values[name] for name in names)


def _split(kind: str, sizes: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Sizes by letter, and options; None is as if left out.

    Raises:
        RooflinesError: There is no such kind.
    """
    if kind.lower() in (*NAMED_OPERATIONS, *OPERATION_ALIASES):
        fix = f'ask rooflines.explain(chip, sizes, operation="{kind}")'
        raise RooflinesError("kind", f"is {quote(kind)}, an einsum", fix)
    known_letters = checked_kind(kind).letters
    given = {name: value for name, value in sizes.items() if value is not None}
    letters = {
        name: value
        for name, value in given.items()
        if name in known_letters or not isinstance(value, bool | str)
    }
    return letters, {name: value for name, value in given.items() if name not in letters}


def _form(
    kind: str,
    dtypes: str | Mapping[str, str] | None,
    options: Mapping[str, Any],
    letters: Collection[str],
) -> KernelForm:
    """Kernel with options and dtypes.

    Raises:
        RooflinesError: An option or dtype is none of the kind.
    """
    return with_letters(kernel_form(kind, dtypes, options), dict.fromkeys(letters))


def _place(  # noqa: PLR0913, the parts of a kernel
    form: KernelForm,
    chip: str,
    memory: str,
    config: HasCatalogues | None,
    letters: Sequence[str],
    *,
    exp: bool,
) -> PreparedKernel:
    """Kernel on a chip.

    Raises:
        RooflinesError: There is no such chip or memory level, or the chip cannot do it.
    """
    chips = catalogues_in(config).chips
    name = resolve_chip(chip, chips).name
    rates = kernel_rates(chips[name], name, form, memory)
    return PreparedKernel(name, form, rates, memory, letters, exp=exp)


def _with_bounds(
    frame: pl.LazyFrame,
    prepared: PreparedKernel,
    columns: Sequence[str],
    fixed: Mapping[str, int],
) -> pl.LazyFrame:
    """Frame with results, and a column that says whether sizes are allowed."""
    sizes = {letter: pl.col(letter).cast(pl.Float64) for letter in columns}
    sizes |= {letter: pl.lit(float(size)) for letter, size in fixed.items()}
    results = prepared.expressions(sizes)
    in_range = [pl.col(letter).is_between(min_size(letter), MAX_SIZE) for letter in columns]
    allowed = pl.all_horizontal(*in_range, results.pop("holds")).fill_null(value=False)
    times = ["t_math_s", "t_vector_s", "t_memory_s", *(["t_exp_s"] if prepared.exp else [])]
    seconds = {bound: pl.col(time) for bound, time in zip(KERNEL_BOUNDS, times, strict=False)}
    flops = pl.col("vector_flops" if prepared.is_vector else "flops")
    later = {
        "t_lower_s": pl.max_horizontal(*seconds.values()),
        "t_upper_s": pl.sum_horizontal(*seconds.values()),
        "memory_intensity": flops / pl.col("memory_bytes"),
    }
    bound = first_longest(seconds, pl.col("t_lower_s"), pl.Categorical())
    order = [*frame.collect_schema().names(), *RESULT_COLUMNS, ALLOWED]
    return (
        frame.with_columns(allowed.alias(ALLOWED))
        .with_columns(**_where_allowed(results))
        .with_columns(**_where_allowed(later))
        .with_columns(**_where_allowed({"bound": bound}))
        .select(order)
    )


def _where_allowed(columns: Mapping[str, pl.Expr]) -> dict[str, pl.Expr]:
    """Columns, null where sizes are not allowed."""
    return {name: pl.when(pl.col(ALLOWED)).then(value) for name, value in columns.items()}
