"""`rooflines list models`: models in the catalogue, and a sheet for one."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import click
import polars as pl
import yaml

from rooflines import api
from rooflines.basics.text import si
from rooflines.cli.output import WithExamples, one_model, prints_frame, table
from rooflines.models import model_sheet
from rooflines.models.architecture import Shape
from rooflines.models.library import find_model, model_entries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflines.cli.output import Printed
    from rooflines.models.model import Model

SHOWN = {
    **{name: name for name in ("model", "parameters", "active", "layers")},
    "kv_cache_bytes_per_token_bf16": "KV cache/token bf16",
    "state_bytes": "state/sequence",
    "match": "count",
    "name": "name",
}
"""Column titles on a screen, by column."""


def known_models(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Models that start with a text, for shell completion."""
    del ctx, param
    return [name for name in model_entries() if name.startswith(incomplete)]


@click.command("models", cls=WithExamples)
@click.argument("model", required=False, metavar="[ID]", shell_complete=known_models)
@click.option(
    "--as", "family", metavar="FAMILY", help="The family that a file is read as, whatever its own."
)
@prints_frame
def command(model: str | None, family: str | None) -> Printed:
    """List the models of the catalogue, or show what follows from the shape of one.

    Its shape as a config has it, parameters by part and convention, the cache of a token and of
    long contexts, weights by dtype, and the chips that hold it alone, with the largest batch. ID is
    an id, a published name, or the path of a config.json.

    Examples:
        rooflines list models
        rooflines list models llama-3.1-70b
        rooflines list models Qwen/Qwen3-235B-A22B --json
        rooflines list models path/to/config.json
        rooflines list models path/to/config.json --as llama
    """
    if model is None:
        frame = api.model_shapes()
        return frame, _list(frame)
    loaded = find_model(one_model(model), family=family)
    rows = [(loaded.name, *line) for line in model_sheet.model_numbers(loaded)]
    schema = {"model": pl.String, "path": pl.String, "value": pl.Float64, "unit": pl.String}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    frame = frame.with_columns(pl.lit(loaded.note, pl.String).alias("note"))
    return frame, "\n".join(_sheet(loaded, frame))


def _list(frame: pl.DataFrame) -> str:
    """A line for each model: its id, parameters, active ones, layers and cache."""
    hint = "`rooflines list models ID` has parameters, KV cache and chips of one"
    return f"{table(SHOWN, frame.to_dicts())}\n\n{frame.height} models; {hint}"


def _sheet(model: Model, numbers: pl.DataFrame) -> Iterator[str]:
    """Shape as a config has it, its numbers, and the chips that hold the model."""
    shape = model.shape.model_dump(
        include={*Shape.model_fields}, exclude_defaults=True, exclude_none=True
    )
    written = yaml.safe_dump(shape, sort_keys=False, default_flow_style=True, width=inf)
    yield f"{model.name}: {written.strip()}"
    if model.note:
        yield f"  {model.note}"
    yield ""
    texts = [
        (path, si(value, "B") if unit == "byte" else f"{value:,.0f}")
        for path, value, unit in numbers.select("path", "value", "unit").rows()
        if not path.startswith("max_batch.")
    ]
    width = max(len(text) for _, text in texts)
    rows = ({"number": path, "value": f"{text:>{width}}"} for path, text in texts)
    yield table(("number", "value"), rows)
    yield ""
    yield _chips(model)


def _chips(model: Model) -> str:
    """Chips that hold the model alone, by capacity, with the largest batch."""
    by_capacity: dict[tuple[float, ...], list[str]] = {}
    for chip, capacity, batches in model_sheet.fitting_chips(model):
        key = (capacity, *(batches[dtype] for dtype in model_sheet.CACHE_DTYPES))
        by_capacity.setdefault(key, []).append(chip)
    if not by_capacity:
        return "Fits on no single chip of the catalogue in fp8 with one sequence of 8k tokens."
    rows = [
        {"memory": si(capacity, "B"), "chips": ", ".join(chips)}
        | {
            dtype: f"{int(batch):,}" if batch else "-"
            for dtype, batch in zip(model_sheet.CACHE_DTYPES, max_batches, strict=True)
        }
        for (capacity, *max_batches), chips in sorted(by_capacity.items(), reverse=True)
    ]
    context = f"{model_sheet.BATCH_CONTEXT // 1024}k context"
    head = f"Largest batch on one chip at {context}, by KV cache dtype:"
    return f"{head}\n{table(('memory', *model_sheet.CACHE_DTYPES, 'chips'), rows)}"
