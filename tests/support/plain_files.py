"""The files of config/ as plain YAML, read without the package."""

import re
from functools import cache
from pathlib import Path

import yaml

CONFIG = Path(__file__).parents[2] / "config"


class _Loader(yaml.CSafeLoader):
    """YAML with the numbers of YAML 1.2 (9.89e14), and without duplicate keys."""

    def construct_mapping(self, node, deep=False):  # noqa: FBT002
        """A mapping with unique keys."""
        keys = [key.value for key, _ in node.value]
        twice = sorted({key for key in keys if keys.count(key) > 1})
        if twice:
            message = f"{node.start_mark}: given twice: {twice}"
            raise ValueError(message)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


@cache
def plain_file(name):
    """Return the content of one of the files, not to be changed."""
    text = (CONFIG / name).read_text(encoding="utf-8")
    return yaml.load(text, _Loader)  # noqa: S506, a safe loader with two additions
