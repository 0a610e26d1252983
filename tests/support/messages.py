"""The form of a message: for each mistake its place and problem, close names, and a fix."""

import re

from rooflines.basics.errors import MAX_MISTAKES_SHOWN

NOT_THE_USERS_WORDS = (
    r"literal\[|[Vv]alidation|Value error|pydantic|NoneType|datetime|Dictionary|dict|union|"
    "Traceback|object at 0x"
)


def assert_form(message, file="", mistakes=1):
    """Check the form of a message about a file; `mistakes` may be None: any number."""
    parts = re.split(r"\n(?! )", message)
    if parts[-1].startswith("and "):
        assert re.fullmatch(r"and (at least )?[\d,]+ more mistakes?\.", parts.pop()), message
    assert len(parts) == mistakes or (mistakes is None and 1 <= len(parts) <= MAX_MISTAKES_SHOWN), (
        message
    )
    for part in parts:
        first, *close, fix = part.splitlines()
        assert re.match(rf"\S*{re.escape(file)}(:\d+)?(: | )\S.*\.$", first), message
        assert fix.startswith("  fix: "), message
        assert all(line.startswith("  close to it: ") for line in close), message
        assert len(close) <= 1, message
        assert len(part) < 4000, message
    assert not re.search(NOT_THE_USERS_WORDS, message), message
