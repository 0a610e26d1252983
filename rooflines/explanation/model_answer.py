"""A whole model on chips, explained: every number is of its tables or thresholds, or a rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import RooflinesError
from rooflines.catalogue.chips import chip_entries
from rooflines.catalogue.unsupported import joining
from rooflines.explanation import model_phrases
from rooflines.explanation.model_question import formats_on, model_sweep_of
from rooflines.explanation.shown import Shown
from rooflines.explanation.software import software_of
from rooflines.explanation.sources import documents_of, used_numbers
from rooflines.explanation.step_rates import StepRates
from rooflines.explanation.values import Change, Use
from rooflines.fits.entries import shipped_calibrations
from rooflines.model.columns import FOUND, NEVER
from rooflines.model.network import BETWEEN
from rooflines.model.operation import MATRIX
from rooflines.model.resources import RATES, RESOURCES
from rooflines.model.step_columns import HEADS
from rooflines.models.dtypes import step_dtypes
from rooflines.serving.critical import step_thresholds
from rooflines.serving.layers import kernel_rows
from rooflines.serving.lines import CaseLines
from rooflines.serving.rows import step_rows
from rooflines.serving.sweep import checked_model_sweep

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.catalogue.entries import Chip
    from rooflines.catalogue.parts import NumberRecord
    from rooflines.explanation.sheet import Sheet
    from rooflines.fits.entries import Calibrations
    from rooflines.models.groups import Step
    from rooflines.models.model import Model
    from rooflines.serving.case import Case
    from rooflines.serving.sweep import ModelSweep


@dataclass(frozen=True)
class Experts:
    """The experts of a layer that a step uses.

    Attributes:
        routing: Which ones tokens choose: `uniform`, `same` or `all`.
        touched: How many of them are read [1].
        E: How many there are [1].
    """

    routing: str
    touched: float
    E: int


@dataclass(frozen=True, repr=False)
class ModelExplanation(Shown):
    """One model on chips, explained; `str()` is a screen of text, `to_dict()` all of it.

    Attributes:
        row: The row of the table, by column; works and times are those of one chip.
        sizes: B, S and, where it was asked for, T [1].
        cache_split: How the chips share caches: `heads` or `batch`.
        name: The chip's full name; its id if it has none.
        uses: Math first, then memory and, if chips send anything, network.
        products: FLOPs, rate and time in every compute dtype: `compute`, `flops` [FLOP],
            `per_s` [FLOP/s], `time_s` [s].
        experts: The experts that are used; None without experts.
        groups: The kernels by column, in the order in which they run; values of one layer.
        thresholds: Rows of the thresholds by column: B, S (in decode) and chips.
        wider: The smallest `tp` that holds weights and caches over another `network`, where those
            of the question join too few chips; None: they do not, or no network is enough.
        changes: The rates at which the step becomes compute-bound.
        dtypes: The same question with every tensor and product in another format that the chip
            computes in, quickest first, with `bound`, `t_lower_s` [s] and `fits`.
        context: The longest context that the model is made for [1]; None: not stated.
        capacity_bytes: Capacity of the memory level [byte]; None: not published.
        per_sequence_s: What every further sequence adds to the time of compute, of memory (by its
            cache) and of the network (by what is sent), by bottleneck [s].
        numbers: The chip's numbers that were used, with `source`, `confidence` and remarks.
        documents: Title and address of the sources that are documents, by id.
        softwares: Whose calibrations of matmuls and collectives give the estimate; empty: no
            software is named.
        contents: What the timings of matmuls include besides them.
    """

    row: Mapping[str, Any]
    sizes: Mapping[str, int]
    cache_split: str
    name: str
    uses: Sequence[Use]
    products: Sequence[Mapping[str, Any]]
    experts: Experts | None
    groups: Sequence[Mapping[str, Any]]
    thresholds: Sequence[Mapping[str, Any]]
    wider: Mapping[str, Any] | None
    changes: Sequence[Change]
    dtypes: Sequence[Mapping[str, Any]]
    context: int | None
    capacity_bytes: float | None
    per_sequence_s: Mapping[str, float]
    numbers: Sequence[NumberRecord]
    documents: Mapping[str, Mapping[str, str]]
    softwares: Sequence[str]
    contents: Sequence[str]

    @property
    def sheet(self) -> Sheet:
        """What is shown."""
        return model_phrases.sheet(self)

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON: mappings, lists, texts, numbers and null."""
        return {
            **vars(self),
            "uses": [dict(vars(use)) for use in self.uses],
            "changes": [dict(vars(change)) for change in self.changes],
            "experts": None if self.experts is None else dict(vars(self.experts)),
        }


