"""Results in object storage: inputs that jobs need not download, and what is not made there.

Snakemake downloads the inputs of jobs and uploads their outputs by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from rooflines.run import Workflow


def left_in_place(paths: Iterable[str], workflow: Workflow) -> list[str]:
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


def unless_stored(paths: Iterable[str], names: Container[str], workflow: Workflow) -> list[str]:
    """Outputs of a full run, without those that it makes on a disk only.

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
