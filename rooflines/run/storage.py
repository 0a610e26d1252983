"""Results in object storage: inputs that jobs need not download, and stale parts to delete.

Snakemake downloads the inputs of jobs and uploads their outputs by itself.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rooflines.run import Workflow

__all__ = ["left_in_place", "remove_stale", "unless_stored"]


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


def unless_stored(path: str, workflow: Workflow) -> list[str]:
    """An output that a full run makes on a disk only.

    Its job reads all tables, and would download every one of them from object storage.

    Args:
        path: The output.
        workflow: Snakemake's workflow object.
    """
    modified = workflow.modifier.path_modifier.modify(path)
    return [] if getattr(modified, "flags", {}).get("storage_object") else [path]


def remove_stale(folder: str, parts: Iterable[str], workflow: Workflow) -> list[str]:
    """Delete from object storage the parts that this package made and that are in no sweep.

    On a disk the job that writes the list of tables does this. In object storage a job sees only
    its own files, so this is done after the run, and only if the list there is this run's: a run
    for selected files keeps the other tables.

    Args:
        folder: A folder of tables, such as `tables`.
        parts: Paths of the parts that stay, below the folder.
        workflow: Snakemake's workflow object.

    Returns:
        The deleted addresses; none if the results are on a disk, or in storage other than S3.
    """
    stored = getattr(
        workflow.modifier.path_modifier.modify(f"<results>/{folder}"), "flags", {}
    ).get("storage_object")
    if stored is None or not hasattr(stored, "get_subkeys"):
        return []
    # Imported here: a run on a disk does not wait for polars.
    from rooflines.results.table_index import PART_FILE, is_ours  # noqa: PLC0415

    keep, access, removed = set(parts), polars_options(stored.provider.settings), []
    prefix = f"{stored.s3obj().key}/"
    items = {item.key.removeprefix(prefix): item for item in stored.get_subkeys()}
    if "index.csv" not in items or listed(items["index.csv"].get()["Body"].read()) != keep:
        return []
    for name, item in items.items():
        address = f"s3://{item.bucket_name}/{item.key}"
        if (
            name not in keep
            and PART_FILE.fullmatch(name.rpartition("/")[2])
            and is_ours(address, access)
        ):
            item.delete()
            removed.append(address)
    return removed


def listed(index: bytes) -> set[str]:
    """The paths of parts in a list of tables."""
    return {row["path"] for row in csv.DictReader(io.StringIO(index.decode()))}


def polars_options(settings: Any) -> Mapping[str, str]:  # noqa: ANN401 - the plugin is optional
    """Settings of Snakemake's S3 plugin as polars' storage options, without those not set."""
    options = {
        "aws_endpoint_url": settings.endpoint_url,
        "aws_access_key_id": settings.access_key,
        "aws_secret_access_key": settings.secret_key,
        "aws_session_token": settings.token,
        "aws_region": settings.region,
    }
    if (settings.endpoint_url or "").startswith("http://"):
        options["aws_allow_http"] = "true"
    return {name: value for name, value in options.items() if value}
