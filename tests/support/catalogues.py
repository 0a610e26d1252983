"""The catalogues that come with the package."""

from rooflines.fits.calibration_files import shipped_calibrations
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.hardware.dtype_catalogue import dtype_entries
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
