"""Command `rooflines`: the group of commands, and error output.

Each command is a module of this package with a click command named `command`, which is imported
when the command is used; help lists the commands without them.
"""

from __future__ import annotations

import errno
import gc
import io
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

import click

from rooflines.basics.errors import (
    INTERRUPTED,
    RooflinesError,
    close_to,
    error_notes,
    quote,
    truncate,
)
from rooflines.basics.lazy import GARBAGE_THRESHOLDS
from rooflines.basics.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

COMMANDS = {
    "explain": "Explain operations, layers and models on chips.",
    "train": "A step of training: times, memory, the best split.",
    "serve": "Plan a served model: deployments that keep TPOT and TTFT.",
    "run": "Run a config: tables, thresholds, charts and a site.",
    "draw": "Draw charts of finished results in another format or size.",
    "check": "Find all mistakes of a config, or say what a run makes.",
    "new": "Write a commented config to start from.",
    "compare": "Compare chips, a model on chips, or the results of two runs.",
    "list": "List chips, models, dtypes, prices and more, or show one.",
    "measured": "Use timings: make, fit, join and judge them.",
    "origin": "Print what made a file, and whether it is unchanged.",
}
"""The commands in the order of the help, and what they do; each a group or a module of this
package."""

GROUPS = {
    "list": {
        "chips": "List the chips, or all numbers of one with their sources.",
        "models": "List the models, or what follows from the shape of one.",
        "dtypes": "List the dtype combinations and their formats.",
        "columns": "Explain the columns of all tables, or of one.",
        "keys": "Explain the keys of a config, or of one place.",
        "words": "List the words that questions have.",
        "prices": "List the lowest dated price for each chip.",
        "operations": "List the named operations.",
        "kernels": "List the kinds of kernels, with letters and options.",
    },
    "measured": {
        "measure": "Time matmuls on this machine, and describe it as a chip.",
        "calibrate": "Fit a chip and a library to timings.",
        "join": "Put timings beside the bound and the estimate.",
        "below": "List timings below the bound by collection.",
        "judge": "Judge the bound and the estimate by timings.",
        "kernels": "Put profiled kernels on the roofline of a chip.",
        "trace": "Show where the time of a run went, by a profiler's trace.",
        "log": "Judge the decode step in a serving engine's log.",
    },
}
"""Commands with commands below them, each of these a module of this package."""

MODULES = {("list", "kernels"): "kinds"}
"""Modules of commands whose name another group has, too."""

SHORT = ("chips", "models", "dtypes", "measure", "calibrate", "kernels")
"""Commands of groups that also work without the name of their group, as they once did."""

INSTEAD = {
    "write --split tp=8, or tp=4,dp=2": "--tp --dp --ep --pp --gpus --tensor-parallel",
    "type them as a word, such as fp8": "--dtype --dtypes --quant --precision",
    "type weights=bf16,cache=fp8,activations=bf16,compute=bf16 as a word": (
        "--kv-dtype --kv-cache-dtype --cache-dtype"
    ),
    "type sizes as words, such as B=64 S=8192": "--batch --batch-size --context --seq",
    "type it as a word, such as h100": "--chip --gpu --device",
    "type it as a word, such as llama-3.1-70b": "--model",
}
"""Fixes for options that questions do not have."""

ANSWERED_BY = {
    "type `rooflines explain h100 llama-3.1-70b B=64 S=8k tp8`; its line `cost` has USD per "
    "million tokens, `rooflines list prices` the prices": "cost price prices pricing tco",
    "type `rooflines explain h100 llama-3.1-70b B=64 S=8k tp8`; its line `fits` has memory and "
    "the largest batch": "fit fits memory",
    "type `rooflines explain h100 llama-3.1-70b B=64 S=8k tp8`; its first lines have MFU, and "
    "--measured 30ms judges a measured number": "mfu mbu",
    "type `rooflines explain h100 llama-3.1-70b B=64 S=8k tp8`; its first lines have TPOT and "
    "tokens/s, with `prefill` also TTFT": "estimate latency throughput tpot ttft perf speed time",
    "type `rooflines kv llama-3.1-70b S=128k fp8`": "kv kv-cache kvcache cache",
    "type `rooflines cheapest llama-3.1-70b isl=2k osl=500 tpot=40ms`": "cheapest",
    "type `rooflines compare h100 b200`; its line `critical B` has the batch from which on each "
    "is compute-bound": "critical batch ridge roofline intensity bound",
}
"""Fixes for words that people type as commands."""

