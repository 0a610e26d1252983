"""Workflow entry: config and checks, log handlers, object storage."""

import argparse
import gc
import sys
import threading
import warnings
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rooflines.basics.errors import PlausibilityWarning, RooflinesError
from rooflines.basics.lazy import GARBAGE_THRESHOLDS
from rooflines.basics.yaml_file import read_yaml
from rooflines.loading import DEFAULT_CONFIG, load_config
from rooflines.run.lock import STATE
from rooflines.run.outputs import Plan
from rooflines.run.plan import plan
from rooflines.run.run_summary import final_lines
from rooflines.run.snakemake import Workflow
from rooflines.run.snakemake.guard import Guard, require_writable
from rooflines.run.snakemake.interrupt import Interruption
from rooflines.run.snakemake.progress import Progress
from rooflines.run.snakemake.steps import WithoutSteps


def config_source(
    config: Mapping[str, Any], configfiles: Sequence[Path]
) -> Path | Mapping[str, Any] | None:
    """The source of a run's config: a file, a mapping, or none.

    Snakemake merges all sources into one mapping. If that is the content of a single file, the file
    is better: it has line numbers, and numbers as the user wrote them.

    Args:
        config: Snakemake's `config`.
        configfiles: The files given with `--configfile`, absolute.

    Returns:
        The one file the config was read from, the merged mapping (`--config`, several files, a
        module's `config:`), or None for the default config.
    """
    # Imported here: the package itself works without Snakemake.
    from snakemake.common.configfile import load_configfile  # noqa: PLC0415

    if len(configfiles) == 1 and load_configfile(configfiles[0]) == config:
        file = configfiles[0]
        return file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file
    return config or None


def collect_garbage_rarely() -> None:
    """Run the garbage collector rarely: planning objects live to the end.

    The default profile calls this first. An idle run then takes a quarter less CPU time.
    """
    gc.freeze()
    gc.set_threshold(*GARBAGE_THRESHOLDS)


def check_command(arguments: Sequence[str]) -> None:
    """End the run with one message if its folder cannot be written, or a config file not read.

    Snakemake looks at both before the workflow: it shows a traceback, and no line number. The
    default profile calls this before that.

    Args:
        arguments: The command line.

    Raises:
        SystemExit: The folder is not writable; or a file given with `--configfile` is missing, no
            YAML, or no mapping. The message says what to do.
    """
    require_writable(directory_of(arguments) / STATE)
    try:
        for file in _options(arguments).configfile:
            if not isinstance(read_yaml(file), dict):
                load_config(file)
    except RooflinesError as error:
        sys.exit(str(error))


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of Snakemake's command line that are read before Snakemake does."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--configfile", "--configfiles", nargs="+", action="extend", default=[])
    parser.add_argument("--directory", "-d", type=Path, default=Path())
    return parser.parse_known_args(arguments)[0]


def directory_of(arguments: Sequence[str]) -> Path:
    """The folder that Snakemake works in, by its command line."""
    folder: Path = _options(arguments).directory
    return folder


