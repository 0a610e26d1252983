"""Several cases of one question, a row each: chips, dtypes, memory levels, sizes."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from rooflines.answers.any_routing import mean_notes, mean_titles
from rooflines.answers.assumptions import as_note, assumptions_of
from rooflines.answers.basis import (
    BASIS,
    BOUND_BASIS,
    ESTIMATE_BASIS,
    MIXED_BASIS,
    SERIALIZED_BASIS,
    Basis,
    basis_of,
    row_basis,
    table_basis,
)
from rooflines.answers.case_answer import (
    letters_of,
    lever_keys_of,
    rows_of,
    softwares_of,
    thresholds_of,
)
from rooflines.answers.faster_than_bound import request_reasons
from rooflines.answers.head_room import table_notes
from rooflines.answers.measured_number import (
    judged_number,
    measured_section,
    several_measured,
)
from rooflines.answers.payoff_lines import payoff_notes
from rooflines.answers.phrases import older_timings, operation_title, price_notes, step_title
from rooflines.answers.question import question_sweep, split_of
from rooflines.answers.routes import routes_of
from rooflines.answers.split_headline import rank_time, split_headline
from rooflines.basics.errors import RooflinesError, quote
from rooflines.basics.text import counted, seconds, significant
from rooflines.config.model_fields import SERVING_AXES
from rooflines.dictionary.columns import ALWAYS, FOUND, NEVER
from rooflines.evaluation.measured_times import rate_works
from rooflines.fits.estimate_band import waiting_of
from rooflines.fits.fit_keys import Software
from rooflines.models.architecture import DECODE, TRAIN
from rooflines.solvers.serving_levers import lever_thresholds
from rooflines.sweep.operation_sweep import Sweep
from rooflines.sweep.step_sweep import ModelSweep
from rooflines.sweep.training_sweep import TrainingSweep
from rooflines.theory.resources import MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rooflines.answers.measured_number import MeasuredNumber
    from rooflines.answers.phrases import Section, Title
    from rooflines.answers.question import QuestionCatalogues
    from rooflines.answers.question_words import Question
    from rooflines.basics.quantities import MeasuredValue
    from rooflines.sweep.cases import Skipped
    from rooflines.sweep.step_sweep import StepCase

MAX_CASES = 500
"""Rows of a table on a screen [1]."""

CASE_KEYS = ("chip", "memory", "network", "dtypes", "split", "engine")
"""Keys in which cases can differ, besides sizes."""

FIRST_TOKEN = {
    BOUND_BASIS: "ttft_s",
    SERIALIZED_BASIS: "ttft_serial_s",
    ESTIMATE_BASIS: "prefill_estimate_s",
}
"""Columns with the time to the first token, by basis."""

HELD, HELD_TITLE = "concurrency", "engine holds"
"""Column with the requests that an engine holds, and its title."""

OF_REQUESTS = {
    "ttft_basis_s": "TTFT ({})",
    "tpot_basis_s": "TPOT ({})",
    "output_tokens_per_s": "tokens/s",
    "tokens_per_s_per_user": "tokens/s/user",
    "usd_per_output_mtok": "$/Mtok",
    "ttft_s": "TTFT at least",
    "tpot_s": "TPOT at least",
    "bound": "bound",
    "fits": "fits",
    "max_B": "largest B",
    HELD: HELD_TITLE,
}
"""Column titles of requests on a screen, by column; the basis stands in the first two."""

UP_AND_DOWN = ("column", "contracting/all-reduce")
"""Shardings for a layer's two matmuls in tensor parallelism: up, then down."""

TURNED = {"B": "B", "D": "F", "F": "D"}
"""The sizes of the way down by those of the way up."""

PROMPTS_IN = "TPOT and tokens/s include the prompts that are read between tokens."
PROMPTS_APART = "TPOT and tokens/s are of decode alone, without prompts between tokens."
PROMPTS_MIXED = (
    "Estimates of TPOT and tokens/s include the prompts that are read between tokens; serialized "
    "ones are of decode alone."
)
"""Notes on what the time of a token includes."""

IDLE_PREFILL = "prefill, idle (estimate)"
"""Column title for the estimated time of one prompt without waiting."""

MIXED_TITLES = {"ttft_basis_s": "prefill, idle", "tpot_basis_s": "TPOT"}
"""Titles of times that rows have on several bases."""

CALIBRATED_TO = "Estimates are calibrated to"
"""Beginning of the note on calibrations."""