ANOTHER_NAME = {"plan": "serve"}
"""Commands by other words that people type."""

ASKING = ("explain", "train", "serve")
"""Commands whose words are a question."""

NAME = "rooflines"

COMPLETE = "_ROOFLINES_COMPLETE"
"""The variable with which a shell asks for completion, as click defines it."""

LASTING = frozenset({"run", "draw", "measured"})
"""Commands for large tables or with processes, which may leave something to do at exit."""

MISTAKE = 2
"""The exit status after a user's mistake; 1 is a command's own "no", 0 its "yes"."""


class Commands(click.Group):
    """A group of commands; a module is imported when its command is.

    Args:
        summaries: What each command does, in the order of the help.
        hidden: Further commands, which help does not list.
        **options: Of click.
    """

    def __init__(
        self,
        *,
        summaries: Mapping[str, str] = COMMANDS,
        hidden: Sequence[str] = SHORT,
        **options: str | None,
    ) -> None:
        super().__init__(**options)  # type: ignore[arg-type]  # texts of click
        self.summaries, self.known = summaries, (*summaries, *hidden)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Commands in help order."""
        del ctx
        return [*self.summaries]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what each command does."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([*self.summaries.items()])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command, from its module; None: there is none of this name."""
        del ctx
        if cmd_name not in self.known:
            return None
        if cmd_name in GROUPS:
            summary = self.summaries[cmd_name]
            return Commands(name=cmd_name, summaries=GROUPS[cmd_name], hidden=(), help=summary)
        module = MODULES.get((self.name or "", cmd_name), cmd_name)
        command: click.Command = import_module(f"rooflines.cli.{module}").command
        return command


def every_command() -> list[tuple[str, ...]]:
    """Words for every command, subcommands after their group."""
    return [
        path
        for name in COMMANDS
        for path in [(name,), *((name, below) for below in GROUPS.get(name, ()))]
    ]


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="`rooflines COMMAND -h` shows the options and examples of a command.",
)
@click.version_option(__version__, message="%(prog)s %(version)s")
def commands() -> None:
    """From which size on is an operation compute-bound, on which chip, and what would change it?"""


def mistake(error: click.ClickException, arguments: Sequence[str]) -> RooflinesError:
    """Command-line mistake in the form of all other messages."""
    context: click.Context | None = getattr(error, "ctx", None)
    named = [word for word in arguments[:1] if word in (*COMMANDS, *SHORT)]
    path = context.command_path if context else " ".join([NAME, *named])
    fix = f"see `{path} -h`"
    match error:
        case click.exceptions.NoSuchCommand():
            name, group = error.command_name, context.command if context else commands
            assert isinstance(group, Commands)  # noqa: S101, for types
            fix = f"use one of {', '.join(group.summaries)}"
            problem, close = f"has no command {quote(name)}", close_to(name, group.known)
            typed = (text for text, words in ANSWERED_BY.items() if name.lower() in words.split())
            if group is commands and (answered := next(typed, None)):
                fix, close = answered, []
            return RooflinesError(path, problem, fix, close=close)
        case click.NoSuchOption():
            options = [
                option
                for parameter in (context.command.get_params(context) if context else ())
                for option in parameter.opts
                if option.startswith("--")
            ]
            option, close = error.option_name, close_to(error.option_name, options)
            if option[1:2].isdigit():
                fix = "write sizes above zero, such as 128x8192x8192"
            elif context and context.info_name in ASKING:
                typed = (text for text, spellings in INSTEAD.items() if option in spellings.split())
                fix = next(typed, fix)
                close = [] if fix in INSTEAD else close
            return RooflinesError(path, f"has no option {quote(option)}", fix, close=close)
        case click.MissingParameter() if error.param and context:
            value = error.param.make_metavar(context)
            named = [text for text in error.param.opts if text.startswith("--")]
            return RooflinesError(path, f"needs {' '.join([*named, value]).rstrip('.')}", fix)
        case _:
            text = error.format_message().rstrip(".")
            return RooflinesError(path, f"is used wrongly: {text[:1].lower()}{text[1:]}", fix)


