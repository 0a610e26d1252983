"use strict";
/* URL state, and the row of each chip. No page is needed.

   `data` are those of explorer.py: of matmuls, and `steps` of models. */

const STATE = (() => {
  const { upward, count } = NUMBERS;
  const { PLATEAU } = ANSWERS;
  const [MATMUL, MODEL, SERVE, TRAIN] = ["matmul", "model", "serve", "train"];
  const [BOUND, CALIBRATED] = ["bound", "calibrated"];
  const [MOST_CHIPS, MOST_SIZE, MOST_N] = [8, 2 ** 24, 4096];
  const MORE = 1.1; // a tenth more memory bandwidth
  const MILLION = 1e6;
  const CHIP_ENTRY = "own"; // the software of a calibration in a chip's entry, which commands know
  /** Settings that a choice resets, since the next choice may not have them. */
  const CLEARS = { is: { B: null, tab: null, sort: null }, model: { format: null } };

  /** Does a state match words: a subject, serving or training, and a basis of times? */
  const matchesState = (now, words) => words.split(" ").filter(Boolean).every((word) =>
    [now.is, now.is === MODEL && (now.trains ? TRAIN : SERVE), now.basis].includes(word));

  const numberOf = (text) =>
    /^\d{1,20}(\.\d{1,20})?(e[+-]?\d{1,2})?$/i.test(text) && Number(text) > 0 ? Number(text) : null;

  /** The sellers of chips; first those with prices of most of them, then the latest. */
  function sellersOf(chips) {
    const all = chips.flatMap((chip) => chip.prices.map(([, seller]) => seller));
    const often = (name) => all.filter((one) => one === name).length;
    return [...new Set(all)].sort((a, b) =>
      often(b) - often(a) || b.slice(-7).localeCompare(a.slice(-7)));
  }

  function ownNumbers(text, { chips, offered }, lost) {
    const own = {};
    for (const item of text.split(",").filter(Boolean)) {
      const [, chip, name, value] = /^(.+)\.(\w+):(.*)$/.exec(item) ?? [];
      const isKnown = chips.some(({ id }) => id === chip) && name in offered.own;
      const number = isKnown ? numberOf(value) : null;
      if (number) own[`${chip}.${name}`] = number;
      else lost.push(["custom number", item, "of no chip, or no number above 0; left out"]);
    }
    return own;
  }

  /** Chips by id; the name of a family is that of its usual one. */
  function chipsOf(ids, { chips, first }, lost) {
    const matches = ids.flatMap((id) => {
      const exact = chips.find((chip) => chip.id === id);
      const usual = exact ?? chips.find((chip) => chip.usual === id);
      if (!exact) lost.push(["chip", id, usual ? `shown is ${usual.id}` : "unknown"]);
      return usual ?? [];
    });
    const distinct = [...new Set(matches)];
    const few = `more than ${MOST_CHIPS} chips; shown are the first`;
    if (distinct.length > MOST_CHIPS) lost.push(["chips", "", few]);
    return distinct.length ? distinct.slice(0, MOST_CHIPS) : chipsOf(first, { chips }, lost);
  }

  const idOf = (option) => option.id ?? option.name ?? option;
  const textOf = (option) => option.short ?? option.name ?? option;

  /** The state: every setting of the address, with defaults.

      `params` is a URLSearchParams; `lost` has unavailable settings, as [name, value, reason];
      `menus` the options, as [value, text, disabled], and the chosen one. */
  function read(params, data) {
    const { dtypes, steps, offered: { first, tabs, shardings } } = data;
    const [lost, menus] = [[], {}];
    const option = (name, options, first = options[0], off = () => false) => {
      const value = params.get(name);
      const match = options.find((entry) => idOf(entry) === value);
      if (value !== null && !match) lost.push([name, value, `unknown; shown is ${idOf(first)}`]);
      menus[name] = [options.map((entry) => [idOf(entry), textOf(entry), off(entry)]),
        idOf(match ?? first)];
      return match ?? first;
    };
    const size = (name, first, step = 1, least = step, most = MOST_SIZE) => {
      const text = params.get(name) ?? String(Math.ceil(Math.max(first, least) / step) * step);
      const whole = Math.round((Number(text) || first) / step) * step;
      const nearest = Math.min(most - (most % step), Math.max(least, whole));
      const kind = step > 1 ? `multiple of ${step}` : "whole number";
      const range = `no ${kind} from ${least} to ${count(most)}`;
      if (text !== String(nearest)) lost.push([name, text, `${range}; shown is ${count(nearest)}`]);
      return nearest;
    };
    const ids = params.get("chips")?.split(",") ?? data.first;
    const [is, chips] = [option("is", [MATMUL, MODEL]), chipsOf(ids, data, lost)];
    const phase = option("phase", steps.phases);
    const trains = is === MODEL && phase === TRAIN;
    const { splits, formats, ...usual } = steps.offers[trains ? TRAIN : SERVE];
    const model = option("model", steps.models, steps.models[usual.model]);
    const split = option(trains ? "plan" : "split", splits, splits[usual.split],
      ({ option: flag }) => flag.includes("ep=") && !model.experts);
    const micro = trains ? size("micro_batch", 1, 1, 1, MOST_N) : 1;
    const together = is === MODEL ? split.dp * micro : 1;
    const sharding = idOf(option("sharding", shardings));
    const sellers = sellersOf(chips);
    return {
      is, chips, model, split, sharding, menus,
      seller: sellers.length ? option("seller", sellers) : null,
      own: ownNumbers(params.get("own") ?? "", data, lost),
      n: sharding === "none" ? 1 : size("n", 8, 1, 1, MOST_N),
      dtypes: option("dtypes", dtypes, dtypes[0],
        ({ compute }) => !chips.some(({ peaks }) => peaks[compute])),
      format: option("format", formats, formats.find((name) => name === model.format),
        (name) => !model.experts && steps.formats[name].includes("experts=")),
      phase, trains, splits, micro_batch: micro,
      B: size("B", first.B[is], trains ? together : 1, together),
      D: size("D", first.D), F: size("F", first.F), S: size("S", first.S, split.cp),
      basis: option("basis", [BOUND, CALIBRATED]),
      tab: option("tab", tabs[trains ? TRAIN : is]),
      of: option("of", chips),
      sort: params.get("sort") ?? "", all: option("rows", ["chosen", "all"]) === "all", lost, data,
    };
  }

  const ownOf = ({ own }, chip) => (name) => own[`${chip.id}.${name}`] ?? null;
  /** Does a chip have a custom rate? Then no timing applies to it. */
  const altered = (now, chip) => ["peak", "memory", "link"].some(ownOf(now, chip));

  /** Numbers of a chip's data sheet, in SI units; null if missing. */
  const sheetOf = ({ data, seller }, { peaks, memory, network, prices }, compute) => ({
    peak: peaks[compute]?.nominal ?? null, memory: memory.nominal, capacity: memory.capacity,
    link: data.networks[network]?.link ?? null,
    price: prices.find((price) => price[1] === seller)?.[0] ?? null,
  });

  /** A chip with custom numbers in place of its data sheet's.

      The rates are nominal, and as reached; `slower` is a factor on the seconds of a link. `more`
      is a factor on the bandwidth of the memory. */
  function machineOf(now, chip, compute, more) {
    const [own, sheet] = [ownOf(now, chip), sheetOf(now, chip, compute)];
    const has = (name) => own(name) ?? sheet[name];
    const reached = ({ rate, nominal } = { rate: 1, nominal: 1 }) => rate / nominal;
    const [peak, memory, reach] = [has("peak"), has("memory") * more, reached(chip.peaks[compute])];
    const rates = { [compute]: peak * reach, memory: memory * reached(chip.memory) };
    return {
      nominal: { peak, memory }, rates: { peak: rates[compute], memory: rates.memory }, reach,
      rate: (name) => rates[name] ?? chip.peaks[name].rate,
      capacity: has("capacity"), slower: sheet.link ? sheet.link / has("link") : 1,
    };
  }

  /** A matmul on a chip as `ANSWERS` takes it, or the reason why there is none as `unsupported`. */
  function matmulOf(now, chip, more = 1) {
    const { data: { networks, works: schemes, bounds }, sharding, dtypes, n, D, F } = now;
    const { compute } = dtypes;
    const { nominal, rates, reach, rate, capacity, slower } = machineOf(now, chip, compute, more);
    const network = networks[chip.network];
    const piece = network?.pieces.find(
      (one) => n >= one.least && n <= one.most && n % one.step === one.offset);
    if (!nominal.peak) return { chip, unsupported: `no published ${compute} peak` };
    if (n > 1 && !piece) return { chip, unsupported: network?.limit ?? "no interconnect" };
    const { collective, rows, works } = schemes[n > 1 ? sharding : "none"];
    const extents = { N: n, "1/N": 1 / n, D, F, ...dtypes.bytes };
    const at = (name) => extents[name];
    const value = (terms) => ANSWERS.value(terms, at);
    const line = (work, per = 1) => ANSWERS.along(works[work], at, "B").map((one) => one / per);
    const levels = (n > 1 && piece.collectives[collective] || []).map((level) =>
      [value(level.seconds) * slower, value(level.latency), value(level.typical)]);
    const kernel = ANSWERS.kernelOf({
      name: "matmul", count: 1, compute, sends: [["", works.network_bytes]],
      works: { math: works.flops, memory: works.memory_bytes },
    }, at, rate, () => levels, 0);
    const [each, fixed] = line("footprint_bytes");
    const stages = [{ weights: fixed, caches: [{ pieces: [[1, [each]]] }] }];
    const of = ANSWERS.loaded([kernel], {
      chip, collective, rates, bounds, reach, least: 1, flops: line("flops"), stages,
      moved: line("memory_bytes"),
      footprint: (B) => ANSWERS.footprint({ stages, dp: 1, cp: 1, capacity }, 1, B),
    });
    const fit = now.data.fits[chip.id]?.[compute];
    if (!fit) return of;
    const span = fit.tile > 1 ? fit.tile * value(rows) : 1;
    const slowest = Math.max(0, ...levels.map(([seconds]) => seconds)) * chip.reached;
    const lines = {
      math: line("flops", nominal.peak), depth: line("depth"), x: line("x", nominal.memory),
      memory: line("memory_bytes", nominal.memory), out: line("out", nominal.memory),
      network: line("network_bytes", slowest ? 1 / slowest : Infinity),
    };
    const fitted = levels.length ? fit.sent[collective] : null;
    const waits = fitted && value(fitted.waits);
    const sent = (affine) => (fitted
      ? [fitted.protocols.map((one) => ({ ...one, "": (one[""] ?? 0) + waits }))]
      : levels.length ? [[affine], ...levels.map((level) => [{ "": level[2] }])] : []);
    const pieces = fit.pieces.flatMap(([bound, affine]) =>
      (bound === "network" ? sent(affine) : [[affine]]).map((sums) => [bound, sums]));
    const extentsAt = (B) => (name) =>
      ANSWERS.lineAt(lines[name], name === "math" ? upward(B / span) * span : B);
    const estimates = [{ layers: 1, common: fit.common, pieces }];
    const sizes = { D: ANSWERS.lineAt(lines.depth, 1), F: ANSWERS.lineAt(line("columns"), 1) };
    const payload = line("network_bytes");
    const sentAt = (B) => ({ shards: n, bytes: ANSWERS.lineAt(payload, B) });
    const software = n > 1 && fit.software !== CHIP_ENTRY ? `${fit.software},nccl` : fit.software;
    const band = bandOf(fit, fitted, sizes, sentAt);
    return { ...of, estimates, software, bandOf: band, span, extentsAt };
  }

  /** The band of a fit by bound and B, wider for sizes and payloads beyond those of its timings. */
  function bandOf(fit, sent, sizes, sentAt) {
    const beyond = ({ outside, elsewhere, ...ends }, all) => [elsewhere,
      Object.entries(all).some(([name, size]) =>
        ends[name] && (size < ends[name][0] || size > ends[name][1])) && outside];
    const common = fit.reach ? beyond(fit.reach, sizes) : [];
    return (bound, B) => {
      const band = (sent ?? fit).bands[bound];
      const wider = sent && bound === "network" ? beyond(sent.reach, sentAt(B)) : [];
      const all = [band, ...common, ...wider].filter(Boolean);
      return band && [Math.min(...all.map(([low]) => low)), Math.max(...all.map(([, up]) => up))];
    };
  }

  /** A step of a model on a chip as `ANSWERS` takes it, or the reason why there is none. */
  function stepOf(now, chip, more = 1) {
    const { data: { bounds, steps }, phase, model, format, split, S, trains, micro_batch } = now;
    const together = split.dp * micro_batch; // sequences that all replicas compute at once
    const place = steps.machines.findIndex((machine) => machine.chip === chip.id);
    const step = model.steps.find((one) =>
      one.phase === phase && one.split === split.name && one.dtypes === format);
    if (!step || !(place in step.on)) {
      const wanted = [chip.id, model.id, split.name, format];
      const why = steps.skipped.find((row) =>
        wanted.every((value, i) => !row[i] || row[i] === value));
      const reason = why?.[4] ?? (place < 0 ? "no steps on this page" : "no such step");
      return { chip, unsupported: reason };
    }
    const { sends, bands, training, axes = {} } = steps.machines[place];
    const { rate, capacity, slower } = machineOf(now, chip, steps.compute[format], more);
    const [all] = Object.values(model.extents[phase]);
    const extents = Object.fromEntries(Object.entries(all).map(([name, pieces]) =>
      [name, ANSWERS.pieceAt(pieces, S)]));
    const chosen = step.kernels.map((index) => model.kernels[index]);
    const touched = chosen.map((kernel) => kernel.touched).find(Boolean);
    const { T: tokens } = extents;
    const experts = ANSWERS.expertsOf({ touched, tokens }, micro_batch);
    Object.assign(extents, { micro_batch, experts });
    const at = (name) => extents[name] ?? 1;
    const levelsOf = (kind) => sends[kind].map(([each, latency]) => [each * slower, latency]);
    const kernels = chosen.map((kernel) => ANSWERS.kernelOf(
      { ...kernel, count: kernel.count / step.pp }, at, rate, levelsOf, 1 / together));
    const held = { stages: step.stages, dp: split.dp, cp: split.cp, capacity };
    const joined = chosen.flatMap(({ sends: sent }) => sent.map(([kind]) => kind.split(" ")[1]));
    const of = ANSWERS.loaded(kernels, {
      axes: joined.map((chips) => axes[chips]).find(Boolean),
      chip, bounds, touched, tokens, least: split.dp, reach: 1,
      stages: step.stages, waits: step.waits * together,
      footprint: (B) => ANSWERS.footprint(held, S, trains ? together : B, B / together),
    });
    const [fitted, bandOf] = [step.on[place], () => bands[phase]];
    if (altered(now, chip)) return of;
    if (!fitted) return { ...of, ...(trains ? training : {}), bandOf };
    /** An extent at a batch; `tokens:128` are the tokens in whole spans of 128. */
    const extentsAt = (B) => (name) => {
      const [kind, span] = name.split(":");
      const rows = { tokens: B * tokens, sequences: B }[kind];
      if (rows && span) return upward(rows / span) * span;
      return { B, touched: ANSWERS.expertsOf(of, B) }[name] ?? at(name);
    };
    const estimates = chosen.map((kernel, i) =>
      ({ layers: kernel.count, ...model.estimates[fitted[i]] }));
    return { ...of, estimates, software: steps.calibration, extentsAt, bandOf };
  }

  const tokensOf = (now, B) => B * (now.is === MODEL && now.phase !== "decode" ? now.S : 1);
  /** The time on the chosen basis: serialized bound, or estimate; null without a calibration. */
  const timeOf = (now, of, B) => (now.basis === CALIBRATED
    ? ANSWERS.estimate(of, B)?.time ?? null : ANSWERS.times(of, B).ops);
  const shareOf = ({ of, answer }, time) => (answer.parts[0] / time) * of.reach;

  /** The row of a chip: all that is shown about it. */
  function rowOf(now, chip) {
    const [matmul, { B, split }] = [now.is === MATMUL, now];
    const loaded = matmul ? matmulOf : stepOf;
    const of = loaded(now, chip);
    if (of.unsupported) return of;
    const [answer, footprint] = [ANSWERS.times(of, B), of.footprint(B)];
    const estimate = now.basis === CALIBRATED ? ANSWERS.estimate(of, B) : null;
    const time = timeOf(now, of, B);
    const row = {
      chip, of, split, answer, estimate, time, footprint, fits: footprint.fits,
      bound: matmul && now.basis === CALIBRATED ? estimate?.bound ?? null : answer.bound,
      critical: ANSWERS.critical(of), critical90: matmul ? ANSWERS.critical(of, PLATEAU) : null,
      saturates: matmul && estimate ? ANSWERS.saturates(of) : null,
      share: null, bandwidthGain: null, user: null, rate: null, cost: null,
    };
    row.measuredRatio = measuredRatioOf(now, row);
    if (time === null) return row;
    if (matmul || !estimate) row.bandwidthGain = timeOf(now, loaded(now, chip, MORE), B) / time - 1;
    const [tokens, chips] = [tokensOf(now, B), matmul ? now.n : split.chips];
    if (!matmul) [row.user, row.rate] = [tokens / B / time, tokens / time / chips];
    const price = ownOf(now, chip)("price") ?? sheetOf(now, chip).price;
    row.cost = price && ((price * chips * time) / 3600 / tokens) * MILLION;
    return { ...row, share: shareOf(row, time) };
  }

  /** Quantiles of measured over predicted time, by what was timed (a matmul, or a phase), chip,
      dtypes, length and over; or null. */
  const measuredOf = ({ data }, ...key) => data.measured.by[key.join("/")] ?? null;

  /** Quantiles of measured / predicted time for a row's chip; null if it was not timed. */
  function measuredRatioOf(now, { chip, answer, estimate }, bound = now.basis === BOUND) {
    if (altered(now, chip)) return null;
    const over = !bound && estimate ? "estimate" : "bound";
    if (now.is === MODEL) return measuredOf(now, now.phase, chip.id, now.format, "", over);
    const length = answer.lower < now.data.measured.long ? "short" : "long";
    return now.n > 1 ? null : measuredOf(now, MATMUL, chip.id, now.dtypes.name, length, over);
  }

  /** The row of the verdict: the first that runs, preferably in memory and with a time. */
  function featuredRow(rows) {
    const able = rows.filter(({ unsupported }) => !unsupported);
    const fitting = able.filter(({ fits }) => fits !== false);
    return fitting.find(({ time }) => time !== null) ?? fitting[0] ?? able[0] ?? rows[0];
  }

  /** The command that prints the same for a chip. */
  function commandOf(now, chip) {
    const { data: { steps }, model, dtypes, n, split, phase, sharding } = now;
    const isModel = now.is === MODEL;
    const { software } = (isModel ? stepOf : matmulOf)(now, chip);
    const said = software && now.basis === CALIBRATED && software !== CHIP_ENTRY;
    return [
      "rooflines explain", chip.id, ...(isModel
        ? [model.id, `B=${now.B}`, `S=${now.S}`, steps.formats[now.format], "--split", split.option]
        : [`${now.B}x${now.D}x${now.F}`, dtypes.name]),
      ...(isModel && phase !== "decode" ? ["--phase", phase] : []),
      ...(now.micro_batch > 1 ? ["--micro-batch", now.micro_batch] : []),
      ...(n > 1 && !isModel ? ["--shards", n, "--sharding", sharding] : []),
      ...(said ? ["--calibration", software] : []),
    ].join(" ");
  }

  return {
    MATMUL, MODEL, BOUND, CALIBRATED, CLEARS, MOST_CHIPS, read, matchesState, numberOf,
    sheetOf, altered, matmulOf, stepOf, rowOf, timeOf, tokensOf, shareOf, measuredRatioOf,
    measuredOf, featuredRow, commandOf,
  };
})();
