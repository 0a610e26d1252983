"""What the bundle depends on beside its inputs; light, for the workflow asks before anything is loaded."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path

from rooflines.basics.version import __version__
from rooflines.catalogue.chips import chip_sources

__all__ = ["bundle_digest"]

HERE = Path(__file__).parent
LOOKS = HERE.parent / "charts" / "kit" / "themes.py"


@cache
def bundle_digest() -> str:
    """A digest of what decides how the folder looks, its inputs aside: pages, styles, scripts, font, code, and the chips' sources."""
    digest = hashlib.sha256(__version__.encode())
    for path in sorted(
        path for path in HERE.rglob("*") if path.is_file() and path.suffix != ".pyc"
    ):
        digest.update(path.relative_to(HERE).as_posix().encode() + path.read_bytes())
    digest.update(LOOKS.read_bytes())
    digest.update(json.dumps(chip_sources(), sort_keys=True, default=str).encode())
    return digest.hexdigest()[:16]
