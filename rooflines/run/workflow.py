"""The workflow's side of the package: which config a run takes, and how it stops when that config is wrong."""

import argparse
import gc
import json
import os
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rooflines.basics.errors import PlausibilityWarning, RooflinesError
from rooflines.basics.yaml_file import read_yaml
from rooflines.config import load_config
from rooflines.run.guard import KEPT, Guard, need_folder
from rooflines.run.plan import Part, Plan, as_param, plan
from rooflines.run.progress import Progress, WithoutSteps
from rooflines.run.screen import Screen, is_screen
from rooflines.site.digest import bundle_digest

RARELY = (50_000, 20, 20)
"""Python's own thresholds are 700, 10 and 10."""


def config_source(
    config: Mapping[str, Any], configfiles: Sequence[Path]
) -> Path | Mapping[str, Any] | None:
    """Where the config of a run is: in a file, in a mapping, or nowhere.

    Snakemake hands over one mapping whatever it was made of. Where that is the content of a single file, the file itself is
    better: it has lines, and numbers as the user wrote them.

    Args:
        config: Snakemake's `config`.
        configfiles: The files given with `--configfile`, absolute.

    Returns:
        The one file the config was read from, the mapping it was put together as (`--config`, several files, a module's
        `config:`), or None where the user gave none and the default config is meant.
    """
    from snakemake.common.configfile import load_configfile  # noqa: PLC0415 - the package itself works without Snakemake

    if len(configfiles) == 1 and load_configfile(configfiles[0]) == config:
        file = configfiles[0]
        return file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file
    return config or None


def collect_garbage_rarely() -> None:
    """Have Python look less often for objects that nothing needs any more: what a run builds, it needs to its end.

    The default profile calls this before the workflow is read. It takes a quarter off the CPU time of a run with nothing to do.
    """
    gc.freeze()
    gc.set_threshold(*RARELY)


def check_configfiles(arguments: Sequence[str]) -> None:
    """End the run where a file given with `--configfile` cannot be read, with one message that says where it is wrong.

    Snakemake reads these files before any workflow of ours is asked, and has a traceback for a missing one and no line number for a
    broken one. The default profile calls this before that.

    Args:
        arguments: The command line.

    Raises:
        SystemExit: Where a file is missing, a pipe, no YAML, or no mapping; its message is the error's.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--configfile", "--configfiles", nargs="+", action="extend", default=[])
    files = parser.parse_known_args(arguments)[0].configfile
    try:
        for file in files:
            need_regular(Path(file))
            if not isinstance(read_yaml(file), dict):
                load_config(file)
    except RooflinesError as error:
        sys.exit(str(error))


def need_regular(file: Path) -> None:
    """Refuse a pipe or a device as the config of a run: Snakemake and its jobs read it again.

    Raises:
        RooflinesError: It is one.
    """
    if file.exists() and not (file.is_file() or file.is_dir()):
        fix = "save its content in a file, and give that with --configfile"
        raise RooflinesError(
            "",
            "is a pipe or a device, and a run reads its config more than once",
            fix,
            file=str(file),
        )


def keep_caches(arguments: Sequence[str]) -> None:
    """Have Snakemake, and what it starts, keep caches beside its own metadata and not in the user's home, unless the user says where.

    Args:
        arguments: The command line.

    Raises:
        SystemExit: The folder that Snakemake works in cannot be written to; its message says what to do.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--directory", "-d", type=Path, default=Path())
    folder = parser.parse_known_args(arguments)[0].directory
    need_folder(folder / KEPT)
    os.environ.setdefault("XDG_CACHE_HOME", str((folder / ".snakemake" / "cache").absolute()))


def plan_or_exit(
    config: Mapping[str, Any], configfiles: Sequence[Path], *, warn: bool = True
) -> Plan:
    """The parts of a run, or its end, before anything is built, with one message on what is wrong with the config.

    Args:
        config: Snakemake's `config`.
        configfiles: The files given with `--configfile`, absolute.
        warn: Whether to print what looks like a slip; jobs do not say again what the run has said.

    Raises:
        SystemExit: Where the config is wrong; its message is the error's.
    """
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", PlausibilityWarning)
            loaded = load_config(config_source(config, configfiles))
        for warning in caught if warn else ():
            print(f"warning: {warning.message}", file=sys.stderr)
        return plan(loaded)
    except RooflinesError as error:
        sys.exit(str(error))


def index_spec(parts: Iterable[Part]) -> str:
    """The list of parts as text, for a job's parameters.

    Args:
        parts: The parts of a plan.

    Returns:
        JSON: a list of objects with the columns of tables/index.csv.
    """
    rows = [
        {
            "sweep": part.sweep,
            "part": part.number,
            "rows": part.rows,
            "path": f"{part.name}.parquet",
        }
        for part in parts
    ]
    return as_param(rows)


def outputs(plan: Plan) -> dict[str, str]:
    """What each output of a run is made from, as JSON, by its path below the results."""
    return {
        **{f"tables/{part.name}.parquet": part.spec for part in plan.parts},
        "tables/index.csv": index_spec(plan.parts),
        "thresholds.parquet": plan.thresholds_spec,
        "thresholds.csv": plan.thresholds_spec,
        "skipped.csv": plan.skipped_spec,
        **{f"charts/{family}": spec for family, spec in plan.family_specs.items()},
        "bundle": json.dumps(bundle_digest()),
    }


def watch_files(plan: Plan, workflow: Any) -> None:  # noqa: ANN401 - Snakemake ships no types
    """Have files that are not what they should be made again, and keep killed and crossing runs from doing harm; see `guard`.

    Results in a storage that is no file system are left to it.

    Args:
        plan: The parts of the run.
        workflow: Snakemake's own workflow object.
    """
    from snakemake.logging import logger  # noqa: PLC0415

    if workflow.is_main_process:
        stored = workflow.storage_settings.default_storage_provider
        logger.addHandler(
            Guard(
                workflow,
                Path(workflow.pathvars.apply("<results>")),
                {} if stored else outputs(plan),
            )
        )


def show_progress(plan: Plan, workflow: Any) -> None:  # noqa: ANN401 - Snakemake ships no types
    """Show the rows done of the rows to do while the workflow runs, and, where it is not a part of another one, no single jobs.

    A Snakemake that no longer has what this looks at shows its own steps instead.

    Args:
        plan: The parts of the run.
        workflow: Snakemake's own workflow object.
    """
    with suppress(AttributeError, ImportError):
        from snakemake.logging import logger  # noqa: PLC0415
        from snakemake.settings.enums import Quietness  # noqa: PLC0415

        settings = workflow.output_settings
        if not workflow.is_main_process or Quietness.ALL in (settings.quiet or ()):
            return
        screen = None
        if workflow.modifier.is_main_snakefile() and not settings.verbose:
            for handler in logger.handlers:
                if handler.name == "DefaultStreamHandler":
                    handler.addFilter(WithoutSteps(workflow))
                    if is_screen(handler.stream):
                        screen = Screen(handler.stream)
                        handler.setStream(screen)
        logger.addHandler(Progress(workflow, {part.name: part.rows for part in plan.parts}, screen))
