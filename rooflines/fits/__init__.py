"""Timing tables and their public layouts, calibrated times, fits, held-out errors.

Form, what is fitted and how:
- `time_form` has the numbers of a calibrated time, `nominal` the times that they multiply.
- `fitting` fits a form to timings by `least_squares`, from a `prior`.
- `held_out` chooses the sites that a fit does not see, `fit_errors` has its errors and bands.
- `calibrate` makes all fits of a chip and software; `engine_overhead` fits decode steps.

Files, fits that others read:
- `fit_keys` are their keys, `calibration_files` their entries.
- `calibration_choice` decides which fit applies to a row, `estimate_band` what that rests on.

Readers, from files of other tools to the tidy form:
- `timings` is the tidy form, `timing_tables` reads it or a public layout from `layouts`.
- `bench_files` (served models), `hipblaslt`, `nccl_tests` and `kernel_profiles` read timings,
  `nsight` and `rocm_counters` counters of profiled kernels.
- `time_units`, `decimal_marks`, `named_devices` and `repeats` catch what readers often get wrong.
"""
