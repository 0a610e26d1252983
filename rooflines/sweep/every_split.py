"""Every way to share a model over a number of chips."""

from __future__ import annotations

from contextlib import suppress
from itertools import product
from typing import TYPE_CHECKING, cast

from rooflines.basics.errors import RooflinesError
from rooflines.hardware.support import interconnects
from rooflines.models.architecture import TRAIN
from rooflines.models.split import Split
from rooflines.theory.network import TORUS, axes_text, torus_axes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rooflines.config.model_fields import ModelSweepConfig
    from rooflines.hardware.entries import Chip
    from rooflines.models.architecture import Shape
    from rooflines.models.model import Model
    from rooflines.theory.network import Link
    from rooflines.training.parallel_plan import TrainingPlan


def with_every_split(
    config: ModelSweepConfig, models: Mapping[str, Model], chips: Mapping[str, Chip]
) -> ModelSweepConfig:
    """Expand `splits: auto` in a config; return other configs unchanged.

    Args:
        config: A sweep's keys.
        models: The sweep's models, by name.
        chips: The chips by id.
    """
    if config.num_chips is None:
        return config
    if TRAIN in config.phase:
        (fixed,) = config.splits
        plans = {
            plan.name: plan
            for model in models.values()
            for plan in plans_of(model.shape, config.num_chips, cast("TrainingPlan", fixed))
        }
        all_plans = [*plans.values()] or config.splits
        return config.model_copy(update={"splits": all_plans, "num_chips": None})
    by_name: dict[str, Split] = {}
    entries = [chips[name] for name in config.chips if name in chips]
    for model, chip, route in product(models.values(), entries, config.network or (None,)):
        _, links, _ = interconnects(chip, route)
        splits = splits_of(model.shape, config.num_chips, links)
        by_name |= {split.name: split for split in splits}
    ordered = sorted(by_name.values(), key=lambda split: (split.shards, str(split.tp), split.parts))
    return config.model_copy(update={"splits": ordered or config.splits, "num_chips": None})


def plans_of(shape: Shape, chips: int, fixed: TrainingPlan) -> list[TrainingPlan]:
    """List every plan over a number of chips that a model allows, same kernels together.

    Args:
        shape: The model.
        chips: tp * pp * cp * dp [1].
        fixed: Plan with the keys that all plans share: micro-batch, shards, recomputation, and so
            on; plans with stages also share `interleave`.
    """
    divisors = [divisor for divisor in range(1, chips + 1) if chips % divisor == 0]
    experts = divisors if shape.moe is not None else [1]
    plans = []
    for pp, dp, tp in product(divisors, repeat=3):
        cp, rest = divmod(chips, pp * dp * tp)
        for ep in experts if not rest else ():
            runs = fixed.interleave if pp > 1 else 1
            update = {"tp": tp, "pp": pp, "cp": cp, "dp": dp, "ep": ep, "interleave": runs}
            plan = fixed.model_copy(update=update)
            with suppress(RooflinesError):
                plan.check(shape)
                plans.append(plan)
    return sorted(plans, key=lambda plan: plan.replicas == 1)


def splits_of(shape: Shape, chips: int, links: tuple[Link, ...]) -> Iterator[Split]:
    """Yield every split over a number of chips that a model allows.

    On a torus once for all axes that join its chips. A split that interconnects do not join is
    included: a sweep then skips it with the reason.

    Args:
        shape: The model.
        chips: tp * dp [1].
        links: The interconnects, inner first.
    """
    experts = [1, *_layouts(chips, links)] if shape.moe is not None and chips > 1 else [1]
    for tp in (divisor for divisor in range(1, chips + 1) if chips % divisor == 0):
        for axes, ep in product(_layouts(tp, links), experts):
            split = Split.model_validate({"tp": axes, "dp": chips // tp, "ep": ep})
            with suppress(RooflinesError):
                split.check(shape)
                yield split


def _layouts(chips: int, links: tuple[Link, ...]) -> list[int | str]:
    """Chips along one axis, or on a torus along the axes that join them."""
    if len(links) != 1 or links[0].topology != TORUS:
        return [chips]
    axes_by_layout = torus_axes(links[0], chips) or ((chips,),)
    return [axes[0] if len(axes) == 1 else axes_text(axes) for axes in axes_by_layout]
