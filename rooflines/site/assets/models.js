"use strict";
/* The page "Models": the choices in the address, and the answers to them. steps.js computes every number. */

document.addEventListener("DOMContentLoaded", async () => {
  const { load, unpacked, make, shown, tableParts, menu, onEntered, state, go, soon, tellUnknown, follow } = ROOFLINES;
  const { number, ratio, plus, over } = EXACT;
  const { sweeps, bounds, limits, prefixes } = await load("data/models", "data/models.js");
  const { significant, prefixed, si, percent, count } = FORMAT(prefixes);
  const $ = (id) => document.getElementById(id);

  const DECODE = "decode";
  const BEYOND = BigInt(limits.count);
  const MOST = 2 ** 24; // the largest size that can be chosen [1]
  const COLOURS = 6; // of splits
  const PER_OCTAVE = 6; // contexts of the line of critical batches
  const LONGEST = 2 ** 20; // its last context [1]
  const ALIKE = 1 + 1e-12; // throughputs that differ by less are a tie
  const SLOWEST = 3; // how much longer than what fits the times of what does not may be
  const ROUTINGS = {
    uniform: "Routing: every token chooses its experts at random, each equally likely.",
    same: "Routing: all tokens choose the same experts, the fewest that can be.",
    all: "Routing: every expert is used in every step.",
  };
  const TIMES = ({ T }) => (T === null ? "Time to the first token" : T === 1 ? "Time per token" : "Time per step");
  const OUTCOMES = { always: "any", never: "never", beyond: "beyond 2^62" };
  const WHY = { memory: "each sequence adds more memory time than compute", network: "each sequence adds more network time than compute" };

  const seconds = (value) => prefixed(value, "s", prefixes.small);
  const rate = (value) => (value < 1e6 ? significant(value, 3) : prefixed(value, "", prefixes.large));
  const counted = (value, noun = "sequence") => `${count(value)} ${noun}${Number(value) === 1 ? "" : "s"}`;
  const list = (names) => (names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`);
  const short = (value) => (value < 1000 ? significant(value, 3) : prefixed(value, "", prefixes.large).replace(" ", ""));

  // ---------------------------------------------------------------- the choices

  const asked = (name) => state().get(name);
  const of = (options, name, first = options[0]) => options.find((one) => String(one) === asked(name)) ?? first;
  const whole = (text) => (/^[1-9]\d{0,8}$/.test(text ?? "") && Number(text) <= MOST ? Number(text) : null);

  /** All choices, each as in the address or else the first. */
  function choices() {
    const sweep = sweeps.find((one) => one.name === asked("sweep")) ?? sweeps[0];
    const model = sweep.models.find((one) => one.name === asked("model")) ?? sweep.models[0];
    const chips = [...new Set(sweep.machines.map((one) => one.chip))];
    const chip = of(chips, "chip");
    const own = sweep.machines.filter((one) => one.chip === chip);
    const memories = [...new Set(own.map((one) => one.memory))];
    const memory = of(memories, "memory");
    const networks = [...new Set(own.filter((one) => one.memory === memory).map((one) => one.network))];
    const network = networks.find((one) => String(one) === asked("network")) ?? networks[0];
    const machine = own.find((one) => one.memory === memory && one.network === network);
    const split = sweep.splits.find((one) => one.name === asked("split")) ?? sweep.splits[0];
    const phase = of(sweep.phases, "phase");
    const least = phase === DECODE ? of(sweep.new, "T") : 1;
    return {
      sweep, model, chips, machine, memories, networks, split, phase,
      dtypes: of(sweep.dtypes, "dtypes"),
      T: phase === DECODE ? least : null,
      S: Math.max(whole(asked("S")) ?? sweep.contexts[0], least),
      B: Math.max(whole(asked("B")) ?? sweep.batches[Math.floor(sweep.batches.length / 2)], split.dp),
    };
  }

  /** Report what the address asks for that is not there. */
  function showUnknown(now) {
    const lost = [];
    const used = { sweep: now.sweep.name, model: now.model.name, chip: now.machine.chip, memory: now.machine.memory, network: String(now.machine.network), dtypes: now.dtypes, split: now.split.name, phase: now.phase };
    if (now.T !== null) used.T = String(now.T);
    for (const [name, value] of state()) {
      if (name === "S" || name === "B") {
        if (whole(value) === null) lost.push([name, value, `no whole number from 1 to ${count(MOST)}; shown is ${count(now[name])}`]);
        else if (Number(value) !== now[name]) lost.push([name, value, `${name === "S" ? "less than the new tokens" : "fewer sequences than replicas"}; shown is ${count(now[name])}`]);
      } else if (Object.hasOwn(used, name) && used[name] !== value) lost.push([name, value, `unknown; shown is ${used[name]}`]);
    }
    tellUnknown(["S", "B", ...Object.keys(used)], lost);
  }

  /** Why nothing runs there: the first of the rows skipped that says so. */
  function reason(now, split, machine) {
    const facts = { model: now.model.name, dtypes: now.dtypes, split: split.name, chip: machine.chip, memory: machine.memory, network: machine.network };
    return now.sweep.skipped.find((row) => Object.entries(facts).every(([name, value]) => !(name in row) || row[name] === value))?.reason ?? "not in this sweep";
  }

  // ---------------------------------------------------------------- steps

  const made = new Map();
  /** A step as steps.js takes it; null where it does not run. */
  function stepOf(now, file, split, machine) {
    const step = file.steps.find((one) => one.phase === now.phase && one.split === split.name && one.dtypes === now.dtypes);
    const place = now.sweep.machines.indexOf(machine);
    if (!step || !(place in step.on)) return null;
    const key = [now.model.file, file.steps.indexOf(step), place].join(" ");
    if (!made.has(key)) made.set(key, { step, place, machine, split, file, prepared: STEPS.prepared(file, step, machine) });
    return made.get(key);
  }
  const piecesOf = (now, file) => file.extents[now.phase][now.T ?? "all"];
  const linesOf = (now, one, S) => STEPS.lines(one.prepared, piecesOf(now, one.file), S);

  /** All numbers of a step at a batch. */
  function rowOf(now, one, B, of = linesOf(now, one, now.S)) {
    const times = STEPS.answer(of, B, bounds);
    const tokens = B * (now.T ?? now.S);
    return {
      ...times, tokens, B,
      ...STEPS.footprint(one.step, one.machine, one.split.dp, now.S, B),
      perChip: tokens / times.lower / one.split.chips,
    };
  }

  // ---------------------------------------------------------------- the controls

  const field = (label, name) => {
    const change = (value) => go({ [name]: value || null });
    const input = make("input", { autocomplete: "off", spellcheck: "false", inputmode: "numeric", onfocus: () => input.select() });
    onEntered(input, (text) => change(text.replaceAll(",", "")));
    const slider = make("input", { type: "range", min: 0, max: name === "S" ? 20 : 14, step: 0.25, "aria-label": `${label}, on a logarithmic scale`, oninput: () => soon(() => change(Math.round(2 ** Number(slider.value)))) });
    return { input, slider, box: make("div", { class: "size" }, make("label", { class: "control" }, make("span", {}, label), input), slider) };
  };
  const sizes = { S: field("Context S", "S"), B: field("Sequences B", "B") };

  function showControls(now, file) {
    const focused = document.activeElement?.closest("[data-param]")?.dataset.param;
    const named = (name, control) => { control.dataset.param = name; return control; };
    const set = (name, others = {}) => (value) => go({ ...others, [name]: value }, true);
    const menus = [];
    const add = (label, name, options, value, others, always = false) => { if (always || options.length > 1) menus.push(named(name, menu(label, options.map((one) => (Array.isArray(one) ? one : [one, one])), value, set(name, others)))); };
    const { sweep, machine } = now;
    add("Sweep", "sweep", sweeps.map((one) => one.name), sweep.name, Object.fromEntries([...state().keys()].filter((name) => name !== "theme").map((name) => [name, null])));
    add("Model", "model", sweep.models.map((one) => one.name), now.model.name, {}, true);
    add("Chip", "chip", now.chips, machine.chip, { memory: null, network: null }, true);
    add("Memory", "memory", now.memories, machine.memory);
    add("Network", "network", now.networks.map((one) => [String(one), one ?? "none"]), String(machine.network));
    const runs = (split) => stepOf(now, file, split, machine) !== null;
    add("Chips and split", "split", sweep.splits.map((one) => [one.name, `${count(one.chips)}: ${one.name}`, !runs(one)]), now.split.name, {}, true);
    add("Data types", "dtypes", sweep.dtypes, now.dtypes, {}, true);
    add("Phase", "phase", sweep.phases, now.phase, { T: null });
    if (now.phase === DECODE) add("New tokens T", "T", sweep.new.map(String), String(now.T));
    for (const [name, { input, slider }] of Object.entries(sizes)) {
      if (document.activeElement !== input) input.value = count(now[name]);
      if (document.activeElement !== slider) slider.value = Math.log2(now[name]);
      slider.setAttribute("aria-valuetext", count(now[name]));
    }
    const old = $("controls").querySelectorAll("[data-param]");
    if (!sizes.S.box.isConnected) $("controls").replaceChildren(...menus, sizes.S.box, sizes.B.box);
    else {
      for (const one of old) one.remove();
      $("controls").prepend(...menus); // a slider that is being moved stays where it is
    }
    $("controls").querySelector(`[data-param="${focused}"] select`)?.focus();
  }

  // ---------------------------------------------------------------- the answers

  function showVerdict(now, row, estimate) {
    const { machine, split } = now;
    const where = `${count(split.chips)} ${machine.name}`;
    const prompt = now.phase !== DECODE;
    const parts = [`${prompt ? "Reading " : "A decode step of "}`, `${counted(now.B, prompt ? "prompt" : "sequence")} of ${count(now.S)} tokens with ${now.model.name} on ${where} `,
      "takes at least ", shown("verdict.t_lower_s", seconds(row.lower)), estimate === null ? "" : ", by estimate ", ...(estimate === null ? [] : [shown("verdict.t_estimate_s", seconds(estimate))]),
      ", and is ", shown("bound", `${row.bound}-bound`), ". "];
    if (row.fits === true) parts.push("It fits.");
    if (row.fits === false) parts.push(row.most > 0n ? `It does not fit: at most ${counted(row.most)} would.` : "It does not fit: the weights and one cache are too large.");
    const { trained, name } = now.model;
    if (trained && now.S > trained) parts.push(` ${name} is trained for ${count(trained)} tokens.`);
    $("verdict").replaceChildren(...parts);
  }

  function criticalText(answer) {
    return answer.size !== undefined && answer.outcome === STEPS.FOUND ? count(answer.size) : OUTCOMES[answer.outcome];
  }

  function showKey(now, row, estimate, answer) {
    const decode = now.phase === DECODE;
    const each = (time) => time / (now.T ?? 1);
    const tile = (label, name, text, ...more) => make("div", {}, make("dt", {}, label), make("dd", {}, shown(name, text), ...(more.length ? [make("small", {}, ...more)] : [])));
    const perChip = (time) => rate(row.tokens / time / now.split.chips);
    const tiles = [tile(TIMES(now), "t_lower_s", seconds(row.lower),
      shown("t_ops_s", seconds(row.ops)), " kernel after kernel, ", shown("t_upper_s", seconds(row.upper)), " without overlap", ...(estimate === null ? [] : [", ", shown("t_estimate_s", seconds(estimate)), " estimated"]))];
    tiles.push(tile("Tokens/s per chip", "tokens_per_s_per_chip", perChip(row.lower), shown("tokens_per_s_per_chip_ops", perChip(row.ops)), " kernel after kernel",
      ...(estimate === null ? [] : [", ", shown("tokens_per_s_per_chip_estimate", perChip(estimate)), " estimated"])));
    if (decode) {
      tiles.push(tile("Tokens/s per sequence", "user", rate(1 / each(row.lower)), shown("user_ops", rate(1 / each(row.ops))), " kernel after kernel",
        ...(estimate === null ? [] : [", ", shown("user_estimate", rate(1 / each(estimate))), " estimated"])));
    }
    const held = plus(row.weights, row.caches);
    tiles.push(tile("Memory of a chip", "footprint_bytes", si(held, "B"), shown("weights_footprint_bytes", si(row.weights, "B")), " weights, ", shown("cache_footprint_bytes", si(row.caches, "B")), " caches",
      ...(row.capacity ? [`; ${percent(over(held, row.capacity))} of ${si(row.capacity, "B")}`] : ["; capacity not known"])));
    if (row.most !== null) tiles.push(tile("Largest batch that fits", "max_B", count(row.most), `sequences of ${count(now.S)} tokens`));
    tiles.push(tile("Compute-bound from", "critical", criticalText(answer), answer.outcome === STEPS.NEVER ? WHY[answer.limit] : answer.outcome === STEPS.ALWAYS ? "sequences: every batch is compute-bound" : `sequences on; ${answer.limit}-bound below`));
    $("key").replaceChildren(...tiles);
  }

  const legend = (id, ...entries) => $(id).replaceChildren(...entries.map(([name, text]) => make("li", {}, make("span", { class: `swatch ${name}`, "aria-hidden": "true" }), text)));

  function showTime(row, estimates, estimate, now) {
    const stack = row.kernels.map((kernel) => {
      const part = make("span", { class: `bar ${kernel.bound}`, title: `${kernel.name}: ${seconds(kernel.ops)}, ${kernel.bound}-bound` });
      part.style.inlineSize = `${100 * kernel.ops / row.ops}%`;
      if (kernel.ops / row.ops > 0.12) part.append(kernel.name);
      return part;
    });
    $("stack").replaceChildren(...stack);
    legend("time-legend", ...bounds.map((bound) => [`bar ${bound}`, `${bound}-bound`]));
    const head = ["Kernel", "Time", "Share", "Bound", "Compute", "Memory", "Network", ...(estimates ? ["Estimate"] : [])];
    const rows = row.kernels.map((kernel, i) => ({ ...kernel, estimate: estimates?.[i] })).sort((a, b) => b.ops - a.ops).map((kernel) => make("tr", { "data-kernel": kernel.name },
      make("th", { scope: "row" }, kernel.name, kernel.count > 1 ? make("small", {}, ` × ${kernel.count}`) : ""),
      make("td", { class: "number" }, seconds(kernel.ops)),
      make("td", { class: "number" }, `${significant(100 * kernel.ops / row.ops)}%`),
      make("td", {}, kernel.bound),
      ...kernel.parts.map((part, i) => make("td", { class: part ? `number${bounds[i] === kernel.bound ? " answer" : ""}` : "number none" }, part ? seconds(part) : "–")),
      ...(estimates ? [make("td", { class: "number" }, seconds(kernel.estimate))] : [])));
    $("time").replaceChildren(...tableParts(head.map((text) => [text, !["Kernel", "Bound"].includes(text)]), rows));
    $("time-note").replaceChildren("Kernels one after another, over all layers: ", shown("sum", seconds(row.ops)), ". Memory is of weights, caches and what kernels pass on; network is of the collectives that follow a kernel.",
      ...(estimate === null ? [] : [` The estimate, ${seconds(estimate)}, is calibrated to timings of ${list(now.sweep.calibration)}.`]));
  }

  function showFits(now, file) {
    const ends = now.sweep.splits.map((split) => ({ split, one: stepOf(now, file, split, now.machine) }));
    const known = ends.filter(({ one }) => one).map(({ split, one }) => ({ split, ...STEPS.footprint(one.step, now.machine, split.dp, now.S, Math.max(now.B, split.dp)) }));
    const scale = Math.max(...known.map((row) => Math.min(number(plus(row.weights, row.caches)), 2 * number(row.capacity ?? row.weights))), ...known.map((row) => number(row.capacity ?? row.weights)));
    legend("fits-legend", ["weights", "weights"], ["caches", `caches of ${counted(now.B)}`], ["full", "capacity"]);
    const rows = ends.map(({ split, one }) => {
      const chosen = split === now.split ? "answer" : null;
      const name = make("th", { scope: "row", class: chosen }, make("a", { href: link({ split: split.name }) }, split.name));
      if (!one) return make("tr", { "data-split": split.name }, name, make("td", { colspan: 3, class: "none" }, reason(now, split, now.machine)));
      const row = known.find((each) => each.split === split);
      const bar = make("div", { class: "held", "aria-hidden": "true" });
      const parts = [["weights", number(row.weights)], ["caches", number(row.caches)]];
      let room = scale;
      for (const [part, bytes] of parts) {
        const piece = make("span", { class: part });
        piece.style.inlineSize = `${100 * Math.min(bytes, room) / scale}%`;
        room -= Math.min(bytes, room);
        bar.append(piece);
      }
      if (row.capacity) {
        const mark = make("span", { class: "full" });
        mark.style.insetInlineStart = `${100 * number(row.capacity) / scale}%`;
        bar.append(mark);
      }
      const text = make("small", {}, shown(`weights.${split.name}`, si(row.weights, "B")), " + ", shown(`caches.${split.name}`, si(row.caches, "B")), row.capacity ? ` of ${si(row.capacity, "B")}` : "");
      const fits = row.fits === null ? "–" : row.fits ? "yes" : "no";
      return make("tr", { "data-split": split.name }, name, make("td", { class: "number answer" }, shown(`max_B.${split.name}`, row.most === null ? "–" : count(row.most))),
        make("td", { class: row.fits === false ? "none" : null }, shown(`fits.${split.name}`, fits)), make("td", { class: "bars" }, bar, text));
    });
    $("fits").replaceChildren(...tableParts([["Split"], ["Largest B", true], ["Fits"], ["On each chip"]], rows));
    showMost(now, file);
  }

  const link = (changes) => {
    const next = state();
    for (const [name, value] of Object.entries(changes)) if (value === null) next.delete(name); else next.set(name, value);
    return `#${next}`;
  };

  /** The largest batch that fits, by chip and split. */
  function showMost(now, file) {
    const { splits, machines } = now.sweep;
    const alone = machines.filter((machine, i) => machines.findIndex((one) => one.chip === machine.chip) === i || machine === now.machine)
      .filter((machine, i, all) => machine === now.machine || machine.chip !== now.machine.chip || !all.includes(now.machine));
    const rows = alone.map((machine) => make("tr", { "data-chip": machine.chip }, make("th", { scope: "row", class: machine === now.machine ? "answer" : null }, machine.name),
      ...splits.map((split) => {
        const one = stepOf(now, file, split, machine);
        if (!one) return make("td", { class: "number none", title: reason(now, split, machine) }, "–");
        const { most } = STEPS.footprint(one.step, machine, split.dp, now.S, split.dp);
        const at = { chip: machine.chip, memory: machine.memory, network: machine.network, split: split.name };
        if (now.memories.length < 2) at.memory = null;
        if (now.networks.length < 2) at.network = null;
        return make("td", { class: `number${machine === now.machine && split === now.split ? " answer" : ""}` }, make("a", { href: link(at) }, shown(`most.${machine.chip}.${split.name}`, most === null ? "not known" : count(most))));
      })));
    $("most").replaceChildren(...tableParts([["Chip"], ...splits.map((split) => [split.name, true])], rows));
    $("fits-note").textContent = `Sequences of ${count(now.S)} tokens whose caches fit beside the weights. Memory of activations and of the runtime is not counted.`;
  }

  // ---------------------------------------------------------------- the pictures

  /** Cases that fit and that no other one is at least as fast and as productive as. */
  function frontOf(points) {
    const sorted = points.filter((point) => point.fits).sort((a, b) => a.lower - b.lower || b.perChip - a.perChip);
    let best = 0;
    return sorted.filter((point) => point.perChip > best * ALIKE && (best = point.perChip));
  }

  function showFront(now, file, row) {
    const series = now.sweep.splits.flatMap((split, i) => {
      const one = stepOf(now, file, split, now.machine);
      if (!one) return [];
      const of = linesOf(now, one, now.S);
      return [{ split, colour: `s${i % COLOURS}`, points: now.sweep.batches.filter((B) => B >= split.dp).map((B) => ({ split, ...rowOf(now, one, B, of) })) }];
    });
    const all = series.flatMap((one) => one.points);
    const front = frontOf(all);
    const late = front.length ? SLOWEST * Math.max(...all.filter((point) => point.fits).map((point) => point.lower), row.lower / SLOWEST) : Infinity;
    const near = [...all.filter((point) => point.lower <= late), row];
    const [xs, ys] = [near.map((point) => 1e3 * point.lower), near.map((point) => point.perChip)];
    const place = (point) => [1e3 * point.lower, point.perChip];
    const own = series.find((one) => one.split === now.split);
    PLOT.draw($("front"), {
      x: { from: Math.min(...xs) / 1.4, to: Math.max(...xs) * 1.4, title: `${TIMES(now)} (ms)`, text: (value) => significant(value, 3) },
      y: { from: Math.min(...ys) / 1.6, to: Math.max(...ys) * 1.6, title: "Tokens per second and chip", text: short },
      lines: [["front", front.map(place)], ...series.map((one) => [`line ${one.colour}`, one.points.map(place)])],
      marks: [...series.flatMap((one) => one.points.map((point) => [`mark ${one.colour}${point.fits === false ? " out" : ""}`, ...place(point), 4, `${one.split.name}, B = ${count(point.B)}: ${seconds(point.lower)}, ${rate(point.perChip)} tokens/s per chip${point.fits === false ? ", does not fit" : ""}`])),
        [`chosen ${own.colour}`, ...place(row), 8, `B = ${count(row.B)}, chosen`]],
      labels: [["of", ...place(row), `B = ${count(row.B)}`]],
    });
    legend("front-legend", ...series.map((one) => [`line ${one.colour}`, one.split.name]), ["out", "does not fit"], ["front", "front"]);
    const ends = front.length ? [`The front of what fits, over ${count(now.sweep.batches.length)} batches and ${series.length === 1 ? "one split" : `${series.length} splits`}, goes from `,
      shown("front.first", `B = ${count(front[0].B)} on ${front[0].split.name}`), " to ", shown("front.last", `B = ${count(front.at(-1).B)} on ${front.at(-1).split.name}`), "."] : ["No batch of the sweep fits on these chips."];
    $("front-note").replaceChildren(...ends);
    $("front").setAttribute("aria-label", `Throughput against time per step. Chosen: ${seconds(row.lower)}, ${rate(row.perChip)} tokens per second and chip.`);
    $("front").dataset.front = front.map((point) => `${point.split.name} ${point.B}`).join(", ");
  }

  const curves = new Map();
  /** The critical batch over the context, and the contexts at which there is none. */
  function curveOf(now, one) {
    const key = [now.model.file, one.file.steps.indexOf(one.step), one.place, now.T].join(" ");
    if (curves.has(key)) return curves.get(key);
    const least = now.T ?? 1;
    const solve = (S) => ({ S, ...STEPS.critical(linesOf(now, one, S), one.split.dp, BEYOND, bounds) });
    const never = (S) => STEPS.critical(linesOf(now, one, S), one.split.dp, 1n, bounds).outcome === STEPS.NEVER;
    const samples = new Set([least, LONGEST, ...now.model.windows.flatMap((window) => [window, window + least])].filter((S) => S >= least && S <= LONGEST));
    for (let S = Math.max(64, least); S < LONGEST; S *= 2 ** (1 / PER_OCTAVE)) samples.add(Math.round(S));
    const points = [...samples].sort((a, b) => a - b).map(solve);
    const turns = []; // the last context before a change, exactly
    for (const [i, point] of points.slice(1).entries()) {
      const before = points[i].outcome === STEPS.NEVER;
      if (before === (point.outcome === STEPS.NEVER)) continue;
      let [low, high] = [points[i].S, point.S];
      while (high - low > 1) {
        const middle = Math.floor((low + high) / 2);
        if (never(middle) === before) low = middle;
        else high = middle;
      }
      turns.push({ last: low, never: before });
      points.push(...[low, high].map(solve));
    }
    const sorted = [...new Map(points.map((point) => [point.S, point])).values()].sort((a, b) => a.S - b.S);
    curves.set(key, { points: sorted, turns });
    return curves.get(key);
  }

  function showCritical(now, one, answer, row) {
    const { points, turns } = curveOf(now, one);
    const [from, to] = [Math.max(64, Math.min(now.S / 2, 128)), Math.max(LONGEST / 8, Math.min(2 * now.S, LONGEST))];
    const size = ({ outcome, size: found }) => (outcome === STEPS.FOUND || outcome === STEPS.ALWAYS ? Number(found) : null);
    const solid = points.filter((point) => size(point) !== null);
    const fits = points.filter((point) => point.S >= from / 2).map((point) => [point.S, number(ratio(STEPS.footprint(one.step, one.machine, one.split.dp, point.S, 1).most ?? 0n))]).filter(([, most]) => most >= 1);
    const batches = [...solid.filter((point) => point.S >= from && point.S <= to).map(size), now.B, answer.size === undefined ? 1 : Number(answer.size), ...fits.map(([, most]) => most).slice(0, 1)];
    const low = Math.min(...batches, ...fits.filter(([S]) => S <= to).map(([, most]) => most));
    const high = Math.min(Math.max(...batches), 1e4 * Math.min(...batches));
    const areas = [];
    let start = points[0].outcome === STEPS.NEVER ? from : null;
    for (const turn of turns) {
      if (turn.never) { areas.push(["never", start ?? from, turn.last]); start = null; } else start = turn.last;
    }
    if (start !== null) areas.push(["never", start, to]);
    PLOT.draw($("critical"), {
      x: { from, to, title: now.phase === DECODE ? "Context S (tokens)" : "Prompt S (tokens)", text: short },
      y: { from: low / 2, to: Math.max(high, now.B) * 2, title: "Batch B (sequences)", text: short },
      areas: areas.filter(([, a, b]) => b > from && a < to),
      lines: [["fitting", fits], ["least", solid.map((point) => [point.S, size(point)])]],
      marks: [["chosen", now.S, now.B, 8, `S = ${count(now.S)}, B = ${count(now.B)}, chosen`]],
      labels: [["of", now.S, now.B, `B = ${count(now.B)}`]],
    });
    legend("critical-legend", ["least", "compute-bound from here up"], ["fitting", "largest batch that fits"], ["never", "never compute-bound"]);
    const ceiling = turns.findLast((turn) => !turn.never);
    const parts = [`At S = ${count(now.S)}: `, answer.outcome === STEPS.NEVER ? `no batch is compute-bound; ${WHY[answer.limit]}.` : answer.outcome === STEPS.BEYOND ? `only from a batch beyond 2^62 on, ${answer.limit}-bound below.` : `compute-bound from ${counted(answer.size)} on${row.most !== null && answer.size > row.most ? `, and ${count(row.most)} fit` : ""}.`];
    if (now.phase === DECODE && ceiling) parts.push(" The longest context with a compute-bound batch is ", shown("ceiling", count(ceiling.last)), ".");
    else if (now.phase === DECODE && points.at(-1).outcome === STEPS.NEVER) parts.push(" ", shown("ceiling", "No context"), " has a compute-bound batch.");
    $("critical-note").replaceChildren(...parts);
    $("critical").setAttribute("aria-label", $("critical-note").textContent);
  }

  // ---------------------------------------------------------------- requests

  async function showRequests(now) {
    const { requests } = now.model;
    $("requests-panel").hidden = !requests;
    if (!requests) return;
    const { machine } = now;
    const facts = { chip: machine.chip, memory: machine.memory, network: machine.network, dtypes: now.dtypes, split: now.split.name };
    const rows = unpacked(await load(requests, `${requests}.js`)).filter((row) => Object.entries(facts).every(([name, value]) => row[name] === value));
    const columns = [["Input", "input", count], ["Output", "output", count], ["B", "B", count], ["Fits", "fits", (value) => (value === null ? "–" : value ? "yes" : "no")],
      ["First token", "ttft_s", seconds], ["Per output token", "tpot_s", seconds], ["Kernel after kernel", "tpot_ops_s", seconds], ["Estimate", "t_estimate_s", seconds], ["Tokens/s per chip", "tokens_per_s_per_chip", rate]];
    const used = columns.filter(([, name]) => rows.some((row) => row[name] !== null && row[name] !== undefined));
    $("requests").replaceChildren(...tableParts(used.map(([label]) => [label, true]),
      rows.map((row) => make("tr", {}, ...used.map(([, name, text]) => make("td", { class: "number" }, row[name] === null ? "–" : text(row[name])))))));
  }

  // ---------------------------------------------------------------- all of it

  let turn = 0;
  async function apply() {
    const mine = ++turn;
    const now = choices();
    const file = await load(now.model.file, `${now.model.file}.js`);
    if (mine !== turn) return;
    showUnknown(now);
    showControls(now, file);
    const one = stepOf(now, file, now.split, now.machine);
    $("answers").hidden = $("verdict").hidden = !one;
    $("lack").hidden = Boolean(one);
    const left = now.sweep.left.length ? ` Left out of this page, but in the tables: ${list(now.sweep.left)}.` : "";
    const { experts } = now.model;
    $("routing").textContent = (experts ? `${ROUTINGS[now.sweep.routing]} A layer has ${count(experts[0])} experts, a token uses ${count(experts[1])}.` : "") + left;
    if (!one) $("lack").textContent = `${now.model.name} on ${now.machine.name}, ${now.split.name}, ${now.dtypes}: ${reason(now, now.split, now.machine)}.`;
    else {
      const of = linesOf(now, one, now.S);
      const row = rowOf(now, one, now.B, of);
      const estimates = STEPS.estimate(file, one.step, one.place, piecesOf(now, file), now.S, now.B);
      const estimate = estimates?.reduce((total, time) => total + time, 0) ?? null;
      const answer = STEPS.critical(of, now.split.dp, BEYOND, bounds);
      showVerdict(now, row, estimate);
      showKey(now, row, estimate, answer);
      showTime(row, estimates, estimate, now);
      showFits(now, file);
      showFront(now, file, row);
      showCritical(now, one, answer, row);
      await showRequests(now);
      if (mine !== turn) return;
    }
    document.querySelector(".models").dataset.drawn = location.hash;
  }

  follow(apply);
  addEventListener("resize", () => soon(apply));
});
