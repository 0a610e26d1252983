"""What the site depends on besides its inputs. It imports little, since it is used in planning."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path

from rooflines.basics.version import __version__
from rooflines.catalogue.chips import chip_sources

__all__ = ["bundle_digest"]

HERE = Path(__file__).parent
THEMES = HERE.parent / "charts" / "kit" / "themes.py"


@cache
def bundle_digest() -> str:
    """A digest of code, templates, scripts, styles, font, themes and the sources of the chips."""
    digest = hashlib.sha256(__version__.encode())
    files = (path for path in HERE.rglob("*") if path.is_file() and path.suffix != ".pyc")
    for path in sorted(files):
        digest.update(path.relative_to(HERE).as_posix().encode() + path.read_bytes())
    digest.update(THEMES.read_bytes())
    digest.update(json.dumps(chip_sources(), sort_keys=True, default=str).encode())
    return digest.hexdigest()[:16]
