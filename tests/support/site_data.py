"""The files of a site: a page as its elements and text, and what a data file puts into a page."""

import base64
import json
import re
import zlib
from html.parser import HTMLParser


class Page(HTMLParser):
    """The elements of a page, and the text a reader sees."""

    def __init__(self, path):
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


def put(path):
    """The name and the data that a data file puts into a page."""
    call = re.fullmatch(r"ROOFLINES\.put\((.*)\);\n", path.read_text(encoding="utf-8"))
    assert call, path
    name, packed = json.loads(f"[{call[1]}]")
    return name, json.loads(zlib.decompress(base64.b64decode(packed)))
