"""Sweeps of operations and kernels, by their configs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.config.kernel_fields import (
    ChainSweepConfig,
    CollectiveSweepConfig,
    KernelSweepConfig,
)
from rooflines.config.schema import SweepConfig
from rooflines.sweep.collective_sweep import CollectiveSweep
from rooflines.sweep.kind_sweep import ChainSweep, KindSweep
from rooflines.sweep.operation_sweep import Sweep

if TYPE_CHECKING:
    from rooflines.config.kernel_fields import KernelKeys


AnyKernelSweep = KindSweep | CollectiveSweep
"""Sweep over a kind of kernel or a chain of kinds, or over a collective."""


def sweep_of_config(
    name: str,
    config: SweepConfig | KernelKeys,
    *entries: Any,  # noqa: ANN401, see below
) -> Sweep | AnyKernelSweep:
    """Kernel or operation sweep, by its config.

    Args:
        name: Its name.
        config: Its keys.
        entries: Chips, dtypes and calibrations.
    """
    if isinstance(config, KernelSweepConfig):
        return KindSweep(name, config, *entries)
    if isinstance(config, ChainSweepConfig):
        return ChainSweep(name, config, *entries)
    if isinstance(config, CollectiveSweepConfig):
        return CollectiveSweep(name, config, *entries)
    assert isinstance(config, SweepConfig)  # noqa: S101, for types
    return Sweep(name, config, *entries)
