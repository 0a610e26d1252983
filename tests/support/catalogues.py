"""The catalogues that come with the package."""

from rooflines.catalogue.chips import chip_entries
from rooflines.catalogue.dtypes import dtype_entries
from rooflines.fits.entries import shipped_calibrations
from rooflines.measured.catalogues import Catalogues


def shipped():
    """The catalogues that come with the package."""
    return Catalogues(chip_entries(), dtype_entries(), shipped_calibrations())


NOMINAL = {
    "math": 1,
    "memory": 1,
    "overhead_s": 0,
    "bands": {},
    "source": "-",
    "date": "-",
    "fitted": {"n": 1, "median": 0, "mean": 0, "p90": 0},
}
"""A fit of matmuls at the nominal rates."""
