"""`rooflines run`: the workflow, for people who do not know Snakemake."""

from __future__ import annotations

import os
import sys
import warnings
import webbrowser
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rooflines.basics.errors import INTERRUPTED, RooflinesError, missing_package
from rooflines.basics.yaml_file import read_yaml
from rooflines.cli.output import WithExamples
from rooflines.loading import DEFAULT_CONFIG, load_config
from rooflines.results.folders import config_of_results
from rooflines.run.snakemake.interrupt import MESSAGE
from rooflines.run.snakemake.workflow import directory_of
from rooflines.run.start import interrupted

if TYPE_CHECKING:
    from collections.abc import Sequence

SNAKEMAKE = "snakemake>=9.27,<10"
"""Requirement in `pyproject.toml` for the workflow."""

PACKAGE = Path(__file__).parents[1]


class WithRest(WithExamples):
    """A command that keeps the words after `--` apart."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the words after `--`, then parse the others."""
        words, rest = (
            (args[: args.index("--")], args[args.index("--") + 1 :]) if "--" in args else (args, [])
        )
        ctx.obj = rest
        return super().parse_args(ctx, words)


@click.command("run", cls=WithRest, options_metavar="[OPTIONS]")
@click.argument("config", required=False, metavar="[CONFIG] [-- SNAKEMAKE...]")
@click.option("--cores", type=click.IntRange(1), metavar="N", help="Cores to use; default all.")
@click.option("--dry-run", is_flag=True, help="Show what would be made, and make nothing.")
@click.option("--replace", is_flag=True, help="Replace the results of another config.")
@click.option("--open", "show", is_flag=True, help="Open the site in a browser at the end.")
@click.pass_context
def command(  # noqa: PLR0913, the options
    ctx: click.Context,
    config: str | None,
    cores: int | None,
    *,
    dry_run: bool,
    replace: bool,
    show: bool,
) -> int:
    """Make tables, thresholds, charts and a site of a config, into results/ of this folder.

    CONFIG is the default config if left out. A second run makes only what is missing or depends on
    something that has changed. Results of another config are kept, unless a question is answered
    with y or --replace is given.
    What follows `--` goes to Snakemake.

    Examples:
        rooflines run my.yaml
        rooflines run my.yaml --cores 8 --open
        rooflines run my.yaml --dry-run
        rooflines run my.yaml -- --rerun-triggers mtime    (options of Snakemake)
    """
    words = snakemake_command(config, cores, ctx.obj, dry_run=dry_run)
    results = results_of(config, ctx.obj)
    if not dry_run:
        check_replaced(results, config, replace=replace)
    status = run_snakemake(words)
    site = results / "bundle" / "index.html"
    if show and not status and not dry_run and site.is_file():
        webbrowser.open(site.absolute().as_uri())
    return status


def run_snakemake(words: Sequence[str]) -> int:
    """Run Snakemake in this process: whatever ends the command ends the run.

    Args:
        words: The command line, from `snakemake_command`.

    Returns:
        The exit status; 130 after Ctrl-C.
    """
    from snakemake.cli import main  # noqa: PLC0415, help does not need the extra `workflow`

    arguments = sys.argv
    sys.argv = list(words)  # the profile reads them
    status: object = 0
    try:
        main(sys.argv[1:])
    except SystemExit as end:
        status = end.code or 0
    except KeyboardInterrupt:
        interrupted.set()
        print(MESSAGE, file=sys.stderr)
    finally:
        sys.argv = arguments
    if interrupted.is_set():
        return INTERRUPTED
    if isinstance(status, int):
        return status
    print(status, file=sys.stderr)
    return 1


def results_of(config: str | None, rest: Sequence[str]) -> Path:
    """Results folder for a run.

    Args:
        config: The config, checked; None: the default.
        rest: Words for Snakemake.
    """
    settings = read_yaml(DEFAULT_CONFIG if config is None else Path(config))
    results: str = settings.get("pathvars", {}).get("results", "results")
    return directory_of(rest) / results


def check_replaced(results: Path, config: str | None, *, replace: bool) -> None:
    """Replace the results of another config file only if the user says so: a terminal is asked.

    Args:
        results: The folder of results.
        config: The config; None: the default.
        replace: Whether they may be replaced.

    Raises:
        RooflinesError: They may not.
    """
    config_path = config_of_results(results)
    if config_path in (
        None,
        DEFAULT_CONFIG.resolve() if config is None else Path(config).resolve(),
    ):
        return
    cwd = Path.cwd()
    named = config_path.relative_to(cwd) if config_path.is_relative_to(cwd) else config_path
    question = f"{results} has the results of {named}. Replace them?"
    if not replace and not (sys.stdin.isatty() and click.confirm(question, err=True)):
        problem = f"are those of {named}, and this run would replace them"
        fix = (
            "add --replace, or put results elsewhere (`pathvars: {results: FOLDER}` in the config)"
        )
        raise RooflinesError("", problem, fix, file=str(results))
    print(f"replacing the results of {named} in {results}", file=sys.stderr)


def snakemake_command(
    config: str | None, cores: int | None, rest: Sequence[str], *, dry_run: bool
) -> list[str]:
    """Snakemake command line that runs the workflow.

    Args:
        config: The config; None: the default.
        cores: Cores to use; None: all [1].
        rest: Words for Snakemake.
        dry_run: Whether nothing is made.

    Raises:
        RooflinesError: Snakemake is not installed, or the config is wrong.
    """
    if find_spec("snakemake") is None:
        raise missing_package("rooflines run", SNAKEMAKE)
    if config is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the run gives them
            load_config(config)
    inside = PACKAGE / "workflow"  # of an installed wheel
    workflow, profiles = (
        (inside, inside / "profiles")
        if inside.is_dir()
        else (PACKAGE.parent / "workflow", PACKAGE.parent / "profiles")
    )
    return [
        "snakemake",
        "--snakefile",
        str(workflow / "Snakefile"),
        "--workflow-profile",
        str(profiles / "default"),
        *(["--configfile", config] if config is not None else []),
        "--cores",  # ends the list of config files
        str(cores or os.cpu_count() or 1),
        *(["--nocolor"] if os.environ.get("NO_COLOR") else []),
        *(["--dry-run"] if dry_run else []),
        *rest,
    ]
