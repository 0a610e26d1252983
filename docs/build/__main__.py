"""Generate the config's JSON Schema, and README's tables and pictures: `python docs/build`."""

from __future__ import annotations

import json

from documents import PICTURES, README, SCHEMA, config_schema, with_tables
from gallery import draw, with_gallery


def main() -> None:
    """Write every generated document into the repository."""
    schema = json.dumps(config_schema(), indent=2, ensure_ascii=False)
    SCHEMA.write_text(schema + "\n", encoding="utf-8")
    readme = with_gallery(with_tables(README.read_text(encoding="utf-8")))
    README.write_text(readme, encoding="utf-8")
    draw(readme, PICTURES)


if __name__ == "__main__":
    main()