def explain_model(  # noqa: PLR0913, the parts of a question
    chip: str,
    model: str | Model,
    *,
    B: int,  # noqa: N803, the letters of the docs
    S: int,  # noqa: N803, the same
    T: int | None = None,  # noqa: N803, the same
    dtypes: str | Mapping[str, str] = "bf16",
    split: str | Mapping[str, int | str] | None = None,
    phase: str = "decode",
    routing: str = "uniform",
    cache_split: str = "heads",
    network: str | Sequence[str] | None = None,
    memory: str | None = None,
    calibration: str | Sequence[str] | None = None,
    chips: Mapping[str, Chip] | None = None,
    calibrations: Calibrations | None = None,
) -> ModelExplanation:
    """Explain a step of a whole model on chips: its time, what binds it, and whether it fits.

    Args:
        chip: Its id, such as `h100-sxm`.
        model: Its id, such as `llama-3.1-70b`, a name that it is published under, the path of a
            config.json, or a model of `rooflines.models`.
        B: Sequences, of all replicas together [1].
        S: Tokens of each sequence after the step; in prefill of the prompt [1].
        T: New tokens of each sequence, in decode; None: 1 [1].
        dtypes: A format for all tensors and products, or `weights`, `cache`, `activations` and
            `compute`, and perhaps `experts`, `head`, `combine` and `attention`.
        split: `{"tp": 8}`, also `dp` and `ep`, or `tp=8,dp=2`; None: one chip.
        phase: `decode` or `prefill`.
        routing: Which experts tokens choose: `uniform`, `same` or `all`.
        cache_split: `heads` or `batch`.
        network: The interconnect, or two, inner first; None: the chip's first.
        memory: The memory level of weights and caches; None: hbm.
        calibration: Software that the estimate is calibrated to, or several; None: the chip's own.
        chips: Chips by id, such as `load_config(path).chips`; None: those of the catalogue.
        calibrations: Such as `load_config(path).calibrations`; None: those of the package.

    Raises:
        RooflinesError: Something is invalid, or the chips cannot do it.
    """
    sweep = model_sweep_of(
        chip,
        model,
        {"B": B, "S": S} | ({} if T is None else {"T": T}),
        chips=chip_entries() if chips is None else chips,
        calibrations=shipped_calibrations() if calibrations is None else calibrations,
        dtypes=dtypes,
        split=split,
        phase=phase,
        routing=routing,
        cache_split=cache_split,
        network=network,
        memory=memory,
        calibration=calibration,
    )
    return explained_model(sweep)


def explained_model(sweep: ModelSweep) -> ModelExplanation:
    """The explanation of the only row of a sweep."""
    (block,) = sweep.blocks
    (case,) = block.cases
    row = step_rows(sweep).collect().row(0, named=True)
    sizes = {letter: values[0] for letter, values in sweep.sizes.items()}
    step = case.step(sizes["B"], sizes["S"], sizes.get("T", 1))
    rates = StepRates(case, step)
    chip = sweep.chips[case.chip]
    numbers = used_numbers(chip, _used(sweep, case, row))
    thresholds = step_thresholds(sweep).to_dicts()
    return ModelExplanation(
        row=row,
        sizes=sizes,
        cache_split=sweep.config.cache_split,
        name=chip.name or case.chip,
        uses=list(_uses(rates, row)),
        products=[
            {
                "compute": each.compute,
                "flops": float(each.flops),
                "per_s": float(each.flops / each.time_s),
                "time_s": float(each.time_s),
            }
            for each in rates.products
        ],
        experts=_experts(case, step),
        groups=_groups(sweep),
        thresholds=thresholds,
        wider=_wider(sweep, chip, thresholds),
        changes=list(_changes(rates, row)),
        dtypes=_other_dtypes(sweep, row),
        context=case.model.shape.context,
        capacity_bytes=chip.memory[case.memory].capacity_bytes,
        per_sequence_s=_per_sequence(case, step),
        numbers=numbers,
        documents=documents_of(numbers),
        softwares=_softwares(sweep, case),
        contents=case.choice.contents(case.dtypes.computed),
    )


def _wider(
    sweep: ModelSweep, chip: Chip, thresholds: Sequence[Mapping[str, Any]]
) -> dict[str, Any] | None:
    """The smallest tp that fits over more networks, where the network of the question limits it."""
    (fewest,) = (each for each in thresholds if each["axis"] == "chips")
    if fewest["outcome"] != NEVER or fewest["limit"] == HEADS:
        return None
    for network in joining(chip):
        config = sweep.config.model_copy(
            update={"network": [network.split(",")], "thresholds": ["chips"]}
        )
        catalogues = sweep.chips, sweep.dtypes, sweep.calibrations
        try:
            other = checked_model_sweep(sweep.name, config, sweep.models, *catalogues)
        except RooflinesError:  # it does not join the chips of the question
            continue
        (row,) = step_thresholds(other).to_dicts()
        if row["outcome"] == FOUND:
            return {"tp": row["critical"], "network": network}
    return None