def plan_or_exit(
    config: Mapping[str, Any], configfiles: Sequence[Path], *, warn: bool = True
) -> Plan:
    """The plan of a run; a wrong config ends the run with one message before any job starts.

    Args:
        config: Snakemake's `config`.
        configfiles: The files given with `--configfile`, absolute.
        warn: Whether to print warnings; jobs do not repeat those of the run.

    Raises:
        SystemExit: The config is wrong; the message is the error's.
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


def watch_files(plan: Plan, workflow: Workflow, config: Mapping[str, Any]) -> None:
    """Install the `Guard` of a run's files: stale outputs are remade, killed runs do no harm.

    Results in object storage are not checked.

    Args:
        plan: The plan of the run.
        workflow: Snakemake's workflow object.
        config: Snakemake's `config`.
    """
    from snakemake.logging import logger  # noqa: PLC0415

    if workflow.is_main_process:
        stored = workflow.storage_settings.default_storage_provider
        outputs = {} if stored else plan.by_path
        results = Path(workflow.pathvars.apply("<results>"))
        files = [*workflow.configfiles] or ([] if config else [DEFAULT_CONFIG])
        single = len(files) == 1 and workflow.modifier.is_main_snakefile()
        logger.addHandler(Guard(workflow, results, outputs, files[0] if single else None))


def show_progress(plan: Plan, workflow: Workflow) -> None:
    """Show the rows done of the rows to make, and no single jobs unless this is a module.

    With a later Snakemake that lacks what this uses, Snakemake's own steps are shown.

    Args:
        plan: The plan of the run.
        workflow: Snakemake's workflow object.
    """
    with suppress(AttributeError, ImportError):
        from snakemake.logging import logger  # noqa: PLC0415
        from snakemake.settings.enums import Quietness  # noqa: PLC0415

        settings = workflow.output_settings
        if not workflow.is_main_process or Quietness.ALL in (settings.quiet or ()):
            return
        if workflow.modifier.is_main_snakefile() and not settings.verbose:
            for handler in logger.handlers:
                if handler.name == "DefaultStreamHandler":
                    handler.addFilter(WithoutSteps(workflow))
                    handler.addFilter(Interruption())
        rows = {output.path: output.rows for output in plan.outputs}
        logger.addHandler(Progress(workflow, rows))


def say_ending(plan: Plan, workflow: Workflow) -> None:
    """Print a run's outputs, skipped rows and findings on stderr; not for object storage.

    Args:
        plan: The plan of the run.
        workflow: Snakemake's workflow object.
    """
    from snakemake.settings.enums import Quietness  # noqa: PLC0415

    everything = {str(target) for target in workflow.dag_settings.targets or ()} <= {
        "all",
        "default",
    }
    quiet = Quietness.ALL in (workflow.output_settings.quiet or ())
    if everything and not quiet and not workflow.storage_settings.default_storage_provider:
        print(final_lines(plan, workflow.pathvars.apply("<results>")), file=sys.stderr)


def without_download(paths: Iterable[str], workflow: Workflow) -> list[str]:
    """Inputs that a job only waits for: they are not downloaded from object storage.

    Args:
        paths: The inputs.
        workflow: Snakemake's workflow object.

    Returns:
        The inputs, with a flag each if they are in object storage.
    """
    inputs = [workflow.modifier.path_modifier.modify(path) for path in paths]
    for path in inputs:
        if stored := getattr(path, "flags", {}).get("storage_object"):
            stored.retrieve = False
    return inputs


def local_only(paths: Iterable[str], names: Container[str], workflow: Workflow) -> list[str]:
    """Outputs from a full run that object storage can hold.

    The job of the summary reads all tables, and would download every one of them.

    Args:
        paths: The outputs.
        names: The file names of those that are made on a disk only.
        workflow: Snakemake's workflow object.
    """

    def stored(path: str) -> bool:
        modified = workflow.modifier.path_modifier.modify(path)
        return bool(getattr(modified, "flags", {}).get("storage_object"))

    return [path for path in paths if path.rpartition("/")[2] not in names or not stored(path)]


def drop_job_limit(plan: Plan, workflow: Workflow) -> None:
    """Drop a limit of jobs per timespan that is above the number of jobs in this run.

    For a limit, each round of Snakemake's scheduler starts a timer, whose end is another round: in
    a run of a minute that is ten rounds a job, each with a look at the inputs of all jobs to start.

    Args:
        plan: The plan of the run.
        workflow: Snakemake's workflow object; one that imports this workflow keeps its limit.
    """
    with suppress(AttributeError):
        settings = workflow.scheduling_settings
        limit = settings.max_jobs_per_timespan
        is_alone = workflow.modifier.is_main_snakefile()
        if is_alone and limit is not None and limit.max_jobs > len(plan.outputs):
            settings.max_jobs_per_timespan = None


def end_timers() -> None:
    """End Snakemake's timers, since its process waits for the last one, up to a second.

    It starts one with the jobs of each round, for its limit of jobs per second.
    """
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.cancel()
