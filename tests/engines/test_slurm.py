"""Parts as jobs of a real SLURM cluster of several nodes on this machine."""

import re
import time

from run_folder import REPOSITORY, RunFolder

from engines.cluster import QUICKLY
from engines.runs import CONFIG, TABLE_FOLDERS, assert_same, contents

PROFILE = ("--profile", REPOSITORY / "profiles/slurm")


def running(cluster, rule, number):
    """Nodes of a rule's jobs by job number, once this many of them run the inner step."""
    deadline_s = time.monotonic() + 120
    while time.monotonic() < deadline_s:
        found = {job: node for job, (node, what) in cluster.jobs().items() if rule in what}
        if len(found) >= number and all(map(cluster.processes, found)):
            return found
        time.sleep(0.05)
    raise AssertionError(f"there were not {number} jobs of {rule} at once: {cluster.jobs()}")


def test_a_cluster_makes_the_tables_of_a_local_run_although_jobs_are_lost_on_it(
    cluster, local, tmp_path
):
    run = RunFolder(tmp_path / "run", CONFIG, cores=None, **cluster.environment)
    with run.running(*PROFILE, *QUICKLY, "results/parts.csv") as process:
        with cluster.steps_held():
            jobs = running(cluster, "_table", 3)
            cancelled, killed, lost = jobs
            cluster.cancel(cancelled)
            cluster.kill(killed)
            cluster.lose(jobs[lost])
        process.wait(400)
    shown = run.said()
    assert process.returncode == 0, shown
    states = dict(re.findall(r"SLURM-job '(\d+)' failed\b.*?, SLURM status is: '(\w+)'", shown))
    # A busy machine may fail another job, which is made again as these are.
    assert {job: states.get(job) for job in (cancelled, killed, lost)} == {
        cancelled: "CANCELLED",
        killed: "FAILED",
        lost: "NODE_FAIL",
    }, shown
    assert_same(contents(run.results, TABLE_FOLDERS), contents(local.results, TABLE_FOLDERS))
    assert "has been submitted" not in shown
