"""Answer from a one-row sweep: an operation, a serving step or a training step.

No formula is here: times come from tables and kernels, sizes and rates from the solvers.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from rooflines.answers.answer_values import RequiredRate, ResourceTime
from rooflines.answers.any_routing import any_routing_bounds, has_mean
from rooflines.answers.assumptions import assumptions_of
from rooflines.answers.basis import basis_of
from rooflines.answers.engine_answer import engine_answer
from rooflines.answers.faster_than_bound import FasterInputs, reasons_for
from rooflines.answers.head_room import usual_batch
from rooflines.answers.levers import dtypes_bounds, other_dtypes, step_levers
from rooflines.answers.measured_number import judged_number
from rooflines.answers.operation_answer import OperationAnswer
from rooflines.answers.question import OPERATION, as_published, dtypes_on, formats_on
from rooflines.answers.routes import routes_of
from rooflines.answers.serving_answer import ServingAnswer
from rooflines.answers.training_answer import TrainingAnswer
from rooflines.answers.training_memory import training_memory
from rooflines.basics.errors import RooflinesError
from rooflines.basics.numbers import MAX_SIZE, first
from rooflines.config.model_fields import LEVER_AXES, Request
from rooflines.dictionary.columns import ALWAYS, FOUND, HEADS, NEVER
from rooflines.evaluation.measured_times import rate_works
from rooflines.evaluation.row_frames import KernelTable, table_of
from rooflines.fits.calibration_files import AUTO_CALIBRATION
from rooflines.fits.estimate_band import estimate_band, in_flight_range, waiting_of
from rooflines.fits.fit_keys import Software
from rooflines.hardware import timing_errors
from rooflines.hardware.chip_catalogue import chip_sources
from rooflines.hardware.chip_parts import number_records
from rooflines.hardware.entries import MAIN_MEMORY
from rooflines.hardware.support import host_link, routes_joining
from rooflines.models.architecture import DECODE
from rooflines.models.step_kernels import token_share
from rooflines.models.tensor_dtypes import step_dtypes, training_dtypes
from rooflines.solvers.context_limit import contexts_in_chunks
from rooflines.solvers.required_rates import limit_share, rates_at
from rooflines.solvers.threshold_frames import sweep_thresholds
from rooflines.sweep.exact_times import exact_step_seconds
from rooflines.sweep.operation_sweep import Sweep
from rooflines.sweep.pipelines import is_pipelined
from rooflines.sweep.prompt_times import prompt_seconds, prompts_seconds
from rooflines.sweep.step_sweep import ModelSweep, StepCase
from rooflines.sweep.training_sweep import TrainingCase
from rooflines.theory.kernel import OFFLOAD_BYTES
from rooflines.theory.operation import MATRIX
from rooflines.theory.resources import MATH, MEMORY, NETWORK, RATES, RESOURCES
from rooflines.theory.routing import activated_experts
from rooflines.training.training_kernels import all_pairs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.answers.answer import Answer
    from rooflines.basics.quantities import MeasuredValue
    from rooflines.evaluation.measured_times import RateWorks
    from rooflines.fits.calibration_files import Fitted
    from rooflines.hardware.chip_parts import NumberRecord
    from rooflines.hardware.entries import Chip
    from rooflines.models.groups import Step
    from rooflines.sweep.exact_times import StepSeconds
    from rooflines.sweep.operation_sweep import OperationCase
    from rooflines.theory.poly import Poly
    from rooflines.theory.resources import Resource


ESTIMATED = ("t_estimate_s", "estimate_bound", "estimate_extrapolated", "collectives_estimate_s")
"""Columns about a kernel's estimate."""

LEFT_OUT = "steps of a model left out"
"""Held-out group behind the error in a training fit."""


