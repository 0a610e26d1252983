"""Explain an operation, or a step of a model, in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError
from rooflines.catalogue.chips import chip_entries
from rooflines.explanation.answer import explained
from rooflines.explanation.question import Known, model_sweep, operation_sweep
from rooflines.fits.entries import shipped_calibrations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.catalogue.entries import Chip
    from rooflines.explanation.answer import Explanation
    from rooflines.fits.entries import Calibrations
    from rooflines.models.model import Model


def explain(  # noqa: PLR0913, the parts of a question
    chip: str,
    sizes: str | Mapping[str, int] | Mapping[str, str] | Sequence[int],
    dtypes: str | Mapping[str, str],
    *,
    operation: str | None = None,
    shards: int | str = 1,
    sharding: str | Mapping[str, str] | None = None,
    network: str | Sequence[str] | None = None,
    memory: str | None = None,
    unit: str | None = None,
    flops: str | None = None,
    calibration: str | Sequence[str] | None = None,
    chips: Mapping[str, Chip] | None = None,
    calibrations: Calibrations | None = None,
) -> Explanation:
    """Explain one operation on one chip: what binds it, and what would make it compute-bound.

    Args:
        chip: Its id, such as `h100-sxm`.
        sizes: `128x8192x8192`, `B=128 D=8192 F=8192`, or the sizes by letter or in order [1].
        dtypes: A name of the dtype catalogue, `x,w->out@compute`, or a mapping.
        operation: A name or an einsum; None: matmul.
        shards: Number of chips that share it [1].
        sharding: How they split it: a name or the long form; None: not at all.
        network: The interconnect; None: the chip's first.
        memory: The memory level that feeds the unit; None: hbm.
        unit: `matrix` or `vector`; None: the operation's.
        flops: `leading` or `exact`; None: the operation's.
        calibration: Software that the estimate is calibrated to, or several in order; None: the
            chip's own calibration.
        chips: Chips by id, such as `load_config(path).chips`; None: those of the catalogue.
        calibrations: Such as `load_config(path).calibrations`; None: those of the package.

    Raises:
        RooflinesError: Something is invalid, several sizes are given, or the chip cannot do it.
    """
    sweep = operation_sweep(
        [chip],
        sizes,
        [dtypes],
        _known(chips, calibrations),
        operation=operation,
        shards=shards,
        sharding=sharding,
        network=network,
        memory=memory,
        unit=unit,
        flops=flops,
        calibration=calibration,
    )
    _check_single(sweep.rows)
    return explained(sweep)


def explain_model(  # noqa: PLR0913, the parts of a question
    chip: str,
    model: str | Model,
    *,
    B: int,  # noqa: N803, the letters of the docs
    S: int,  # noqa: N803, the same
    T: int | None = None,  # noqa: N803, the same
    dtypes: str | Mapping[str, str] | None = None,
    split: str | Mapping[str, int | str] | None = None,
    phase: str = "decode",
    routing: str = "uniform",
    cache_split: str = "heads",
    network: str | Sequence[str] | None = None,
    memory: str | None = None,
    calibration: str | Sequence[str] | None = None,
    chips: Mapping[str, Chip] | None = None,
    calibrations: Calibrations | None = None,
) -> Explanation:
    """Explain a step of a whole model on chips: its time, what binds it, and whether it fits.

    Args:
        chip: Its id, such as `h100-sxm`.
        model: Its id, such as `llama-3.1-70b`, a name that it is published under, the path of a
            config.json, or a model of `rooflines.models`.
        B: Sequences, of all replicas together [1].
        S: Tokens of each sequence after the step; in prefill of the prompt [1].
        T: New tokens of each sequence, in decode; None: 1 [1].
        dtypes: A format for all tensors and products, or `weights`, `cache`, `activations` and
            `compute`, and perhaps `experts`, `head`, `combine` and `attention`; None: as the
            model is published, or bf16.
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
        RooflinesError: Something is invalid, several sizes are given, or the chips cannot do it.
    """
    sweep = model_sweep(
        [chip],
        model,
        {"B": B, "S": S} | ({} if T is None else {"T": T}),
        _known(chips, calibrations),
        dtypes=[] if dtypes is None else [dtypes],
        split=split,
        phase=phase,
        routing=routing,
        cache_split=cache_split,
        network=network,
        memory=memory,
        calibration=calibration,
    )
    _check_single(sweep.rows)
    return explained(sweep)


def _known(chips: Mapping[str, Chip] | None, calibrations: Calibrations | None) -> Known:
    return Known(
        chip_entries() if chips is None else chips,
        shipped_calibrations() if calibrations is None else calibrations,
    )


def _check_single(rows: int) -> None:
    if rows != 1:
        fix = "explain one at a time, or compute `rooflines.rows` of a config"
        raise RooflinesError("the question", f"has {rows} cases", fix)
