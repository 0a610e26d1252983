"""The servers of the engine tests, on this machine, and a local run to compare with."""

import tempfile
from pathlib import Path

import pytest
from run_folder import RunFolder

from engines.bucket import Server
from engines.cluster import Cluster, missing_programs
from engines.runs import CONFIG, WITHOUT_SITE


@pytest.fixture(scope="session")
def cluster():
    if missing := missing_programs():
        pytest.fail(f"{', '.join(missing)} missing: apt-get install slurm-wlm munge")
    with tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True) as folder:
        found = Cluster(Path(folder), nodes=3)
        try:
            found.start()
            yield found
        finally:
            found.stop()


@pytest.fixture(scope="session")
def server():
    with tempfile.TemporaryDirectory(prefix="s3-") as folder:
        found = Server(Path(folder))
        try:
            found.start()
            yield found
        finally:
            found.stop()


@pytest.fixture(scope="session")
def local(tmp_path_factory):
    run = RunFolder(tmp_path_factory.mktemp("local"), CONFIG, *WITHOUT_SITE)
    run.finish()
    return run