def answer_of(
    sweep: Sweep | ModelSweep, *, bound: bool = False, measured: MeasuredValue | None = None
) -> Answer:
    """Answer for the only row in a sweep: an operation, a serving step or a training step.

    Args:
        sweep: Sweep with one row.
        bound: True to lead with the bound where there is an estimate, too.
        measured: Measured number to judge; None: none.

    Raises:
        RooflinesError: Software is named that has no calibration of the chip and a compute dtype,
            or the row has no rate such as the measured one.
    """
    ((case,),) = (block.cases for block in sweep.blocks)
    check_calibration(sweep, case)
    row = rows_of(sweep)[0]
    chip, solved = sweep.chips[case.chip], thresholds_of(sweep)
    thresholds = [threshold for threshold in solved if threshold["axis"] not in LEVER_AXES]
    sizes = {size: row[size] for size in letters_of(sweep)}
    extents: Mapping[str, int | Fraction] = sizes
    if isinstance(case, StepCase):
        step = case.step(sizes["B"], sizes["S"], row.get("T") or 1)  # a draft sets T
        extents = case.extents(step)
    sending_s, hops_s = (
        max((poly.at(extents) for poly in polys), default=Fraction(0))
        for polys in case.collective_times
    )
    rates = {
        resource: _resource_work(case, resource).at(extents)
        / (sending_s if resource is NETWORK else case.work_time(resource).at(extents))
        for resource in RESOURCES
        if row[f"t_{resource.name}_s"]
    }
    latencies = dict.fromkeys(RESOURCES, 0.0) | {NETWORK: float(hops_s)}
    numbers = _numbers(chip, {*_used(chip, case, row)})
    common: dict[str, Any] = {
        "row": row,
        "sizes": sizes,
        "name": chip.name or case.chip,
        "resources": list(_resource_times(row, rates, latencies)),
        "thresholds": thresholds,
        "required_rates": list(_required_rates(row, rates, latencies)),
        "capacity_bytes": chip.memory[case.memory].capacity_bytes,
        "numbers": numbers,
        "documents": _documents(numbers),
        "routes": routes_of(sweep),
        "assumptions": assumptions_of(sweep),
        "softwares": softwares_of(case),
        "contents": case.choice.contents(case.computes),
        "basis": basis_of([row], bound=bound),
        "measured": _timed(case, row),
        "kin": _kin(sweep, case),
        "older": sweep.calibrations.older_versions(case.chip, softwares_of(case)),
    }
    if isinstance(sweep, ModelSweep):
        common["payoffs"] = [row for row in solved if row["axis"] in LEVER_AXES]
        common["lever_keys"] = lever_keys_of(sweep)
    answer: Answer
    if isinstance(sweep, Sweep) or not isinstance(case, StepCase):
        (compute,) = case.computes
        limits = _limit_shares(sizes, rates, thresholds)
        dtypes = _other_dtypes(sweep, row)
        answer = OperationAnswer(compute=compute, limit_shares=limits, dtypes=dtypes, **common)
    elif isinstance(case, TrainingCase):
        answer = _training_answer(sweep, case, common)
    else:
        answer = _serving_answer(sweep, case, step, common)
    if measured is None:
        return answer
    works = _rate_works(case, row, extents)
    number = judged_number(measured, row, works)
    if number.beats_bound:
        inputs = _faster_inputs(sweep, case, answer, works)
        number = replace(number, reasons=(*reasons_for(number, inputs),))
    return replace(answer, measured_number=number)


def letters_of(sweep: Sweep | ModelSweep) -> tuple[str, ...]:
    """Size letters in a sweep."""
    return sweep.op.dims if isinstance(sweep, Sweep) else tuple(sweep.sizes)


def lever_keys_of(sweep: ModelSweep) -> dict[str, Any] | None:
    """Numbers that levers need besides a sweep; None: none is typed."""
    levers = sweep.config.levers
    return None if levers is None else levers.model_dump()


def rows_of(sweep: Sweep | ModelSweep) -> list[dict[str, Any]]:
    """Compute the rows in a sweep."""
    return table_of(sweep).stored_frame().collect().to_dicts()


def thresholds_of(sweep: Sweep | ModelSweep) -> list[dict[str, Any]]:
    """Solve the thresholds in a sweep."""
    return sweep_thresholds(sweep).to_dicts()


# ---------------------------------------------------------------- a measured number


def _rate_works(
    case: OperationCase | StepCase,
    row: Mapping[str, Any],
    extents: Mapping[str, int | Fraction],
) -> RateWorks:
    """Works behind rates of a measured number; of a serving step with all token pairs, too."""
    efficiency = {name: float(share) for name, share in case.machine.efficiency.items()}
    full_s = None
    if isinstance(case, StepCase) and not isinstance(case, TrainingCase):
        full_s = float(case.work_time(MATH).replaced(all_pairs).at(extents))
        full_s *= efficiency[MATH.name]
    return rate_works(row, efficiency[MEMORY.name], full_s)


