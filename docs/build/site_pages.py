"""Pages of the documentation site that are not in docs, and the reference; a hook of MkDocs.

A page's path in the site is its path in the repository, without `docs/`, so that a link between
files is a link between pages. Keys, commands and the API are written into the reference when the
site is built, from the config's schema, click and docstrings.
"""

from __future__ import annotations

import json
import posixpath
import re
from typing import TYPE_CHECKING, Any

import click
from blocks import table
from documents import ROOT, config_schema
from mkdocs.structure.files import File

import rooflines
from rooflines import charts, models
from rooflines.cli.main import commands, every_command

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from types import ModuleType

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

OUTSIDE = (
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "benchmarks/results.json", "LICENSE"),
    *("config/*", "notebooks/*.ipynb", "workflow/schemas/config.schema.json"),
)
"""Files of the repository, besides docs, that are in the site."""

KEYS = "keys.md"
"""The page of the config's keys, which is no file."""

INTRODUCTION = """\
# Config keys

The keys of a config with their defaults, from its
[schema](workflow/schemas/config.schema.json). [Configuration](config/README.md) explains them."""

DOCS = "docs/"

LINK = re.compile(r"""(\]\(|src="|srcset="|href=")([^)"#\s]+)""")

WIDTH = 80
"""Columns of a help text [1]."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files outside docs, and the page of keys."""
    for pattern in OUTSIDE:
        for path in sorted(ROOT.glob(pattern)):
            uri = path.relative_to(ROOT).as_posix()
            files.append(File.generated(config, uri, abs_src_path=str(path)))
    files.append(File.generated(config, KEYS, content=_keys()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links as those of the site; help texts and the API after their pages."""
    del config, files
    uri = page.file.src_uri
    if uri == "cli.md":
        markdown += "".join(map(_help, every_command()))
    if uri == "python.md":
        markdown += _api()
    here = uri if (ROOT / uri).is_file() else DOCS + uri
    return LINK.sub(lambda link: link[1] + _in_site(link[2], here, uri), markdown)


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
    return posixpath.relpath(file.removeprefix(DOCS), posixpath.dirname(uri) or ".")


def _keys() -> str:
    """The keys of a config by their place, from its schema."""
    schema = config_schema()
    places = {
        form: key
        for key, entry in schema["properties"].items()
        for form in re.findall(r"#/\$defs/(\w+)", json.dumps(entry))
    }
    forms = {"Top level": schema} | {
        f"`{places[name]}`" if name in places else name: form
        for name, form in sorted(schema["$defs"].items(), key=lambda item: item[0] not in places)
    }
    parts = [INTRODUCTION]
    for name, form in forms.items():
        if "properties" in form:
            parts += [f"## {name}", form.get("description", ""), _properties(form)]
    return "\n\n".join(parts) + "\n"


def _properties(form: Mapping[str, Any]) -> str:
    """The keys of a mapping, as a table."""
    required = form.get("required", ())

    def default(key: str, entry: Mapping[str, Any]) -> str:
        if key in required:
            return "required"
        return f"`{json.dumps(entry['default'])}`" if entry.get("default") is not None else ""

    return table(
        ("key", "default", "meaning"),
        (
            (f"`{key}`", default(key, entry), entry.get("description", ""))
            for key, entry in form["properties"].items()
        ),
    )


def _help(path: Sequence[str]) -> str:
    """The help text of a command."""
    command: click.Command = commands
    context = click.Context(commands, info_name="rooflines", terminal_width=WIDTH)
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
        if not name.startswith("_") and name not in rooflines.SUBPACKAGES:
            yield f"\n::: {module.__name__}.{name}\n"