def _with_command(words: list[str]) -> list[str]:
    """Words with the command that answers a question without one; a note says which."""
    if not words or words[0].startswith("-"):
        return words
    head, space, sentence = words[0].partition(" ")
    if space and head.lower() in (*ASKING, "compare", *ANOTHER_NAME):  # all in quotes
        words = [head.lower(), sentence, *words[1:]]
    first, *rest = words
    if first == "measured" and rest and not rest[0].startswith("-"):
        if rest[0] in GROUPS["measured"] or close_to(rest[0], GROUPS["measured"]):
            return words
        from rooflines.answers.plain_question import judging_line  # noqa: PLC0415, loaded on use

        command_line = judging_line(rest)
    elif first in commands.known:
        return words
    else:
        from rooflines.answers.plain_question import with_command  # noqa: PLC0415, loaded on use
        from rooflines.answers.word_forms import (  # noqa: PLC0415, loaded on use
            PHASE_WORDS,
            SPOKEN,
        )

        is_word = first.lower() in {*PHASE_WORDS, *SPOKEN}
        misspelt = [] if is_word else close_to(first, commands.known)
        questions = [name for name in misspelt if name in ASKING]
        meant = ANOTHER_NAME.get(first.lower()) or (questions[0] if len(questions) == 1 else None)
        if meant is not None and rest and first.isalpha():
            click.echo(f"{first} is taken as {meant}", err=True)
            return [meant, *rest]
        command_line = None if misspelt else with_command(words)
    if command_line is None:
        return words
    click.echo(f"answered by `{NAME} {command_line[0]}`", err=True)
    return command_line


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: Those of the command line; by default those of this process.

    Returns:
        The exit status: what the command returns, 0 by default; 2 after a mistake, of which one
        message is on stderr; 130 after Ctrl-C.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A name may have characters that the terminal's encoding lacks.
        sys.stdout.reconfigure(errors="backslashreplace")
    status: object = 0
    try:
        words = _with_command(words)
        with commands.make_context(NAME, words) as context:
            status = commands.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as done:
        status = done.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
    except click.ClickException as error:
        click.echo(str(mistake(error, words)), err=True)
        status = MISTAKE
    except RooflinesError as error:
        click.echo("\n".join([str(error), *error_notes(error)]), err=True)
        status = MISTAKE
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        status = INTERRUPTED
    except BrokenPipeError:
        # The reader has closed, as `| head` does. Python flushes stdout at exit: give it a sink.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        name, problem = truncate(str(error.filename)), "is longer than the name of a file can be"
        click.echo(str(RooflinesError("", problem, "give a shorter one", file=name)), err=True)
        status = MISTAKE
    return status if isinstance(status, int) else 0


def main() -> NoReturn:
    """Entry point for `rooflines`."""
    if COMPLETE in os.environ:
        commands.main(prog_name=NAME)  # answers the shell, then exits
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    lasting = LASTING.intersection(sys.argv[1:2])
    if not lasting:
        # An answer has few rows: more threads of polars would only wait for each other.
        os.environ.setdefault("POLARS_MAX_THREADS", "1")
    status = run()
    # The interpreter's last collections, over every module, would be a fifth of the time.
    gc.freeze()
    if not lasting:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
        os._exit(status)  # taking all modules apart would be another tenth
    sys.exit(status)
