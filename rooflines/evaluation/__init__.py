"""Rows as lazy frames: operations, steps, requests, training.

`row_frames` has a table for each kind of sweep. It cuts the rows into blocks and compiles each:
- an operation: `operation_rows`; a kind of kernel: `kind_rows`.
- a step: `StepBlock` in `step_rows`, put together with parts by kind. Decode and prefill:
  `step_parts`. Requests, means over decode steps: `requests`, by `sawtooth` where layers attend in
  chunks; with prompts on separate servers `pools` adds its parts. Training, the fullest and the
  busiest stage: `training_rows`, with kernels' times from `run_times`.
- a kernel of a step: `kernel_stages` in `step_rows`.

Shared: `compiler` turns polynomials and times of cases into expressions, `blocked` computes inner
axes once, `space` has the axes as columns, `sided` splits a quantity between both sides,
`chosen_rows` computes requests at chosen batches, `footprints` has memory, `engine_columns` pools
of serving engines, `measured_times` a measured number beside a row.
"""
