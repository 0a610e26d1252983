"""`rooflines new`: a commented config that runs as it is."""

from __future__ import annotations

import json
import os
from importlib import resources
from pathlib import Path

import click

from rooflines.answers.question import as_published
from rooflines.basics.errors import RooflinesError, at_path, check_choice
from rooflines.cli.output import WithExamples, one_model
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.models.library import find_model, is_path

QUESTIONS = {
    "matmul": "from which batch on layers of a model are compute-bound",
    "kernel": "how quick attention, experts or a norm are alone, and when math binds them",
    "own-chip": "what a chip of your own changes",
    "sharding": "over how many chips a layer stays compute-bound",
    "model": "how quick a whole model is on chips, with which batch, and whether it fits",
    "training": "how to split a step of training over chips, and what it waits for",
}
"""The questions, each with a config in `examples`, and what the config answers."""

CHIP = "h100-sxm"
"""The chip of question `model`."""

EPILOG = "\n\n\b\nQuestions:" + "".join(f"\n  {name}: {QUESTIONS[name]}" for name in QUESTIONS)


@click.command("new", cls=WithExamples, epilog=EPILOG)
@click.argument("question", required=False)
@click.option("-o", "--output", metavar="FILE", help="Where to write it; default QUESTION.yaml.")
@click.option("--model", metavar="NAME", help="Of question model: an id, or a config.json.")
def command(question: str | None, output: str | None, model: str | None) -> None:
    """Write a commented config of a few lines; an existing file is not overwritten.

    Examples:
        rooflines new matmul
        rooflines new own-chip -o my.yaml
        rooflines new model --model path/to/config.json
    """
    question = question or ("model" if model else None)
    with at_path("question"):
        if question is None:
            fix = f"type one of them: {', '.join(QUESTIONS)}"
            raise RooflinesError("", "is missing", fix)
        check_choice(question, QUESTIONS, "no question")
    text = (resources.files("rooflines.cli") / "examples" / f"{question}.yaml").read_text("utf-8")
    if model is not None:
        text = _of_model(text, one_model(model), question)
    path = Path(output or f"{question}.yaml")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        problem = f"cannot be written: {error.strerror or os.strerror(error.errno or 0)}"
        if isinstance(error, FileExistsError):
            problem = "exists already"
        fix = "choose another name with -o FILE"
        raise RooflinesError("", problem, fix, file=str(path)) from None
    click.echo(f"{path}: {QUESTIONS[question]}\nNext: rooflines run {path}")


def _of_model(text: str, model: str, question: str) -> str:
    """Config for question `model` with another model."""
    if question != "model":
        raise RooflinesError("--model", "is for question model", "write `rooflines new model`")
    shape = find_model(model)
    entry = f"{{name: mine, hf: {json.dumps(model)}}}" if is_path(model) else shape.name
    dtypes = as_published(shape, [chip_entries()[CHIP]])
    lines = {"models:": f"    models: [{entry}]\n"}
    if not isinstance(dtypes, str):
        named = {"name": "published", **dtypes}
        pairs = ", ".join(f"{key}: {value}" for key, value in named.items())
        lines["dtypes:"] = f"    dtypes: [{{{pairs}}}]\n"
    _, *rest = text.splitlines(keepends=True)
    head = f"# {model} on 8 H100: which batch, how many tokens a second, does it fit?\n"
    return head + "".join(lines.get((line.split() or [""])[0], line) for line in rest)
