"""Timings made here or read, joined with the model and judged; profiled kernels.

Compare:
- `timing_sets` are the timings that a config names, `catalogues` what they are compared with.
- `join` puts a timing beside its row: from `kernel_rows`, or from `served` and `served_estimates`
  for served models. `timing_summary` makes both tables of a set.

Judge: `judgement` has errors, band coverage and the order within pairs; `judged_plans` has choices
among deployments, by step fits from `unseen_models`; `below` lists timings below the bound by
collection. `answers.training_runs` judges training steps.

Logs: `engine_logs` reads a serving engine's log, `logged_steps` takes the median of its steady
lines, and `log_question` asks for the bound and the estimate.

Profile: `profiled_kernels` puts counters of a profiler on a chip's roofline.

Measure, on the machine itself: `session` times `timed_shapes`, by `blas` on the processor or `gpu`,
both a `multiplier` on a `machine`.
"""
