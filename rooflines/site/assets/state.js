"use strict";
/* What is asked, from the address, and what each chip has then. No page is needed.

   `data` are those of explorer.py: of matmuls, and `steps` of models. */

const STATE = (() => {
  const { rational, upward, count } = NUMBERS;
  const { PLATEAU } = ANSWERS;
  const [MATMUL, MODEL] = ["matmul", "model"];
  const [BOUND, CALIBRATED] = ["bound", "calibrated"];
  const FIRST = { B: { matmul: 128, model: 64 }, D: 28672, F: 8192, S: 8192, split: "tp8" };
  const [MOST_CHIPS, MOST_SIZE, MOST_N] = [8, 2 ** 24, 4096];
  const MORE = 1.1; // a tenth more memory bandwidth
  const MILLION = 1e6;
  /** What may be typed over: text, the unit of what is typed, and its name. */
  const OWN = {
    peak: ["Peak", 1e12, "TFLOP/s"], memory: ["Memory", 1e9, "GB/s"],
    capacity: ["Capacity", 1e9, "GB"], link: ["A link", 1e9, "GB/s"], price: ["Price", 1, "$/h"],
  };
  const TABS = {
    matmul: [["sizes", "D x F"], ["dtypes", "Chip x dtypes"], ["binds", "Who binds"]],
    model: [["context", "Context x batch"], ["kernels", "Kernels"], ["splits", "Splits"]],
  };
  const NAMES = [
    "is", "chips", "B", "D", "F", "S", "dtypes", "sharding", "n", "model", "format", "split",
    "phase", "basis", "tab", "of", "sort", "rows", "seller", "own", "shape",
  ];
  /** What a choice takes back, since the next one may not have it. */
  const CLEARS = { is: { B: null, tab: null, sort: null }, model: { format: null } };

  const numberOf = (text) =>
    /^\d{1,20}(\.\d{1,20})?(e[+-]?\d{1,2})?$/i.test(text) && Number(text) > 0 ? Number(text) : null;

  /** Prices of one seller in one month, as they are compared. */
  const sellerOf = ([, provider, date]) => `${provider} ${date.slice(0, 7)}`;
  /** The sellers of chips; first those with prices of most of them, then the latest. */
  function sellersOf(chips) {
    const all = chips.flatMap((chip) => chip.prices.map(sellerOf));
    const often = (name) => all.filter((one) => one === name).length;
    return [...new Set(all)].sort((a, b) =>
      often(b) - often(a) || b.slice(-7).localeCompare(a.slice(-7)));
  }

  function ownNumbers(text, chips, lost) {
    const own = {};
    for (const one of text.split(",").filter(Boolean)) {
      const [, chip, name, value] = /^(.+)\.(\w+):(.*)$/.exec(one) ?? [];
      const number = chips.some(({ id }) => id === chip) && name in OWN ? numberOf(value) : null;
      if (number) own[`${chip}.${name}`] = number;
      else lost.push(["own number", one, "of no chip, or no number above 0; left out"]);
    }
    return own;
  }

  /** Chips by id; the name of a family is that of its usual one. */
  function chipsOf(ids, { chips, first }, lost) {
    const found = ids.flatMap((id) => {
      const exact = chips.find((chip) => chip.id === id);
      const usual = exact ?? chips.find((chip) => chip.usual === id);
      if (!exact) lost.push(["chip", id, usual ? `shown is ${usual.id}` : "unknown"]);
      return usual ?? [];
    });
    const known = [...new Set(found)];
    const few = `more than ${MOST_CHIPS} chips; shown are the first`;
    if (known.length > MOST_CHIPS) lost.push(["chips", "", few]);
    return known.length ? known.slice(0, MOST_CHIPS) : chipsOf(first, { chips }, lost);
  }

  /** Everything that is asked for; `lost` has what cannot be, as [name, value, what is shown].

      `asked` is a URLSearchParams. */
  function read(asked, data) {
    const { dtypes, works, steps } = data;
    const lost = [];
    const one = (name, options, first = options[0], id = (each) => each) => {
      const value = asked.get(name);
      const found = options.find((each) => id(each) === value);
      if (value !== null && !found) lost.push([name, value, `unknown; shown is ${id(first)}`]);
      return found ?? first;
    };
    const [named, byId] = [({ name }) => name, ({ id }) => id];
    const size = (name, first, least = 1, most = MOST_SIZE) => {
      const text = asked.get(name) ?? String(Math.max(first, least));
      const nearest = Math.min(most, Math.max(least, Math.round(Number(text)) || first));
      const range = `no whole number from ${least} to ${count(most)}`;
      if (text !== String(nearest)) lost.push([name, text, `${range}; shown is ${count(nearest)}`]);
      return nearest;
    };
    const ids = asked.get("chips")?.split(",") ?? data.first;
    const [subject, chips] = [one("is", [MATMUL, MODEL]), chipsOf(ids, data, lost)];
    const model = one("model", steps.models, steps.models[0], byId);
    const first = steps.splits.find(({ name }) => name === FIRST.split);
    const [split, sharding] = [one("split", steps.splits, first, named), one(
      "sharding", Object.keys(works), "none")];
    const shape = asked.get("shape"); // a layer, as charts name it
    const layer = data.layers.find(([id]) => id === shape);
    if (shape && !layer) lost.push(["shape", shape, "no layer of this page"]);
    const [, , D, F] = layer ?? [, , FIRST.D, FIRST.F];
    const sellers = sellersOf(chips);
    return {
      subject, chips, model, split, sharding, sellers,
      seller: sellers.length ? one("seller", sellers) : null,
      own: ownNumbers(asked.get("own") ?? "", data.chips, lost),
      n: sharding === "none" ? 1 : size("n", 8, 1, MOST_N),
      dtypes: one("dtypes", dtypes, dtypes[0], named),
      format: one("format", Object.keys(steps.formats), model.format),
      phase: one("phase", steps.phases),
      B: size("B", FIRST.B[subject], subject === MODEL ? split.dp : 1),
      D: size("D", D), F: size("F", F), S: size("S", FIRST.S),
      basis: one("basis", [BOUND, CALIBRATED]),
      tab: one("tab", TABS[subject].map(([name]) => name)),
      of: asked.has("of") ? one("of", chips, chips[0], byId) : null,
      sort: asked.get("sort") ?? "", all: one("rows", ["chosen", "all"]) === "all", lost, data,
    };
  }

  // ---------------------------------------------------------------- what a chip has

  const ownOf = ({ own }, chip) => (name) => own[`${chip.id}.${name}`] ?? null;
  /** Whether a rate of a chip is not that of its data sheet: then no timing is of this chip. */
  const altered = (now, chip) => ["peak", "memory", "link"].some(ownOf(now, chip));

  /** What the data sheet of a chip says, in SI units; what it does not say is null. */
  function sheetOf({ data, seller }, chip, compute) {
    const network = chip.network === null ? null : data.networks[chip.network];
    const known = (number) => (number == null ? null : rational(number));
    return {
      peak: known(chip.peaks[compute]?.nominal), memory: known(chip.memory.nominal),
      link: known(network?.link), capacity: known(chip.memory.capacity),
      price: chip.prices.find((price) => sellerOf(price) === seller)?.[0] ?? null,
    };
  }

  /** Why chips cannot share a matmul over their network; null: they can. */
  function apart(chip, network, n, piece) {
    if (!network) return "no interconnect";
    if (piece) return null;
    if (n <= network.most) return `groups of ${network.group} chips on ${chip.link}`;
    if (network.published) return `${count(network.most)} chips at most on one ${chip.link}`;
    return `no published number of chips on one ${chip.link}`;
  }

  /** A matmul on a chip as `ANSWERS` takes it, or the reason why there is none as `lack`.

      `more` is a factor on the bandwidth of the memory. */
  function matmulOf(now, chip, { dtypes = now.dtypes, n = now.n, D, F, more = 1 } = {}) {
    const { data } = now;
    const [own, { compute }] = [ownOf(now, chip), dtypes];
    const peak = chip.peaks[compute];
    if (!peak && !own("peak")) return { chip, lack: `no published ${compute} peak` };
    const network = chip.network === null ? null : data.networks[chip.network];
    const piece = network?.pieces.find(
      (one) => n >= one.least && n <= one.most && n % one.step === one.offset);
    const lack = n > 1 ? apart(chip, network, n, piece) : null;
    if (lack) return { chip, lack };
    const scheme = data.works[n > 1 ? now.sharding : "none"];
    const extents = { N: n, "1/N": 1 / n, D: D ?? now.D, F: F ?? now.F };
    for (const [name, bytes] of Object.entries(dtypes.bytes)) extents[name] = rational(bytes);
    const value = (terms) => ANSWERS.value(terms, (name) => extents[name]);
    const line = (work, perSecond = 1) =>
      ANSWERS.along(scheme.works[work], (name) => extents[name], "B").map((one) => one / perSecond);

    const sheet = sheetOf(now, chip, compute);
    const reached = ({ rate, nominal }) => rational(rate) / rational(nominal);
    const reach = peak ? reached(peak) : 1;
    const nominal = {
      peak: own("peak") ?? sheet.peak, memory: (own("memory") ?? sheet.memory) * more,
    };
    const rates = { peak: nominal.peak * reach, memory: nominal.memory * reached(chip.memory) };
    const slower = own("link") ? sheet.link / own("link") : 1;
    const levels = n > 1 && scheme.collective ? piece.collectives[scheme.collective] : [];
    const seconds = levels.map((level) => value(level.seconds) * slower);
    const sends = levels.map(({ latency }, i) =>
      [...line("network_bytes", 1 / seconds[i]), value(latency)]);
    const kernel = {
      name: "matmul", layers: 1, math: line("flops", rates.peak), expert: 0, activation: 0,
      memory: line("memory_bytes", rates.memory), sends: [sends],
    };
    const capacity = own("capacity") ?? sheet.capacity;
    const held = line("footprint_bytes");
    return ANSWERS.loaded([kernel], {
      chip, scheme, rates, bounds: data.bounds, least: 1, flops: line("flops"),
      moved: line("memory_bytes"), reach,
      footprint: (B) => {
        const bytes = ANSWERS.lineAt(held, B);
        return { bytes, capacity, fits: capacity ? bytes <= capacity : null };
      },
      ...calibrated(now, chip, compute, { scheme, levels, seconds, value, line, nominal }),
    });
  }

  /** The calibration of a chip in a compute dtype, on the nominal times of a matmul. */
  function calibrated({ data }, chip, compute, { scheme, levels, seconds, value, line, nominal }) {
    const fit = data.fits[chip.id]?.[compute];
    if (!fit) return {};
    const span = fit.tile > 1 ? fit.tile * value(scheme.rows) : 1;
    const slowest = Math.max(0, ...seconds) * rational(chip.reached);
    const { peak, memory } = nominal;
    const lines = {
      math: line("flops", peak), memory: line("memory_bytes", memory), x: line("x", memory),
      out: line("out", memory), depth: line("depth"),
      network: line("network_bytes", slowest ? 1 / slowest : Infinity),
    };
    const fitted = levels.length ? fit.sent[scheme.collective] : null;
    const pieces = fit.pieces.flatMap(([bound, affine]) => {
      if (bound !== "network") return [[bound, [affine]]];
      if (!fitted) {
        const usual = levels.map(({ typical }) => [bound, [{ "": value(typical) }]]);
        return levels.length ? [[bound, [affine]], ...usual] : [];
      }
      const waits = value(fitted.waits);
      return [[bound, fitted.protocols.map((one) =>
        ({ ...one, "": rational(one[""] ?? 0) + waits }))]];
    });
    return {
      estimates: [{ layers: 1, common: fit.common, pieces }], bands: (fitted ?? fit).bands, span,
      extentsAt: (B) => (name) =>
        ANSWERS.lineAt(lines[name], name === "math" ? upward(B / span) * span : B),
    };
  }

  const skippedOf = ({ steps }, ...wanted) => steps.skipped.find(
    (row) => wanted.every((value, i) => !row[i] || row[i] === value))?.[4];

  /** A step of a model on a chip as `ANSWERS` takes it, or the reason why there is none. */
  function stepOf(now, chip, { split = now.split, S = now.S, more = 1 } = {}) {
    const { bounds, steps } = now.data;
    const { model, phase, format } = now;
    const place = steps.machines.findIndex((machine) => machine.chip === chip.id);
    const step = model.steps.find((one) =>
      one.phase === phase && one.split === split.name && one.dtypes === format);
    if (!step || !(place in step.on)) {
      const reason = skippedOf(now.data, chip.id, model.id, split.name, format);
      return { chip, lack: reason ?? (place < 0 ? "no steps on this page" : "no such step") };
    }
    const machine = steps.machines[place];
    const compute = steps.compute[format];
    const [own, sheet] = [ownOf(now, chip), sheetOf(now, chip, compute)];
    const ratio = (name) => (own(name) && sheet[name] ? own(name) / sheet[name] : 1);
    const scale = { [compute]: ratio("peak"), memory: ratio("memory") * more };
    const perSecond = (name) => rational(machine.rates[name]) * (scale[name] ?? 1);
    const [all] = Object.values(model.extents[phase]);
    const extents = Object.fromEntries(Object.entries(all).map(([name, pieces]) =>
      [name, ANSWERS.pieceAt(pieces, S)]));
    const at = (name) => extents[name] ?? 1;
    const kernels = step.kernels.map((index) => {
      const { name, count: layers, compute: own, works, sends } = model.kernels[index];
      const times = (terms, rate, ...axes) =>
        ANSWERS.along(terms, at, ...axes, "B").map((one) => (layers * one) / rate);
      const memory = perSecond("memory");
      const [expert, ...moved] = times(works.memory, memory, "touched");
      return {
        name, layers, expert, memory: moved, math: times(works.math, perSecond(own)),
        activation: times(works.activation, memory)[0],
        sends: sends.map(([kind, payload]) => machine.sends[kind].map(([perByte, latency]) => [
          ...times(payload, ratio("link") / rational(perByte)), layers * rational(latency),
        ])),
      };
    });
    const touched = step.kernels.map((index) => model.kernels[index].touched).find(Boolean);
    const found = {
      chip, bounds, kernels, touched: touched?.map(rational), tokens: extents.T, least: split.dp,
      reach: 1,
    };
    const fitted = step.on[place];
    if (fitted && !altered(now, chip)) {
      found.estimates = step.kernels.map((index, i) =>
        ({ layers: model.kernels[index].count, ...model.estimates[fitted[i]] }));
      found.extentsAt = (B) => (name) => stepExtent(found, at, B, name);
    }
    const memory = machine.capacity === null ? null : rational(machine.capacity);
    const held = { weights: rational(step.weights), cache: step.cache, dp: split.dp };
    held.capacity = own("capacity") ?? memory;
    found.footprint = (B) => ANSWERS.footprint(held, S, B);
    return ANSWERS.loaded(kernels, found);
  }

  /** An extent of a step at a batch; `tokens:128` are the tokens in whole spans of 128. */
  function stepExtent({ touched, tokens }, at, B, name) {
    if (name === "B") return B;
    if (name === "touched") return ANSWERS.expertsOf({ touched, tokens }, B);
    const [kind, span] = name.split(":");
    const rows = { tokens: B * tokens, sequences: B }[kind];
    return rows && span ? upward(rows / span) * span : at(name);
  }

  const tokensOf = (now, B) =>
    B * (now.subject === MODEL && now.phase === "prefill" ? now.S : 1);
  /** The time that is asked for: of a bound kernel after kernel; null without a calibration. */
  const timeOf = (now, of, B) => (now.basis === CALIBRATED
    ? ANSWERS.estimate(of, B)?.time ?? null : ANSWERS.times(of, B).ops);
  const shareOf = ({ of, answer }, time) => (answer.parts[0] / time) * of.reach;

  /** Everything that is shown of a chip. */
  function rowOf(now, chip, split = now.split) {
    const [matmul, { B }] = [now.subject === MATMUL, now];
    const loadOf = matmul ? matmulOf : stepOf;
    const of = loadOf(now, chip, { split });
    if (of.lack) return of;
    const answer = ANSWERS.times(of, B);
    const estimate = now.basis === CALIBRATED ? ANSWERS.estimate(of, B) : null;
    const time = now.basis === CALIBRATED ? estimate?.time ?? null : answer.ops;
    const [tokens, chips] = [tokensOf(now, B), matmul ? now.n : split.chips];
    const footprint = of.footprint(B);
    const row = {
      chip, of, split, answer, estimate, time, footprint, fits: footprint.fits,
      bound: matmul && now.basis === CALIBRATED ? estimate?.bound ?? null : answer.bound,
      all: ANSWERS.critical(of), most: matmul ? ANSWERS.critical(of, PLATEAU) : null,
      saturates: matmul && estimate ? ANSWERS.saturates(of) : null,
      share: null, wider: null, user: null, rate: null, cost: null,
    };
    row.off = offOf(now, row);
    if (time === null) return row;
    if (matmul || !estimate) {
      row.wider = timeOf(now, loadOf(now, chip, { split, more: MORE }), B) / time - 1;
    }
    const share = shareOf(row, time);
    const [user, rate] = matmul ? [null, null] : [tokens / B / time, tokens / time / chips];
    const price = ownOf(now, chip)("price") ?? sheetOf(now, chip).price;
    const cost = price ? ((price * chips * time) / 3600 / tokens) * MILLION : null;
    return { ...row, share, user, rate, cost };
  }

  // ---------------------------------------------------------------- beside it

  /** Quantiles of measured over predicted time by what, chip, dtypes, length and over; or null. */
  const measuredOf = ({ data }, ...key) => data.measured.by[key.join("/")] ?? null;

  /** How far timings of the chip of a row are from its time: of what is not timed null. */
  function offOf(now, { chip, answer, estimate }, bound = now.basis === BOUND) {
    if (altered(now, chip)) return null;
    const over = !bound && estimate ? "estimate" : "bound";
    if (now.subject === MODEL) return measuredOf(now, "step", chip.id, now.format, "", over);
    const length = answer.lower < now.data.measured.long ? "short" : "long";
    return now.n > 1 ? null : measuredOf(now, MATMUL, chip.id, now.dtypes.name, length, over);
  }

  /** The row that is spoken of: the first that runs, in memory if one does. */
  const answering = (rows) => rows.find(({ lack, fits }) => !lack && fits !== false)
    ?? rows.find(({ lack }) => !lack) ?? rows[0];

  /** The command that prints the same for a chip. */
  function commandOf(now, chip) {
    const { data: { fits, steps }, model, dtypes, n, split, phase, sharding } = now;
    const isModel = now.subject === MODEL;
    const fit = isModel ? stepOf(now, chip).estimates : fits[chip.id]?.[dtypes.compute];
    const software = isModel ? steps.calibration : [fit?.software, ...(n > 1 ? ["nccl"] : [])];
    const said = fit && now.basis === CALIBRATED && software[0] !== "own";
    return [
      "rooflines explain", chip.id, ...(isModel
        ? [model.id, `B=${now.B}`, `S=${now.S}`, steps.formats[now.format], "--split", split.option]
        : [`${now.B}x${now.D}x${now.F}`, dtypes.name]),
      ...(isModel && phase !== "decode" ? ["--phase", phase] : []),
      ...(n > 1 && !isModel ? ["--shards", n, "--sharding", sharding] : []),
      ...(said ? ["--calibration", software.join()] : []),
    ].join(" ");
  }

  return {
    MATMUL, MODEL, BOUND, CALIBRATED, CLEARS, OWN, TABS, NAMES, MOST_CHIPS, read, numberOf, sheetOf,
    altered, matmulOf, stepOf, rowOf, timeOf, tokensOf, shareOf, offOf, measuredOf, answering,
    commandOf,
  };
})();
