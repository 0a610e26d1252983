"""Names of `text`, `place` and `basics.text` under the path that charts import them from."""

from rooflines.basics.text import count, seconds, si, significant
from rooflines.charts.kit.place import Box, Place, Spot, dodge, place
from rooflines.charts.kit.text import (
    FONTS,
    chip_label,
    listed,
    on_chips,
    part_name,
    shorten,
    sizes_text,
    split_on,
    split_text,
    width_em,
)

__all__ = [
    "FONTS",
    "Box",
    "Place",
    "Spot",
    "chip_label",
    "count",
    "dodge",
    "listed",
    "on_chips",
    "part_name",
    "place",
    "seconds",
    "shorten",
    "si",
    "significant",
    "sizes_text",
    "split_on",
    "split_text",
    "width_em",
]
