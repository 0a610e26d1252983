"""Threshold files, made part by part as a run makes them."""

from rooflines.run.threshold_jobs import write_threshold_part, write_thresholds


def write_threshold_files(planned, name, results):
    """Write a file of thresholds, and its parts.

    Args:
        planned: The plan.
        name: Its name, such as `thresholds.parquet`.
        results: The folder of results.
    """
    for part in planned.by_path[name].inputs["parts"]:
        write_threshold_part(part.spec, results / part.path)
    write_thresholds(planned.spec(name), results / name)
