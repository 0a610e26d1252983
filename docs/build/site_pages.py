"""Pages of the documentation site, staged into a folder: `python docs/build/site_pages.py FOLDER`.

A page's path in the site is its path in the repository, without `docs/`, so that a link between
files is a link between pages. Keys, commands and the API are written into the reference, from their
types, click and docstrings.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from blocks import table
from documents import ROOT

import rooflines
from rooflines import charts, models
from rooflines.cli.keys import every_key
from rooflines.cli.main import commands, every_command

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import ModuleType

PATTERNS = (
    *("docs/*.*", "docs/pictures/*.png", "docs/pictures/*.webp"),
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "benchmarks/results.json", "LICENSE"),
    *("config/*", "notebooks/*.ipynb", "workflow/schemas/config.schema.json"),
)
"""Files of the repository that are in the site."""

INTRODUCTION = """\
# Keys

What `rooflines list keys` prints: the keys of a config, of the catalogues and of calibrations.
[Configuration](config/README.md) explains them."""

LINK = re.compile(r"""(\]\(|src="|srcset="|href=")([^)"#\s]+)""")

WIDTH = 80
"""Columns of a help text [1]."""


def stage(folder: Path) -> None:
    """Write the pages and the files that they name into a folder, in place of what is there."""
    shutil.rmtree(folder, ignore_errors=True)
    more = {"cli.md": "".join(map(_help, every_command())), "python.md": _api()}
    found = (path for pattern in PATTERNS for path in sorted(ROOT.glob(pattern)))
    for file in filter(Path.is_file, found):
        here = file.relative_to(ROOT).as_posix()
        uri = here.removeprefix("docs/")
        staged = folder / uri
        staged.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix != ".md":
            shutil.copyfile(file, staged)
            continue
        text = file.read_text(encoding="utf-8") + more.get(uri, "")
        linked = LINK.sub(lambda link: link[1] + _in_site(link[2], here, uri), text)  # noqa: B023
        staged.write_text(linked, encoding="utf-8")
    (folder / "keys.md").write_text(_keys(), encoding="utf-8")


def _in_site(target: str, here: str, uri: str) -> str:
    """A link as one of the site; as it is where it names no file of the repository.

    Args:
        target: The path in the link.
        here: The file that the link is in.
        uri: The page that the link is in.
    """
    file = posixpath.normpath(posixpath.join(posixpath.dirname(here), target))
    if not (ROOT / file).is_file():
        return target
    return posixpath.relpath(file.removeprefix("docs/"), posixpath.dirname(uri) or ".")


def _keys() -> str:
    """The keys by their place, as `rooflines list keys` has them."""
    parts = [INTRODUCTION]
    for (place,), keys in every_key().group_by("place", maintain_order=True):
        cells = ((f"`{key}`", f"`{default}`", meaning) for _, key, default, meaning in keys.rows())
        parts += [f"## {place}", table(("key", "default", "meaning"), cells)]
    return "\n\n".join(parts) + "\n"


def _help(path: Sequence[str]) -> str:
    """The help text of a command."""
    command: click.Command = commands
    settings = {**commands.context_settings, "terminal_width": WIDTH}  # click keeps a help option
    context = click.Context(commands, info_name="rooflines", **settings)
    for name in path:
        below = command.get_command(context, name) if isinstance(command, click.Group) else None
        if below is None:
            raise LookupError(name)
        command, context = below, click.Context(below, context, name, terminal_width=WIDTH)
    text = command.get_help(context)
    return f"\n## rooflines {' '.join(path)}\n\n```text\n{text}\n```\n"


def _api() -> str:
    """Directives for the docstrings of every public name."""
    modules = (rooflines, models, charts)
    return "".join(line for module in modules for line in _names(module))


def _names(module: ModuleType) -> Iterator[str]:
    """The directives of a module's public names."""
    names: Iterable[str] = module.__all__
    yield f"\n## {module.__name__}\n"
    for name in names:
        if not name.startswith("_") and name not in rooflines.HOMES:
            yield f"\n::: {module.__name__}.{name}\n"


if __name__ == "__main__":
    stage(Path(sys.argv[1]))
