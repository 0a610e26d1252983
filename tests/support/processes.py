"""Programs and commands in processes of their own, and on a terminal."""

import os
import pty
import signal
import subprocess
import sys
import time
from contextlib import suppress


def python(*words, status=0, **options):
    """Python with these arguments, finished: what it printed, as text.

    Args:
        words: The arguments.
        status: The exit status that it must have.
        options: Of the process, such as its folder.
    """
    command = [sys.executable, *map(str, words)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=300, **options
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done


def on_a_terminal(folder, *words, stop_after="", **environment):
    """The exit status and the output of a command on a terminal of 80 columns.

    Args:
        folder: Where it runs.
        words: The command.
        stop_after: Text after which Ctrl-C is typed.
        environment: Changes of the environment, which wants no colour.
    """
    here, there = pty.openpty()
    command = [sys.executable, "-m", "rooflines", *words]
    usual = {"TERM": "xterm", "COLUMNS": "80", "NO_COLOR": "1"}
    with subprocess.Popen(
        command, cwd=folder, stdin=there, stdout=there, stderr=there,
        env={**os.environ, **usual, **environment}, start_new_session=True,
    ) as run:  # fmt: skip
        os.close(there)
        shown, stopped = b"", False
        with suppress(OSError):  # the terminal was closed
            while text := os.read(here, 4096):
                shown += text
                if stop_after and not stopped and stop_after.encode() in shown:
                    stopped = True
                    time.sleep(0.5)
                    os.killpg(run.pid, signal.SIGINT)
        os.close(here)
        return run.wait(60), shown.decode().replace("\r\n", "\n")
