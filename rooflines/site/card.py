"""Picture that chats show beside a link: the first finding's chart, on 1200 x 630 pixels."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from PIL import Image

from rooflines.charts.kit.render import encode_png

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from rooflines.basics.yaml_file import JSON

CARD = "card.png"
"""File of the picture."""

SIZE = 1200, 630
"""Size that chats show without a cut [px]."""


def card_address(site: Mapping[str, str]) -> str:
    """Address of the picture: whole, if the config has the site's `address`."""
    address = site.get("address", "").rstrip("/")
    return f"{address}/{CARD}" if address else CARD


def card_chart(charts: Sequence[JSON], folders: Iterable[Path]) -> tuple[JSON, Path] | None:
    """Choose the first chart with a finding, else the first, and its picture; None: no picture.

    Args:
        charts: The charts in list order.
        folders: Folders with their pictures.
    """
    families = {folder.name: folder for folder in folders}
    pictures = (
        (chart, families[chart["family"]] / f"{chart['id']}.png")
        for chart in sorted(charts, key=lambda chart: not chart["finding"])
    )
    return next((pair for pair in pictures if pair[1].exists()), None)


def card_picture(picture: bytes) -> bytes:
    """Fit a picture into a card, on its own background, as PNG.

    Args:
        picture: A chart as PNG.
    """
    chart = Image.open(io.BytesIO(picture)).convert("RGB")
    card = Image.new("RGB", SIZE, chart.getpixel((0, 0)))
    chart.thumbnail(SIZE, Image.Resampling.LANCZOS)
    card.paste(chart, ((SIZE[0] - chart.width) // 2, (SIZE[1] - chart.height) // 2))
    return encode_png(card)
