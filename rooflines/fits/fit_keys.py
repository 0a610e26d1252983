"""Fit keys: a chip with its software, an engine with its variant.

Files write them `<chip>/<engine>-<variant>`; only this module takes such a text apart.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from rooflines.basics.errors import Mistakes, RooflinesError, quote
from rooflines.hardware.entry_forms import check_name

VARIANT_SIGN, CHIP_SIGN = "-", "/"
"""Signs before a variant, and after a chip."""


class Software(NamedTuple):
    """Software whose timings are fitted.

    Attributes:
        engine: Engine, stack or library, such as `trtllm`.
        variant: Its kernels, such as `block` for scales per block; None: not stated.
    """

    engine: str
    variant: str | None = None

    @classmethod
    def parse(cls, name: str) -> Software:
        """Software by its name, such as `trtllm-block`."""
        return _software(name)

    def __str__(self) -> str:
        """Name, as files have it."""
        return self.engine if self.variant is None else f"{self.engine}{VARIANT_SIGN}{self.variant}"


class FitKey(NamedTuple):
    """Chip and software with fits.

    Attributes:
        chip: The chip's id; None: any.
        software: The software.
    """

    chip: str | None
    software: Software

    @classmethod
    def parse(cls, text: str) -> FitKey:
        """Key by its text, such as `h100-sxm/trtllm-block`, or `trtllm` for any chip."""
        return _key(text)

    @classmethod
    def named(cls, chip: str | None, software: str) -> FitKey:
        """Key for a chip and a software's name."""
        return cls(chip, _software(software))

    @classmethod
    def checked(cls, chip: str, software: str) -> FitKey:
        """Key for a chip and a software's name.

        Raises:
            RooflinesError: The chip or the software is no name.
        """
        with Mistakes() as mistakes:
            for place, name in (("chip", chip), ("software", software)):
                with mistakes.at(place):
                    check_name(name)
        return cls.named(chip, software)

    def check(self) -> None:
        """Refuse a key that is no chip and software.

        Raises:
            RooflinesError: It has no chip, or a part is no name.
        """
        name = str(self.software)
        if self.chip is None or CHIP_SIGN in name:
            problem = f"is {quote(str(self))}, which is no chip and software"
            raise RooflinesError("", problem, "write <chip>/<software>")
        FitKey.checked(self.chip, name)

    @property
    def engine(self) -> str:
        """Engine without its variant."""
        return self.software.engine

    @property
    def file_name(self) -> str:
        """Name for a file with its fits alone, such as `h100-sxm-trtllm.yaml`."""
        return f"{self.chip}-{self.software}.yaml"

    def __str__(self) -> str:
        """Text, as files have it."""
        return str(self.software) if self.chip is None else f"{self.chip}{CHIP_SIGN}{self.software}"


@cache
def _software(name: str) -> Software:
    engine, sign, variant = name.partition(VARIANT_SIGN)
    return Software(engine, variant if sign else None)


@cache
def _key(text: str) -> FitKey:
    chip, sign, software = text.partition(CHIP_SIGN)
    return FitKey(chip, _software(software)) if sign else FitKey(None, _software(text))
