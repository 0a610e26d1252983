"use strict";
/* What is asked, from the address, and what each chip has then. No page is needed.

   `data` are those of explorer.py: of matmuls, and `steps` of models. */

const STATE = (() => {
  const { rational, polynomial, count } = NUMBERS;
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
    "phase", "basis", "tab", "of", "sort", "rows", "seller", "own", "theme", "chip", "shape",
  ];

  const whole = (text, most) =>
    /^[1-9]\d{0,8}$/.test(text ?? "") && Number(text) <= most ? Number(text) : null;
  const numberOf = (text) =>
    /^\d{1,20}(\.\d{1,20})?(e[+-]?\d{1,2})?$/i.test(text ?? "") && Number(text) > 0
      ? Number(text) : null;

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
    for (const one of (text ?? "").split(",").filter(Boolean)) {
      const [, chip, name, value] = /^(.+)\.(\w+):(.*)$/.exec(one) ?? [];
      const number = chips.has(chip) && name in OWN ? numberOf(value) : null;
      if (number) own[`${chip}.${name}`] = number;
      else lost.push(["own number", one, "of no chip, or no number above 0; left out"]);
    }
    return own;
  }

  /** Everything that is asked for; `lost` has what cannot be, as [name, value, what is shown].

      `asked` is a URLSearchParams. */
  function read(asked, data) {
    const { chips: all, dtypes, works, steps } = data;
    const lost = [];
    const one = (name, options, first) => {
      const value = asked.get(name);
      if (value === null || options.includes(value)) return value ?? first;
      lost.push([name, value, `unknown; shown is ${first}`]);
      return first;
    };
    const size = (name, first, most = MOST_SIZE, least = 1) => {
      const value = asked.get(name);
      const found = whole(value, most) ?? first;
      if (value !== null && (whole(value, most) ?? 0) < least) {
        const shown = Math.max(found, least);
        const range = `from ${least} to ${count(most)}`;
        lost.push([name, value, `no whole number ${range}; shown is ${count(shown)}`]);
      }
      return Math.max(found, least);
    };
    const byId = new Map(all.map((chip) => [chip.id, chip]));
    const subject = one("is", [MATMUL, MODEL], MATMUL);
    const first = byId.has(asked.get("chip")) ? [asked.get("chip")] : data.first;
    const ids = [...new Set((asked.get("chips") ?? first.join()).split(","))];
    lost.push(...ids.filter((id) => !byId.has(id)).map((id) => ["chip", id, "unknown"]));
    const known = ids.filter((id) => byId.has(id));
    const few = `more than ${MOST_CHIPS} chips; shown are the first`;
    if (known.length > MOST_CHIPS) lost.push(["chips", "", few]);
    const chosen = (known.length ? known : data.first).slice(0, MOST_CHIPS);
    const chips = chosen.map((id) => byId.get(id));
    const models = steps.models.map(({ id }) => id);
    const modelId = one("model", models, models[0]);
    const model = steps.models.find(({ id }) => id === modelId);
    const splitName = one("split", steps.splits.map(({ name }) => name), FIRST.split);
    const split = steps.splits.find(({ name }) => name === splitName);
    const sharding = one("sharding", Object.keys(works), "none");
    const dtypeName = one("dtypes", dtypes.map(({ name }) => name), dtypes[0].name);
    const shape = asked.get("shape"); // a layer, as charts name it
    const layer = data.layers.find(([of, name]) => shape === `${of}-${name}`);
    if (shape && !layer) lost.push(["shape", shape, "no layer of this page"]);
    const [, , D, F] = layer ?? [, , FIRST.D, FIRST.F];
    const tabs = TABS[subject].map(([name]) => name);
    const sellers = sellersOf(chips);
    const seller = sellers.includes(asked.get("seller")) ? asked.get("seller") : sellers[0];
    return {
      subject, chips, model, split, sharding, sellers, seller: seller ?? null,
      own: ownNumbers(asked.get("own"), byId, lost),
      n: sharding === "none" ? 1 : size("n", 8, MOST_N),
      dtypes: dtypes.find(({ name }) => name === dtypeName),
      format: one("format", Object.keys(steps.formats), model.format),
      phase: one("phase", steps.phases, steps.phases[0]),
      B: size("B", FIRST.B[subject], MOST_SIZE, subject === MODEL ? split.dp : 1),
      D: size("D", D), F: size("F", F), S: size("S", FIRST.S),
      basis: one("basis", [BOUND, CALIBRATED], BOUND),
      tab: tabs.includes(asked.get("tab")) ? asked.get("tab") : tabs[0],
      of: chips.find(({ id }) => id === asked.get("of")) ?? null,
      sort: asked.get("sort") ?? "", all: asked.get("rows") === "all", lost, data,
    };
  }

  // ---------------------------------------------------------------- what a chip has

  const ownOf = ({ own }, chip) => (name) => own[`${chip.id}.${name}`] ?? null;
  /** Whether a rate of a chip is not that of its data sheet: then no timing is of this chip. */
  const altered = (now, chip) => ["peak", "memory", "link"].some(ownOf(now, chip));

  function priceOf(now, chip) {
    const own = ownOf(now, chip)("price");
    if (own) return [own, "own"];
    const found = chip.prices.find((price) => sellerOf(price) === now.seller);
    return found ? [found[0], now.seller] : null;
  }

  /** The calibration of a chip in a compute dtype: the first software that has one. */
  function fitOf({ fits }, chip, compute) {
    const found = Object.entries(fits[chip.id] ?? {}).find(([, of]) => of[compute]);
    return found ? { software: found[0], ...found[1][compute] } : null;
  }

  /** Why chips cannot share a matmul over their network; null: they can. */
  function apart(chip, network, n, piece) {
    if (!network) return "has no interconnect";
    if (piece) return null;
    if (n <= network.most) return `has groups of ${network.group} chips on ${chip.link}`;
    if (network.published) return `joins ${count(network.most)} chips at most on one ${chip.link}`;
    return `has no published number of chips that ${chip.link} joins`;
  }

  /** A matmul on a chip, as `ANSWERS` takes it, or the reason why there is none as `lack`. */
  function sideOf(now, chip, dtypes = now.dtypes, n = now.n) {
    const { data } = now;
    const own = ownOf(now, chip);
    const peak = chip.peaks[dtypes.compute];
    if (!peak && !own("peak")) return { chip, lack: `has no published ${dtypes.compute} peak` };
    const network = chip.network === null ? null : data.networks[chip.network];
    const piece = network?.pieces.find(
      (one) => n >= one.least && n <= one.most && n % one.step === one.offset);
    const lack = n > 1 ? apart(chip, network, n, piece) : null;
    if (lack) return { chip, lack };
    const scheme = data.works[n > 1 ? now.sharding : "none"];
    const slower = network?.link && own("link") ? rational(network.link) / own("link") : 1;
    const at = (coefficients) => polynomial(coefficients, n) / n;
    const levels = n > 1 && scheme.collective ? piece.collectives[scheme.collective].levels : [];
    const scaled = (mine, { rate, nominal }) =>
      mine ? (mine * rational(rate)) / rational(nominal) : rational(rate);
    const each = {};
    for (const [name, value] of Object.entries(dtypes.bytes)) each[name] = rational(value);
    const { capacity } = chip.memory;
    return {
      chip, dtypes, n, scheme, each, sizes: { B: now.B, D: now.D, F: now.F },
      sent: levels.map(({ seconds, latency, typical }) => (
        { seconds: at(seconds) * slower, latency: at(latency), typical: at(typical) })),
      peak: scaled(own("peak"), peak ?? { rate: 1, nominal: 1 }),
      nominal: own("peak") ?? rational(peak.nominal),
      memory: scaled(own("memory"), chip.memory),
      nominalMemory: own("memory") ?? rational(chip.memory.nominal),
      capacity: own("capacity") ?? (capacity ? rational(capacity) : null),
      reached: rational(chip.reached), fit: fitOf(data, chip, dtypes.compute),
    };
  }

  const dollars = (price, chips, time, tokens) =>
    price && time !== null ? ((price[0] * chips * time) / 3600 / tokens) * MILLION : null;

  function matmulRow(now, chip) {
    const side = sideOf(now, chip);
    if (side.lack) return side;
    const nominal = ANSWERS.matmul(side);
    const calibrated = now.basis === CALIBRATED;
    const wider = { ...side, memory: side.memory * MORE, nominalMemory: side.nominalMemory * MORE };
    const estimate = calibrated ? ANSWERS.estimate(side) : null;
    const time = calibrated ? estimate?.time ?? null : nominal.lower;
    const faster = (of) => (calibrated ? ANSWERS.estimate(of).time : ANSWERS.matmul(of).lower);
    const price = priceOf(now, chip);
    return {
      chip, side, nominal, estimate, time, price, fits: nominal.fits,
      bound: calibrated ? estimate?.bound ?? null : nominal.bound,
      share: time === null ? null : nominal.flops / time / side.nominal,
      all: ANSWERS.critical(side, "B"), most: ANSWERS.critical(side, "B", PLATEAU),
      saturates: estimate ? ANSWERS.saturates(side) : null,
      wider: time === null ? null : faster(wider) / time - 1,
      cost: dollars(price, now.n, time, now.B),
    };
  }

  const skippedOf = ({ steps }, ...wanted) => steps.skipped.find(
    (row) => wanted.every((value, i) => !row[i] || row[i] === value))?.[4];

  /** A step of a model on a chip at a context, or the reason why there is none as `lack`. */
  function stepOf(now, chip, split = now.split, S = now.S) {
    const { steps, networks } = now.data;
    const place = steps.machines.findIndex((machine) => machine.chip === chip.id);
    const [{ model }, of] = [now, { chip, split }];
    const step = model.steps.find((one) =>
      one.phase === now.phase && one.split === split.name && one.dtypes === now.format);
    if (!step || place < 0 || !(place in step.on)) {
      const reason = skippedOf(now.data, chip.id, model.id, split.name, now.format);
      if (!reason && place < 0) return { ...of, lack: "is no chip whose steps this page has" };
      const said = (reason ?? "has no such step").replace(/^no /, "has no ");
      return { ...of, lack: said.replace(/^ep is/, "cannot: ep is") };
    }
    const machine = steps.machines[place];
    const own = ownOf(now, chip);
    const compute = steps.compute[now.format];
    const ratio = (name, published) => (own(name) ? own(name) / rational(published) : 1);
    const link = chip.network === null ? null : networks[chip.network].link;
    const rates = {
      [compute]: ratio("peak", chip.peaks[compute].nominal),
      memory: ratio("memory", chip.memory.nominal),
    };
    const input = { model, machine, place, step, phase: now.phase, S, rates };
    input.link = link ? ratio("link", link) : 1;
    const prepared = ANSWERS.prepared(input);
    if (altered(now, chip)) prepared.estimates = null;
    const capacity = machine.capacity === null ? null : rational(machine.capacity);
    return { ...of, of: prepared, input, step, capacity: own("capacity") ?? capacity };
  }

  const tokensOf = (now, B) => B * (now.phase === "prefill" ? now.S : 1);
  const timeOf = (now, of, B) => (now.basis === CALIBRATED
    ? ANSWERS.stepEstimate(of, B)?.time ?? null : ANSWERS.step(of, B, now.data.steps.bounds).ops);

  function modelRow(now, chip, split = now.split) {
    const one = stepOf(now, chip, split);
    if (one.lack) return one;
    const { of, input } = one;
    const { bounds } = now.data.steps;
    const answer = ANSWERS.step(of, now.B, bounds);
    const time = timeOf(now, of, now.B);
    const tokens = tokensOf(now, now.B);
    const price = priceOf(now, chip);
    const rates = { ...input.rates, memory: input.rates.memory * MORE };
    const wider = ANSWERS.step(ANSWERS.prepared({ ...input, rates }), now.B, bounds).ops;
    const footprint = ANSWERS.footprint({ ...one, S: now.S, B: now.B });
    return {
      chip, split, of, answer, time, footprint, price, bound: answer.bound, fits: footprint.fits,
      all: ANSWERS.criticalBatch(of, split.dp, bounds),
      share: time === null ? null : answer.parts[0] / time,
      wider: now.basis === CALIBRATED ? null : wider / answer.ops - 1,
      user: time === null ? null : tokens / now.B / time,
      rate: time === null ? null : tokens / time / split.chips,
      cost: dollars(price, split.chips, time, tokens),
    };
  }

  function rowOf(now, chip) {
    const row = now.subject === MODEL ? modelRow(now, chip) : matmulRow(now, chip);
    return row.lack ? row : { ...row, off: offOf(now, row) };
  }

  // ---------------------------------------------------------------- beside it

  /** Quantiles of measured over predicted time, of a chip or of all; null: there are no timings.

      `length` is that of a matmul's bound; a step has none. */
  function measuredOf(now, chip, over, length = null) {
    const [what, dtypes] = length ? ["matmul", now.dtypes] : ["step", { name: now.format }];
    const wanted = [what, chip?.id ?? null, , chip ? dtypes.name : null, length, over];
    const found = now.data.measured.rows.filter((row) =>
      wanted.every((value, i) => value === row[i]));
    const fit = length
      ? fitOf(now.data, chip, dtypes.compute)?.software : now.data.steps.calibration[0];
    const best = found.find(([, , software]) => software === fit) ?? found[0];
    if (!best) return null;
    const [, , software, , , , n, low, middle, high] = best;
    return { software, n, low, middle, high, over, length };
  }

  /** How far timings of the chip of a row are from its time: of what is not timed null. */
  function offOf(now, { chip, nominal, estimate, of }, bound = now.basis === BOUND) {
    if (altered(now, chip) || now.n > 1) return null;
    const over = !bound && (estimate || of?.estimates) ? "estimate" : "bound";
    if (!nominal) return measuredOf(now, chip, over);
    return measuredOf(now, chip, over, nominal.lower < now.data.measured.long ? "short" : "long");
  }

  /** The row that is spoken of: the first that runs, in memory if one does. */
  const answering = (rows) => rows.find(({ lack, fits }) => !lack && fits !== false)
    ?? rows.find(({ lack }) => !lack) ?? rows[0];

  /** The command that prints the same for a chip. */
  function commandOf(now, chip) {
    const { data } = now;
    const isModel = now.subject === MODEL;
    const fit = isModel ? stepOf(now, chip).of?.estimates : fitOf(data, chip, now.dtypes.compute);
    const nccl = now.n > 1 ? ["nccl"] : [];
    const software = isModel ? data.steps.calibration : [fit?.software, ...nccl];
    const said = fit && now.basis === CALIBRATED && software[0] !== "own";
    const calibration = said ? ` --calibration ${software.join()}` : "";
    if (!isModel) {
      const split = now.n > 1 ? ` --shards ${now.n} --sharding ${now.sharding}` : "";
      const sizes = `${now.B}x${now.D}x${now.F}`;
      return `rooflines explain ${chip.id} ${sizes} ${now.dtypes.name}${split}${calibration}`;
    }
    const split = now.split.name.replace(/(tp|dp|ep)(?=\d)/g, ",$1=").replace(/[-,]+/g, ",")
      .replace(/^,/, "");
    const phase = now.phase === "decode" ? "" : ` --phase ${now.phase}`;
    const sizes = `B=${now.B} S=${now.S} ${data.steps.formats[now.format]}`;
    return `rooflines explain ${chip.id} ${now.model.id} ${sizes} --split ${split}${phase}`
      + calibration;
  }

  return {
    MATMUL, MODEL, BOUND, CALIBRATED, OWN, TABS, NAMES, MOST_CHIPS, MOST_SIZE, MOST_N, read,
    whole, numberOf, sellerOf, altered, sideOf, stepOf, rowOf, modelRow, timeOf, tokensOf,
    offOf, measuredOf, answering, commandOf,
  };
})();