def _faster_inputs(
    sweep: Sweep | ModelSweep,
    case: OperationCase | StepCase,
    answer: Answer,
    works: RateWorks,
) -> FasterInputs:
    """Numbers that reasons for a time below the bound are checked against."""
    row, chip = answer.row, sweep.chips[case.chip]
    relatives = [
        name
        for name, entry in sweep.chips.items()
        if entry.generation is not None
        and (entry.vendor, entry.generation) == (chip.vendor, chip.generation)
        and name != case.chip
    ]
    keys = {"chips": relatives, "network": None, "thresholds": []}
    elsewhere = _changed(sweep, keys)
    rows = rows_of(elsewhere) if elsewhere.blocks else []
    units = chip.units[row.get("unit", MATRIX)]
    return FasterInputs(
        row=row,
        chip=chip,
        resources=answer.resources,
        peaks=[units[compute] for compute in case.computes],
        dtypes=answer.dtypes,
        chips={chip_row["chip"]: chip_row["t_lower_s"] for chip_row in rows},
        works=works,
    )


# ---------------------------------------------------------------- resources and rates


def _resource_work(case: OperationCase | StepCase, resource: Resource) -> Poly:
    """Work on a resource; copies to the host are a network's."""
    work = case.work(resource.work)
    return work + case.work(OFFLOAD_BYTES) if resource is NETWORK else work


def _resource_times(
    row: Mapping[str, Any],
    rates: Mapping[Resource, Fraction],
    latencies: Mapping[Resource, float],
) -> Iterator[ResourceTime]:
    for resource, rate in rates.items():
        intensity = row.get(f"{resource.name}_intensity")
        yield ResourceTime(
            resource=resource.name,
            bound=resource.bound,
            column=resource.work,
            work=row[resource.work] + (row.get(OFFLOAD_BYTES) or 0.0) * (resource is NETWORK),
            per_s=float(rate),
            latency_s=latencies[resource],
            time_s=row[f"t_{resource.name}_s"],
            intensity=intensity,
            needed_intensity=None if intensity is None else float(rates[MATH] / rate),
        )


def _limit_shares(
    sizes: Mapping[str, int],
    rates: Mapping[Resource, Fraction],
    thresholds: Sequence[Mapping[str, Any]],
) -> dict[str, float]:
    """Limit of the share of attainable peak along axes that are never compute-bound [1]."""
    by_bound = {resource.bound: rate for resource, rate in rates.items()}
    return {
        row["axis"]: limit_share(rates[MATH] / by_bound[row["limit"]], row["limit_intensity"])
        for row in thresholds
        if row.get("share") == 1
        and row["axis"] in sizes
        and row["outcome"] == NEVER
        and row["limit_intensity"] is not None
    }


def _required_rates(
    row: Mapping[str, Any],
    rates: Mapping[Resource, Fraction],
    latencies: Mapping[Resource, float],
) -> Iterator[RequiredRate]:
    solutions = rates_at(
        {resource: row[f"t_{resource.name}_s"] for resource in RESOURCES}, latencies
    )
    for name, resource in RATES.items():
        if resource in rates:
            solution, per_s = solutions[name], float(rates[resource])
            factor = solution["critical_exact"]
            yield RequiredRate(
                rate=name,
                resource=resource.name,
                outcome=solution["outcome"],
                limit=solution["limit"],
                factor=factor,
                per_s=per_s,
                needed_per_s=None if factor is None else per_s * factor,
            )


# ---------------------------------------------------------------- the same question, otherwise


