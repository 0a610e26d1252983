"""Traces as a config has them: every key, what it means, and its default."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rooflines.config.lists import Listed
from rooflines.hardware.entry_forms import Entry, Name, Text


class TraceConfig(Entry):
    """A profiler's trace, or those of several ranks."""

    file: Annotated[list[Text], Listed()] = Field(
        description="trace, relative to the config; a list: those of several ranks"
    )
    chip: Text | None = Field(
        None, description="chip that ran it; by default the one that the file names"
    )
    model: Text | None = Field(
        None,
        description=(
            "model that ran, where shapes lack: an id, a config.json relative to the working "
            "folder, or auto"
        ),
    )
    tp: Annotated[int, Field(ge=1)] = Field(1, description="chips that share each layer [1]")
    context: Annotated[int, Field(ge=1)] | None = Field(
        None, description="tokens per sequence, where the trace has no annotation [1]"
    )
    capture: Text | None = Field(
        None, description="trace with the capture of the graphs, relative to the config"
    )
    before: Name | None = Field(
        None, description="another trace by name, before a change: the two are compared"
    )
