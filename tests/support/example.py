"""The example of docs/own-sweep.md: its config, and the command below it."""

import re
import shlex

from pages import text_of


def example(folder, repository):
    """Write the config into a folder; the arguments of the command, without its cores.

    Args:
        folder: Where the command is run.
        repository: The checkout whose workflow it names.
    """
    text = text_of("own-sweep.md")
    (config,) = re.findall(r"^```yaml\n(sweeps:.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    (folder / "my.yaml").write_text(config, encoding="utf-8")
    (command,) = re.findall(
        r"^    (snakemake .*--configfile my\.yaml.*)$", text, flags=re.MULTILINE
    )
    arguments = shlex.split(command.replace("path/to/rooflines", str(repository)))[1:]
    return [argument for argument in arguments if argument not in ("--cores", "4")]
