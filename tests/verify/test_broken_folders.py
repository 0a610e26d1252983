"""A full disk, a read-only folder or too little memory gives a message that says why."""

import shutil
import subprocess
import time

import pytest
from run_folder import RunFolder
from trials import CONFIG, finish_sealed, may_unshare

mounts = pytest.mark.skipif(
    not may_unshare("--mount"), reason="the system does not let a process mount (unshare --mount)"
)

FIX = (
    "  fix: make room, or the folder writable (`df -h` and `ls -ld` show what is wrong), then type "
    "the same command again: what is finished stays."
)
"""The fix that a run prints."""

CHARTED = {name: value for name, value in CONFIG.items() if name != "charts"}
"""The config, with the charts that its axes call for."""


@pytest.fixture(scope="module")
def sealed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sealed")
    run = RunFolder(folder / "run", CHARTED)
    finish_sealed(run, folder)
    return run


@pytest.fixture(scope="module")
def contents(sealed):
    return sealed.contents()


@pytest.fixture
def made(sealed, tmp_path):
    return sealed.copied(tmp_path / "made")


def with_mounts(script):
    """Run a script whose mounts nobody else sees, and that end with it."""
    return subprocess.run(
        ["unshare", "--mount", "bash", "-c", script],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    )


def messages(output):
    """The fixes that a run printed."""
    return [line for line in output.splitlines() if line.startswith("  fix: ")]


@pytest.mark.skipif(
    not may_unshare(), reason="the system does not let a process leave the network (unshare --net)"
)
def test_charts_and_bundle_need_no_network(contents):
    assert sum(name.endswith("-small.png") and name.startswith("charts/") for name in contents) >= 2
    assert "bundle/assets/vega.js" in contents


@mounts
@pytest.mark.parametrize("room", ["64k", "300k", "1000k", "3000k"])
def test_a_full_disk_stops_a_run_with_a_message_and_the_next_one_finishes(room, tmp_path, contents):
    disk = tmp_path / "disk"
    outside = RunFolder(tmp_path, CHARTED)
    outside.write()
    command = " ".join(RunFolder(disk, CHARTED).command)
    script = f"""
        mount -t tmpfs -o size={room} none {disk} || exit 99
        cp {tmp_path}/my.yaml {disk} && cd {disk} || exit 99
        {command} > {tmp_path}/first 2>&1; echo $? > {tmp_path}/status
        mount -o remount,size=200m {disk}
        {command} > {tmp_path}/second 2>&1; status=$?
        cp -r results {tmp_path}/ && exit $status
    """
    done = with_mounts(script)
    first, second = (tmp_path / "first").read_text(), (tmp_path / "second").read_text()
    assert (tmp_path / "status").read_text().strip() == "1", first
    assert FIX in messages(first) or "No space left on device" in first, first
    assert done.returncode == 0, second
    outside.whole(contents)


@mounts
@pytest.mark.parametrize("where", ["results", "."])
def test_a_folder_that_is_read_only_stops_a_run_with_a_message(where, made, contents):
    gone = made.results / "tables/catalogue/part-00001.parquet"
    gone.unlink()
    folder = made.path / where
    script = f"""
        mount --bind {folder} {folder} && mount -o remount,bind,ro {folder} || exit 99
        cd {made.path} && exec {" ".join(made.command)}
    """
    done = with_mounts(script)
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    assert set(messages(said)) == {FIX}, said
    assert "Traceback" not in said
    made.finish()
    made.whole(contents)


def test_a_job_without_memory_fails_and_the_next_run_finishes(tmp_path, contents):
    run = RunFolder(tmp_path, CHARTED)
    done = run.run(before=("prlimit", f"--as={700 << 20}"))
    assert done.returncode == 1, done.stdout
    run.finish()
    run.whole(contents)


def test_a_second_run_in_the_same_folder_stops_and_says_what_to_do(made, contents):
    shutil.rmtree(made.results)
    with made.running() as first:
        while str(first.pid) not in (made.path / ".snakemake/rooflines/alive").read_text():
            assert first.poll() is None, made.said()
            time.sleep(0.02)
        second = made.run()
        assert second.returncode == 1
        problem, fix = second.stdout.splitlines()[-2:]
        assert problem.startswith(f"{made.path} is in use by another run (process {first.pid} on ")
        assert "wait for it, or stop that process" in fix
        assert "Traceback" not in second.stdout
        assert first.wait(300) == 0, made.said()
    made.whole(contents)


def test_two_runs_started_at_once_make_one_set_of_results(tmp_path, contents):
    both = [RunFolder(tmp_path, CHARTED) for _ in range(2)]
    with both[0].running() as first, both[1].running() as second:
        ends = sorted([first.wait(300), second.wait(300)])
    assert ends[0] == 0
    assert "Nothing to be done" in both[0].run().stdout
    both[0].whole(contents)


def test_a_bundle_follows_what_it_shows_whatever_times_say(made, contents):
    chart = {"chart": "roofline", "sweep": "catalogue", "chips": ["h100-sxm"]}
    other = RunFolder(made.path.parent / "other", {**CHARTED, "charts": [chart]})
    other.finish()
    family = made.results / "charts" / "roofline"
    assert family.is_dir()
    shutil.rmtree(family)
    record = made.results / ".made/charts/roofline.json"
    for kind in (family, record):
        source = other.results / kind.relative_to(made.results)
        shutil.copytree(source, kind) if source.is_dir() else shutil.copy2(source, kind)
    made.finish()
    made.whole(contents)
