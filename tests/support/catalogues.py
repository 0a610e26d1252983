"""The catalogues that come with the package."""

from rooflines.catalogue.chips import chip_entries, dtype_entries
from rooflines.fits.entries import shipped_calibrations
from rooflines.measured.catalogues import Catalogues


def shipped():
    """The catalogues that come with the package."""
    return Catalogues(chip_entries(), dtype_entries(), shipped_calibrations())
