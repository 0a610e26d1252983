"""What the site depends on besides its inputs. It imports little, since it is used in planning."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path

from rooflines.basics.version import __version__
from rooflines.catalogue.chips import chip_entries, chip_sources, dtype_entries
from rooflines.fits.entries import CALIBRATIONS_FILE

HERE = Path(__file__).parent
KIT = HERE.parent / "charts" / "kit"
THEMES = (KIT / "themes.py", KIT / "chip_colours.py")
FORMULAS = tuple(HERE.parent / name for name in ("model", "critical", "models", "serving", "fits"))
"""What the pages "What if" and "Models" have their coefficients from."""


@cache
def bundle_digest() -> str:
    """A digest of code, templates, scripts, styles, font, themes, formulas, fits and catalogues."""
    digest = hashlib.sha256(__version__.encode())
    for folder in (HERE, *FORMULAS):
        files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
        for path in sorted(files):
            digest.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    for path in (*THEMES, CALIBRATIONS_FILE):
        digest.update(path.read_bytes())
    catalogues = {
        "sources": chip_sources(),
        "chips": {chip: entry.plain for chip, entry in chip_entries().items()},
        "dtypes": dtype_entries().model_dump(),
    }
    digest.update(json.dumps(catalogues, sort_keys=True, default=str).encode())
    return digest.hexdigest()[:16]
