"""`rooflines list models`: the models of the catalogue, and one of them on a sheet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import polars as pl

from rooflines import api
from rooflines.basics.text import count, si
from rooflines.cli.output import as_table, cells, examples, prints_frame
from rooflines.models.library import CONVENTIONS, model_entries
from rooflines.models.resolve import model_named
from rooflines.models.sheet import (
    BATCH_CONTEXT,
    CACHE_DTYPES,
    CONTEXTS,
    DTYPES,
    chips_that_hold,
    model_numbers,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflines.cli.output import Printed
    from rooflines.models.model import Model


def known_models(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Models that start with a text, for shell completion."""
    del ctx, param
    return [name for name in model_entries() if name.startswith(incomplete)]


@click.command(
    "models",
    epilog=examples(
        "rooflines list models",
        "rooflines list models llama-3.1-70b",
        "rooflines list models Qwen/Qwen3-235B-A22B --json",
        "rooflines list models path/to/config.json",
    ),
)
@click.argument("model", required=False, metavar="[ID]", shell_complete=known_models)
@prints_frame
def command(model: str | None) -> Printed:
    """List the models of the catalogue, or show what follows from the shape of one.

    Parameters by part and convention, the cache of a token and of long contexts, weights by dtype,
    and the chips that hold it alone, with the largest batch. ID is an id, a published name, or the
    path of a config.json.
    """
    if model is None:
        frame = api.model_shapes()
        return frame, _list(frame)
    one = model_named(model)
    rows = [(one.name, line.path, line.value, line.unit) for line in model_numbers(one)]
    schema = {"model": pl.String, "path": pl.String, "value": pl.Float64, "unit": pl.String}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    return frame, "\n".join(_sheet(one))


def _list(frame: pl.DataFrame) -> str:
    """A line for each model: its id, parameters, active ones, layers and cache."""
    hint = "`rooflines list models ID` shows what follows from a shape"
    names = ("model", "parameters", "active", "layers", "cache/token bf16", "count", "name")
    columns = (*names[:4], "cache_bytes_per_token_bf16", "match", "name")
    rows = [cells(row, columns) for row in frame.to_dicts()]
    return f"{as_table(names, rows)}\n\n{len(rows)} models; {hint}"


def _sheet(model: Model) -> Iterator[str]:
    """Sections of the sheet."""
    yield f"{model.name}: {_layers(model)}"
    if model.note:
        yield f"  {model.note}"
    counts = model.parameters()
    yield ""
    parts = [(part, f"{number:,}") for part, number in counts.groups.items()]
    parts.append(("total", f"{counts.total:,}"))
    yield _aligned("parameters", parts)
    if counts.idle or counts.embedding:
        text = ", ".join(f"{name} {count(getattr(counts, name))}" for name in CONVENTIONS)
        yield f"a token uses: {text}"
    yield ""
    yield _caches(model)
    yield ""
    yield _weights(model)
    yield ""
    yield _chips(model)


def _layers(model: Model) -> str:
    """The shape in a line."""
    shape = model.shape
    text = f"{shape.layers} layers, D={shape.D}, V={shape.V}"
    if shape.tied:
        text += " (tied)"
    attention = shape.attention.model_dump(exclude_defaults=True, exclude={"kind"})
    sizes = " ".join(key if size is True else f"{key}={size}" for key, size in attention.items())
    text += f", {shape.attention.kind} {sizes}"
    if shape.window is not None:
        kind = "chunks" if shape.window.chunked else "a window"
        text += f", {kind} of {shape.window.tokens:,} in {shape.window.layers} layers"
    if shape.sparse is not None:
        sparse = shape.sparse
        text += f", {sparse.tokens:,} chosen tokens in {sparse.layers} layers"
    if shape.state is not None:
        text += f", a state of {shape.state.kind} in {shape.state.layers} layers"
    if shape.moe is not None:
        text += f", {shape.moe.E} experts, {shape.moe.k} a token"
    if shape.context is not None:
        text += f", context {shape.context:,}"
    return text


def _aligned(head: str, rows: list[tuple[str, str]]) -> str:
    """Names and right-aligned numbers."""
    names = max(len(name) for name, _ in rows)
    numbers = max(len(number) for _, number in rows)
    return "\n".join([head, *(f"  {name:<{names}}  {text:>{numbers}}" for name, text in rows)])


def _caches(model: Model) -> str:
    """The cache of a sequence by dtype and context."""
    contexts = (1, *CONTEXTS)
    rows = [
        (dtype, *(si(float(model.cache_bytes(context, dtype)), "B") for context in contexts))
        for dtype in CACHE_DTYPES
    ]
    names = ("cache of", *("a token" if n == 1 else f"{n // 1024}k tokens" for n in contexts))
    return as_table(names, rows)


def _weights(model: Model) -> str:
    """The bytes of all weights by dtype."""
    texts = [f"{dtype} {si(float(model.weights_bytes(dtype)), 'B')}" for dtype in DTYPES]
    if model.dtypes is not None:
        texts.append(f"as published {si(float(model.weights_bytes()), 'B')}")
    return f"weights: {', '.join(texts)}"


def _chips(model: Model) -> str:
    """Chips that hold the model alone, by capacity, with the largest batch."""
    by_capacity: dict[tuple[float, ...], list[str]] = {}
    for chip, capacity, batches in chips_that_hold(model):
        key = (capacity, *(batches[dtype] for dtype in CACHE_DTYPES))
        by_capacity.setdefault(key, []).append(chip)
    if not by_capacity:
        return "No single chip of the catalogue holds it in fp8, with a cache of 8k tokens."
    rows = [
        (
            si(key[0], "B"),
            *(f"{int(batch):,}" if batch else "-" for batch in key[1:]),
            ", ".join(chips),
        )
        for key, chips in sorted(by_capacity.items(), reverse=True)
    ]
    head = f"One chip holds it with this many caches of {BATCH_CONTEXT // 1024}k tokens:"
    return f"{head}\n{as_table(('memory', *CACHE_DTYPES, 'chips'), rows)}"
