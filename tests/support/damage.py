"""Damage to files of a run: cut, overwritten, left by others."""

import base64
import json
import os


def truncated(path):
    """Cut a file in half."""
    os.truncate(path, path.stat().st_size // 2)


def emptied(path):
    """Leave nothing of a file."""
    os.truncate(path, 0)


def flipped(path):
    """Change one bit in the middle."""
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 16]))


def replaced(path):
    """Put something else there, of the same size."""
    size = path.stat().st_size
    path.unlink()
    path.write_bytes(b"PAR1" + bytes(size - 8) + b"PAR1")


def written_to(name):
    """A change of a folder of results: a user's file in it."""

    def write(home):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("mine")

    return write


def unfinished(folder, output):
    """Have Snakemake take an output for that of a job which never ended; the file that says so."""
    marker = folder / ".snakemake/incomplete" / base64.urlsafe_b64encode(output.encode()).decode()
    marker.write_text(json.dumps({"external_jobid": None}), encoding="utf-8")
    return marker
