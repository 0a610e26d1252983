"use strict";
/* The page "Models": the choices in the address, and the answers to them. steps.js computes every nominal number, estimates.js
   every calibrated one. */

document.addEventListener("DOMContentLoaded", async () => {
  const { load, make, shown, tableParts, menu, onEntered, state, go, soon, tellUnknown, follow } = ROOFLINES;
  const { number, ratio, decimal, plus, over } = EXACT;
  const { sweeps, bounds, estimate_bounds: estimateBounds, limits, prefixes } = await load("data/models", "data/models.js");
  const { significant, prefixed, si, percent, count } = FORMAT(prefixes);
  const $ = (id) => document.getElementById(id);

  const DECODE = "decode";
  const [NOMINAL, CALIBRATED] = ["nominal", "calibrated"]; // as in charts
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
  const WHY = Object.fromEntries(estimateBounds.map((bound) => [bound, `each sequence adds more ${bound} time than compute`]));
  const MIXED = "Mixed is imperfect overlap near the ridge, and blocks too few to fill the chip.";

  const seconds = (value) => prefixed(value, "s", prefixes.small);
  const rate = (value) => (value < 1e6 ? significant(value, 3) : prefixed(value, "", prefixes.large));
  const counted = (value, noun = "sequence") => `${count(value)} ${noun}${Number(value) === 1 ? "" : "s"}`;
  const list = (names) => (names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`);
  const shareOf = (value, all) => percent(over(...[value, all].map((one) => decimal(one.toExponential()))));
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
      basis: of([NOMINAL, CALIBRATED], "basis"),
      T: phase === DECODE ? least : null,
      S: Math.max(whole(asked("S")) ?? sweep.contexts[0], least),
      B: Math.max(whole(asked("B")) ?? sweep.batches[Math.floor(sweep.batches.length / 2)], split.dp),
    };
  }

  /** Report what the address asks for that is not there. */
  function showUnknown(now) {
    const lost = [];
    const used = { sweep: now.sweep.name, model: now.model.name, chip: now.machine.chip, memory: now.machine.memory, network: String(now.machine.network), dtypes: now.dtypes, split: now.split.name, phase: now.phase, basis: now.basis };
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
    if (!made.has(key)) made.set(key, { step, place, machine, split, file, prepared: STEPS.prepared(file, step, machine), fitted: ESTIMATES.prepared(file, step, place, estimateBounds) });
    return made.get(key);
  }
  const piecesOf = (now, file) => file.extents[now.phase][now.T ?? "all"];

  /** The lines of a step at S, nominal or calibrated; null without a calibration. */
  function linesOf(now, one, S, basis) {
    const pieces = piecesOf(now, one.file);
    if (basis === NOMINAL) return STEPS.lines(one.prepared, pieces, S);
    return one.fitted && ESTIMATES.lines(one.fitted, pieces, S);
  }
  const bothOf = (now, one) => [NOMINAL, CALIBRATED].map((basis) => linesOf(now, one, now.S, basis));
  const criticalOf = (lines, basis, dp) => (basis === CALIBRATED ? ESTIMATES.critical(lines, dp, BEYOND) : STEPS.critical(lines, dp, BEYOND, bounds));

  /** All numbers of a step at a batch: nominal ones, the `estimate` (null: no calibration), and the time and throughput by the basis. */
  function rowOf(now, one, B, [nominal, calibrated]) {
    const times = STEPS.answer(nominal, B, bounds);
    const estimate = calibrated && ESTIMATES.answer(calibrated, B);
    const tokens = B * (now.T ?? now.S);
    const time = now.basis === CALIBRATED ? estimate.time : times.lower;
    return {
      ...times, estimate, tokens, B, time, contents: one.step.contents[one.place] ?? [],
      ...STEPS.footprint(one.step, one.machine, one.split.dp, now.S, B),
      perChip: perChip(tokens, time, one.split),
    };
  }
  const perChip = (tokens, time, split) => tokens / time / split.chips;
  const byBasis = (text, now) => `${text}, ${now.basis}`;

  // ---------------------------------------------------------------- the controls

  const field = (label, name) => {
    const change = (value) => go({ [name]: value || null });
    const input = make("input", { autocomplete: "off", spellcheck: "false", inputmode: "numeric", onfocus: () => input.select() });
    onEntered(input, (text) => change(text.replaceAll(",", "")));
    const slider = make("input", { type: "range", min: 0, max: name === "S" ? 20 : 14, step: 0.25, "aria-label": `${label}, on a logarithmic scale`, oninput: () => soon(() => change(Math.round(2 ** Number(slider.value)))) });
    return { input, slider, box: make("div", { class: "size" }, make("label", { class: "control" }, make("span", {}, label), input), slider) };
  };
  const sizes = { S: field("Context S", "S"), B: field("Sequences B", "B") };

  function showControls(now, file, calibrated) {
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
    if (calibrated) add("Numbers", "basis", [NOMINAL, CALIBRATED], now.basis, {}, true);
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

  /** What calibrated numbers are fitted to. */
  function timings({ calibration }, { contents }) {
    const within = contents.map((each) => `; matmuls include ${each}`).join("");
    return (calibration.length ? `timings of ${list(calibration)}` : "measurements") + within;
  }

  function showVerdict(now, row) {
    const { machine, split } = now;
    const where = `${count(split.chips)} ${machine.name}`;
    const prompt = now.phase !== DECODE;
    const nominal = ["at least ", shown("verdict.t_lower_s", seconds(row.lower))];
    const bound = shown("bound", `${row.bound}-bound`);
    const parts = [`${prompt ? "Reading " : "A decode step of "}`, `${counted(now.B, prompt ? "prompt" : "sequence")} of ${count(now.S)} tokens with ${now.model.name} on ${where} takes `];
    const calibrated = row.estimate ? [shown("verdict.t_estimate_s", seconds(row.estimate.time))] : [];
    const fitted = row.estimate ? [shown("estimate_bound", `${row.estimate.bound}-bound`)] : [];
    if (now.basis === CALIBRATED) parts.push(...calibrated, " and is ", ...fitted, `, calibrated to ${timings(now.sweep, row)}; nominal: `, ...nominal, ", ", bound, ". ");
    else parts.push(...nominal, " and is ", bound, ", at nominal rates", ...(row.estimate ? ["; calibrated: ", ...calibrated, ", ", ...fitted] : []), ". ");
    if (row.fits === true) parts.push("It fits.");
    if (row.fits === false) parts.push(row.most > 0n ? `It does not fit: at most ${counted(row.most)} would.` : "It does not fit: the weights and one cache are too large.");
    const { trained, name } = now.model;
    if (trained && now.S > trained) parts.push(` ${name} is trained for ${count(trained)} tokens.`);
    $("verdict").replaceChildren(...parts);
  }

  const criticalText = (answer, basis) => (answer.outcome === STEPS.FOUND || (answer.outcome === STEPS.ALWAYS && basis === CALIBRATED) ? count(answer.size) : OUTCOMES[answer.outcome]);

  /** What binds where no batch is compute-bound, or below the smallest that is. Calibrated, larger ones need not be: a last tile may be hardly filled. */
  function criticalWhy({ basis }, { outcome, limit }) {
    if (outcome === STEPS.NEVER) return `${basis}; ${WHY[limit]}`;
    if (outcome === STEPS.ALWAYS) return basis === CALIBRATED ? "calibrated; the fewest sequences of this split" : "nominal; every batch is compute-bound";
    return `sequences${basis === CALIBRATED ? "" : " on"}, ${basis}; ${limit}-bound below`;
  }

  function showKey(now, row, answers) {
    const each = (time) => time / (now.T ?? 1);
    const tile = (label, main, ...more) => make("div", {}, make("dt", {}, label), make("dd", {}, main, make("small", {}, ...more)));
    /** A number that follows from a time: by the basis, and below it by the other basis and from the other times. */
    const timed = (label, text, lower, ops, estimate, upper) => {
      const own = [shown(lower, text(row.lower)), row.estimate && shown(estimate, text(row.estimate.time))];
      const others = [shown(ops, text(row.ops)), " kernel after kernel", ...(upper ? [", ", shown(upper, text(row.upper)), " without overlap"] : [])];
      return now.basis === CALIBRATED ? tile(label, own[1], "calibrated; nominal ", own[0], ", ", ...others) : tile(label, own[0], "nominal; ", ...others, ...(own[1] ? ["; calibrated ", own[1]] : []));
    };
    const throughput = (name) => [name, `${name}_ops`, `${name}_estimate`];
    const tiles = [timed(TIMES(now), seconds, "t_lower_s", "t_ops_s", "t_estimate_s", "t_upper_s"),
      timed("Tokens/s per chip", (time) => rate(perChip(row.tokens, time, now.split)), ...throughput("tokens_per_s_per_chip"))];
    if (now.phase === DECODE) tiles.push(timed("Tokens/s per sequence", (time) => rate(1 / each(time)), ...throughput("user")));
    const held = plus(row.weights, row.caches);
    tiles.push(tile("Memory of a chip", shown("footprint_bytes", si(held, "B")), shown("weights_footprint_bytes", si(row.weights, "B")), " weights, ", shown("cache_footprint_bytes", si(row.caches, "B")), " caches",
      ...(row.capacity ? [`; ${percent(over(held, row.capacity))} of ${si(row.capacity, "B")}`] : ["; capacity not known"])));
    if (row.most !== null) tiles.push(tile("Largest batch that fits", shown("max_B", count(row.most)), `sequences of ${count(now.S)} tokens`));
    const critical = (basis) => shown(basis === CALIBRATED ? "critical_estimate" : "critical", criticalText(answers[basis], basis));
    const other = now.basis === CALIBRATED ? NOMINAL : CALIBRATED;
    tiles.push(tile("Compute-bound from", critical(now.basis), criticalWhy(now, answers[now.basis]), ...(answers[other] ? [`; ${other} `, critical(other)] : [])));
    $("key").replaceChildren(...tiles);
  }

  const legend = (id, ...entries) => $(id).replaceChildren(...entries.map(([name, text]) => make("li", {}, make("span", { class: `swatch ${name}`, "aria-hidden": "true" }), text)));

  /** The kernels by a basis: time, bound and the parts by bound; calibrated with what is common, nominal with what overlaps. */
  function kernelsBy(basis, row) {
    if (basis === CALIBRATED) return row.estimate.kernels;
    return row.kernels.map(({ ops, parts, ...kernel }) => ({ ...kernel, time: ops, parts: Object.fromEntries(bounds.map((bound, i) => [bound, parts[i]])) }));
  }

  function showTime(row, now) {
    const calibrated = now.basis === CALIBRATED;
    const kernels = kernelsBy(now.basis, row);
    const others = row.estimate && kernelsBy(calibrated ? NOMINAL : CALIBRATED, row);
    const all = calibrated ? row.estimate.time : row.ops;
    const used = (calibrated ? estimateBounds : bounds).filter((bound) => bounds.includes(bound) || kernels.some(({ parts }) => parts[bound]));
    const stack = kernels.map((kernel) => {
      const part = make("span", { class: `bar ${kernel.bound}`, title: `${kernel.name}: ${seconds(kernel.time)}, ${kernel.bound}-bound` });
      part.style.inlineSize = `${100 * kernel.time / all}%`;
      if (kernel.time / all > 0.12) part.append(kernel.name);
      return part;
    });
    $("stack").replaceChildren(...stack);
    legend("time-legend", ...used.map((bound) => [`bar ${bound}`, `${bound}-bound`]));
    const head = ["Kernel", `Time, ${now.basis}`, "Share", "Bound", ...used.map((bound) => bound[0].toUpperCase() + bound.slice(1)), ...(calibrated ? ["Overhead"] : []), ...(others ? [calibrated ? "Nominal" : "Calibrated"] : [])];
    const part = (time, binds) => make("td", { class: time ? `number${binds ? " answer" : ""}` : "number none" }, time ? seconds(time) : "–");
    const rows = kernels.map((kernel, i) => ({ ...kernel, other: others?.[i].time })).sort((a, b) => b.time - a.time).map((kernel) => make("tr", { "data-kernel": kernel.name },
      make("th", { scope: "row" }, kernel.name, kernel.count > 1 ? make("small", {}, ` × ${kernel.count}`) : ""),
      make("td", { class: "number" }, seconds(kernel.time)),
      make("td", { class: "number" }, shareOf(kernel.time, all)),
      make("td", {}, kernel.bound),
      ...used.map((bound) => part(kernel.parts[bound], bound === kernel.bound)),
      ...(calibrated ? [part(kernel.common)] : []),
      ...(others ? [make("td", { class: "number" }, seconds(kernel.other))] : [])));
    $("time").replaceChildren(...tableParts(head.map((text) => [text, !["Kernel", "Bound"].includes(text)]), rows));
    const sum = ["Kernels one after another, over all layers: ", shown("sum", seconds(all))];
    if (calibrated) $("time-note").replaceChildren(...sum, `, calibrated to ${timings(now.sweep, row)}. Each is an overhead plus the largest of the other parts. ${used.includes("mixed") ? MIXED : ""}`);
    else $("time-note").replaceChildren(...sum, ", nominal. Memory is of weights, caches and what kernels pass on; network is of the collectives that follow a kernel.");
  }

  const { showFits, showRequests } = MODEL_TABLES({ $, prefixes, stepOf, reason, legend, counted, seconds, rate, perChip, byBasis });

  // ---------------------------------------------------------------- the pictures

  /** Cases that fit and that no other one is at least as fast and as productive as. */
  function frontOf(points) {
    const sorted = points.filter((point) => point.fits).sort((a, b) => a.time - b.time || b.perChip - a.perChip);
    let best = 0;
    return sorted.filter((point) => point.perChip > best * ALIKE && (best = point.perChip));
  }

  function showFront(now, file, row) {
    const series = now.sweep.splits.flatMap((split, i) => {
      const one = stepOf(now, file, split, now.machine);
      if (!one) return [];
      const of = bothOf(now, one);
      return [{ split, colour: `s${i % COLOURS}`, points: now.sweep.batches.filter((B) => B >= split.dp).map((B) => ({ split, ...rowOf(now, one, B, of) })) }];
    });
    const all = series.flatMap((one) => one.points);
    const front = frontOf(all);
    const late = front.length ? SLOWEST * Math.max(...all.filter((point) => point.fits).map((point) => point.time), row.time / SLOWEST) : Infinity;
    const near = [...all.filter((point) => point.time <= late), row];
    const [xs, ys] = [near.map((point) => 1e3 * point.time), near.map((point) => point.perChip)];
    const place = (point) => [1e3 * point.time, point.perChip];
    const own = series.find((one) => one.split === now.split);
    PLOT.draw($("front"), {
      x: { from: Math.min(...xs) / 1.4, to: Math.max(...xs) * 1.4, title: `${byBasis(TIMES(now), now)} (ms)`, text: (value) => significant(value, 3) },
      y: { from: Math.min(...ys) / 1.6, to: Math.max(...ys) * 1.6, title: byBasis("Tokens per second and chip", now), text: short },
      lines: [["front", front.map(place)], ...series.map((one) => [`line ${one.colour}`, one.points.map(place)])],
      marks: [...series.flatMap((one) => one.points.map((point) => [`mark ${one.colour}${point.fits === false ? " out" : ""}`, ...place(point), 4, `${one.split.name}, B = ${count(point.B)}: ${seconds(point.time)}, ${rate(point.perChip)} tokens/s per chip${point.fits === false ? ", does not fit" : ""}`])),
        [`chosen ${own.colour}`, ...place(row), 8, `B = ${count(row.B)}, chosen`]],
      labels: [["of", ...place(row), `B = ${count(row.B)}`]],
    });
    legend("front-legend", ...series.map((one) => [`line ${one.colour}`, one.split.name]), ["out", "does not fit"], ["front", "front"]);
    const ends = front.length ? [`The front of what fits, ${now.basis}, over ${count(now.sweep.batches.length)} batches and ${series.length === 1 ? "one split" : `${series.length} splits`}, goes from `,
      shown("front.first", `B = ${count(front[0].B)} on ${front[0].split.name}`), " to ", shown("front.last", `B = ${count(front.at(-1).B)} on ${front.at(-1).split.name}`), "."] : ["No batch of the sweep fits on these chips."];
    $("front-note").replaceChildren(...ends);
    $("front").setAttribute("aria-label", `Throughput against time per step, ${now.basis}. Chosen: ${seconds(row.time)}, ${rate(row.perChip)} tokens per second and chip.`);
    $("front").dataset.front = front.map((point) => `${point.split.name} ${point.B}`).join(", ");
  }

  const curves = new Map();
  /** The critical batch over the context, and where contexts change at which there is none, or large batches are compute-bound. */
  function curveOf(now, one) {
    const key = [now.model.file, one.file.steps.indexOf(one.step), one.place, now.T, now.basis].join(" ");
    if (curves.has(key)) return curves.get(key);
    const least = now.T ?? 1;
    const solve = (S) => {
      const lines = linesOf(now, one, S, now.basis);
      const answer = criticalOf(lines, now.basis, one.split.dp);
      const never = answer.outcome === STEPS.NEVER;
      return { S, ...answer, never, large: now.basis === CALIBRATED ? ESTIMATES.large(lines) : !never };
    };
    const samples = new Set([least, LONGEST, ...now.model.windows.flatMap((window) => [window, window + least])].filter((S) => S >= least && S <= LONGEST));
    for (let S = Math.max(64, least); S < LONGEST; S *= 2 ** (1 / PER_OCTAVE)) samples.add(Math.round(S));
    curves.set(key, STEPS.curve(solve, samples, ["never", "large"]));
    return curves.get(key);
  }

  function showCritical(now, one, answer, row) {
    const { points, changes: { never, large } } = curveOf(now, one);
    const [from, to] = [Math.max(64, Math.min(now.S / 2, 128)), Math.max(LONGEST / 8, Math.min(2 * now.S, LONGEST))];
    const size = ({ outcome, size: found }) => (outcome === STEPS.FOUND || outcome === STEPS.ALWAYS ? Number(found) : null);
    const solid = points.filter((point) => size(point) !== null);
    const lines = points.reduce((runs, point) => { // interrupted where no batch is compute-bound
      if (size(point) === null) runs.push([]);
      else runs.at(-1).push([point.S, size(point)]);
      return runs;
    }, [[]]);
    const fits = points.filter((point) => point.S >= from / 2).map((point) => [point.S, number(ratio(STEPS.footprint(one.step, one.machine, one.split.dp, point.S, 1).most ?? 0n))]).filter(([, most]) => most >= 1);
    const batches = [...solid.filter((point) => point.S >= from && point.S <= to).map(size), now.B, answer.size === undefined ? 1 : Number(answer.size), ...fits.map(([, most]) => most).slice(0, 1)];
    const low = Math.min(...batches, ...fits.filter(([S]) => S <= to).map(([, most]) => most));
    const high = Math.min(Math.max(...batches), 1e4 * Math.min(...batches));
    const areas = [];
    let start = points[0].never ? from : null;
    for (const turn of never) {
      if (turn.never) { areas.push(["never", start ?? from, turn.last]); start = null; } else start = turn.last;
    }
    if (start !== null) areas.push(["never", start, to]);
    PLOT.draw($("critical"), {
      x: { from, to, title: now.phase === DECODE ? "Context S (tokens)" : "Prompt S (tokens)", text: short },
      y: { from: low / 2, to: Math.max(high, now.B) * 2, title: "Batch B (sequences)", text: short },
      areas: areas.filter(([, a, b]) => b > from && a < to),
      lines: [["fitting", fits], ...lines.map((line) => ["least", line])],
      marks: [["chosen", now.S, now.B, 8, `S = ${count(now.S)}, B = ${count(now.B)}, chosen`]],
      labels: [["of", now.S, now.B, `B = ${count(now.B)}`]],
    });
    legend("critical-legend", ["least", byBasis(now.basis === CALIBRATED ? "smallest compute-bound batch" : "compute-bound from here up", now)], ["fitting", "largest batch that fits"], ["never", byBasis("never compute-bound", now)]);
    const ceiling = large.findLast((change) => change.large);
    const [lead, on] = now.basis === CALIBRATED ? ["the smallest compute-bound batch is ", ""] : ["compute-bound from ", " on"];
    const parts = [`At S = ${count(now.S)}, ${now.basis}: `, answer.outcome === STEPS.NEVER ? `no batch is compute-bound; ${WHY[answer.limit]}.` : answer.outcome === STEPS.BEYOND ? `only from a batch beyond 2^62 on, ${answer.limit}-bound below.` : `${lead}${counted(answer.size)}${on}${row.most !== null && answer.size > row.most ? `, and ${count(row.most)} fit` : ""}.`];
    const name = now.basis === CALIBRATED ? "ceiling_estimate" : "ceiling";
    if (now.phase === DECODE && ceiling) parts.push(" A large batch is compute-bound up to a context of ", shown(name, count(ceiling.last)), ".");
    else if (now.phase === DECODE && !points.at(-1).large) parts.push(" ", shown(name, "No context"), " has a large batch that is compute-bound.");
    $("critical-note").replaceChildren(...parts);
    $("critical").setAttribute("aria-label", $("critical-note").textContent);
  }

  // ---------------------------------------------------------------- all of it

  let turn = 0;
  async function apply() {
    const mine = ++turn;
    const now = choices();
    const file = await load(now.model.file, `${now.model.file}.js`);
    if (mine !== turn) return;
    showUnknown(now);
    const one = stepOf(now, file, now.split, now.machine);
    const calibrated = Boolean(one?.fitted);
    showControls(now, file, calibrated);
    if (!calibrated) now.basis = NOMINAL;
    $("basis").textContent = one && !calibrated ? "These choices have no calibration: all numbers are nominal." : "";
    $("answers").hidden = $("verdict").hidden = !one;
    $("lack").hidden = Boolean(one);
    const left = now.sweep.left.length ? ` Left out of this page, but in the tables: ${list(now.sweep.left)}.` : "";
    const { experts } = now.model;
    $("routing").textContent = (experts ? `${ROUTINGS[now.sweep.routing]} A layer has ${count(experts[0])} experts, a token uses ${count(experts[1])}.` : "") + left;
    if (!one) $("lack").textContent = `${now.model.name} on ${now.machine.name}, ${now.split.name}, ${now.dtypes}: ${reason(now, now.split, now.machine)}.`;
    else {
      const [nominal, fitted] = bothOf(now, one);
      const row = rowOf(now, one, now.B, [nominal, fitted]);
      const answers = { nominal: criticalOf(nominal, NOMINAL, now.split.dp), calibrated: fitted && criticalOf(fitted, CALIBRATED, now.split.dp) };
      showVerdict(now, row);
      showKey(now, row, answers);
      showTime(row, now);
      showFits(now, file);
      showFront(now, file, row);
      showCritical(now, one, answers[now.basis], row);
      await showRequests(now);
      if (mine !== turn) return;
    }
    document.querySelector(".models").dataset.drawn = location.hash;
  }

  follow(apply);
  addEventListener("resize", () => soon(apply));
});
