"use strict";
/* URL state, and a row for each chip. No page is needed.

   `data` comes from explorer.py: matmuls, model `steps`, and `kernels` once one is chosen. */

const STATE = (() => {
  const { ceil, integer } = NUMBERS;
  const { PLATEAU_SHARE } = EVALUATION;
  const [MATMUL, MODEL, KERNEL, SERVE] = ["matmul", "model", "kernel", "serve"];
  const [SERVING, TRAIN] = ["serving", "train"];
  const [DECODE, PREFILL] = ["decode", "prefill"];
  const [BOUND, CALIBRATED] = ["bound", "calibrated"];
  const [MAX_CHIPS, MAX_SIZE, MAX_COUNT] = [8, 2 ** 24, 4096];
  const MAX_TOKENS = 2 ** 20; // of a prompt or an answer
  const NO_LIMIT = "none"; // of TPOT or TTFT
  const MS = 1e-3;
  const BANDWIDTH_GAIN = 1.1; // a tenth more memory bandwidth
  const MILLION = 1e6;
  const SECONDS_PER_HOUR = 3600;
  const AUTO = "auto"; // calibration that commands take by default
  /** Settings that a choice resets, since the next choice may not have them. */
  const RESETS = {
    subject: { B: null, tab: null, sort: null, measured: null }, model: { format: null },
  };

  // ----------------------------------------------------------------------- the state's settings

  /** Tell if a state has all words, or an alternative where | is between: a subject, serving or
      training, a phase, for kernels whether their bound is a mean over routings, a time basis. */
  function matchesState(state, words) {
    const isModel = state.subject === MODEL;
    const use = state.isTraining ? TRAIN : SERVING;
    const routing = state.question?.isMean ? "mean" : "strict";
    const matching = [
      state.subject, isModel ? use : null, isModel ? state.phase : null,
      state.subject === KERNEL ? routing : null, state.basis,
    ];
    const isMatch = (word) => word.split("|").some((option) => matching.includes(option));
    return words.split(" ").filter(Boolean).every(isMatch);
  }

  /** Positive number that a text writes; null if it is none. */
  function parseNumber(text) {
    const isNumber = /^\d{1,20}(\.\d{1,20})?(e[+-]?\d{1,2})?$/i.test(text);
    return isNumber && Number(text) > 0 ? Number(text) : null;
  }

  /** Custom numbers by chip and quantity, from `chip.quantity:value` with commas between. */
  function parseCustomNumbers(text, { chips, page }, unavailable) {
    const numbers = {};
    for (const item of text.split(",").filter(Boolean)) {
      const [, chip, quantity, value] = /^(.+)\.(\w+):(.*)$/.exec(item) ?? [];
      const exists = chips.some(({ id }) => id === chip) && quantity in page.custom_numbers;
      const number = exists ? parseNumber(value) : null;
      if (number) numbers[`${chip}.${quantity}`] = number;
      else {
        const reason = "of no chip, or no number above 0; left out";
        unavailable.push({ name: "custom number", value: item, reason });
      }
    }
    return numbers;
  }

  /** Chips by id; a family's name stands for its usual chip. */
  function findChips(ids, { chips, default_chips: defaults }, unavailable) {
    const matches = ids.flatMap((id) => {
      const exact = chips.find((chip) => chip.id === id);
      const match = exact ?? chips.find((chip) => chip.usual === id);
      if (!exact) {
        const reason = match ? `shown is ${match.id}` : "unknown";
        unavailable.push({ name: "chip", value: id, reason });
      }
      return match ?? [];
    });
    const distinct = [...new Set(matches)];
    if (distinct.length > MAX_CHIPS) {
      const reason = `more than ${MAX_CHIPS} chips; shown are the first`;
      unavailable.push({ name: "chips", value: "", reason });
    }
    if (!distinct.length) return findChips(defaults, { chips }, unavailable);
    return distinct.slice(0, MAX_CHIPS);
  }

  /** Measured number in the address; null without one. */
  function readMeasurement(text, { measured_scales: scales }, unavailable) {
    const measurement = text ? MEASUREMENT.parse(text, scales) : null;
    if (text && !measurement) {
      const reason = "no number above 0 with a unit, such as 30ms, 9500tok/s/gpu or 41%mfu";
      unavailable.push({ name: "measured", value: text, reason });
    }
    return measurement;
  }

  const optionId = (option) => option.id ?? option.name ?? option;
  const optionText = (option) => option.label ?? option.name ?? option;

  /** Settings reader; `menus` collects options, `unavailable` refused values. */
  function settingReader(parameters, menus, unavailable) {
    /** Menu option by its id, by default the first. */
    function option(name, options, { preferred = options[0], isDisabled = () => false } = {}) {
      const value = parameters.get(name);
      const match = options.find((entry) => optionId(entry) === value);
      if (value !== null && !match) {
        unavailable.push({ name, value, reason: `unknown; shown is ${optionId(preferred)}` });
      }
      const chosen = match ?? preferred;
      menus[name] = {
        options: options.map((entry) => (
          { value: optionId(entry), text: optionText(entry), disabled: isDisabled(entry) })),
        value: optionId(chosen),
      };
      return chosen;
    }
    /** Multiple of `step` that is nearest to the number in the address. */
    function size(name, preferred, { step = 1, min = step, max = MAX_SIZE } = {}) {
      const usual = String(Math.ceil(Math.max(preferred, min) / step) * step);
      const text = parameters.get(name) ?? usual;
      const number = Number(text);
      const rounded = Math.round((number || (number === min ? min : preferred)) / step) * step;
      const nearest = Math.min(max - (max % step), Math.max(min, rounded));
      if (text !== String(nearest)) {
        const kind = step > 1 ? `multiple of ${step}` : "whole number";
        const reason =
          `no ${kind} from ${min} to ${integer(max)}; shown is ${integer(nearest)}`;
        unavailable.push({ name, value: text, reason });
      }
      return nearest;
    }
    /** Limit on a time, in the address in ms [s]; Infinity: none. */
    function limit(name, preferred) {
      const text = parameters.get(name) ?? String(preferred);
      if (text === NO_LIMIT) return Infinity;
      const number = parseNumber(text);
      if (!number) {
        const reason = `no number of ms above 0; shown is ${preferred}`;
        unavailable.push({ name, value: text, reason });
      }
      return (number ?? preferred) * MS;
    }
    return { option, size, limit };
  }

  /** The state: every setting in an address, with defaults.

      `parameters` is a URLSearchParams. In the state, `unavailable` has settings that the page
      does not have, as { name, value, reason }; `menus` has options and the chosen one. */
  function read(parameters, data) {
    const { dtypes, steps, page: { defaults, tabs, shardings } } = data;
    const [unavailable, menus] = [[], {}];
    const { option, size, limit } = settingReader(parameters, menus, unavailable);
    const chosen = option("subject", [MATMUL, MODEL, SERVE, ...data.kinds]);
    const isKernel = data.kinds.includes(chosen) && Boolean(data.kernels); // they are loaded late
    const subject = [MODEL, SERVE].includes(chosen) ? MODEL : MATMUL;
    const ids = parameters.get("chips")?.split(",") ?? data.default_chips;
    const chips = findChips(ids, data, unavailable);
    if (isKernel) return readKernel(chosen, { chips, menus, option, size, parameters, unavailable,
      data });
    if (chosen === SERVE && data.servesModels) {
      return readServe({ chips, menus, option, size, limit, parameters, unavailable, data });
    }
    const phase = option("phase", steps.phases);
    const isTraining = subject === MODEL && phase === TRAIN;
    const choices = steps.choices[isTraining ? TRAIN : SERVE];
    const { splits, formats } = choices;
    const model = option("model", steps.models, { preferred: steps.models[choices.model] });
    const split = option(isTraining ? "plan" : "split", splits, {
      preferred: splits[choices.split],
      isDisabled: (entry) => entry.option.includes("ep=") && !model.has_experts,
    });
    const microBatch = isTraining ? size("micro_batch", 1, { max: MAX_COUNT }) : 1;
    const globalMicroBatch = subject === MODEL ? split.dp * microBatch : 1;
    const sharding = optionId(option("sharding", shardings));
    const state = {
      subject, chips, model, split, sharding, menus, phase, isTraining, splits, microBatch,
      shards: sharding === "none" ? 1 : size("shards", 8, { max: MAX_COUNT }),
      dtypes: option("dtypes", dtypes, {
        isDisabled: ({ compute }) => !chips.some(({ peaks }) => peaks[compute]),
      }),
      format: readFormat(option, formats, model, steps),
      B: size("B", defaults.B[subject],
        { step: isTraining ? globalMicroBatch : 1, min: globalMicroBatch }),
      D: size("D", defaults.D), F: size("F", defaults.F),
      S: size("S", defaults.S, { step: split.cp }),
      tab: option("tab", tabs[isTraining ? TRAIN : subject]),
      ...readCommon(data, { chips, option, parameters, unavailable }),
    };
    return withBasis(state, parameters, option);
  }

  /** Model's format, by default the published one. */
  const readFormat = (option, formats, model, steps) => option("format", formats, {
    preferred: formats.find((name) => name === model.format),
    isDisabled: (name) => !model.has_experts && steps.formats[name].includes("experts="),
  });

  /** Settings that every subject has. */
  function readCommon(data, { chips, option, parameters, unavailable }) {
    return {
      custom: parseCustomNumbers(parameters.get("custom") ?? "", data, unavailable),
      measured: parameters.get("measured") ?? "",
      measurement: readMeasurement(parameters.get("measured"), data, unavailable),
      chip: option("chip", chips),
      sort: parameters.get("sort") ?? "",
      showsAllChips: option("rows", ["chosen", "all"]) === "all",
      unavailable, data,
    };
  }

  /** State for a served model. */
  function readServe(settings) {
    const { chips, menus, option, size, limit, parameters, data } = settings;
    const { steps, page: { defaults, tabs } } = data;
    const { formats, model: preferred } = steps.choices[SERVE];
    const model = option("model", steps.models, { preferred: steps.models[preferred] });
    const counts = steps.servers.chips.map(String);
    const state = {
      subject: SERVE, chips, menus, model, isTraining: false, microBatch: 1, shards: 1,
      sharding: "none", format: readFormat(option, formats, model, steps),
      given: Number(option("given", counts, { preferred: counts.at(-1) })),
      isl: size("isl", defaults.isl, { max: MAX_TOKENS }),
      osl: size("osl", defaults.osl, { max: MAX_TOKENS }),
      tpot: limit("tpot", defaults.tpot), ttft: limit("ttft", defaults.ttft),
      tab: option("tab", tabs[SERVE]), ...readCommon(data, settings),
    };
    return withBasis(state, parameters, option);
  }

  /** State for a question about a kernel. */
  function readKernel(kind, settings) {
    const { chips, menus, option, size, parameters, data } = settings;
    const canCompute = (format) => chips.some(({ peaks }) => peaks[format]);
    const question = KERNELS.read(kind, data.kernels, parameters, { option, size }, canCompute);
    const state = {
      subject: KERNEL, chips, menus, question, isTraining: false, shards: 1, sharding: "none",
      dtypes: { name: KERNELS.dtypesText(question), compute: question.compute },
      tab: option("tab", data.page.tabs[KERNEL]), ...readCommon(data, settings),
    };
    return withBasis(state, parameters, option);
  }

  /** State with its time basis: by default estimates where all chips have them. */
  function withBasis(state, parameters, option) {
    const { subject, model } = state;
    const isLoading = [MODEL, SERVE].includes(subject) && !model.steps;
    const lacking = isLoading ? [] : chipsWithoutEstimate(state);
    const basis = option("basis", [BOUND, CALIBRATED],
      { preferred: lacking.length ? BOUND : CALIBRATED });
    const isLacking = basis === BOUND && !parameters.has("basis");
    return { ...state, basis, lacking: isLacking ? lacking : [] };
  }

  /** Chosen chips that can run what is asked, and have no calibration of it. */
  function chipsWithoutEstimate(state) {
    return state.chips.filter((chip) => {
      const { unsupported, estimates, slowdown } = buildWorkload(state, chip);
      return !unsupported && !estimates && !slowdown;
    });
  }

  // ------------------------------------------------------------------------- numbers of a chip

  /** Chip's custom number; null if there is none. */
  const customNumber = ({ custom }, chip, quantity) => custom[`${chip.id}.${quantity}`] ?? null;
  /** Tell if a chip has a custom rate: then no timing applies to it. */
  const hasCustomRate = (state, chip) =>
    ["peak", "memory", "link"].some((quantity) => customNumber(state, chip, quantity));

  /** Computing unit's peak, nominal and as reached; kernels may take the vector unit. */
  const findPeak = ({ question, data }, { id, peaks }, compute) =>
    (question?.isVector ? data.kernels.rates[id].vector : peaks[compute]) ?? null;

  /** Data-sheet numbers in SI units; null if missing. */
  function dataSheet(state, chip, compute) {
    const { memory, network, price } = chip;
    const { data } = state;
    return {
      peak: findPeak(state, chip, compute)?.nominal ?? null,
      memory: memory.nominal, capacity: memory.capacity,
      link: data.networks[network]?.link_bytes_per_s ?? null,
      price: price?.usd_per_hour ?? null,
    };
  }

  /** Chip's price [USD/h]; null without one. */
  const findPrice = (state, chip) =>
    customNumber(state, chip, "price") ?? dataSheet(state, chip).price;

  /** Chip rates, custom numbers replacing its data sheet's: nominal ones, and as attained.

      `slowdown` multiplies a link's seconds. Memory bandwidth is multiplied by `gain`. */
  function chipRates(state, chip, compute, gain) {
    const sheet = dataSheet(state, chip, compute);
    const number = (quantity) => customNumber(state, chip, quantity) ?? sheet[quantity];
    const efficiency = (record) => (record ? record.rate / record.nominal : 1);
    const [peak, memory] = [number("peak"), number("memory") * gain];
    const mathEfficiency = efficiency(findPeak(state, chip, compute));
    const attained = {
      peak: peak * mathEfficiency, memory: memory * efficiency(chip.memory),
    };
    const rates = { [compute]: attained.peak, memory: attained.memory };
    return {
      nominal: { peak, memory }, attained, mathEfficiency,
      rate: (name) => rates[name] ?? chip.peaks[name].rate,
      capacity: number("capacity"), slowdown: sheet.link ? sheet.link / number("link") : 1,
    };
  }

  // ------------------------------------------------------------------------------------ matmuls

  /** First segment that contains a chip count. */
  const findSegment = (network, shards) => network?.segments.find(({ first, last, step, offset }) =>
    shards >= first && shards <= last && shards % step === offset);

  /** Matmul's workload on a chip, or the reason why there is none as `unsupported`. */
  function matmulWorkload(state, chip, gain = 1) {
    const { data, sharding, dtypes, shards, D, F } = state;
    const { compute } = dtypes;
    const rates = chipRates(state, chip, compute, gain);
    const network = data.networks[chip.network];
    const segment = findSegment(network, shards);
    if (!rates.nominal.peak) return { chip, unsupported: `no published ${compute} peak` };
    if (shards > 1 && !segment) {
      return { chip, unsupported: network?.limit ?? "no interconnect" };
    }
    const scheme = data.works[shards > 1 ? sharding : "none"];
    const extents = { N: shards, "1/N": 1 / shards, D, F, ...dtypes.bytes };
    const extent = (name) => extents[name];
    const evaluate = (terms) => EVALUATION.evaluate(terms, extent);
    const workLine = (work) => EVALUATION.lineInB(scheme.works[work], extent);
    const levels = shards > 1 && segment.collectives[scheme.collective] || [];
    const networkLevels = levels.map((level) => ({
      secondsPerByte: evaluate(level.seconds_per_byte) * rates.slowdown,
      latency: evaluate(level.latency_s), typicalLatency: evaluate(level.typical_latency_s),
    }));
    const { flops, memory_bytes: memory, network_bytes: payload } = scheme.works;
    const kernel = EVALUATION.lineKernel({
      name: "matmul", count: 1, compute, works: { math: flops, memory },
      transfers: [{ collective: scheme.collective, payload }],
    }, { extent, rate: rates.rate, networkLevels: () => networkLevels, microBatches: 0 });
    const operandBytes = workLine("footprint_bytes");
    const stages = [{
      fixed_bytes: operandBytes.intercept,
      cache_bytes: [{ pieces: [{ start: 1, coefficients: [operandBytes.slope] }] }],
    }];
    const memoryPlan = { stages, dp: 1, cp: 1, capacity: rates.capacity };
    const workload = EVALUATION.makeWorkload([kernel], {
      chip, stages, minBatch: 1, rates: rates.attained, mathEfficiency: rates.mathEfficiency,
      memoryEfficiency: rates.attained.memory / rates.nominal.memory,
      collective: scheme.collective, flops: workLine("flops"), bytes: workLine("memory_bytes"),
      footprint: (B) => EVALUATION.footprint(memoryPlan, 1, B),
    });
    const fit = data.fits[chip.id]?.[compute];
    if (!fit) return workload;
    const calibration = matmulCalibration(fit, {
      nominal: rates.nominal, networkLevels, workLine, evaluate, chip, shards, scheme,
    });
    return { ...workload, ...calibration };
  }

  /** Calibrated network time as sums, by level; the largest counts. */
  function networkSums(terms, collective, networkLevels, evaluate) {
    if (!networkLevels.length) return [];
    if (!collective) {
      const latencies = networkLevels.map(({ typicalLatency }) => [{ "": typicalLatency }]);
      return [[terms], ...latencies];
    }
    const stepSeconds = evaluate(collective.step_seconds);
    const withSteps = (protocol) => ({ ...protocol, "": (protocol[""] ?? 0) + stepSeconds });
    return [collective.protocols.map(withSteps)];
  }

  /** Matmul's calibration: estimates, their extents and band, and the software. */
  function matmulCalibration(fit, matmul) {
    const { nominal, networkLevels, workLine, evaluate, chip, shards, scheme } = matmul;
    const collective = networkLevels.length ? fit.collectives[scheme.collective] : null;
    const pieces = fit.pieces.flatMap(({ bound, terms }) => {
      const alternatives = bound !== "network" ? [[terms]]
        : networkSums(terms, collective, networkLevels, evaluate);
      return alternatives.map((sums) => ({ bound, sums }));
    });
    const span = fit.tile > 1 ? fit.tile * evaluate(scheme.row_shards) : 1;
    const perUnit = (line, units) =>
      ({ slope: line.slope / units, intercept: line.intercept / units });
    const slowest = Math.max(0, ...networkLevels.map(({ secondsPerByte }) => secondsPerByte))
      * chip.network_efficiency;
    const payload = workLine("network_bytes");
    const lines = {
      math: perUnit(workLine("flops"), nominal.peak), depth: workLine("depth"),
      x: perUnit(workLine("x"), nominal.memory),
      memory: perUnit(workLine("memory_bytes"), nominal.memory),
      out: perUnit(workLine("out"), nominal.memory),
      network: perUnit(payload, slowest ? 1 / slowest : Infinity),
    };
    const extentsAt = (B) => (name) =>
      EVALUATION.lineAt(lines[name], name === "math" ? ceil(B / span) * span : B);
    const sizes = {
      D: EVALUATION.lineAt(lines.depth, 1), F: EVALUATION.lineAt(workLine("columns"), 1),
    };
    const transferAt = (B) => ({ shards, bytes: EVALUATION.lineAt(payload, B) });
    return {
      estimates: [{ count: 1, common: fit.common, pieces }], span, extentsAt,
      calibration: fit.calibration,
      bandAt: bandByBound(fit, collective, sizes, transferAt),
    };
  }

  /** Bands that count for sizes: for another engine, and where a size is outside a fit's range. */
  function widerBands(range, sizes) {
    const isOutside = Object.entries(sizes).some(([name, size]) => {
      const [min, max] = range.sizes[name] ?? [-Infinity, Infinity];
      return size < min || size > max;
    });
    return [range.other_engine_band, isOutside ? range.out_of_range_band : null];
  }

  /** Fit's band as a function (bound, B), wider for sizes and payloads outside its range. */
  function bandByBound(fit, collective, sizes, transferAt) {
    const fromSizes = fit.range ? widerBands(fit.range, sizes) : [];
    return (bound, B) => {
      const band = (collective ?? fit).bands[bound];
      const fromTransfer = collective && bound === "network" && collective.range
        ? widerBands(collective.range, transferAt(B)) : [];
      const bands = [band, ...fromSizes, ...fromTransfer].filter(Boolean);
      return band && [
        Math.min(...bands.map(([low]) => low)), Math.max(...bands.map(([, high]) => high)),
      ];
    };
  }

  // ------------------------------------------------------------------------------------- kernels

  /** Kernel on a chip, or the reason why there is none as `unsupported`. */
  function kernelWorkload(state, chip, gain = 1) {
    const { question, data } = state;
    const { compute, isVector } = question;
    const reason = KERNELS.refusal(question);
    if (reason) return { chip, unsupported: reason };
    const { nominal, attained, mathEfficiency } = chipRates(state, chip, compute, gain);
    if (!isVector && !nominal.peak) return { chip, unsupported: `no published ${compute} peak` };
    const { vector, exp } = data.kernels.rates[chip.id];
    const peak = attained.peak || null;
    const kernel = {
      ...question, chip, nominal, mathEfficiency,
      rates: { ...attained, peak, vector: isVector ? peak : vector?.rate ?? null, exp },
      memoryEfficiency: attained.memory / nominal.memory,
    };
    const fit = hasCustomRate(state, chip) ? null : KERNELS.findFit(question, chip);
    return { ...kernel, fit, estimates: fit, calibration: fit ? AUTO : undefined };
  }

  /** Chip's row for a kernel. */
  function evaluateKernel(state, chip) {
    const { question: { sizes, along } } = state;
    const workload = kernelWorkload(state, chip);
    if (workload.unsupported) return workload;
    const timesNow = (kernel) => KERNELS.timesAt(kernel, sizes);
    const times = timesNow(workload);
    const fitted = KERNELS.estimateAt(workload, sizes);
    const isCalibrated = state.basis === CALIBRATED;
    const estimate = isCalibrated ? fitted : null;
    const time = isCalibrated ? estimate?.time ?? null : times.lower;
    const { peak, memory } = workload.rates;
    const row = {
      chip, workload, times, estimate, time, fits: null,
      footprint: { fits: null, maxBatch: null, capacity: null },
      bound: isCalibrated ? estimate?.bound ?? null : times.bound,
      intensity: times.work.unitFlops / times.work.memoryBytes, ridge: peak && peak / memory,
      critical: KERNELS.critical(workload, along), critical90: null, plateau: null,
      strict: strictTime(workload), share: null, bandwidthGain: null, cost: null,
      measuredRatio: null,
    };
    const flops = times.work.flops || times.work.vectorFlops;
    row.measured = state.measurement && MEASUREMENT.judge(state.measurement,
      flops ? { flops_per_s: flops } : {}, times.lower, fitted);
    if (time === null) return row;
    const faster = kernelWorkload(state, chip, BANDWIDTH_GAIN);
    const fasterTime = isCalibrated
      ? KERNELS.estimateAt({ ...faster, fit: workload.fit }, sizes).time : timesNow(faster).lower;
    row.bandwidthGain = fasterTime / time - 1;
    row.share = times.byResource.compute === null ? null : peakShare(row, time);
    return row;
  }

  /** Bound whatever the routing [s]: under the one that reads least. */
  function strictTime(kernel) {
    const { kind, form, sizes } = kernel;
    const strict = form.strict ? kind.forms[form.strict] : form;
    return KERNELS.timesAt({ ...kernel, form: strict }, sizes).lower;
  }

  // --------------------------------------- curves: over a matmul's B, or a kernel's chosen letter

  /** Curve's letter, with its size. */
  const curveAxis = ({ subject, question, B }) => (subject === KERNEL
    ? { name: question.along, size: KERNELS.letterSize(question, question.along),
      title: `${question.along}, ${question.kind.letters[question.along].meaning}` }
    : { name: "B", size: B, title: "B, tokens" });
  const sizesAt = (kernel, size) => KERNELS.sizesAlong(kernel, kernel.along, size);
  /** Times at a curve's size. */
  const curveTimes = (workload, size) => (workload.kind
    ? KERNELS.timesAt(workload, sizesAt(workload, size)) : EVALUATION.times(workload, size));
  /** Estimate at a curve's size. */
  const curveEstimate = (workload, size) => (workload.kind
    ? KERNELS.estimateAt(workload, sizesAt(workload, size)) : EVALUATION.estimate(workload, size));
  /** FLOP and bytes at a curve's size. */
  function curveWork(workload, size) {
    if (!workload.kind) {
      const { lineAt } = EVALUATION;
      return { flops: lineAt(workload.flops, size), bytes: lineAt(workload.bytes, size) };
    }
    const { unitFlops, memoryBytes } = KERNELS.workAt(workload, sizesAt(workload, size));
    return { flops: unitFlops, bytes: memoryBytes };
  }

  // --------------------------------------------------------------------------------- model steps

  /** Reason why a chip has no step: the first skipped row that names no other. */
  function skippedReason({ data: { steps }, model, split, format }, chip, hasMachine) {
    const step = { chip: chip.id, model: model.id, split: split.name, dtypes: format };
    const skipped = steps.skipped.find((row) =>
      Object.entries(step).every(([name, value]) => !row[name] || row[name] === value));
    return skipped?.reason ?? (hasMachine ? "no such step" : "no steps on this page");
  }

  /** Model step's workload on a chip, or the reason why there is none as `unsupported`. */
  function stepWorkload(state, chip, gain = 1) {
    const { data: { steps }, phase, model, format, split, S, isTraining, microBatch } = state;
    const globalMicroBatch = split.dp * microBatch;
    const place = steps.machines.findIndex((machine) => machine.chip === chip.id);
    const step = model.steps.find((candidate) => candidate.phase === phase
      && candidate.split === split.name && candidate.dtypes === format);
    if (!step || !(place in step.estimates)) {
      return { chip, unsupported: skippedReason(state, chip, place >= 0) };
    }
    const machine = steps.machines[place];
    const compute = steps.compute[format];
    const { rate, capacity, slowdown, ...rates } = chipRates(state, chip, compute, gain);
    const [pieces] = Object.values(model.extents[phase]);
    const extents = Object.fromEntries(Object.entries(pieces).map(([name, piecewise]) =>
      [name, EVALUATION.piecewiseAt(piecewise, S)]));
    const kernelsHere = step.kernels_at[place] ?? step.kernels;
    const parts = kernelsHere.map((index) => model.kernels[index]);
    const activated = parts.map((kernel) => kernel.activated_experts).find(Boolean);
    const tokens = extents.T;
    extents.micro_batch = microBatch;
    extents.micro_batch_experts =
      EVALUATION.activatedExperts({ activated, tokens }, microBatch);
    const extent = (name) => extents[name] ?? 1;
    const networkLevels = (collective) => machine.collectives[collective].map((level) => (
      { secondsPerByte: level.seconds_per_byte * slowdown, latency: level.latency_s }));
    const kernels = parts.map((kernel) => EVALUATION.lineKernel(
      { ...kernel, count: kernel.count / step.pp },
      { extent, rate, networkLevels, microBatches: 1 / globalMicroBatch }));
    const memoryPlan = { stages: step.stages, dp: split.dp, cp: split.cp, capacity };
    const chipCounts = parts.flatMap(({ transfers }) =>
      transfers.map(({ collective }) => collective.split(" ")[1]));
    const workload = EVALUATION.makeWorkload(kernels, {
      chip, activated, tokens, minBatch: split.dp, stages: step.stages,
      mathEfficiency: rates.mathEfficiency,
      memoryEfficiency: rates.attained.memory / rates.nominal.memory,
      axes: chipCounts.map((chips) => machine.axes?.[chips]).find(Boolean),
      bubbleRuns: step.bubble_runs * globalMicroBatch,
      footprint: (B) => EVALUATION.footprint(
        memoryPlan, S, isTraining ? globalMicroBatch : B, B / globalMicroBatch),
    });
    if (hasCustomRate(state, chip)) return workload;
    const kind = model.has_experts ? " experts" : "";
    const kindKey = `${phase} ${format}${kind}`;
    const bandAt = () => machine.bands[kindKey];
    const indices = step.estimates[place];
    const fits = machine.training ?? {};
    const trained = isTraining ? fits[`${kindKey} ${model.id}`] ?? fits[kindKey] : {};
    if (!indices) return { ...workload, ...trained, bandAt };
    /** Extents at a batch; `tokens:128` counts tokens in whole spans, 128 each. */
    const extentsAt = (B) => (name) => {
      const [kind, span] = name.split(":");
      const rows = { tokens: B * tokens, sequences: B }[kind];
      if (rows && span) return ceil(rows / span) * span;
      const values = { B, activated_experts: EVALUATION.activatedExperts(workload, B) };
      return values[name] ?? extent(name);
    };
    const estimates = parts.map((kernel, i) =>
      ({ count: kernel.count, ...model.estimates[indices[i]] }));
    return { ...workload, estimates, calibration: AUTO, extentsAt, bandAt };
  }

  // --------------------------------------------------------------------------- the row of a chip

  const WORKLOADS = {
    [MATMUL]: matmulWorkload, [MODEL]: stepWorkload, [KERNEL]: kernelWorkload,
    [SERVE]: (state, chip) => DEPLOYMENTS.serversWorkload(state, chip),
  };
  const buildWorkload = (state, ...rest) => WORKLOADS[state.subject](state, ...rest);
  /** Tokens that one execution handles: in decode a sequence is one token. */
  const tokensAt = ({ subject, phase, S }, B) =>
    B * (subject === MODEL && phase !== DECODE ? S : 1);
  /** Time on the chosen basis [s]: serialized bound, or estimate; null without a calibration. */
  const timeAt = ({ basis }, workload, B) => (basis === CALIBRATED
    ? EVALUATION.estimate(workload, B)?.time ?? null : EVALUATION.times(workload, B).serial);
  /** Prefill of a prompt on an idle server, and its bound [s]; null with several replicas. */
  function firstTokenTimes(state, chip) {
    const none = { firstToken: null, firstTokenBound: null };
    if (state.subject === MATMUL || state.phase !== DECODE) return none;
    const prefill = { ...state, phase: PREFILL };
    const workload = stepWorkload(prefill, chip);
    if (workload.unsupported) return none;
    if (state.split.dp > 1) return none; // experts that replicas share have one prompt's tokens
    return {
      firstToken: timeAt(prefill, workload, 1),
      firstTokenBound: EVALUATION.times(workload, 1).lower,
    };
  }
  /** Attained peak share: math time at the nominal peak / time [1]. */
  const peakShare = ({ workload, times }, time) =>
    (times.byResource.compute / time) * workload.mathEfficiency;

  /** Amounts by kind; amount / measured number is a time. */
  function measuredAmounts(state, { workload, split, times: { byResource } }) {
    const shares = {
      mfu: byResource.compute * workload.mathEfficiency,
      mbu: byResource.memory * workload.memoryEfficiency,
    };
    if (state.subject === MATMUL) {
      return { ...shares, flops_per_s: EVALUATION.lineAt(workload.flops, state.B) };
    }
    const tokens = tokensAt(state, state.B);
    const amounts = {
      ...shares, tokens_per_s: tokens, tokens_per_s_per_chip: tokens / split.chips,
    };
    if (!state.isTraining) amounts.hfu = shares.mfu; // attention is computed again in training
    if (state.phase === DECODE) amounts.tokens_per_s_per_user = tokens / state.B;
    return amounts;
  }

  /** Chip's row: everything that the page shows about it. */
  function evaluateChip(state, chip) {
    if (state.subject === KERNEL) return evaluateKernel(state, chip);
    const { B, split, shards } = state;
    const isMatmul = state.subject === MATMUL;
    const workload = buildWorkload(state, chip);
    if (workload.unsupported) return workload;
    const isCalibrated = state.basis === CALIBRATED;
    const times = EVALUATION.times(workload, B);
    const estimate = isCalibrated ? EVALUATION.estimate(workload, B) : null;
    const footprint = workload.footprint(B);
    const time = timeAt(state, workload, B);
    const row = {
      chip, workload, split, times, estimate, time, footprint, fits: footprint.fits,
      bound: isMatmul && isCalibrated ? estimate?.bound ?? null : times.bound,
      critical: EVALUATION.critical(workload),
      critical90: isMatmul ? EVALUATION.critical(workload, PLATEAU_SHARE) : null,
      plateau: isMatmul && estimate ? EVALUATION.plateau(workload) : null,
      share: null, bandwidthGain: null, userRate: null, chipRate: null, cost: null,
      ...firstTokenTimes(state, chip),
    };
    row.measuredRatio = findMeasuredRatio(state, row);
    row.measured = state.measurement && MEASUREMENT.judge(state.measurement,
      measuredAmounts(state, row), times.lower, EVALUATION.estimate(workload, B));
    if (time === null) return row;
    if (isMatmul || !estimate) {
      const faster = buildWorkload(state, chip, BANDWIDTH_GAIN);
      row.bandwidthGain = timeAt(state, faster, B) / time - 1;
    }
    const tokens = tokensAt(state, B);
    const chips = isMatmul ? shards : split.chips;
    if (!isMatmul) {
      row.userRate = tokens / B / time;
      row.chipRate = tokens / time / chips;
    }
    const price = findPrice(state, chip);
    row.cost = price && ((price * chips * time) / SECONDS_PER_HOUR / tokens) * MILLION;
    row.share = peakShare(row, time);
    return row;
  }

  /** Quantiles of measured / predicted time; null if nothing was timed. */
  function measuredQuantiles({ data }, { subject, chip = "", dtypes = "", length = "", over }) {
    return data.measured.quantiles[[subject, chip, dtypes, length, over].join("/")] ?? null;
  }

  /** Quantiles of measured / predicted time for a row's chip; null if it was not timed. */
  function findMeasuredRatio(state, row, overBound = state.basis === BOUND) {
    const { chip, times, estimate } = row;
    const { dtypes, format, phase, shards, data: { measured } } = state;
    if (state.subject === KERNEL || hasCustomRate(state, chip)) return null;
    const over = !overBound && estimate ? "estimate" : "bound";
    if (state.subject === MODEL) {
      return measuredQuantiles(state, { subject: phase, chip: chip.id, dtypes: format, over });
    }
    if (shards > 1) return null;
    const length = times.lower < measured.min_long_bound_s ? "short" : "long";
    return measuredQuantiles(state,
      { subject: MATMUL, chip: chip.id, dtypes: dtypes.name, length, over });
  }

  /** Row for the verdict: the first that runs, preferably in memory and with a time. */
  function featuredRow(rows) {
    const supported = rows.filter(({ unsupported }) => !unsupported);
    const fitting = supported.filter(({ fits }) => fits !== false);
    return fitting.find(({ time }) => time !== null) ?? fitting[0] ?? supported[0] ?? rows[0];
  }

  /** Command that prints the same for a chip. */
  function explainCommand(state, chip) {
    const { data: { steps }, model, dtypes, format, shards, split, phase, sharding } = state;
    const { B, D, F, S, microBatch } = state;
    const { calibration, slowdown } = buildWorkload(state, chip);
    const words = ["rooflines explain", chip.id];
    if (state.subject === KERNEL) {
      words.splice(0, words.length, ...KERNELS.commandWords(state.question, chip));
    } else if (state.subject === MODEL) {
      words.push(model.id, `B=${B}`, `S=${S}`, steps.formats[format], "--split", split.option);
      if (phase !== DECODE) words.push("--phase", phase);
      if (microBatch > 1) words.push("--micro-batch", microBatch);
    } else {
      words.push(`${B}x${D}x${F}`, dtypes.name);
      if (shards > 1) words.push("--shards", shards, "--sharding", sharding);
    }
    if (state.basis === BOUND && (calibration || slowdown)) words.push("--bound");
    else if (calibration && calibration !== AUTO) words.push("--calibration", calibration);
    return words.join(" ");
  }

  return {
    MATMUL, MODEL, KERNEL, SERVE, DECODE, PREFILL, BOUND, CALIBRATED, RESETS, NO_LIMIT, MAX_CHIPS,
    read, matchesState, parseNumber, findPrice, dataSheet, hasCustomRate, matmulWorkload,
    stepWorkload, kernelWorkload, evaluateChip, timeAt,
    tokensAt, curveAxis, curveTimes, curveEstimate, curveWork,
    peakShare, findMeasuredRatio, measuredQuantiles, featuredRow, explainCommand,
  };
})();
