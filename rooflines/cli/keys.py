"""`rooflines list keys`: what every key of a config is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click
import polars as pl

from rooflines.basics.errors import one_of, placed
from rooflines.catalogue import entries
from rooflines.cli.output import as_table, frame_options, print_frame, width
from rooflines.models.dtypes import StepDtypes
from rooflines.models.shape import Shape
from rooflines.models.split import Split
from rooflines.settings import model_sweeps, schema
from rooflines.settings.charts import ChartConfig
from rooflines.settings.measurements import MeasurementConfig

if TYPE_CHECKING:
    from rooflines.catalogue.forms import Entry

EXAMPLES = """
\b
Examples:
  rooflines list keys
  rooflines list keys sweeps
  rooflines list keys chips.networks
"""


@click.command("keys", epilog=EXAMPLES)
@click.argument("place", required=False, metavar="[PLACE]")
@frame_options
def command(place: str | None, *, csv: bool, json_: bool) -> None:
    """Explain the keys of a config, or of one place in it: default, and meaning.

    PLACE is such as sweeps, model-sweeps, charts, chips or chips.memory; config is the top level.
    """
    rows = [
        (name, field.alias or key, _default(field), field.description or "")
        for name, form in forms().items()
        for key, field in form.model_fields.items()
    ]
    frame = pl.DataFrame(rows, schema=["place", "key", "default", "meaning"], orient="row")
    if place is not None:
        with placed("place"):
            one_of(place, [*forms()], "no place of a config")
        frame = frame.filter(place=place)
    shown = frame.drop("place") if place else frame
    print_frame(frame, as_table(shown.columns, shown.rows(), width()), csv=csv, json_=json_)


def forms() -> dict[str, type[Entry]]:
    """The types of the mappings of a config, by their place."""
    return {
        "config": schema.ConfigFile,
        "sweeps": schema.SweepConfig,
        "model-sweeps": model_sweeps.ModelSweepConfig,
        "model-sweeps.models": Shape,
        "model-sweeps.dtypes": StepDtypes,
        "model-sweeps.splits": Split,
        "model-sweeps.requests": model_sweeps.Request,
        "model-sweeps.targets": model_sweeps.Targets,
        "model-sweeps.prices": model_sweeps.Prices,
        "measurements": MeasurementConfig,
        "charts": ChartConfig,
        "chips": entries.Chip,
        "chips.units": entries.Peak,
        "chips.memory": entries.Level,
        "chips.networks": entries.Network,
        "chips.prices": entries.Price,
    }


def _default(field: object) -> str:
    """The default of a key, as YAML has it."""
    if field.is_required():  # type: ignore[attr-defined]  # a field of pydantic
        return "required"
    value = field.get_default(call_default_factory=True)  # type: ignore[attr-defined]  # the same
    return json.dumps(value, default=str)
