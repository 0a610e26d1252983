"""Outputs of a config that their jobs make in this process, without the workflow."""

from importlib import import_module

import rooflines
from rooflines.results.records import RECORDS_FOLDER
from rooflines.run.plan import plan


def make_outputs(config, results, *names):
    """Make the tables of a config in a folder of results, and other files by their names.

    Args:
        config: The config.
        results: The folder.
        names: Further files, after what they are made from.

    Returns:
        The plan of the config.
    """
    planned = plan(rooflines.load_config(config))
    (results / RECORDS_FOLDER).mkdir(parents=True, exist_ok=True)
    files = [planned.by_path[name] for name in names]
    solved = [part for file in files for part in file.inputs.get("parts", ())]
    for output in (*planned.parts, *solved, *files):
        module, _, job = output.job.rpartition(".")
        getattr(import_module(f"rooflines.{module}"), job)(output.spec, results / output.path)
    return planned
