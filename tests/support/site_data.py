"""The data of a site: files that put them into a page, and packed JSON."""

import base64
import json
import re
import zlib
from typing import Any


def inflated(text: str) -> Any:  # noqa: ANN401, any JSON
    """JSON as a page loads it: compressed with zlib, in Base64."""
    return json.loads(zlib.decompress(base64.b64decode(text)))


def put(text: str) -> tuple[str, Any]:
    """The name and the data that a data file puts into a page."""
    call = re.fullmatch(r"ROOFLINES\.put\((.*)\);\n", text)
    assert call, text[:100]
    name, data = json.loads(f"[{call[1]}]")
    return name, inflated(data)
