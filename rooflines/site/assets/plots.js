"use strict";
/* Two plots: roofline and attained rate, or throughput and step time by kernel.

   A plot has a `note`, and what `SVG.draw` takes, or sentences instead, `messages`. */

const PLOTS = (() => {
  const { significant, si, seconds, integer, percent, compact, counted, joinNames } = NUMBERS;
  const { octaves, sum } = NUMBERS;
  const { FOUND, NEVER, PLATEAU_SHARE } = EVALUATION;
  const { BOUND, CALIBRATED, KERNEL, MODEL, SERVE } = STATE;
  const { featuredRow, findMeasuredRatio, stepWorkload } = STATE;
  const { timeAt, tokensAt, curveAxis, curveTimes, curveEstimate, curveWork } = STATE;
  const { unsupportedReasons, rangeText, thresholdText } = SENTENCES;
  const { $, make } = ROOFLINES;
  const MAX_KERNELS = 6; // named in the plot of step time, the longest; the rest is one
  const PASSES = /-(fwd|bwd|dgrad|wgrad|wgrad-add)$/; // of a layer in training
  const MAX_BATCH = 4096; // of plots of steps
  const [MIN_CONTEXT, MAX_CONTEXT] = [1024, 131072]; // of plots of training
  const SHARE_TICKS = [0, 0.2, 0.4, 0.6, 0.8, 1];

  // ---------------------------------------------------------------------- colours, marks and axes

  const chipColour = ({ colours: { light, dark } }) => `light-dark(${light}, ${dark})`;
  /** Style that sets `--c` to a chip's colour, and a dot in that colour. */
  const chipStyle = (chip) => `--c: ${chipColour(chip)}`;
  const swatch = () => make("span", { class: "swatch", "aria-hidden": "true" });

  /** Mark for `SVG.draw` in a chip's colour. */
  const chipMark = (kind, chip, points, more = {}) =>
    ({ kind, points, colour: chipColour(chip), ...more });
  /** Vertical rule at a size. */
  const sizeRule = (size, text) => ({ kind: "rule", points: [[size, 1]], text });
  /** Outline around the area between two lines. */
  const outline = (above, below) => [...above, ...below.toReversed()];

  const makeAxis = (min, max, title) => ({ min, max, title, format: compact });
  /** Axis around all mark points, margins as factors; `place` is 0 for x, 1 for y. */
  function axisAround(marks, place, { title, below, above }) {
    const values = marks.flatMap(({ points }) => points.map((point) => point[place]));
    return makeAxis(Math.min(...values) / below, Math.max(...values) * above, title);
  }
  /** Axis for rates. */
  const rateAxis = ({ shards }, marks, unit = "FLOP/s") => axisAround(marks, 1,
    { title: shards > 1 ? `${unit} of a chip` : unit, below: 1.6, above: 1.7 });

  /** Dot for the measured number, on the chip that the verdict is about. */
  function measuredDot(rows, position) {
    const { chip, measured } = featuredRow(rows);
    if (!measured) return [];
    const tip = `${chip.label}, measured: ${seconds(measured.time)}`;
    return [{ kind: "dot", points: [position(featuredRow(rows))], colour: "var(--ink)",
      text: "measured", tip }];
  }

  // ------------------------------------------------------------- roofline: matmuls and kernels

  /** Peak; infinite where none is published. */
  const peakRate = ({ rates: { peak } }) => peak ?? Infinity;
  /** Roofline: min(peak, arithmetic intensity × bandwidth) [FLOP/s]. */
  const rooflineAt = (workload, intensity) =>
    Math.min(peakRate(workload), intensity * workload.rates.memory);
  /** Ridge: peak / bandwidth [FLOP/byte]. */
  const ridge = (workload) => peakRate(workload) / workload.rates.memory;
  /** Arithmetic intensity at a size [FLOP/byte]. */
  function intensityAt(workload, size) {
    const { flops, bytes } = curveWork(workload, size);
    return flops / bytes;
  }
  /** Attained rate: FLOPs / time [FLOP/s]; bytes / time [byte/s] for kernels without FLOPs. */
  function attainedRate(workload, size, time) {
    const { flops, bytes } = curveWork(workload, size);
    return (flops || bytes) / time;
  }

  /** Band below a chip's roofline in which timed kernels are. */
  function measuredBand(state, row, intensities) {
    const quantiles = findMeasuredRatio(state, row, true);
    if (!quantiles) return [];
    const line = (ratio) => intensities.map((intensity) =>
      [intensity, rooflineAt(row.workload, intensity) / ratio]);
    const tip = `${quantiles.timings}: ${rangeText(quantiles)} the bound`;
    const points = outline(line(quantiles.p10), line(quantiles.p90));
    return [chipMark("area", row.chip, points, { faint: true, tip })];
  }

  /** Row's dot at its intensity and rate; faint without a time on the chosen basis. */
  function rateDot(state, { chip, workload, time, times }) {
    const { size } = curveAxis(state);
    const intensity = intensityAt(workload, size);
    const rate = attainedRate(workload, size, time ?? times.lower);
    const tip = `${chip.label}: ${si(rate, "FLOP/s")} at ${significant(intensity)} FLOP/B`;
    return chipMark("dot", chip, [[intensity, rate]], { faint: !time, tip });
  }

  /** Kernel traffic without FLOPs, in place of a roofline. */
  function noFlopsText({ chip, times: { work, lower } }) {
    return `${chip.label}: no FLOP, ${si(work.memoryBytes, "B")} in ${seconds(lower)}.`;
  }

  function rooflinePlot(state, rows) {
    const { size } = curveAxis(state);
    const positions = rows.flatMap(({ workload }) =>
      [ridge(workload), intensityAt(workload, size)]).filter(Number.isFinite);
    if (positions.includes(0)) return { messages: rows.map(noFlopsText) };
    const x = makeAxis(Math.min(...positions) / 8, Math.max(...positions) * 6,
      "FLOP per byte of memory traffic");
    const bends = ({ workload }) =>
      [x.min, ridge(workload), x.max].filter(Number.isFinite);
    const bands = rows.flatMap((row) => measuredBand(state, row, bends(row)));
    const rooflines = rows.map((row) => {
      const points = bends(row).map((intensity) =>
        [intensity, rooflineAt(row.workload, intensity)]);
      return chipMark("line", row.chip, points, { label: row.chip.label });
    });
    const dots = [
      ...rows.map((row) => rateDot(state, row)),
      ...measuredDot(rows, ({ workload, measured }) => [
        intensityAt(workload, size), attainedRate(workload, size, measured.time)]),
    ];
    const named = state.subject === KERNEL ? "kernel" : "matmul";
    const dotNote =
      state.shards > 1 ? "A dot below its roof is bound by the network." : `Dots: this ${named}.`;
    const names = joinNames(rows.map(({ chip }) => chip.label));
    return {
      note: bands.length ? `${dotNote} Bands: timed kernels, p10 to p90.` : dotNote,
      label: `Rooflines of ${names}; the numbers are in the table`,
      x, y: rateAxis(state, [...rooflines, ...dots]), marks: [...bands, ...rooflines, ...dots],
    };
  }

  // ----------------------------------- attained rate over B, or a kernel's letter of the curve

  /** Circle at a size, if there is one. */
  const sizeCircle = (chip, size, rate, text) => (size === null ? []
    : [chipMark("circle", chip, [[size, rate]],
      { tip: `${chip.label}: ${text} from ${integer(size)}` })]);

  /** Attained rate over B by the bound, with a circle where it is compute-bound. */
  function boundCurve({ basis }, { chip, workload, critical }, boundLine) {
    if (basis === CALIBRATED) {
      return [chipMark("line", chip, boundLine, { label: `${chip.label} (bound)`, faint: true })];
    }
    const size = critical.outcome === FOUND ? critical.size : null;
    return [
      chipMark("line", chip, boundLine, { label: chip.label, faint: false }),
      ...sizeCircle(chip, size, workload.rates.peak,
        critical.isLargest ? "memory-bound beyond" : "compute-bound"),
    ];
  }

  /** A chip's attained rate over B: bound, or estimate with its band. */
  function rateCurves(state, row, sizes) {
    const { chip, workload, estimate, plateau } = row;
    const rateLine = (time) => sizes.map((B, i) => [B, attainedRate(workload, B, time(B, i))]);
    const boundLine = rateLine((B) => curveTimes(workload, B).lower);
    if (!estimate) return boundCurve(state, row, boundLine);
    const estimates = sizes.map((B) => curveEstimate(workload, B));
    const quantileLine = (i) =>
      rateLine((_, at) => estimates[at].band?.[i] ?? estimates[at].time);
    return [
      chipMark("area", chip, outline(quantileLine(0), quantileLine(1))),
      chipMark("line", chip, boundLine, { faint: true }),
      chipMark("line", chip, rateLine((_, at) => estimates[at].time), { label: chip.label }),
      ...(plateau ? sizeCircle(chip, plateau.size, PLATEAU_SHARE * plateau.rate,
        "90% of its plateau") : []),
    ];
  }

  /** Curve ends in whole decades: they stay while the size is dragged. */
  function curveEnds(state, rows, size) {
    const decade = (round, value) => 10 ** round(Math.log10(value));
    const sizes = rows.map(({ plateau, critical }) => (plateau ?? critical).size ?? 1);
    const smallest = Math.min(size, ...sizes.map((critical) => critical / 32));
    const largest = Math.max(size, 100, ...sizes.map((critical) => critical * 4));
    return [Math.max(1, decade(Math.floor, smallest)), decade(Math.ceil, largest)];
  }

  /** Curve sizes within the axis ends, 4 in each doubling. */
  function curveSizes({ subject, question }, [min, max]) {
    const sizes = octaves(min, max, 4);
    if (subject !== KERNEL) return sizes;
    const { along } = question;
    const [low, high] = KERNELS.axisEnds(question, along);
    const within = sizes.filter((size) => size >= low && size <= (high ?? Infinity));
    return [...new Set([...(low > min && low < max ? [low] : []), ...within,
      ...(high > min && high < max ? [high] : [])])];
  }

  /** Notes under the curve. */
  function curveNote({ subject, basis }, rows) {
    const isLargest = rows.some(({ critical }) => critical.isLargest);
    if (subject === KERNEL && basis === CALIBRATED) {
      return "Bands: p10 to p90 of the calibration; faint lines: bounds.";
    }
    if (basis === CALIBRATED) {
      return "Bands: p10 to p90 of the calibration; faint lines: bounds;"
        + " circles: 90% of the plateau.";
    }
    if (!rows.some(({ critical }) => critical.outcome === FOUND)) return "";
    return `Circles: ${isLargest ? "up to here" : "from here on"} compute-bound.`;
  }

  function attainedPlot(state, rows) {
    const { name, size, title } = curveAxis(state);
    const isMatmul = state.subject !== KERNEL;
    const isNever = rows.every(({ critical }) => critical.outcome === NEVER);
    if (isMatmul && state.basis !== CALIBRATED && isNever) {
      return { messages: rows.map((row) => `${row.chip.label}: ${thresholdText(row)}`) };
    }
    const ends = curveEnds(state, rows, size);
    const marks = [
      ...rows.flatMap((row) => rateCurves(state, row, curveSizes(state, ends))),
      ...measuredDot(rows, ({ workload, measured }) =>
        [size, attainedRate(workload, size, measured.time)]),
    ];
    const hasFlops = rows.every(({ workload }) => curveWork(workload, size).flops);
    return {
      note: curveNote(state, rows),
      label: `Rate attained over ${name}; from which ${name} on is in the table`,
      x: makeAxis(...ends, title), draggedSize: name,
      y: rateAxis(state, marks, hasFlops ? "FLOP/s" : "byte/s"),
      marks: [...marks, sizeRule(size, `${name} = ${integer(size)}`)],
    };
  }

  // ------------------------------------------------------------------------- throughput: steps

  /** Axis for a step's size: its `name`, B or in training S, range and title; `fitting` is the
      largest that fits, `at` gives workload and B for a size. */
  function stepAxis(state, { chip, workload, footprint }) {
    const axis = state.isTraining ? {
      name: "S", title: "S, tokens of a sequence", fitting: footprint.maxContext,
      smallest: MIN_CONTEXT, largest: MAX_CONTEXT,
      at: (S) => ({ workload: stepWorkload({ ...state, S }, chip), B: state.B }),
    } : {
      name: "B", title: "B, sequences", fitting: footprint.maxBatch,
      smallest: state.split.dp, largest: MAX_BATCH, at: (B) => ({ workload, B }),
    };
    const size = state[axis.name];
    const min = Math.min(axis.smallest, size);
    const largest = Math.min(axis.fitting ?? axis.largest, axis.largest);
    return { ...axis, min, max: Math.max(2 * min, size, largest) };
  }

  /** Pareto front: tokens/s/user against tokens/s/chip, over batches that fit. */
  function paretoFront(state, { workload, footprint }) {
    const { dp, chips } = state.split;
    const largest = Math.max(dp, Math.min(footprint.maxBatch ?? MAX_BATCH, MAX_BATCH));
    const points = octaves(dp, largest, 2).map((B) => {
      const time = timeAt(state, workload, B);
      return [tokensAt(state, 1) / time, tokensAt(state, B) / time / chips];
    });
    return points.filter(([, rate], i) =>
      points.slice(0, i).every(([, smallerBatchRate]) => rate > smallerBatchRate));
  }

  function frontPlot(state, rows) {
    const lines = rows.map((row) =>
      chipMark("line", row.chip, paretoFront(state, row).toReversed()));
    const dots = rows.map(({ chip, userRate, chipRate }) => {
      const rates = `${compact(chipRate)} tokens/s/chip, ${significant(userRate)} tokens/s/user`;
      return chipMark("dot", chip, [[userRate, chipRate]],
        { text: chip.label, tip: `${chip.label}: ${rates}` });
    });
    const measured = measuredDot(rows, (row) => [
      tokensAt(state, 1) / row.measured.time,
      tokensAt(state, state.B) / row.measured.time / state.split.chips]);
    const marks = [...lines, ...dots, ...measured];
    return {
      note: `Dots: B = ${integer(state.B)}. A line ends at the largest batch that fits`,
      label: "Tokens/s/chip over tokens/s/user; those of this batch are in the table",
      x: axisAround(marks, 0, { title: "tokens/s/user", below: 1.3, above: 1.2 }),
      y: axisAround(marks, 1, { title: "tokens/s/chip", below: 1.3, above: 1.5 }),
      marks,
    };
  }

  function contextPlot(state, rows) {
    const { S, split } = state;
    const lines = rows.map((row) => {
      const { min, max, at } = stepAxis(state, row);
      const points = octaves(min, Math.min(max, row.footprint.maxContext ?? max), 2)
        .map((context) => {
          const { workload, B } = at(context);
          return [context, (B * context) / timeAt(state, workload, B) / split.chips];
        });
      return chipMark("line", row.chip, points, { label: row.chip.label });
    });
    const measured = measuredDot(rows, (row) =>
      [S, tokensAt(state, state.B) / row.measured.time / split.chips]);
    const marks = [...lines, ...measured];
    return {
      note: "A line ends at the longest context that fits",
      label: "Tokens/s/chip over S; those of this S are in the table",
      x: axisAround(lines, 0, { title: "S, tokens of a sequence", below: 1, above: 1 }),
      y: axisAround(marks, 1, { title: "tokens/s/chip", below: 1.3, above: 1.3 }),
      marks: [...marks, sizeRule(S, `S = ${integer(S)}`)],
    };
  }

  function throughputPlot(state, rows) {
    const isCalibrated = state.basis === CALIBRATED;
    const timed = rows.filter(({ fits, time }) => fits !== false && time !== null);
    if (!timed.length) {
      const lacking = isCalibrated ? "has calibrated steps here" : "holds this step";
      return { messages: [`None of these chips ${lacking}.`] };
    }
    const isPartial = isCalibrated && rows.some(({ time }) => time === null);
    const omitted = isPartial ? "; chips without a calibration are left out" : "";
    const plot = (state.isTraining ? contextPlot : frontPlot)(state, timed);
    return { ...plot, note: `${plot.note}${omitted}.` };
  }

  // ---------------------------------------------------------------- step time by kernel: steps

  /** Kernels by the time that they take, the longest first, as { name, indices }; the last ones
      together. In training a layer's passes are one. `kernelTimes` has a list per size. */
  function kernelGroups(kernels, kernelTimes) {
    const byName = new Map();
    kernels.forEach(({ name }, i) => {
      const layer = name.replace(PASSES, "");
      byName.set(layer, [...(byName.get(layer) ?? []), i]);
    });
    const length = ({ indices }) =>
      sum(indices.map((i) => kernelTimes[0][i] + kernelTimes.at(-1)[i]));
    const groups = [...byName].map(([name, indices]) => ({ name, indices })).filter(length)
      .sort((a, b) => length(b) - length(a));
    const number = groups.length > MAX_KERNELS + 1 ? MAX_KERNELS : groups.length;
    const rest = groups.slice(number);
    const indices = rest.flatMap((group) => group.indices);
    return rest.length
      ? [...groups.slice(0, number), { name: `${rest.length} others`, indices }] : groups;
  }

  /** Kernels' shares in step time as stacked areas, over some sizes. */
  function stackedShares(kernels, sizes, kernelTimes) {
    const totals = kernelTimes.map(sum);
    let top = sizes.map((size) => [size, 0]);
    return kernelGroups(kernels, kernelTimes).flatMap(({ name, indices }, place) => {
      const bottom = top;
      top = bottom.map(([size, share], k) =>
        [size, share + sum(indices.map((i) => kernelTimes[k][i])) / totals[k]]);
      const colour = `var(--kernel-${place})`;
      const labelPoint = [sizes.at(-1), (bottom.at(-1)[1] + top.at(-1)[1]) / 2];
      return [
        { kind: "area", points: outline(top, bottom), colour, tip: name, solid: true },
        { kind: "line", points: [labelPoint], colour, label: name },
      ];
    });
  }

  /** Basis for the shares, in a state that asks for estimates. */
  function basisNote({ basis }, isCalibrated) {
    if (isCalibrated) return "Calibrated.";
    return basis === CALIBRATED ? "Shares by the bound." : "";
  }

  /** Measured time over the shown one. */
  const measuredNote = ({ measured }, time) => (measured
    ? ` Measured: ${seconds(measured.time)}, ${significant(measured.time / time)} times it.` : "");

  /** Rule at the critical batch, where the axis has it. */
  function criticalRule({ isTraining, basis, B }, { critical: { outcome, size } }, max) {
    const isShown = !isTraining && basis === BOUND && outcome === FOUND && size <= max;
    return isShown && size !== B ? [sizeRule(size, `compute-bound from ${integer(size)}`)] : [];
  }

  function stepTimePlot(state, row) {
    const { isTraining } = state;
    if (row.unsupported) return { messages: unsupportedReasons([row]) };
    const { name, fitting, min, max, at, title } = stepAxis(state, row);
    if (fitting === 0) {
      const fixed = isTraining ? "states" : "weights";
      return { messages: [`The ${fixed} alone do not fit ${row.chip.label}.`] };
    }
    const isCalibrated = Boolean(row.estimate?.kernelSeconds);
    const timesAt = (size) => {
      const { workload, B } = at(size);
      return isCalibrated ? EVALUATION.estimate(workload, B).kernelSeconds
        : EVALUATION.times(workload, B).kernels.map(({ time }) => time);
    };
    const sizes = octaves(min, max, 3);
    const areas = stackedShares(row.workload.kernels, sizes, sizes.map(timesAt));
    const size = state[name];
    const time = row.time ?? row.times.serial;
    const rules = [
      ...criticalRule(state, row, max),
      sizeRule(size, `${name} = ${integer(size)}: ${seconds(time)}`),
    ];
    const noun = isTraining ? "token" : "sequence";
    const exceeds = fitting !== null && size > fitting;
    return {
      note: exceeds ? `More than ${counted(fitting, noun)} do not fit.`
        : `${basisNote(state, isCalibrated)}${measuredNote(row, time)}`.trim(),
      label: `Shares of kernels over ${name}; the numbers are in the tab of kernels`,
      x: makeAxis(min, max, title), draggedSize: name,
      y: { min: 0, max: 1.06, ticks: SHARE_TICKS, title: "share of step time", format: percent },
      marks: [...areas, ...rules],
    };
  }

  // ----------------------------------------------------------------------------------- the figures

  /** Show a plot in its figure; `onDrag` takes a dragged size, name and value. */
  function showPlot(id, title, { note = "", messages, draggedSize, ...plot }, onDrag) {
    const [heading, frame, caption] = $(id).children;
    heading.textContent = title;
    const draggedName = plot.draggedName ?? draggedSize;
    const hint =
      draggedSize ? make("span", {}, ` Drag the rule to change ${draggedName}.`) : "";
    caption.replaceChildren(note, hint);
    frame.onpointerdown = null;
    frame.onpointermove = null;
    if (messages) {
      const paragraphs = messages.map((text) => make("p", {}, text));
      frame.replaceChildren(make("div", { class: "messages" }, ...paragraphs));
      return;
    }
    const onDragTo =
      draggedSize ? (size) => onDrag(draggedSize, plot.sizeAt?.(size) ?? size) : null;
    SVG.draw(frame, { ...plot, onDrag: onDragTo });
  }

  /** Draw both plots; for a served model they show a plan, not rows. */
  function draw(state, rows, onDrag) {
    if (state.subject === SERVE) {
      const [front, token] = DEPLOYMENT_VIEWS.plots(state, rows);
      showPlot("left", "Output tokens/s/chip over tokens/s/user", front, onDrag);
      const title = `TPOT over batch, mixed servers of ${state.chip.label}`;
      showPlot("right", title, token, onDrag);
      return;
    }
    const supported = rows.filter(({ unsupported }) => !unsupported);
    if (state.subject === MODEL) {
      const { isTraining, chip } = state;
      const throughputTitle = isTraining
        ? "Tokens/s/chip in training over S" : "Tokens/s/chip over tokens/s/user";
      showPlot("left", throughputTitle, throughputPlot(state, supported), onDrag);
      const title = `Step time by kernel over ${isTraining ? "S" : "B"} on ${chip.label}`;
      const row = rows.find((candidate) => candidate.chip === chip);
      showPlot("right", title, stepTimePlot(state, row), onDrag);
      return;
    }
    const reasons = supported.length ? null : { messages: unsupportedReasons(rows) };
    showPlot("left", "Roofline", reasons ?? rooflinePlot(state, supported), onDrag);
    const name = state.subject === KERNEL ? state.question.along ?? "a size" : "B";
    showPlot("right", `Attained over ${name}`, reasons ?? attainedPlot(state, supported), onDrag);
  }

  return { draw, chipStyle, swatch, chipMark, sizeRule, axisAround };
})();
