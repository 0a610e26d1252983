"""What timings are compared with: chips, dtypes and calibrations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rooflines.calibration.entries import shipped_calibrations
from rooflines.catalogue.chips import chip_entries, dtype_entries

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.calibration.entries import FittedMatmul
    from rooflines.catalogue.entries import Chip, DtypeFile

__all__ = ["Catalogues", "shipped"]


@dataclass(frozen=True)
class Catalogues:
    """Entries that the rows of timings are made from.

    Attributes:
        chips: By id.
        dtypes: The dtype catalogue.
        calibrations: By `<chip>/<software>`, then by compute dtype.
    """

    chips: Mapping[str, Chip]
    dtypes: DtypeFile
    calibrations: Mapping[str, Mapping[str, FittedMatmul]]


def shipped() -> Catalogues:
    """The catalogues that come with the package."""
    return Catalogues(chip_entries(), dtype_entries(), shipped_calibrations().calibrations)
