"""The servers of the engine tests, on this machine, and a local run to compare with."""

import tempfile
from pathlib import Path

import pytest
from run_folder import RunFolder

from engines.bucket import Server
from engines.cluster import Cluster, missing_programs
from engines.runs import CONFIG, WITHOUT_SITE


def started(made, prefix):
    """Start what is made in a folder of its own, with a short path, and stop it at the end."""
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
        found = made(Path(folder))
        try:
            found.start()
            yield found
        finally:
            found.stop()


@pytest.fixture(scope="session")
def cluster():
    if missing := missing_programs():
        pytest.fail(f"{', '.join(missing)} missing: apt-get install slurm-wlm munge")
    yield from started(lambda folder: Cluster(folder, nodes=3), "slurm-")


@pytest.fixture(scope="session")
def server():
    yield from started(Server, "s3-")


@pytest.fixture(scope="session")
def local(tmp_path_factory):
    run = RunFolder(tmp_path_factory.mktemp("local"), CONFIG, *WITHOUT_SITE)
    run.finish()
    return run
