"""Results in a storage that is no file system, such as a bucket: what jobs leave there unread, and what is removed from there.

Snakemake brings a job's inputs from the storage and takes its outputs there; nothing here has to be done for that.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["left_in_place", "remove_stale"]

TABLES = "<results>/tables"


def left_in_place(paths: Iterable[str], workflow: Any) -> list[str]:  # noqa: ANN401 - Snakemake ships no types
    """Inputs that a job only waits for: where results are in a storage, they are not brought from there.

    Args:
        paths: The inputs.
        workflow: Snakemake's own workflow object.

    Returns:
        The same inputs; without a storage just as they were.
    """
    inputs = [workflow.modifier.path_modifier.modify(path) for path in paths]
    for path in inputs:
        if stored := getattr(path, "flags", {}).get("storage_object"):
            stored.retrieve = False
    return inputs


def remove_stale(parts: Iterable[str], workflow: Any) -> list[str]:  # noqa: ANN401
    """Remove from the storage the parts of tables that no sweep has any more, of those alone that this package made.

    On a disk the list of tables does this as it is written. In a storage a job sees nothing but its own files, so it is done after the
    run, and only where the list there is this run's: a run for some files alone leaves the tables as they are.

    Args:
        parts: Paths of the parts that stay, below the tables.
        workflow: Snakemake's own workflow object.

    Returns:
        What was removed; nothing where the results are on a disk, or in a storage that is no S3 bucket.
    """
    stored = getattr(workflow.modifier.path_modifier.modify(TABLES), "flags", {}).get(
        "storage_object"
    )
    if stored is None or not hasattr(stored, "get_subkeys"):
        return []
    from rooflines.results.table_index import PART_FILE, is_ours  # noqa: PLC0415 - a run without a storage does not wait for polars

    keep, access, removed = set(parts), polars_options(stored.provider.settings), []
    found = {item.key.removeprefix(f"{stored.s3obj().key}/"): item for item in stored.get_subkeys()}
    if "index.csv" not in found or listed(found["index.csv"].get()["Body"].read()) != keep:
        return []
    for name, item in found.items():
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
    """The parts that a list of tables names, by their paths below the tables."""
    return {row["path"] for row in csv.DictReader(io.StringIO(index.decode()))}


def polars_options(settings: Any) -> Mapping[str, str]:  # noqa: ANN401
    """How polars gets into a bucket that Snakemake's S3 plugin has these settings for; what they leave open comes from the environment."""
    found = {
        "aws_endpoint_url": settings.endpoint_url,
        "aws_access_key_id": settings.access_key,
        "aws_secret_access_key": settings.secret_key,
        "aws_session_token": settings.token,
        "aws_region": settings.region,
    }
    if (settings.endpoint_url or "").startswith("http://"):
        found["aws_allow_http"] = "true"
    return {name: value for name, value in found.items() if value}
