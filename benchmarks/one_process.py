"""The outputs of the workflow for ./bench.yaml from one process; or only its thresholds, timed."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from rooflines import load_config, thresholds
from rooflines.results.table_index import write_index
from rooflines.run.jobs import write_part, write_skipped
from rooflines.run.plan import plan
from rooflines.run.solving import write_thresholds


def main() -> None:
    """Write all files, in order."""
    config = load_config(Path("bench.yaml"))
    if "thresholds" in sys.argv[1:]:
        started_s = time.process_time()
        print(
            json.dumps(
                {"count": thresholds(config).height, "cpu_s": time.process_time() - started_s}
            )
        )
        return
    work, results = plan(config), Path("results")
    for part in work.parts:
        write_part(part.spec, results / part.path)
    write_thresholds(work.spec("thresholds.parquet"), results / "thresholds.parquet")
    write_skipped(work.spec("skipped.csv"), results / "skipped.csv")
    write_index(work.indexes["tables"], results / "tables" / "index.csv")


if __name__ == "__main__":
    main()
