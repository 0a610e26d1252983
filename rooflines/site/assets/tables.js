"use strict";
/* The chip table, and the tables in tabs. */

const TABLES = (() => {
  const { octaves, significant, si, seconds, integer, percent, compact, bytes, usd } = NUMBERS;
  const { ALWAYS, NEVER, BEYOND } = EVALUATION;
  const { CALIBRATED, SERVE, matchesState, matmulWorkload, stepWorkload, evaluateChip } = STATE;
  const { curveAxis, curveTimes, kernelWorkload } = STATE;
  const { peakShare, timeAt, tokensAt } = STATE;
  const { unsupportedReasons, shareLimit, criticalText } = SENTENCES;
  const { chipStyle, swatch } = PLOTS;
  const { make, refill, tableParts, sortRows } = ROOFLINES;
  const [WIDTHS, CONTEXTS] = [octaves(1024, 32768, 1), octaves(1024, 131072, 1)];
  const [BATCHES, SHARDS] = [octaves(1, 65536, 1), octaves(1, 256, 1)];
  const MAX_CONTEXT_BATCH = 1024; // of the table of contexts
  const MIN_TOP = 64; // of the table of bottlenecks of a kernel
  const ALL_DIGITS = 17;
  const MIN_GAIN = 5e-4; // smallest change of time that is shown
  const UNIFORM_HEAT = 0.3; // where all cells are equal
  const MISSING = "–";
  const LETTERS = "C compute-bound, M memory-bound, N network-bound";

  // ------------------------------------------------------------------------- the table of chips

  /** Threshold as text: a size, "any" or "never". */
  function thresholdSize({ outcome, size, isLargest }) {
    const words = { [ALWAYS]: "any", [NEVER]: "never", [BEYOND]: "beyond 2^53" };
    return words[outcome] ?? `${isLargest ? "≤ " : ""}${integer(size)}`;
  }
  /** Function that formats a value, and shows a dash for a missing one. */
  const orMissing = (format) =>
    (value, state) => (value === null || value === undefined ? MISSING : format(value, state));
  /** Formats by the names that columns have for them. */
  const FORMATS = {
    seconds, percent, integer, bytes, compact, usd, threshold: thresholdSize, text: String,
    sequences: (value) => integer(Math.round(value)),
    range: (ends) => ends.map(seconds).join("–"),
    significant: (value) => significant(value),
    quantiles: ({ p10, p90 }) => `${significant(p10)}–${significant(p90)} ×`,
    gain: (value) =>
      (Math.abs(value) < MIN_GAIN ? "none" : `−${significant(-100 * value, 2)}%`),
    boolean: (value) => (value ? "yes" : "no"),
    context: (value, { model: { context: trained } }) =>
      (trained && value >= trained ? `${integer(trained)}, all` : integer(value)),
  };
  /** Numbers by which values are sorted that are none. */
  const SORT_KEYS = {
    threshold: ({ outcome, size }) =>
      ([NEVER, BEYOND].includes(outcome) ? Infinity : size ?? 0),
    quantiles: ({ p50 }) => p50,
    range: ([low]) => low,
  };

  /** Column's value in a row; null if it has none. */
  const fieldValue = (row, { name, field = name }) =>
    field.split(".").reduce((value, key) => value?.[key], row) ?? null;

  /** Columns in a state, with functions from a row: `cell`, and `value` for sorting. */
  function chipColumns(state) {
    const columns = state.data.page.columns.filter(({ when }) => matchesState(state, when));
    return columns.map((column) => {
      const { name, format } = column;
      const sortKey = SORT_KEYS[format] ?? ((value) => value);
      return {
        ...column, kind: "number",
        value: (row) => {
          const value = row.unsupported ? null : fieldValue(row, column);
          return value === null ? null : sortKey(value);
        },
        cell: (row) => (row.fits === null && name === "fits" ? "not known"
          : orMissing(FORMATS[format])(fieldValue(row, column), state)),
      };
    });
  }

  /** First cell in a chip's row, with the button that adds or removes it; deployments have none. */
  function chipHead(chip, { chips, subject }, toggleChip) {
    if (subject === SERVE) {
      const attributes = { scope: "row", class: "chosen", style: chipStyle(chip) };
      return make("th", attributes, swatch(), chip.label);
    }
    const isChosen = chips.includes(chip);
    const button = make("button", {
      type: "button", class: "pick", "data-key": `pick ${chip.id}`,
      "aria-label": `${isChosen ? "Remove" : "Add"} ${chip.label}`,
      disabled: isChosen && chips.length === 1, onclick: () => toggleChip(chip),
    }, isChosen ? "×" : "+");
    const attributes = {
      scope: "row", class: isChosen ? "chosen" : null, style: chipStyle(chip),
    };
    return make("th", attributes, button, swatch(), chip.label);
  }

  /** Chip's row as an element. */
  function chipRow(row, columns, state, toggleChip) {
    const { chip, fits, bound, unsupported } = row;
    const classes = { fits: fits === false ? "problem" : "", bound: `${bound}-bound` };
    const cells = unsupported
      ? [make("td", { colspan: columns.length, class: "problem" }, unsupported)]
      : columns.map(({ name, cell }) =>
        make("td", { class: `number ${classes[name] ?? ""}`, "data-value": name }, cell(row)));
    return make("tr", { class: fits === false ? "too-large" : null, "data-chip": chip.id },
      chipHead(chip, state, toggleChip), ...cells);
  }

  /** Columns in the CSV file, { name, value }; quantiles and ranges take two. */
  function csvColumns(columns) {
    return columns.flatMap((column) => {
      const { csv, format, value } = column;
      if (!["quantiles", "range"].includes(format)) return { name: csv, value };
      return ["p10", "p90"].map((quantile, i) => ({
        name: format === "range" ? `${csv}_${quantile}_s` : `${csv}_${quantile}`,
        value: (row) => fieldValue(row, column)?.[format === "range" ? i : quantile],
      }));
    });
  }

  /** Show chip rows; returns the same as CSV rows, in SI units with all digits. */
  function showChips(table, state, rows, toggleChip) {
    const columns = chipColumns(state);
    const sorted = sortRows(rows, columns, state.unavailable);
    const body = sorted.rows.map((row) => chipRow(row, columns, state, toggleChip));
    refill(table, ...tableParts(["chip", ...sorted.heads], body));
    const saved = csvColumns(columns);
    const csvValue = (value) => (value === Infinity ? "never" : value);
    const csvRow = (row) => (row.unsupported ? [row.chip.id, row.unsupported]
      : [row.chip.id, ...saved.map(({ value }) => csvValue(value(row)))]);
    return [["chip", ...saved.map(({ name }) => name)], ...sorted.rows.map(csvRow)];
  }

  // -------------------------------------------------------------------------- tables of two axes

  /** Function that shades a cell's heat among all heats, in percent. */
  function heatScale(cells) {
    const heats = cells.flatMap(({ heat }) => heat ?? []);
    const [low, high] = [Math.min(...heats), Math.max(...heats)];
    return (heat) => 100 * (high > low ? (heat - low) / (high - low) : UNIFORM_HEAT);
  }

  /** Cell table, with `rows` and `columns` as { name, value }.

      `workload` takes a row's and a column's value; `cell` takes that workload and gives text, kind
      (a class), tip and heat, the number that shades it. */
  function cellTable({ caption, corner, rows, columns, workload, cell, note }) {
    const cells = rows.map((row) => columns.map((column) => {
      const shown = workload(row.value, column.value);
      return shown.unsupported ? { text: MISSING, kind: "none", tip: shown.unsupported }
        : cell(shown, column.value);
    }));
    const shade = heatScale(cells.flat());
    const cellElement = ({ text, kind, tip, heat }) => make("td", {
      class: kind, title: tip,
      style: heat === undefined ? null : `--heat: ${shade(heat).toFixed(0)}%`,
    }, text);
    const heads = columns.map(({ name }) => make("th", { scope: "col", class: "number" }, name));
    const body = rows.map(({ name }, i) =>
      make("tr", {}, make("th", { scope: "row" }, name), ...cells[i].map(cellElement)));
    const region = { class: "scroll", tabindex: "0", role: "region", "aria-label": caption };
    const table = make("table", { class: "cells" },
      make("caption", {}, caption), ...tableParts([corner, ...heads], body));
    const notes = note ? [make("p", { class: "note" }, note)] : [];
    return make("div", region, table, ...notes);
  }
  const integerAxis = (sizes) => sizes.map((size) => ({ name: integer(size), value: size }));
  const chipAxis = (chips) => chips.map((chip) => ({ name: chip.label, value: chip }));
  const paragraph = (text) => make("p", {}, text);
  const boundNote = ({ basis }) => (basis === CALIBRATED ? ", by the bound" : "");
  /** Cell with a bottleneck's letter. */
  const boundCell = (bound, tip) => ({ text: bound[0].toUpperCase(), kind: `${bound}-bound`, tip });

  /** Cell with a critical batch, shaded by its logarithm. */
  function criticalCell(workload) {
    const critical = EVALUATION.critical(workload);
    if (critical.outcome === NEVER) {
      const share = shareLimit({ workload, critical });
      const tip = `each token adds more ${critical.limit} time: below ${share} of peak`;
      return { text: "never", kind: "never", tip };
    }
    return { text: thresholdSize(critical), kind: "heat", heat: Math.log(critical.size) };
  }

  /** Tab: critical batches over D and F. */
  function sizes(state) {
    const { chip, dtypes } = state;
    const workload = matmulWorkload(state, chip);
    if (workload.unsupported) return paragraph(unsupportedReasons([workload])[0]);
    const setting = `${chip.label}, ${dtypes.name}`;
    return cellTable({
      caption: `Compute-bound from B tokens: ${setting}${boundNote(state)}`, corner: "D \\ F",
      rows: integerAxis(WIDTHS), columns: integerAxis(WIDTHS),
      workload: (D, F) => matmulWorkload({ ...state, D, F }, chip), cell: criticalCell,
    });
  }

  /** Tab: critical batches over chips and dtypes. */
  function dtypes(state) {
    const { data, showsAllChips, D, F } = state;
    const chips = showsAllChips ? data.chips.filter((chip) => !chip.is_variant) : state.chips;
    const combinations = data.dtypes.filter(({ name }) => data.page.dtypes.includes(name));
    const setting = `D = ${integer(D)}, F = ${integer(F)}`;
    return cellTable({
      caption: `Compute-bound from B tokens: ${setting}${boundNote(state)}`, corner: "chip",
      rows: chipAxis(chips),
      columns: combinations.map((combination) => ({ name: combination.name, value: combination })),
      workload: (chip, combination) => matmulWorkload({ ...state, dtypes: combination }, chip),
      cell: criticalCell,
    });
  }

  /** Tab: bottlenecks over B, and over chips or chip counts. */
  function bottlenecks(state) {
    const { chip, chips, sharding } = state;
    const isSharded = sharding !== "none";
    const shardRows = () => SHARDS
      .map((shards) => ({ name: `${shards} ×`, value: matmulWorkload({ ...state, shards }, chip) }))
      .filter(({ value }) => !value.unsupported);
    const cell = (workload, B) => {
      const times = EVALUATION.times(workload, B);
      const share = percent(peakShare({ workload, times }, times.lower));
      return boundCell(times.bound, `${seconds(times.lower)}, ${share} of peak`);
    };
    const omitted =
      isSharded ? ` Left out: numbers of chips that no network of ${chip.label} joins.` : "";
    return cellTable({
      caption: isSharded ? `Bottleneck of ${chip.label}: B × chips` : "Bottleneck: B × chip",
      corner: isSharded ? "chips \\ B" : "chip \\ B",
      rows: isSharded ? shardRows()
        : chips.map((entry) => ({ name: entry.label, value: matmulWorkload(state, entry) })),
      columns: integerAxis(BATCHES), workload: (workload) => workload, cell,
      note: `${LETTERS}.${omitted} Point at a cell for its time.`,
    });
  }

  /** Tab: bottlenecks over S and B. */
  function context(state) {
    const { chip, model, format, split } = state;
    const lengths = CONTEXTS.filter((S) => !model.context || S <= model.context);
    const rows = lengths.map((S) => (
      { name: integer(S), value: { ...stepWorkload({ ...state, S }, chip), S } }));
    const cell = (workload, B) => {
      if (workload.footprint(B).fits === false) {
        return { text: "full", kind: "never", tip: "does not fit" };
      }
      const { bound, serial } = EVALUATION.times(workload, B);
      const time = timeAt(state, workload, B) ?? serial;
      const rate = tokensAt({ ...state, S: workload.S }, B) / time / split.chips;
      return boundCell(bound, `${seconds(time)}, ${compact(rate)} tokens/s/chip`);
    };
    return cellTable({
      caption: `${model.name} in ${format} on ${split.name} of ${chip.label}: context × batch`,
      corner: "S \\ B", rows, columns: integerAxis(octaves(split.dp, MAX_CONTEXT_BATCH, 1)),
      workload: (workload) => workload, cell,
      note: `${LETTERS}, full: does not fit. Point at a cell for its time.`,
    });
  }

  /** Columns in the kernel tab: functions from a kernel, with its `estimate`, to a cell. */
  function kernelColumns(serial, hasEstimates) {
    const timeCell = (time) => ({ text: time ? seconds(time) : MISSING });
    const resource = (name) => ({ name, value: ({ byResource }) => timeCell(byResource[name]) });
    return [
      { name: "layers", value: (kernel) => ({ text: significant(kernel.count) }) },
      { name: "time", value: ({ time }) => timeCell(time) },
      { name: "share", value: ({ time }) => ({ text: time ? percent(time / serial) : MISSING }) },
      {
        name: "bound",
        value: ({ time, bound }) =>
          (time ? { text: bound, kind: `${bound}-bound` } : { text: "engine" }),
      },
      ...["compute", "memory", "network"].map(resource),
      ...(hasEstimates
        ? [{ name: "calibrated", value: (kernel) => timeCell(kernel.estimate) }] : []),
    ];
  }

  /** Tab: a step's kernels, the longest first. */
  function kernels(state) {
    const { chip, basis, B, S } = state;
    const row = evaluateChip(state, chip);
    if (row.unsupported) return paragraph(unsupportedReasons([row])[0]);
    const estimates = EVALUATION.estimate(row.workload, B)?.kernelSeconds;
    const length = ({ time, estimate }) => (basis === CALIBRATED && estimate) || time;
    const listed = row.times.kernels
      .map((kernel, i) => ({ ...kernel, estimate: estimates?.[i] }))
      .filter(({ time, estimate }) => time || estimate)
      .sort((a, b) => length(b) - length(a));
    const setting = `B = ${integer(B)}, S = ${integer(S)}`;
    return cellTable({
      caption: `Kernels of a step on ${chip.label}${boundNote(state)}, ${setting}`,
      corner: "kernel", rows: listed.map((kernel) => ({ name: kernel.name, value: kernel })),
      columns: kernelColumns(row.times.serial, Boolean(estimates)),
      workload: (kernel) => kernel, cell: (kernel, column) => column(kernel),
    });
  }

  /** Tab: memory and throughput over chips and splits. */
  function splits(state) {
    const { isTraining, microBatch, B, S, chips } = state;
    const roundUp = (size, step) => Math.ceil(size / step) * step;
    const splitRow = (chip, split) => {
      const step = isTraining ? split.dp * microBatch : 1;
      const sizes = { B: roundUp(Math.max(B, split.dp), step), S: roundUp(S, split.cp) };
      return evaluateChip({ ...state, split, ...sizes }, chip);
    };
    const cell = (row, split) => {
      const { times, time, bound, fits, chipRate, footprint } = row;
      const fixed = `${bytes(footprint.fixedBytes)} of ${isTraining ? "states" : "weights"}`;
      const tip = `${seconds(time ?? times.serial)} a step, ${bound}-bound, ${fixed} on a chip`;
      const first =
        isTraining ? bytes(footprint.bytes) : orMissing(integer)(footprint.maxBatch);
      if (fits === false) return { text: `${first} · full`, kind: "never", tip };
      const kind = split === state.split ? "chosen-split" : null;
      return { text: `${first} · ${orMissing(compact)(chipRate)}`, kind, tip };
    };
    const first = isTraining ? "Memory of a chip" : "Largest batch";
    return cellTable({
      caption: `${first} · tokens/s/chip at B = ${integer(B)}`, corner: "chip",
      rows: chipAxis(chips),
      columns: state.splits.map((split) => ({ name: split.name, value: split })),
      workload: splitRow, cell,
    });
  }

  // -------------------------------------------------------------------------------- kernels alone

  /** Tab: critical sizes over chips and letters. */
  function critical(state) {
    const { question, chips } = state;
    if (question.along === null) return paragraph(`${KERNELS.refusal(question)}.`);
    const cell = (kernel, axis) => {
      const threshold = KERNELS.critical(kernel, axis);
      const kind = threshold.outcome === NEVER ? "never" : null;
      return { text: thresholdSize(threshold), kind, tip: criticalText(threshold) };
    };
    const axes = KERNELS.listAxes(question);
    const setting = [question.name, KERNELS.optionsText(question)].filter(Boolean).join(" ");
    return cellTable({
      caption: `Compute-bound from this size on, other sizes fixed: ${setting}${boundNote(state)}`,
      corner: "chip \\ letter", rows: chipAxis(chips),
      columns: axes.map((axis) => ({ name: axis, value: axis })),
      workload: (chip) => kernelWorkload(state, chip), cell,
      note: "≤: compute-bound up to this size. Point at a cell for the sentence.",
    });
  }

  /** Tab: bottlenecks over the curve's letter and chips. */
  function regions(state) {
    const { question, chips } = state;
    if (question.along === null) return paragraph(`${KERNELS.refusal(question)}.`);
    const { name, size } = curveAxis(state);
    const [low, high] = KERNELS.axisEnds(question, name);
    const top = Math.min(high ?? Infinity, Math.max(MIN_TOP, size * 64));
    const sizes = octaves(Math.max(low, Math.round(top / 4096)), top, 1);
    const cell = (kernel, value) => {
      const { bound, lower } = curveTimes(kernel, value);
      return boundCell(bound, seconds(lower));
    };
    return cellTable({
      caption: `Bottleneck: ${name} × chip`, corner: `chip \\ ${name}`, rows: chipAxis(chips),
      columns: integerAxis(sizes), workload: (chip) => kernelWorkload(state, chip), cell,
      note: `${LETTERS.replace("N network", "V vector")}. Point at a cell for its time.`,
    });
  }

  /** Tab: bytes by tensor, FLOP and exponentials: the same on every chip. */
  function amounts(state) {
    const { question } = state;
    const reason = KERNELS.refusal(question);
    if (reason) return paragraph(`${reason}.`);
    const work = KERNELS.workAt(question, question.sizes);
    const { tensors, memoryBytes, flops, vectorFlops, exponentials, pairs, touched } = work;
    const numbers = [
      ...tensors.map(({ name, way, role, bytes: amount }) =>
        [`${name}, ${way}${role === "byte" ? "" : `, ${question.formats[role]}`}`, amount, "B"]),
      ["memory traffic", memoryBytes, "B"], ["matrix FLOP", flops, "FLOP"],
      ["vector FLOP", vectorFlops, "FLOP"], ["exponentials", exponentials, ""],
      ["pairs of a sequence and head", pairs, ""], ["touched", touched, ""],
    ].filter(([, amount]) => amount);
    return cellTable({
      caption: `Bytes and FLOP: ${question.name}, each tensor moved once`, corner: "part",
      rows: numbers.map(([name, ...value]) => ({ name, value })),
      columns: [
        { name: "amount", value: ([amount, unit]) => si(amount, unit) },
        { name: "all digits", value: ([amount]) => significant(amount, ALL_DIGITS) },
      ],
      workload: (value) => value, cell: (value, column) => ({ text: column(value) }),
    });
  }

  return {
    showChips, cellTable,
    tabs: {
      sizes, dtypes, bottlenecks, context, kernels, splits, critical, regions, amounts,
      servers: (...plan) => DEPLOYMENT_VIEWS.servers(...plan),
    },
  };
})();