def _softwares(sweep: ModelSweep, case: Case) -> list[str]:
    """The software whose calibrations of matmuls and collectives give the estimate.

    Raises:
        RooflinesError: None that is named has a calibration of the chip and a compute dtype.
    """
    named = sweep.config.calibration or []
    computed = case.dtypes.computed if named else ()
    found = (software_of(sweep.calibrations, case.chip, named, each) for each in computed)
    kinds = (sent.kind for kernel in case.kernels for sent in kernel.collectives)
    joined = (case.choice.collective_software(kind) for kind in kinds)
    return list(dict.fromkeys([*found, *(name for name in joined if name)]))


def _uses(rates: StepRates, row: Mapping[str, Any]) -> Iterator[Use]:
    for resource in RESOURCES:
        parts = rates.parts(resource)
        if not rates.times[resource]:
            continue
        yield Use(
            resource=resource.name,
            bound=resource.bound,
            column=resource.work,
            work=row[resource.work],
            per_s=row[resource.work] / float(sum(work_s for work_s, _ in parts)),
            latency_s=float(sum(latency_s for _, latency_s in parts)),
            time_s=row[f"t_{resource.name}_s"],
            intensity=None,
            needed_intensity=None,
        )


def _changes(rates: StepRates, row: Mapping[str, Any]) -> Iterator[Change]:
    per_s = {used.resource: used.per_s for used in _uses(rates, row)}
    for name, resource in RATES.items():
        if resource.name not in per_s:
            continue
        solution = rates.factor(resource)
        factor = None if solution.factor is None else float(solution.factor)
        yield Change(
            rate=name,
            resource=resource.name,
            outcome=solution.outcome,
            limit=solution.limit,
            factor=factor,
            per_s=per_s[resource.name],
            needed_per_s=None if factor is None else per_s[resource.name] * factor,
        )


def _per_sequence(case: Case, step: Step) -> dict[str, float]:
    """How the times grow with B, without the experts that further tokens touch [s]."""
    lines = CaseLines(case)
    of = lines.at(step.S, step.T)
    slopes = (of.total.math, of.total.memory, of.network[0])
    return {
        resource.bound: slope / lines.per_s
        for resource, slope in zip(RESOURCES, slopes, strict=True)
    }


def _experts(case: Case, step: Step) -> Experts | None:
    for kernel in case.kernels:
        if kernel.group.moe is not None:
            touched = kernel.extents(step)["touched"]
            return Experts(case.routing, float(touched), kernel.group.moe.E)
    return None


def _groups(sweep: ModelSweep) -> list[dict[str, Any]]:
    """The kernels of the row, without its keys and sizes."""
    names = [column.name for column in sweep.layer_columns]
    return kernel_rows(sweep).select(names[names.index("group") :]).collect().to_dicts()


def _other_dtypes(sweep: ModelSweep, row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The same question in other formats, quickest first."""
    names = [name for name in formats_on(sweep.chips[row["chip"]]) if name != row["dtypes"]]
    if not names:
        return []
    forms = [step_dtypes(name) for name in names]
    config = sweep.config.model_copy(update={"dtypes": forms, "thresholds": []})
    others = checked_model_sweep(
        sweep.name, config, sweep.models, sweep.chips, sweep.dtypes, sweep.calibrations
    )
    rows = step_rows(others).select("dtypes", "bound", "t_lower_s", "fits")
    return rows.collect().sort("t_lower_s", maintain_order=True).to_dicts()


def _used(sweep: ModelSweep, case: Case, row: Mapping[str, Any]) -> Iterator[str]:
    """The parts of the chip that the row depends on."""
    chip = sweep.chips[case.chip]
    yield from (f"memory.{case.memory}", "efficiency", "power")
    for compute in dict.fromkeys(case.dtypes.computed):
        yield from (f"units.{MATRIX}.{compute}", f"calibration.{compute}")
    if row["network_bytes"] and case.network is not None:
        yield from (f"networks.{name}" for name in case.network.split(BETWEEN))
    price = None if row["usd_per_mtok"] is None else chip.lowest_price()
    yield from (f"prices.{index}" for index, each in enumerate(chip.prices or ()) if each is price)
