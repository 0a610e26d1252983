"""Roofline bounds and calibrated estimates for whole grids at once.

At which size is an operation compute-bound, on which chip, and what would change it?

    >>> import rooflines
    >>> config = rooflines.load_config()                   # the default, or a path, or a mapping
    >>> rooflines.rows(config, "book-matmul").collect()      # bounds, a row per case
    >>> rooflines.thresholds(config)                       # critical sizes

Source of the model: All About Rooflines, a chapter of How to Scale Your Model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflines.basics.lazy import lazy_attributes
from rooflines.basics.version import __version__ as __version__

if TYPE_CHECKING:
    from rooflines import models as models
    from rooflines.answers.answer import Answer as Answer
    from rooflines.answers.best_split import best_splits as best_splits
    from rooflines.answers.explain import explain as explain
    from rooflines.answers.explain import explain_model as explain_model
    from rooflines.answers.kernel_bounds import kernel as kernel
    from rooflines.answers.kernel_bounds import kernels as kernels
    from rooflines.answers.operation_answer import OperationAnswer as OperationAnswer
    from rooflines.answers.serve_answer import serve as serve
    from rooflines.answers.serving_answer import ServingAnswer as ServingAnswer
    from rooflines.answers.train import train as train
    from rooflines.answers.training_answer import TrainingAnswer as TrainingAnswer
    from rooflines.api import chips as chips
    from rooflines.api import columns as columns
    from rooflines.api import dtypes as dtypes
    from rooflines.api import measured_summary as measured_summary
    from rooflines.api import measurements as measurements
    from rooflines.api import model_layers as model_layers
    from rooflines.api import model_shapes as model_shapes
    from rooflines.api import profiled_kernels as profiled_kernels
    from rooflines.api import rows as rows
    from rooflines.api import skipped as skipped
    from rooflines.api import thresholds as thresholds
    from rooflines.basics.errors import PlausibilityWarning as PlausibilityWarning
    from rooflines.basics.errors import RooflinesError as RooflinesError
    from rooflines.loading import Config as Config
    from rooflines.loading import load_config as load_config
    from rooflines.results.provenance import Origin as Origin
    from rooflines.results.provenance import origin as origin
    from rooflines.results.tables import metadata_of as metadata_of
    from rooflines.results.tables import scan as scan
    from rooflines.solvers.payoffs import pools_threshold as pools_threshold
    from rooflines.solvers.payoffs import pull_threshold as pull_threshold

HOMES = {
    "api": (
        "chips",
        "columns",
        "dtypes",
        "measured_summary",
        "measurements",
        "profiled_kernels",
        "model_layers",
        "model_shapes",
        "rows",
        "skipped",
        "thresholds",
    ),
    "basics.errors": ("PlausibilityWarning", "RooflinesError"),
    "loading": ("Config", "load_config"),
    "answers.answer": ("Answer",),
    "answers.best_split": ("best_splits",),
    "answers.explain": ("explain", "explain_model"),
    "answers.kernel_bounds": ("kernel", "kernels"),
    "answers.operation_answer": ("OperationAnswer",),
    "answers.serve_answer": ("serve",),
    "answers.serving_answer": ("ServingAnswer",),
    "answers.train": ("train",),
    "answers.training_answer": ("TrainingAnswer",),
    "models": (),
    "results.provenance": ("Origin", "origin"),
    "results.tables": ("metadata_of", "scan"),
    "solvers.payoffs": ("pools_threshold", "pull_threshold"),
}
"""The modules of public names; planning a workflow does not wait for polars."""

__getattr__, __dir__ = lazy_attributes(__name__, HOMES, "__version__")