ALL_TOKENS = "tokens/s"
"""Column title for tokens of all chips, where their number differs."""

UNRANKED = "Runs take longer: that time and its rates do not rank beside estimates."
"""Sentence on serialized rows in a table of estimates."""

BAND_TEXT, USER_RATE, OF_PEAK = "band", "tokens_per_s_per_user", "share_of_peak"
"""Columns that a table of cases has besides those of a sweep, on its basis."""


def engine_notes(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Engines whose pools a table has, in one sentence."""
    engines = dict.fromkeys(
        f"{row['engine']} {row['engine_version']}" for row in rows if row.get("engine")
    )
    if engines:
        meaning = f"requests in the pool of one replica ({', '.join(engines)})"
        yield f"{HELD_TITLE.capitalize()}: {meaning}; fits and largest B are by it."


def operation_titles(basis: Basis) -> dict[str, str]:
    """Column titles of operations on a screen, by column."""
    return {
        basis.column: basis.title,
        BAND_TEXT: "80% within",
        BOUND_BASIS.column: BOUND_BASIS.title,
        "bound": "bound",
        OF_PEAK: "of peak",
        "compute_bound_from": "compute-bound from",
        "fits": "fits",
    }


def step_titles(basis: Basis) -> dict[str, str]:
    """Column titles of steps on a screen, by column."""
    return {
        **({BASIS: "basis"} if basis is MIXED_BASIS else {}),
        basis.column: basis.title,
        BAND_TEXT: "80% within",
        BOUND_BASIS.column: BOUND_BASIS.title,
        "bound": "bound",
        USER_RATE: "tokens/s/user",
        f"tokens_per_s{basis.suffix}": ALL_TOKENS,
        f"tokens_per_s_per_chip{basis.suffix}": "tokens/s/chip",
        f"mfu{basis.suffix}": "MFU",
        "compute_bound_from": "compute-bound from",
        "fits": "fits",
        "max_B": "largest B",
        HELD: HELD_TITLE,
        "max_S": "longest S",
        f"usd_per_mtok{basis.suffix}": "$/Mtok",
    }


@dataclass(frozen=True)
class Cases:
    """Answers to a question with several cases.

    Attributes:
        question: Words common to all cases.
        rows: Rows of the table by column, with `compute_bound_from`, the critical size of `axis`,
            and `note`, the assumptions, if there are any.
        columns: The titles of the columns that are shown, by name.
        axis: The size that thresholds are of.
        basis: Time that rates and cost are of.
        notes: What was left out, and what binds.
        shown: How many of the rows a screen has, the first ones [1]; None: all.
        number: Number in the question, judged; None: none was asked about.
    """

    question: str
    rows: Sequence[Mapping[str, Any]]
    columns: Mapping[str, str]
    axis: str
    basis: Basis
    notes: Sequence[str] = ()
    shown: int | None = None
    number: MeasuredNumber | None = None

    def measured(self) -> Section | None:
        """Measured number in words; None: none was asked about."""
        if self.number is None:
            return None
        levers = ""
        if self.number.estimate_s is not None and self.number.estimate_s < self.number.time_s:
            levers = f"as calibrated, {seconds(self.number.estimate_s)}"
            levers += "; a step at one context has what dtypes, splits and chips would give"
        return measured_section(
            self.number,
            per="a token (TPOT)",
            band_share="80% of runs",
            levers=levers,
            phase=DECODE,
        )

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON."""
        measured = {} if self.number is None else {"measured_number": asdict(self.number)}
        return {
            **measured,
            "question": self.question,
            "axis": self.axis,
            "basis": self.basis.key,
            "rows": [dict(row) for row in self.rows],
            "notes": [*self.notes],
        }


def cases_of(sweep: Sweep | ModelSweep, *, axis: str | None = None, bound: bool = False) -> Cases:
    """Answer every case in a sweep.

    Args:
        sweep: The sweep.
        axis: Size that thresholds of an operation are of; None: the first in which cases differ.
        bound: True to show the bound where there are estimates, too.

    Raises:
        RooflinesError: There are too many.
    """
    return _cases([sweep], axis, bound=bound) if axis else side_by_side([sweep], bound=bound)


def side_by_side(sweeps: Sequence[Sweep | ModelSweep], *, bound: bool = False) -> Cases:
    """Answer every case in several sweeps as one table.

    Args:
        sweeps: Sweeps that differ in chips, splits or batches.
        bound: True to show the bound where there are estimates, too.

    Raises:
        RooflinesError: There are too many.
    """
    axis = "S" if isinstance(sweeps[0], TrainingSweep) else SERVING_AXES[0]
    return _cases(sweeps, None if isinstance(sweeps[0], Sweep) else axis, bound=bound)


def layer_cases(
    question: Question,
    catalogues: QuestionCatalogues,
    *,
    split: object,
    bound: bool = False,
    **options: object,
) -> Cases:
    """A layer, up and down again, whose chips share it by tensor parallelism.

    Up is split by columns and sends nothing; down is split where it contracts, and one all-reduce
    adds the parts.

    Raises:
        RooflinesError: Something is invalid, the chips cannot do it, or there are too many cases.
    """
    keys = split_of(split)
    if not isinstance(keys, dict) or keys.keys() != {"tp"}:
        problem = f"is {quote(split)}, but a matmul is split by tp alone"
        raise RooflinesError("split", problem, "write tp=8, or name a model such as llama-3.1-70b")
    typed = {**options, "operation": question.operation}
    for key in ("sharding", "shards", "operation"):
        if typed.get(key) is not None:
            problem = f"excludes --{key}, which shards a single operation"
            raise RooflinesError("split", problem, "leave one of them out")
    tp = keys["tp"]
    shared = [{"shards": tp, "sharding": sharding} if tp != "1" else {} for sharding in UP_AND_DOWN]
    up = question_sweep(question, catalogues, **options, **shared[0])
    _check(up)
    rows = rows_of(up)
    sizes = {dim: [row[turned] for row in rows] for dim, turned in TURNED.items()}
    turned = replace(question, product=None, sizes=sizes)
    down = question_sweep(turned, catalogues, **options, **shared[1])
    cases = _cases([up, down], "B", parts=("up", "down"), bound=bound)
    varied = [key for key in (*CASE_KEYS, "B") if len({row.get(key) for row in cases.rows}) > 1]
    times: dict[str, float] = {}
    for row in cases.rows:
        case = " ".join(str(row[key]) for key in varied if key != "network")
        times[case] = times.get(case, 0.0) + row[cases.basis.column]
    times_text = ", ".join(f"{case} {seconds(time_s)}".strip() for case, time_s in times.items())
    notes = [f"Up and down, one after the other: {times_text}.", *cases.notes]
    head = f"{cases.question} · tp={tp}: up column-parallel, down row-parallel with one all-reduce"
    return replace(cases, question=head, notes=notes)


def _check(sweep: Sweep | ModelSweep) -> None:
    if sweep.rows > MAX_CASES:
        fix = "ask for fewer, or write a config: `rooflines new matmul`"
        problem = f"has {sweep.rows:,} cases, more than the {MAX_CASES} of a table"
        raise RooflinesError("the question", problem, fix)


def _cases(
    sweeps: Sequence[Sweep | ModelSweep],
    axis: str | None,
    *,
    parts: Sequence[str] = (),
    bound: bool = False,
) -> Cases:
    """Cases in sweeps; columns: keys that differ, then results.

    Args:
        sweeps: The sweeps, of the same sizes unless splits or chips differ.
        axis: The size that thresholds are of; None: the first in which cases differ.
        parts: Layer part of each sweep; empty: none.
        bound: True to show the bound where there are estimates, too.
    """
    rows, solved = list[dict[str, Any]](), list[list[dict[str, Any]]]()
    for at, sweep in enumerate(sweeps):
        _check(sweep)
        new_rows = [{**({"part": parts[at]} if parts else {}), **row} for row in rows_of(sweep)]
        rows += new_rows
        solved += [thresholds_of(sweep)] * len(new_rows)
    first = sweeps[0]
    sizes, basis = letters_of(first), table_basis(rows, bound=bound)
    shown = (operation_titles if isinstance(first, Sweep) else step_titles)(basis)
    keys = (*CASE_KEYS, *sizes)
    varied = [key for key in keys if len({row.get(key) for row in rows}) > 1 and key != "network"]
    axis = axis or next((key for key in varied if key in sizes), sizes[0])
    assumption_notes = [*map(as_note, assumptions_of(first).items())]
    for row, thresholds in zip(rows, solved, strict=True):
        matching = (solution for solution in thresholds if _is_of(solution, row, axis, keys))
        row["compute_bound_from"] = next(map(_critical, matching), "-")
        row.update(_on_basis(row, basis))
        if assumption_notes:
            row["note"] = " ".join(assumption_notes)
    columns = {name: name for name in [*(["part"] if parts else []), *varied]}
    columns |= {
        name: title
        for name, title in shown.items()
        if any(row.get(name) is not None for row in rows)
        and (title != ALL_TOKENS or len({row["chips"] for row in rows}) > 1)
    }
    columns = mean_titles(columns, sweeps)
    columns["compute_bound_from"] += f" {axis} ="
    skipped_notes = (_skipped_note(case) for sweep in sweeps for case in sweep.skipped)
    routes = dict.fromkeys(route for sweep in sweeps for route in routes_of(sweep))
    notes = [*basis_notes(sweeps, rows, basis), *_binding(rows, varied), *engine_notes(rows)]
    notes += table_notes(rows)
    notes += [*dict.fromkeys(skipped_notes), *assumption_notes]
    notes += [f"Route: {route}." for route in routes]
    if not isinstance(first, Sweep):
        notes += price_notes({row["chip"]: first.chips[row["chip"]] for row in rows})
    head = _head(rows, sizes, varied, operation_title if isinstance(first, Sweep) else step_title)
    splits_alone = {*varied} in ({"split"}, {"split", "B"}) and basis is not MIXED_BASIS
    if isinstance(first, ModelSweep) and splits_alone:
        head += f"\n{_headline(first, rows, basis, columns)}"
    return Cases(head, rows, columns, axis, basis, notes)


def _headline(
    sweep: ModelSweep,
    rows: Sequence[Mapping[str, Any]],
    basis: Basis,
    columns: Mapping[str, str],
) -> str:
    """Sentence on the best of the splits in a table."""
    phase = sweep.config.phase[0]
    trains = phase == TRAIN  # estimates follow the math alone, and cannot rank layouts
    time = rank_time if trains else itemgetter(basis.column)
    order = sorted(rows, key=lambda row: (row["fits"] is False, time(row)))
    is_draft = getattr(sweep.config, "draft", None) is not None
    return split_headline(
        order, basis, columns, phase=phase, is_ranked_apart=trains, is_draft=is_draft
    )


def _on_basis(row: Mapping[str, Any], basis: Basis) -> dict[str, Any]:
    """Band, and rates at the time of the basis, that a sweep's row does not have."""
    values: dict[str, Any] = {}
    if basis in (ESTIMATE_BASIS, MIXED_BASIS):
        values[BAND_TEXT] = band_text(row)
    if "utilization" in row:
        values[OF_PEAK] = row["utilization"] * row[BOUND_BASIS.column] / row[basis.column]
    elif row["phase"] == DECODE:
        values[USER_RATE] = row[f"tokens_per_s{basis.suffix}"] / row["B"]
    return values


def band_text(row: Mapping[str, Any]) -> str | None:
    """Band of a row's estimate in a cell; None: it has none."""
    low, high = row.get("t_estimate_p10_s"), row.get("t_estimate_p90_s")
    return None if low is None or high is None else f"{seconds(low)} to {seconds(high)}"


def basis_notes(
    sweeps: Iterable[Sweep | ModelSweep], rows: Sequence[Mapping[str, Any]], basis: Basis
) -> Iterator[str]:
    """Yield calibrations behind the estimates; or the cases without one.

    Args:
        sweeps: The sweeps behind the rows.
        rows: Rows with `chip` and `dtypes`.
        basis: Time that the table leads with.
    """
    yield from mean_notes(sweeps := [*sweeps])
    lacking = [row for row in rows if row.get(ESTIMATE_BASIS.column) is None]
    names = ", ".join(dict.fromkeys(f"{row['chip']} in {row['dtypes']}" for row in lacking))
    if basis in (ESTIMATE_BASIS, MIXED_BASIS):
        unfitted = {row["chip"] for row in lacking} if basis is MIXED_BASIS else set()
        cases = (case for sweep in sweeps for block in sweep.blocks for case in block.cases)
        cases = (case for case in cases if case.chip not in unfitted)
        origins: dict[str, list[str]] = {}
        chip_notes: dict[str, None] = {}
        for case in cases:
            softwares, calibrations = softwares_of(case), case.choice.calibrations
            software = ", ".join(softwares) or "the chip's own measurements"
            origins.setdefault(software, []).append(case.chip)
            kin = calibrations.by_kin(case.chip) if softwares else None
            texts = [*older_timings(calibrations.older_versions(case.chip, softwares))]
            texts += [] if kin is None else [f"by timings of {kin}"]
            chip_notes |= dict.fromkeys(f"{case.chip}: {text}." for text in texts)
        named = (f"{name} ({', '.join(dict.fromkeys(chips))})" for name, chips in origins.items())
        yield f"{CALIBRATED_TO} {'; '.join(named)}; rates and cost are theirs."
        yield from chip_notes
        if basis is MIXED_BASIS:
            yield (
                f"Serialized: no calibration of {names}; kernels at their bounds, one after "
                f"another. {UNRANKED}"
            )
    elif basis is not BOUND_BASIS or any(
        row.get(ESTIMATE_BASIS.column) is not None for row in rows
    ):
        calibrated = any(sweep.config.calibration for sweep in sweeps)
        if basis is SERIALIZED_BASIS and calibrated:
            yield f"Kernels one after another: no calibration of {names}."
        elif calibrated and 0 < len(lacking) < len(rows):
            yield f"Bounds alone, which no run reaches: no calibration of {names}."


def waiting_notes(sweep: Sweep | ModelSweep, basis: Basis) -> Iterator[str]:
    """Measured TTFT over the estimated prefill, by engine and requests in flight a replica."""
    if basis not in (ESTIMATE_BASIS, MIXED_BASIS) or isinstance(sweep, Sweep):
        return
    noted = set()
    for case in (case for block in sweep.blocks for case in block.cases):
        for software in [*(case.choice.softwares or ())][:1]:
            ranges = waiting_of(sweep.calibrations, case.chip, software)
            key = case.chip, Software.parse(software).engine
            if ranges and key not in noted:
                noted.add(key)
                texts = (
                    f"{significant(low)} to {significant(high)} with {name} in flight a replica"
                    for name, (low, _, high) in ranges.items()
                )
                yield (
                    f"Waiting: measured TTFT over prefill of {key[1]} on {case.chip}: "
                    f"{', '.join(texts)}."
                )


def _payoff_notes(sweeps: Sequence[Sweep | ModelSweep]) -> Iterator[str]:
    """Notes on when levers pay, by case."""
    for sweep in sweeps:
        if not isinstance(sweep, ModelSweep) or isinstance(sweep, TrainingSweep):
            continue
        by_case: dict[StepCase, list[dict[str, Any]]] = {}
        for case, row in lever_thresholds(sweep):
            by_case.setdefault(case, []).append(row)
        for case, rows in by_case.items():
            place = f"{case.chip}, {case.split.name}: " if len(by_case) > 1 else ""
            for note in payoff_notes(rows, lever_keys_of(sweep)):
                yield f"{place}{note}"


def request_cases(
    sweeps: Sequence[Sweep | ModelSweep],
    *,
    bound: bool = False,
    measured: MeasuredValue | None = None,
    is_ranked: bool = False,
) -> Cases:
    """Answer requests: TTFT, TPOT, tokens/s and tokens/s/user in every case.

    The basis of a row is the estimate where it has one, else serialized kernels; the bounds stand
    beside it.

    Args:
        sweeps: Sweeps that differ in chips, splits or batches.
        bound: True to show the bound where there are estimates, too.
        measured: Measured number to judge: a TPOT or a rate; None: none.
        is_ranked: True for one basis: the estimate only where every case has one.

    Raises:
        RooflinesError: There are too many cases, or several beside a measured number.
    """
    for sweep in sweeps:
        _check(sweep)
    rows = [row for sweep in sweeps for row in rows_of(sweep)]
    number = None
    if measured is not None:
        if len(rows) != 1:
            raise several_measured(measured, f"the question has {len(rows)} cases")
        number = judged_number(measured, rows[0], rate_works(rows[0]))
        if number.beats_bound:
            number = replace(number, reasons=request_reasons(rows[0]))
        rows[0] |= number.columns()
    sizes = ("input", "output", "B")
    basis = (basis_of if is_ranked else table_basis)(rows, bound=bound)
    draft = getattr(sweeps[0].config, "draft", None)
    yielded = 1.0 if draft is None else 1.0 + draft.accepted
    for row in rows:
        single = row_basis(row, basis)
        row |= {
            BASIS: single.key,
            "ttft_basis_s": row[FIRST_TOKEN[single]],
            "tpot_basis_s": row[single.column] / yielded,
            "output_tokens_per_s": row[f"tokens_per_s{single.suffix}"],
            "tokens_per_s_per_user": yielded / row[single.column],
            "usd_per_output_mtok": row[f"usd_per_mtok{single.suffix}"],
        }
    keys = [key for key in CASE_KEYS if key != "network"]
    varied = [key for key in (*keys, *sizes) if len({row.get(key) for row in rows}) > 1]
    columns = {name: {"input": "isl", "output": "osl"}.get(name, name) for name in varied}
    columns |= {BASIS: "basis"} if basis is MIXED_BASIS else {}
    columns |= {
        name: title.format(basis.title)
        for name, title in OF_REQUESTS.items()
        if any(row.get(name) is not None for row in rows)
    }
    columns = mean_titles(columns, sweeps)
    columns |= MIXED_TITLES if basis is MIXED_BASIS else {}
    if basis is ESTIMATE_BASIS:  # of an idle server: no TTFT, which is its bound at least
        columns["ttft_basis_s"] = IDLE_PREFILL
    notes = [*basis_notes(sweeps, rows, basis), *engine_notes(rows), *table_notes(rows)]
    notes += dict.fromkeys(note for sweep in sweeps for note in waiting_notes(sweep, basis))
    prompts = {ESTIMATE_BASIS: PROMPTS_IN, MIXED_BASIS: PROMPTS_MIXED}
    is_pool = "ttft_pool_s" in rows[0]
    notes.append(PROMPTS_APART if is_pool else prompts.get(basis, PROMPTS_APART))
    notes += dict.fromkeys(_skipped_note(case) for sweep in sweeps for case in sweep.skipped)
    notes += [*map(as_note, assumptions_of(sweeps[0]).items())]
    notes += _payoff_notes(sweeps)
    routes = dict.fromkeys(route for sweep in sweeps for route in routes_of(sweep))
    notes += [f"Route: {route}." for route in routes]
    notes += price_notes({row["chip"]: sweeps[0].chips[row["chip"]] for row in rows})
    words = {"input": "isl", "output": "osl"}
    head = _head(rows, ("B",), varied, step_title)
    same = [f"{words[key]} = {rows[0][key]:,}" for key in words if key not in varied]
    return Cases(" · ".join([head, *same]), rows, columns, "B", basis, notes, number=number)


def _skipped_note(skipped: Skipped) -> str:
    """Cases that are not supported, by what they have in common, and why."""
    if skipped.chip is not None:
        return f"Left out: {skipped.chip}: {skipped.reason}."
    common = (skipped.model, skipped.dtypes, skipped.sharding, skipped.split)
    named = " ".join(filter(None, common))
    return f"Left out: {counted(skipped.rows, 'case')} of {named}: {skipped.reason}."


def _is_of(
    threshold: Mapping[str, Any], row: Mapping[str, Any], axis: str, keys: Sequence[str]
) -> bool:
    """True for the compute-bound threshold along an axis through this row."""
    return (
        threshold["axis"] == axis
        and threshold.get("share", 1) == 1
        and all(threshold.get(key) in (None, row.get(key)) for key in keys)
    )


def _critical(threshold: Mapping[str, Any]) -> str:
    """A critical size in a cell."""
    outcome: str = threshold["outcome"]
    if outcome == FOUND:
        return f"{threshold['critical']:,}"
    return {ALWAYS: "any", NEVER: f"never ({threshold['limit']})"}.get(outcome, outcome)


def _head(
    rows: Sequence[Mapping[str, Any]],
    sizes: Sequence[str],
    varied: Sequence[str],
    title_of: Callable[[Mapping[str, Any], Mapping[str, int]], Title],
) -> str:
    """Words common to all cases."""
    first = dict(rows[0])
    if "part" in first:
        first["sharding"] = "none"
    if len({row["network"] for row in rows}) > 1:
        first["network"] = None
    if "split" in varied:
        first["chips"] = 1
    same = {size: first[size] for size in sizes if size not in varied}
    unsaid = {part: "" for part in ("chip", "dtypes") if part in varied}
    return title_of(first, same)._replace(**unsaid).text()


def _binding(rows: Sequence[Mapping[str, Any]], varied: Sequence[str]) -> list[str]:
    """Sentence on the slowest memory level, where cases differ in nothing else."""
    if varied != ["memory"]:
        return []
    slowest = max(rows, key=lambda row: row["t_lower_s"])
    time = seconds(slowest["t_lower_s"])
    if slowest["bound"] != MEMORY.bound:
        return [f"No memory level is the bottleneck: {slowest['bound']}-bound at each, {time}."]
    return [f"{slowest['memory']} is the bottleneck if all bytes pass through every level: {time}."]
