"""Training step in one call: a row, or a row for every plan over a number of chips."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.answers.assumptions import as_column
from rooflines.answers.best_split import best_splits
from rooflines.answers.question import QuestionCatalogues, question_sweep
from rooflines.answers.question_words import Question
from rooflines.basics.errors import RooflinesError
from rooflines.config.model_fields import AUTO
from rooflines.evaluation.row_frames import table_of
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.models.architecture import TRAIN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from rooflines.hardware.entries import Chip
    from rooflines.models.model import Model


def train(  # noqa: PLR0913, the parts of a question
    model: str | Model,
    chip: str | Chip,
    *,
    B: int,  # noqa: N803, the letter of the docs
    S: int,  # noqa: N803, the same
    split: str | Mapping[str, object] | None = None,
    chips: int | None = None,
    dtypes: str | Mapping[str, object] = "bf16",
    network: Sequence[str] | None = None,
    **options: Any,  # noqa: ANN401, as of the keys of a sweep
) -> pl.DataFrame:
    """A step of training, or every plan for it: works, times, memory.

    Args:
        model: A model, its id, a published name, or the path of a config.json.
        chip: A chip of the catalogue, or its id.
        B: Sequences of the step over all replicas [1].
        S: Tokens of each [1].
        split: `{"tp": 2, "dp": 4}`, also `pp`, `cp` and `ep`, or its name, `tp2-dp4`; `auto`:
            every plan over `chips`; None: one chip.
        chips: Chips of `auto` [1].
        dtypes: A format, or dtypes by class of tensors.
        network: Interconnects, inner first; None: those that join the chips.
        **options: Keys of a sweep that trains: `micro_batch`, `interleave`, `shard`, `recompute`,
            `save`, `context`, `optimizer`, `tokens`.

    Returns:
        The columns of a table of training; `columns()` explains them; and `note`, as of
        `best_splits`. Of `auto` a row for each plan, those that fit first, of these the least
        `t_upper_s` first, with `bottleneck_vs_best` and `excess_s` as of `best_splits`.

    Raises:
        RooflinesError: Something is invalid, or no plan is possible.
    """
    catalogues = QuestionCatalogues(dict(chip_entries()))
    if not isinstance(chip, str):
        catalogues.chips[GIVEN_CHIP], chip = chip, GIVEN_CHIP  # type: ignore[index]  # the mapping made above
    if split == AUTO:
        if chips is None:
            raise RooflinesError("chips", "is not given, but split is auto", "say how many chips")
        return best_splits(
            chip,
            model,
            {"B": B, "S": S},
            catalogues,
            chips=chips,
            network=network,
            dtypes=[dtypes],
            phase=TRAIN,
            **options,
        )
    question = Question([chip], model=model, dtypes=[dtypes], sizes={"B": B, "S": S})
    sweep = question_sweep(
        question, catalogues, split=split, network=network, phase=TRAIN, **options
    )
    return table_of(sweep).stored_frame().with_columns(as_column(sweep)).collect()


GIVEN_CHIP = "own"
"""The id of a chip that is given as an entry."""