def _other_dtypes(sweep: Sweep | ModelSweep, row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Bounds for the same question in every other dtype that the unit computes, fastest first."""
    chip, columns = sweep.chips[row["chip"]], ["dtypes", "bound", "t_lower_s"]
    if isinstance(sweep, Sweep):
        names: list[Any] = [name for name in dtypes_on(chip, sweep.unit) if name != row["dtypes"]]
    else:
        formats = [name for name in formats_on(chip) if name != row["dtypes"]]
        names = [training_dtypes(name) for name in formats if not name.startswith("int")]
        columns.append("fits")
    if not names:
        return []
    rows = rows_of(_changed(sweep, {"dtypes": names, "thresholds": []}))
    rows.sort(key=lambda case_row: case_row["t_lower_s"])
    return [{name: case_row[name] for name in columns} for case_row in rows]


def _changed(sweep: Sweep | ModelSweep, keys: Mapping[str, Any]) -> Sweep | ModelSweep:
    """Sweep with changed config keys."""
    config: Any = sweep.config.model_copy(update=keys)
    return replace(sweep, config=config)


def _smallest_tp_over_more_networks(
    sweep: ModelSweep, chip: Chip, thresholds: Sequence[Mapping[str, Any]]
) -> dict[str, Any] | None:
    """Smallest tp that fits over more networks, where the question's network is the limit."""
    (fewest,) = (threshold for threshold in thresholds if threshold["axis"] == "chips")
    if fewest["outcome"] != NEVER or fewest["limit"] == HEADS:
        return None
    for network in routes_joining(chip):
        wider_sweep = _changed(sweep, {"network": [network.split(",")], "thresholds": ["chips"]})
        for row in thresholds_of(
            wider_sweep
        ):  # none where it does not join the chips of the question
            if row["outcome"] == FOUND:
                return {"tp": row["critical"], "network": network}
    return None


# ---------------------------------------------------------------- where numbers come from


def softwares_of(case: OperationCase | StepCase) -> list[str]:
    """Software whose calibrations give a case's estimate: matmuls, then collectives."""
    if isinstance(case, TrainingCase):
        return case.fitted_softwares
    fits = [case.choice.first_fit("calibrations", compute) for compute in case.computes]
    kinds = (sent.kind for kernel in case.kernels for sent in kernel.transfers)
    fits += [case.choice.first_fit("collectives", kind) for kind in kinds]
    return list(dict.fromkeys(fit[0] for fit in fits if fit is not None))


def check_calibration(sweep: Sweep | ModelSweep, case: OperationCase | StepCase) -> None:
    """Refuse named software that has no calibration of the chip and a compute dtype."""
    named, fix = sweep.config.calibration, "choose another, or leave it out"
    if named in (None, [AUTO_CALIBRATION]):
        return
    if isinstance(case, TrainingCase):
        if case.fit is None:
            computed = f"{case.computes[0]}{' with experts' if case.has_experts else ''}"
            problem = (
                f"is {', '.join(named)}, without a calibration of training on {case.chip} "
                f"in {computed}"
            )
            raise RooflinesError("calibration", problem, fix)
        return
    for compute in case.computes:
        if sweep.calibrations.matmul(case.chip, named, compute) is None:
            problem = f"is {', '.join(named)}, without a calibration of {case.chip} in {compute}"
            raise RooflinesError("calibration", problem, fix)


def _timed(case: OperationCase | StepCase, row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Measured over bound in published timings like this case [1]; None without any.

    Of the software with most timings; variants, such as `trtllm-dynamic`, count where there is no
    other. Matmuls are of one chip, short and long ones apart; steps have all weights in one format.
    """
    if isinstance(case, StepCase):
        is_comparable = case.phase == DECODE and not case.dtypes.mixed
        is_comparable = is_comparable and case.dtypes.dtype_of("experts") == case.dtypes.weights
        key = {"subject": timing_errors.STEP, "dtypes": case.dtypes.weights}
    else:
        is_comparable = (
            row["operation"] == OPERATION and row["shards"] == 1 and row["unit"] == MATRIX
        )
        length = (
            timing_errors.SHORT
            if row["t_lower_s"] < timing_errors.MIN_LONG_BOUND_S
            else timing_errors.LONG
        )
        key = {"subject": timing_errors.MATMUL, "dtypes": case.dtypes, "length": length}
    if not is_comparable or case.memory != MAIN_MEMORY:
        return None
    rows = timing_errors.measured_quantiles().filter(
        chip=case.chip, over=timing_errors.BOUND, **key
    )
    named = rows.filter(rows["software"].is_not_null())
    variant = named["software"].str.contains("-").alias("variant")
    candidates = named.sort(variant, "n", "software", descending=[False, True, True])
    return next(candidates.select("software", "n", "p10", "p50", "p90").iter_rows(named=True), None)


def _used(chip: Chip, case: OperationCase | StepCase, row: Mapping[str, Any]) -> Iterator[str]:
    """Chip parts that the row depends on."""
    yield from (f"memory.{case.memory}", "efficiency")
    for compute in case.computes:
        yield from (f"units.{row.get('unit', MATRIX)}.{compute}", f"calibration.{compute}")
    if row["network_bytes"]:
        yield from (f"networks.{name}" for name in case.place.networks)
    if row.get(OFFLOAD_BYTES) and (link := host_link(chip)) is not None:
        yield f"networks.{link[0]}"
    if row.get("j_per_token") is not None:
        yield "power"
    price = None if row.get("usd_per_mtok") is None else chip.lowest_price()
    yield from (
        f"prices.{index}"
        for index, listed_price in enumerate(chip.prices or ())
        if listed_price is price
    )


def _numbers(chip: Chip, used: set[str]) -> list[NumberRecord]:
    """Numbers in these chip parts."""
    return [number for number in number_records(chip) if number["path"].rpartition(".")[0] in used]


def _documents(numbers: Sequence[NumberRecord]) -> dict[str, dict[str, str]]:
    """Title and address by id, for the documents that numbers cite."""
    catalogue = chip_sources()
    cited = {name for number in numbers for name in (number["source"] or "").split(", ")}
    return {
        name: {key: str(catalogue[name][key]) for key in ("title", "url") if key in catalogue[name]}
        for name in sorted(cited & set(catalogue))
    }


# ---------------------------------------------------------------- steps


def _serving_answer(
    sweep: ModelSweep, case: StepCase, step: Step, common: Mapping[str, Any]
) -> ServingAnswer:
    """Serving step's answer.

    Args:
        sweep: Sweep with one case.
        case: That case.
        step: Its step.
        common: Fields that every answer has.
    """
    chip, extents = sweep.chips[case.chip], case.extents(step)
    kernels = step_kernels(sweep)
    moe, experts = case.model.shape.moe, None
    if moe is not None:
        tokens = step.B * step.T * token_share(case.sharing.split)
        touched = float(activated_experts(moe.choices, moe.k, tokens, step.routing))
        touched *= moe.E / moe.choices
        experts = {"routing": case.routing, "touched": touched, "E": moe.E}
    fits = _step_fits(case, kernels)
    dtypes_cases = other_dtypes(sweep, case)
    free_bytes = _free_bytes(common["row"], common["capacity_bytes"])
    return ServingAnswer(
        groups=_groups(case, step, kernels),
        fits=_held_out(fits or {}),
        products=_products(case, kernels),
        context=case.model.shape.context,
        terms=[] if fits is None else _terms(kernels),
        band=_band(sweep, case, common["softwares"]),
        waiting=_waiting(sweep, case, step, common["softwares"]),
        prompt_s=None if fits is None else _prompt_time(case, step),
        first_token=_first_token(case, step),
        next_token=_next_token(sweep, step),
        levers=step_levers(sweep, case, step, common["basis"], dtypes_cases),
        dtypes=dtypes_bounds(dtypes_cases, step),
        experts=experts,
        wider=_smallest_tp_over_more_networks(sweep, chip, common["thresholds"]),
        published=_published(case, chip),
        in_chunks=_in_chunks(case, step),
        any_routing=any_routing_bounds(sweep, step),
        cache_split=sweep.config.cache_split,
        engine=engine_answer(case, step.S),
        usual_batch=usual_batch(case, step.S),
        free_bytes=free_bytes,
        free_share=None if free_bytes is None else free_bytes / float(common["capacity_bytes"]),
        stages=_stages(case, step),
        draft=None if sweep.config.draft is None else sweep.config.draft.model_dump(),
        per_sequence_s={  # without the experts that further tokens touch
            bound: float(max(piece[0].affine_in("B").slope.at(extents) for piece in time.pieces))
            for bound, time in case.times.by_bound.items()
        },
        **common,
    )


def _free_bytes(row: Mapping[str, Any], capacity_bytes: float | None) -> float | None:
    """Memory that a step leaves on a chip, at least 0 [byte]; None: the capacity is unknown."""
    if capacity_bytes is None:
        return None
    return max(float(capacity_bytes) - float(row["footprint_bytes"]), 0.0)


def _stages(case: StepCase, step: Step) -> dict[str, float] | None:
    """Pipeline stages in a step, as in `ServingAnswer.stages`; None: there is one stage."""
    pipeline = case.pipeline
    if pipeline is None:
        return None
    extents = case.extents(step)
    return {
        "layers": max(stage.workload.shape.layers for stage, _ in pipeline.stages),
        "micro_batches": float(step.B / extents["B"]),
        "sequences": float(extents["B"]),
        "hops_s": float(pipeline.hops_s.at(extents)),
    }


def _kin(sweep: Sweep | ModelSweep, case: OperationCase | StepCase) -> str | None:
    """Chip by whose timings this one is estimated; None: by its own, or there is no estimate."""
    return sweep.calibrations.by_kin(case.chip) if case.choice.softwares else None


def _band(sweep: ModelSweep, case: StepCase, softwares: Sequence[str]) -> dict[str, Any] | None:
    """Basis for the band of an estimate; None: no band."""
    if case.band[0] is None or not softwares:
        return None
    band = estimate_band(
        sweep.calibrations,
        case.chip,
        softwares[0],
        case.computes,
        kind=case.phase,
        experts=case.has_experts,
    )
    if band is None:
        return None
    return {**band._asdict(), **dict(zip(("low", "high"), case.band, strict=True))}


def _waiting(
    sweep: ModelSweep, case: StepCase, step: Step, softwares: Sequence[str]
) -> dict[str, Any] | None:
    """Measured TTFT over an estimated prefill, with as many requests in flight a replica."""
    prompts = Fraction(step.B, case.split.dp)
    if is_pipelined(case):  # no run has stages
        return None
    if not softwares or (prompts != 1 if case.phase != DECODE else case.engine is None):
        return None
    ranges = waiting_of(sweep.calibrations, case.chip, softwares[0])
    in_flight = in_flight_range(prompts)
    if in_flight not in ranges:
        return None
    p10, _, p90 = ranges[in_flight]
    engine = Software.parse(softwares[0]).engine
    return {"engine": engine, "in_flight": in_flight, "p10": p10, "p90": p90}


def _first_token(case: StepCase, step: Step) -> StepSeconds | None:
    """Times of a prompt of S tokens; estimated on every replica, as waiting is; None in prefill."""
    if case.phase != DECODE:
        return None
    request = Request(input=step.S, output=1)
    together = prompts_seconds(case, request)
    return prompt_seconds(case, request)._replace(estimate=together.estimate)


def _next_token(sweep: ModelSweep, step: Step) -> StepSeconds | None:
    """Times of a decode step after the prompts of a prefill; None in decode."""
    if sweep.config.phase == [DECODE]:
        return None
    config = sweep.config.model_copy(update={"phase": [DECODE], "thresholds": []})
    decoding = replace(sweep, config=config)
    (case,) = (case for block in decoding.blocks for case in block.cases)
    return exact_step_seconds(case, case.step(step.B, step.S))


def _training_answer(
    sweep: ModelSweep, case: TrainingCase, common: Mapping[str, Any]
) -> TrainingAnswer:
    """Training step's answer.

    Args:
        sweep: Sweep with one case.
        case: That case.
        common: Fields that every answer has.
    """
    groups, fit = step_kernels(sweep), case.fit
    for group in groups:  # how often the kernel runs on a chip, in the mean of all stages
        group["count"] *= group["runs"] / case.keys["pp"]
    fits = {f"{name} {LEFT_OUT}": fit for name in common["softwares"] if fit}
    return TrainingAnswer(
        memory=training_memory(case, case.step(common["sizes"]["B"], common["sizes"]["S"])),
        mean_routing=has_mean([sweep]),
        unjudged_part=case.unjudged_part,
        groups=groups,
        fits=_held_out(fits),
        products=_products(case, groups),
        context=case.model.shape.context,
        band=_band(sweep, case, common["softwares"]),
        dtypes=_other_dtypes(sweep, common["row"]),
        **common,
    )


def step_kernels(sweep: ModelSweep) -> list[dict[str, Any]]:
    """Kernels in the row, without its keys and sizes."""
    names = [column.name for column in sweep.layer_columns]
    return KernelTable(sweep).frame().select(names[names.index("group") :]).collect().to_dicts()


def _groups(case: StepCase, step: Step, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Kernels with work, each with its critical batch."""
    return [
        {**row, **_critical(case, index, step)}
        for row, index in zip(rows, case.listed_kernels, strict=True)
        if not case.kernels[index].engine
    ]


def _step_fits(case: StepCase, rows: Sequence[Mapping[str, Any]]) -> dict[str, Fitted] | None:
    """Fits behind a step's estimate by name; None without an estimate of every kernel."""
    if any(row["t_estimate_s"] is None for row in rows):
        return None
    fits: dict[str, Fitted] = {}
    for index in case.listed_kernels:
        fits |= case.choice.fits_of_kernel(case.kernels[index])
    return fits


def _terms(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Terms that add up to a step's estimate."""
    names = ("group", "count", *ESTIMATED, "calibration")
    return [{name: row[name] for name in names} for row in rows if row["t_estimate_s"]]


def _prompt_time(case: StepCase, step: Step) -> float | None:
    """Estimated time for a prompt that is read between decode steps [s]."""
    if case.engine is None:
        return None
    first_s = prompts_seconds(case, Request(input=step.S, output=1)).estimate
    return None if first_s is None else case.engine.prompts * first_s


def _held_out(fits: Mapping[str, Fitted]) -> dict[str, Any]:
    """Source and median held-out error for each fit, by name."""
    return {
        name: {
            "source": fit.source,
            "n": fit.held_out.n if fit.held_out else 0,
            "median": fit.held_out.median if fit.held_out else None,
        }
        for name, fit in fits.items()
    }


def _critical(case: StepCase, index: int, step: Step) -> dict[str, Any]:
    """Smallest batch at which a kernel by itself is compute-bound, as `bound` in its layer's row.

    Its intensity grows with the batch, so it is so for every larger one.

    Args:
        case: The case.
        index: The kernel's position.
        step: The step.
    """
    times, min_batch = case.kernel_times[index], case.split.dp

    def limit(batch: int) -> str | None:
        sized = replace(step, B=min(batch, MAX_SIZE))
        at = times.at(case.extents(sized)).with_activation_traffic
        math = at.pop(MATH.bound)
        longest = max(at, key=at.__getitem__)
        return longest if at[longest] > math else None

    if (beyond := limit(MAX_SIZE)) is not None:
        return {"outcome": NEVER, "critical_B": None, "limit": beyond}
    critical = first(lambda batch: limit(batch) is None, min_batch, MAX_SIZE)
    if critical == min_batch:
        return {"outcome": ALWAYS, "critical_B": min_batch, "limit": None}
    return {"outcome": FOUND, "critical_B": critical, "limit": limit(critical - 1)}


def _products(case: StepCase, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """FLOPs, rate and time by compute dtype: linear kernels, then attention where it differs."""
    sums: dict[str, tuple[float, float]] = {}
    for index, row in zip(case.listed_kernels, rows, strict=True):
        kernel = case.kernels[index]
        if row["flops"]:
            flops, time_s = sums.get(kernel.compute, (0.0, 0.0))
            flops += row["count"] * row["flops"]
            sums[kernel.compute] = flops, time_s + row["count"] * row["t_math_s"]
    return [
        {"compute": compute, "flops": flops, "per_s": flops / time_s, "time_s": time_s}
        for compute, (flops, time_s) in sums.items()
    ]


def _in_chunks(case: StepCase, step: Step) -> dict[str, int] | None:
    """Number of decode contexts with a compute-bound batch, where layers attend in chunks."""
    contexts = contexts_in_chunks(case, step.T) if case.phase == DECODE else None
    return None if contexts is None else contexts._asdict()


def _published(case: StepCase, chip: Chip) -> str | None:
    """Formats that a model is published in, where the step has others."""
    stored = case.model.dtypes
    if stored is None or case.dtypes.label == step_dtypes(as_published(case.model, [chip])).label:
        return None
    weights = stored.joined_names("weights")
    names = {key: stored.joined_names(key) for key in stored.storage_dtypes}
    differing = (f"{key} {name}" for key, name in names.items() if name != weights)
    return ", ".join([weights, *differing])
