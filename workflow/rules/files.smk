"""Files with a rule of the plan: thresholds, lists for people, the workbook."""

for file in plan.files:

    rule:
        """A file of the results; docs/results.md says what each has in it."""
        name:
            file.rule
        input:
            **plan.inputs(file.path),
        output:
            f"<results>/{file.path}",
        log:
            f"<results>/logs/{file.rule}.log",
        threads: 1
        resources:
            mem_mb=1500,
        params:
            job=file.job,
            spec=file.spec,
        run:
            run_job(params.job, log[0], threads, resources.mem_mb, params.spec, output[0])
