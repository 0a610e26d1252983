"use strict";
/* Kernels asked alone: works, times, critical sizes, estimates. No page is needed.

   This script is loaded when a kernel is chosen, like its data.

   No formula is here: the page's data have them, from the table of kinds, as nested lists, an
   operator or a function with its arguments. `evaluate` is the one evaluator.

   A question has the `kind`, its `form` under the options, `sizes` by letter, `formats` by dtype
   role and the `compute` dtype. A kernel is a question on a chip, with `rates`. */

const KERNELS = (() => {
  const { TOLERANCE, firstInteger } = NUMBERS;
  const { FOUND, ALWAYS, NEVER, BEYOND } = EVALUATION;
  const [COMPUTE, VECTOR, MEMORY] = ["compute", "vector", "memory"];
  const RESOURCES = [COMPUTE, VECTOR, MEMORY]; // the first of equal times is the bottleneck
  const PLAIN = "plain"; // variant without a flag
  const BYTE_BITS = 8;
  const MAX_SIZE = 2 ** 53;
  const LIMIT_SIZE = 2 ** 200; // where the intensity along an axis has reached its limit
  const MIN_LIMIT = 2 ** 24; // of sizes that can be typed
  const SIZE_ROOM = 64; // sizes on a slider over the example's

  // ----------------------------------------------------------------------------------- formulas

  /** Sum over the first positive terms in an arithmetic series, start - i · stride. */
  function series(start, stride, count) {
    const terms = Math.min(count, Math.ceil(start / stride));
    return terms * start - (stride * terms * (terms - 1)) / 2;
  }
  /** A convolution's output positions, along one side. */
  const windows = (size, kernel, stride, pad) =>
    Math.floor((size + 2 * pad - kernel) / stride) + 1;
  /** Pairs (output, kernel position) inside the image, along one side. */
  function taps(size, kernel, stride, pad) {
    const count = windows(size, kernel, stride, pad);
    const outside = (start) => series(Math.max(start, 0), stride, count)
      - series(Math.max(start - kernel, 0), stride, count);
    const end = (count - 1) * stride + kernel;
    return count * kernel - outside(pad) - outside(end - size - pad);
  }
  /** Experts that tokens activate in the mean, E (1 - (1 - k/E)^B). */
  function activated(tokens, experts, perToken) {
    if (perToken >= experts) return experts;
    return experts * -Math.expm1(tokens * Math.log1p(-perToken / experts));
  }
  const FUNCTIONS = {
    "+": (a, b) => a + b, "-": (a, b) => a - b, "*": (a, b) => a * b, "%": (a, b) => a % b,
    "==": (a, b) => a === b, "<=": (a, b) => a <= b, ">=": (a, b) => a >= b,
    "&": (a, b) => a && b, "//": (a, b) => Math.floor(a / b),
    min: Math.min, max: Math.max, half: (product) => product / 2, ratio: (a, b) => a / b,
    activated, windows, taps,
  };

  /** Formula's value; `resolve` gives names their values. */
  function evaluate(formula, resolve) {
    if (typeof formula === "number") return formula;
    if (typeof formula === "string") return resolve(formula);
    const [name, ...parts] = formula;
    return FUNCTIONS[name](...parts.map((part) => evaluate(part, resolve)));
  }

  /** Function that evaluates a question's formulas, by index, at sizes; `named` are further names.

      Letters that are not given have their defaults. */
  function evaluator({ data, form, blocks }, sizes, named = {}) {
    const values = { blocks, ...named, ...sizes };
    const resolve = (name) => values[name] ??= at(form.names[name] ?? data.message_values[name]);
    const at = (index) => evaluate(data.formulas[index], resolve);
    return { at, resolve };
  }

  // -------------------------------------------------------------------------------- the question

  /** Form's key: choices, variant and optional letters. */
  const formKey = (choices, variant, optional) => [
    ...Object.entries(choices).map(([name, value]) => `${name} ${value}`),
    ...(variant === PLAIN ? [] : [variant]), ...optional,
  ].join(", ");

  /** Letter's largest size that can be typed, and largest on its slider. */
  const sizeLimits = (size) => ({
    max: Math.max(MIN_LIMIT, 2 ** Math.ceil(Math.log2(Math.max(size, 1) * SIZE_ROOM))),
    sliderMax: 2 ** Math.ceil(Math.log2(Math.max(size, 16) * SIZE_ROOM)),
  });

  /** Kind's choices and variant, as menus. */
  function readOptions({ choices, flags, example }, option) {
    const chosen = Object.entries(choices).map(([name, values]) =>
      [name, option(name, values, { preferred: example.options[name] ?? values[0] })]);
    const preferred = flags.find((flag) => example.options[flag]) ?? PLAIN;
    const variant = flags.length ? option("variant", [PLAIN, ...flags], { preferred }) : PLAIN;
    return { choices: Object.fromEntries(chosen), variant };
  }

  /** Kind's dtypes, as menus: the plain format, formats by role, and the compute dtype.

      `canCompute` tells if a chip has a peak in a format. */
  function readFormats({ unit, roles, example }, { formats: catalogue }, option, canCompute) {
    const names = Object.keys(catalogue);
    const isMatrix = unit === "matrix";
    const hasFormat = isMatrix || Object.keys(roles).length > 0;
    const plain = !hasFormat ? example.dtypes : option("dtypes", names, {
      preferred: example.dtypes, isDisabled: (name) => isMatrix && !canCompute(name),
    });
    const typed = {};
    const formats = {};
    /** Role's format: as typed, else the usual one. */
    const roleFormat = (role, usual, isDisabled = () => false) => {
      const asUsual = { id: "", label: `${usual}, as usual` };
      const preset = example.roles[role];
      const options = preset ? names : [asUsual, ...names];
      const chosen = option(role, options, { preferred: preset ?? asUsual, isDisabled });
      if (chosen === asUsual) return usual;
      typed[role] = chosen;
      return chosen;
    };
    for (const [role, default_] of Object.entries(roles)) {
      const usual = default_ === "wide" ? catalogue[plain].wide : formats[default_] ?? plain;
      formats[role] = roleFormat(role, usual);
    }
    const compute = isMatrix
      ? roleFormat("compute", plain, (name) => typeof name === "string" && !canCompute(name))
      : "fp32";
    return { plain, typed, formats, compute, hasFormat };
  }

  /** Letters along which a question has thresholds. */
  const listAxes = ({ kind, form, sizes }) => Object.keys(form.axes ?? {}).filter((axis) =>
    axis in sizes || (!form.axes[axis].needs_size && !kind.optional.includes(axis)));

  /** Question about a kind from the settings in an address. */
  function read(name, data, parameters, { option, size }, canCompute) {
    const kind = data.kinds[name];
    const { example, letters } = kind;
    const { choices, variant } = readOptions(kind, option);
    const optional = kind.optional.filter((letter) => parameters.has(letter));
    const key = formKey(choices, variant, optional);
    const form = kind.forms[key];
    const { plain, typed, formats, compute, hasFormat } =
      readFormats(kind, data, option, canCompute);
    const sizes = {};
    for (const [letter, { min }] of Object.entries(letters)) {
      const usual = example.sizes[letter];
      if (usual !== undefined || parameters.has(letter)) {
        sizes[letter] = size(letter, usual ?? min, { min, max: sizeLimits(usual ?? 0).max });
      }
    }
    const blocks = Math.max(0, ...Object.values(formats).map((format) =>
      data.formats[format].blocks));
    const question = {
      name, data, kind, form, key, choices, variant, plain, typed, formats, compute, sizes,
      blocks, hasFormat, isVector: kind.unit === VECTOR,
    };
    const axes = listAxes(question);
    const along = axes.length
      ? option("along", axes, { preferred: axes.includes(form.along) ? form.along : axes[0] })
      : null;
    return { ...question, along, isMean: Boolean(form.strict) };
  }

  /** Letter's size, its default where it is not given; null where it is left out. */
  function letterSize(question, letter) {
    const { sizes, kind, choices } = question;
    if (letter in sizes) return sizes[letter];
    const form = kind.forms[formKey(choices, PLAIN, [])]; // options may rule out the chosen one
    if (kind.optional.includes(letter) || !(letter in form.names)) return null;
    return evaluator({ ...question, form }, sizes).resolve(letter);
  }

  /** Reason why sizes or options are refused; null if they are not. */
  function refusal(question) {
    const { form, sizes } = question;
    if (form.reason) return form.reason;
    const { at, resolve } = evaluator(question, sizes);
    const failed = form.checks.find(([index]) => !at(index));
    return failed ? failed[1].replace(/\{(\w+)\}/g, (_, name) => resolve(name)) : null;
  }

  /** Options and dtypes in words. */
  function optionsText({ choices, variant }) {
    return [...Object.values(choices), ...(variant === PLAIN ? [] : [variant])].join(" ");
  }
  function dtypesText({ plain, typed, hasFormat }) {
    const roles = Object.entries(typed).map(([role, format]) => `${role} ${format}`);
    return [...(hasFormat ? [plain] : []), ...roles].join(", ");
  }

  // ------------------------------------------------------------------------------ works and times

  /** Work at sizes: FLOP, bytes by tensor, exponentials. */
  function workAt(question, sizes) {
    const { form, formats, data } = question;
    const scope = evaluator(question, sizes);
    const bits = (role) => (role === "byte" ? BYTE_BITS : data.formats[formats[role]].bits);
    const tensors = form.tensors.map(([name, role, index, way]) => (
      { name, way, role, bytes: (scope.at(index) * bits(role)) / BYTE_BITS }));
    const first = (way) => tensors.find((tensor) => tensor.way === way)?.bytes ?? 0;
    const columns = Object.entries(form.columns).map(([name, index]) => [name, scope.at(index)]);
    const [flops, vectorFlops] = [scope.at(form.flops), scope.at(form.vector_flops)];
    return {
      flops, vectorFlops, exponentials: scope.at(form.exponentials), tensors,
      unitFlops: question.isVector ? vectorFlops : flops,
      memoryBytes: NUMBERS.sum(tensors.map(({ bytes }) => bytes)),
      inputBytes: first("read"), resultBytes: first("write"), ...Object.fromEntries(columns),
    };
  }

  /** Sizes with another one along an axis, and the letter that follows it. */
  function sizesAlong(question, axis, size) {
    const { form, sizes } = question;
    const follower = form.axes[axis]?.follower;
    if (!follower) return { ...sizes, [axis]: size };
    const { resolve } = evaluator(question, sizes);
    return { ...sizes, [axis]: size, [follower]: resolve(follower) - resolve(axis) + size };
  }

  /** Work's times [s], the longest and the bottleneck; null: no work, or no published rate. */
  function workTimes({ isVector, rates }, work) {
    const { peak, memory, vector } = rates;
    const vectorTime = work.vectorFlops && vector ? work.vectorFlops / vector : null;
    const byResource = {
      [COMPUTE]: isVector ? vectorTime : work.flops / peak,
      [VECTOR]: isVector ? null : vectorTime,
      [MEMORY]: work.memoryBytes / memory,
    };
    const present = RESOURCES.filter((resource) => byResource[resource] !== null);
    const seconds = present.map((resource) => byResource[resource]);
    const lower = Math.max(...seconds);
    const bound = present.find((resource) => byResource[resource] >= lower * (1 - TOLERANCE));
    return { byResource, lower, bound, upper: NUMBERS.sum(seconds), work };
  }
  const timesAt = (kernel, sizes) => workTimes(kernel, workAt(kernel, sizes));

  // ------------------------------------------------------------------------------ critical sizes

  /** Axis ends; null: none. */
  function axisEnds(question, axis) {
    const { sizes, form } = question;
    const { low, high, default_low: follows } = form.axes[axis];
    const { at } = evaluator(question, sizes);
    return [follows && !(follows in sizes) ? 1 : at(low), high === null ? null : at(high)];
  }

  /** FLOP per byte at a size along an axis. */
  function intensityAlong(question, axis, size) {
    const { unitFlops, memoryBytes } = workAt(question, sizesAlong(question, axis, size));
    return unitFlops / memoryBytes;
  }

  /** Intensity that an axis tends to, or has at its end; null: infinite. */
  function limitIntensity(question, axis, end) {
    if (end !== null) return intensityAlong(question, axis, end);
    const [near, far] = [1, 2].map((power) =>
      intensityAlong(question, axis, LIMIT_SIZE ** power));
    return far <= 2 * near ? far : null;
  }

  /** Critical size along an axis: the smallest from which math takes as long as memory, or, where
      growth makes a kernel memory-bound, the largest. */
  function critical(kernel, axis) {
    const record = kernel.form.axes[axis];
    const { is_largest: isLargest } = record;
    const [low, end] = axisEnds(kernel, axis);
    const max = end ?? MAX_SIZE;
    const holds = (size) => {
      const { byResource: { compute, memory } } = timesAt(kernel, sizesAlong(kernel, axis, size));
      const isComputeBound = compute !== null && compute >= memory * (1 - TOLERANCE);
      return isComputeBound !== isLargest;
    };
    const { peak, memory } = kernel.rates;
    const answer = (outcome, size = null) => ({
      axis, outcome, size, isLargest, limit: MEMORY,
      limitIntensity: limitIntensity(kernel, axis, end), ridge: peak ? peak / memory : null,
    });
    const crossing = low <= max ? firstInteger(low, max, holds) : null;
    if (crossing === low) return answer(isLargest ? NEVER : ALWAYS);
    if (crossing !== null) return answer(FOUND, isLargest ? crossing - 1 : crossing);
    if (isLargest) return answer(ALWAYS, end);
    return answer(end === null && holds(LIMIT_SIZE) ? BEYOND : NEVER);
  }

  // ----------------------------------------------------------------------------------- estimates

  /** Fit that applies to a question on a chip; null without one. */
  function findFit({ data, form, formats, compute, sizes, ...question }, chip) {
    const { timed } = form;
    const fits = data.fits[chip.id];
    if (!timed || !fits) return null;
    const { at, resolve } = evaluator({ data, form, ...question }, sizes);
    if (!at(timed.condition)) return null;
    const plain = timed.fits === "experts" ? `experts ${formats.w} ${compute}`
      : `attention ${timed.phase} ${compute}`;
    const heads = timed.fits === "attention" && resolve("N") > resolve("K") ? "shared" : "single";
    return data.numbers[fits[`${plain} ${formats.cache} ${heads}`] ?? fits[plain]] ?? null;
  }

  /** Nominal quantities that a fit reads: seconds by traffic and math, and counts. */
  function nominalQuantities(kernel, sizes) {
    const { form: { timed }, nominal } = kernel;
    const work = workAt(kernel, sizes);
    const { flops, memoryBytes, inputBytes, resultBytes } = work;
    const { at } = evaluator(kernel, sizes,
      { input_bytes: inputBytes, result_bytes: resultBytes });
    const values = (formulas) =>
      Object.entries(formulas).map(([name, index]) => [name, at(index)]);
    const rest = memoryBytes - inputBytes - resultBytes;
    const bytes = {
      memory: rest + at(timed.activation_bytes), x: inputBytes, out: resultBytes,
      ...Object.fromEntries(values(timed.bytes)),
    };
    const seconds = Object.entries(bytes).map(([name, amount]) => [name, amount / nominal.memory]);
    const counts = Object.fromEntries(values(timed.counts));
    return { quantities: { ...Object.fromEntries(seconds), ...counts, math: flops / nominal.peak },
      counts };
  }

  /** Affine sum over quantities; a missing one is zero. */
  const affine = (factors, quantities) => NUMBERS.sum(Object.entries(factors)
    .map(([name, factor]) => factor * (name ? quantities[name] ?? 0 : 1)));

  /** Estimate at sizes with its band, and how it lies beyond the timings; null without a fit. */
  function estimateAt(kernel, sizes) {
    const { fit } = kernel;
    if (!fit) return null;
    const { quantities, counts } = nominalQuantities(kernel, sizes);
    const pieces = fit.pieces.map(({ bound, sums }) =>
      ({ bound, seconds: Math.min(...sums.map((sum) => affine(sum, quantities))) }));
    const largest = pieces.reduce((a, b) => (b.seconds > a.seconds ? b : a));
    const time = affine(fit.common, quantities) + largest.seconds;
    const isOutside = Object.entries(fit.sizes).some(([name, [low, high]]) =>
      name in counts && (counts[name] < low || counts[name] > high));
    const bands = [
      fit.bands[largest.bound], isOutside ? fit.out_of_range_band : null, fit.other_engine_band,
    ].filter(Boolean);
    const [lows, highs] = [0, 1].map((end) => bands.map((ratios) => ratios[end]));
    const ends = [Math.min(...lows), Math.max(...highs)];
    const band = bands.length ? ends.map((ratio) => ratio * time) : null;
    return { time, band, bound: largest.bound, isOutside, isOtherEngine: fit.is_other_engine };
  }

  // ------------------------------------------------------------------------------------- commands

  /** Command's words that ask the same on a chip. */
  function commandWords(question, chip) {
    const { name, kind, choices, variant, sizes, plain, typed, hasFormat } = question;
    const chosen = Object.entries(choices).filter(([option, value]) =>
      value !== kind.choices[option][0]);
    return [
      "rooflines explain", chip.id, name,
      ...Object.entries(sizes).map(([letter, size]) => `${letter}=${size}`),
      ...chosen.map(([option, value]) => `${option}=${value}`),
      ...(variant === PLAIN ? [] : [variant]), ...(hasFormat ? [plain] : []),
      ...Object.entries(typed).map(([role, format]) => `${role}=${format}`),
    ];
  }

  return {
    VECTOR, evaluate, sizeLimits, read, listAxes, axisEnds, letterSize, refusal, optionsText,
    dtypesText, workAt, sizesAlong, timesAt, critical, findFit, estimateAt, commandWords,
  };
})();
