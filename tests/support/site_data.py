"""The data of a site: files that put them into a page, parts of charts, and packed JSON."""

import base64
import json
import re
import zlib
from collections.abc import Mapping
from typing import Any


def inflated(text: str) -> Any:
    """JSON as a page loads it: compressed with zlib, in Base64."""
    return json.loads(zlib.decompress(base64.b64decode(text)))


def put(text: str) -> tuple[str, Any]:
    """The name and the data that a data file puts into a page."""
    call = re.fullmatch(r"ROOFLINES\.put\((.*)\);\n", text)
    assert call, text[:100]
    name, data = json.loads(f"[{call[1]}]")
    return name, inflated(data)


def part_of(parts: Mapping[str, Any], choice: Mapping[str, Any]) -> Any:
    """What a page loads of a chart of every chip for a choice; without rows where it has all."""
    packed = parts["parts"].get("|".join(str(choice.get(name, "")) for name in parts["by"]))
    return {"params": {}} if packed is None else inflated(packed)
