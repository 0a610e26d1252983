"""Generate the documents that are computed: `python docs/build`.

The config's JSON Schema, README's tables and pictures, docs/worked-models.md; docs/served.md where
its data is; and the script of Vega for the site.
"""

from __future__ import annotations

import json

from documents import PICTURES, README, SCHEMA, config_schema, with_tables
from gallery import draw, with_gallery
from served import compared, served_csv
from served_page import SERVED, served_page
from vega import VEGA, vega_script
from worked_page import WORKED, worked_page


def main() -> None:
    """Write every generated document into the repository."""
    schema = json.dumps(config_schema(), indent=2, ensure_ascii=False)
    SCHEMA.write_text(schema + "\n", encoding="utf-8")
    readme = with_gallery(with_tables(README.read_text(encoding="utf-8")))
    README.write_text(readme, encoding="utf-8")
    draw(readme, PICTURES)
    WORKED.write_text(worked_page(), encoding="utf-8")
    VEGA.write_bytes(vega_script())
    data = served_csv()
    if data is not None:
        SERVED.write_text(served_page(compared(data)), encoding="utf-8")


if __name__ == "__main__":
    main()
