"""Process of one job: a socket to the run brings its request, and takes its message.

The process ends with the run: the socket closes then.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
from threading import Thread

from rooflines.basics.lazy import GARBAGE_THRESHOLDS
from rooflines.run.log import MAX_MESSAGE_BYTES, run_logged

CHUNK_BYTES = 1 << 16
"""Bytes of a request that are received at once [byte]."""


def answer(run: socket.socket) -> int:
    """Run a job, print and send the message of its failure, and return the exit status.

    Args:
        run: Socket to the run.
    """
    text = b""
    while not text.endswith(b"\n"):
        if not (chunk := run.recv(CHUNK_BYTES)):
            return 1  # the run was killed while it sent this
        text += chunk
    request = json.loads(text)
    Thread(target=_end_with, args=(run,), daemon=True).start()
    message = run_logged(request["function"], request["log"], request["arguments"])
    if not message:
        return 0
    run.sendall(message.encode(errors="backslashreplace")[:MAX_MESSAGE_BYTES])
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()
    return 1


def _end_with(run: socket.socket) -> None:
    """End this process when the run's end of the socket closes."""
    run.recv(1)
    os._exit(1)


if __name__ == "__main__":
    # Ctrl-C is for the run, which ends its jobs; it was blocked while Python started.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    os._exit(answer(socket.socket(fileno=int(sys.argv[1]))))
