"""README's example of an own sweep: its config, and the command below it."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from documents import README

if TYPE_CHECKING:
    from pathlib import Path


def example(folder: Path, repository: Path) -> list[str]:
    """Write the config into a folder; the arguments of the command, without its cores.

    Args:
        folder: Where the command is run.
        repository: The checkout whose workflow it names.
    """
    text = README.read_text(encoding="utf-8")
    (config,) = re.findall(r"^```yaml\n(sweeps:.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    (folder / "my.yaml").write_text(config, encoding="utf-8")
    (command,) = re.findall(
        r"^    (snakemake .*--configfile my\.yaml.*)$", text, flags=re.MULTILINE
    )
    arguments = shlex.split(command.replace("path/to/rooflines", str(repository)))[1:]
    return [argument for argument in arguments if argument not in ("--cores", "4")]
