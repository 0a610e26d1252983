"use strict";
/* The page "What if": the choices in the address, and the answers to them. answers.js computes every number. */

document.addEventListener("DOMContentLoaded", async () => {
  const { load, make, shown, tableParts, menu, onEntered, state, go, soon, tellUnknown, follow } = ROOFLINES;
  const { ratio, rational, decimal, times, over, number, compare, ONE } = EXACT;
  const formulas = await load("formulas", "data/formulas.js");
  const { resources, operations, dtypes, chips, fits, limits, prefixes, first, sizes } = formulas;
  const { significant, prefixed, si, seconds, percent, count } = FORMAT(prefixes);
  for (const chip of chips) chip.networks = chip.networks.map((index) => formulas.networks[index]);
  const $ = (id) => document.getElementById(id);

  const SIDES = ["a", "b"];
  const ALMOST = ratio(9n, 10n); // the other share of peak that critical sizes are given for
  const OWN = { peak: ["Peak", "T", "FLOP/s"], memory: ["Memory bandwidth", "G", "B/s"], link: ["Bandwidth of a link", "G", "B/s"] };
  const NONE = "none"; // the choice of no calibration
  const CHOICES = ["chip", "dtypes", "sharding", "shards", "network", "calibration", ...Object.keys(OWN)];
  const FROM_A = ["dtypes", "sharding", "shards"]; // what side B takes from side A
  const [BATCH, WIDTH] = [128, 8192]; // sizes that are not chosen: of the first dimension, and of the others; a sweep's einsum has the middle of its axes
  const [LEAST_OWN, MOST_OWN] = [ratio(1n, 10n ** 6n), ratio(10n ** 9n)]; // own numbers, in their units
  const POWERS = 24; // a slider goes up to this power of two

  // ---------------------------------------------------------------- the choices

  const keyOf = (side, name) => (side === "a" ? name : `b.${name}`);
  const asked = (side, name) => state().get(keyOf(side, name)) ?? (side === "b" && FROM_A.includes(name) ? state().get(name) : null);
  const operationNow = () => operations.find((one) => one.name === state().get("op")) ?? operations[0];
  const chipOf = (side) => chips.find((one) => one.id === asked(side, "chip")) ?? chips.find((one) => one.id === first[SIDES.indexOf(side)]);
  const dtypesOf = (side) => dtypes.find((one) => one.name === asked(side, "dtypes")) ?? dtypes.find((one) => one.name === first[2]);
  const shardingOf = (side) => (Object.hasOwn(operationNow().shardings, asked(side, "sharding") ?? "") ? asked(side, "sharding") : "none");
  const networkOf = (side) => chipOf(side).networks.find((one) => one.name === asked(side, "network")) ?? chipOf(side).networks[0] ?? null;

  /** The calibrations of a side by software. */
  function fitsOf(side) {
    const [{ unit }, { compute }] = [operationNow(), dtypesOf(side)];
    const own = Object.entries(fits[chipOf(side).id] ?? {}).map(([name, units]) => [name, units[unit]?.[compute]]);
    return new Map(own.filter(([, fit]) => fit));
  }
  function calibrationOf(side) {
    const names = [...fitsOf(side).keys(), NONE];
    return names.find((name) => name === asked(side, "calibration")) ?? names[0];
  }

  /** A whole number from 1 to `most`; null: it is none. */
  const whole = (text, most) => (/^[1-9]\d{0,15}$/.test(text ?? "") && BigInt(text) <= BigInt(most) ? Number(text) : null);
  const sizeOf = (dim) => whole(state().get(dim), limits.size) ?? sizes[operationNow().name]?.[dim] ?? (dim === operationNow().dims[0] && !operationNow().contracted.includes(dim) ? BATCH : WIDTH);
  const shardsOf = (side) => (shardingOf(side) === "none" ? 1 : whole(asked(side, "shards"), limits.shards) ?? 1);

  /** An own number [SI unit]; null: none, or one out of bounds. */
  function ownOf(side, name) {
    const value = decimal(asked(side, name) ?? "");
    return value && compare(value, LEAST_OWN) >= 0 && compare(value, MOST_OWN) <= 0 ? times(value, ratio(BigInt(Object.fromEntries(prefixes.large)[OWN[name][1]]))) : null;
  }

  /** Report what the address asks for that is not there. */
  function showUnknown() {
    const lost = [];
    const miss = (...what) => lost.push(what);
    if (state().has("op") && operationNow().name !== state().get("op")) miss("operation", state().get("op"), `unknown; shown is ${operationNow().name}`);
    for (const dim of operationNow().dims) {
      if (state().has(dim) && whole(state().get(dim), limits.size) === null) miss(`size ${dim}`, state().get(dim), `no whole number from 1 to ${count(limits.size)}; shown is ${count(sizeOf(dim))}`);
    }
    for (const side of SIDES) {
      const used = { chip: chipOf(side).id, dtypes: dtypesOf(side).name, sharding: shardingOf(side), network: networkOf(side)?.name ?? "none", calibration: calibrationOf(side) };
      for (const name of CHOICES) {
        const value = state().get(keyOf(side, name));
        if (value === null) continue;
        const label = `side ${side.toUpperCase()}, ${name}`;
        if (Object.hasOwn(used, name) && used[name] !== value) miss(label, value, `unknown; shown is ${used[name]}`);
        if (name === "shards" && whole(value, limits.shards) === null) miss(label, value, "no whole number of chips; shown is 1");
        if (name in OWN && ownOf(side, name) === null) miss(label, value, "no number from 0.000001 to 1,000,000,000; shown is the data sheet");
      }
    }
    tellUnknown(["op", ...operationNow().dims, ...SIDES.flatMap((side) => CHOICES.map((name) => keyOf(side, name)))], lost);
  }

  // ---------------------------------------------------------------- a side, and what it lacks

  /** What answers.js takes, or the reason why there is no answer. */
  function sideOf(key) {
    const op = operationNow();
    const [chip, form, network] = [chipOf(key), dtypesOf(key), networkOf(key)];
    const scheme = op.shardings[shardingOf(key)];
    const n = shardsOf(key);
    const fit = fitsOf(key).get(calibrationOf(key)) ?? null;
    const nominal = chip.units[op.unit]?.[form.compute];
    if (!nominal && !ownOf(key, "peak")) return { lack: `${chip.id} has no ${form.compute} peak of its ${op.unit} unit.` };
    if (!chip.memory && !ownOf(key, "memory")) return { lack: `${chip.id} has no published bandwidth of its main memory.` };
    if (n > 1 && !network) return { lack: `${chip.id} has no interconnect.` };
    if (n > 1 && n > network.most) {
      const most = network.published ? `${count(network.most)} chips at most on one ${network.name}` : `no published number of chips that ${network.name} joins`;
      return { lack: `${chip.id}: ${most}.` };
    }
    if (n > 1 && !network.pieces.some((piece) => ANSWERS.has(piece, BigInt(n)))) {
      return { lack: `${chip.id}: groups of ${network.group} chips on ${network.name}, of which ${count(n)} is no multiple.` };
    }
    if (op.exact && op.contracted.includes(scheme.split) && sizeOf(scheme.split) < n) {
      return { lack: `${scheme.split} = ${count(sizeOf(scheme.split))} split over ${count(n)} chips: less than one element each.` };
    }
    const scaled = (own, { rate, nominal: one }) => (own ? times(own, over(rational(rate), rational(one))) : rational(rate));
    const same = { rate: 1, nominal: 1 };
    const link = network?.link ? ownOf(key, "link") : null; // two networks have no one link
    return {
      key, chip, form, network, scheme, resources,
      n: ratio(BigInt(n)),
      bytes: Object.fromEntries(Object.entries(form.bytes).map(([operand, value]) => [operand, rational(value)])),
      sizes: Object.fromEntries(op.dims.map((dim) => [dim, ratio(BigInt(sizeOf(dim)))])),
      at: { peak: ownOf(key, "peak") ?? rational(nominal.nominal), memory: ownOf(key, "memory") ?? rational(chip.memory.nominal) },
      peak: scaled(ownOf(key, "peak"), nominal ?? same),
      memory: scaled(ownOf(key, "memory"), chip.memory ?? same),
      slowdown: link ? over(rational(network.link), link) : ONE,
      reached: rational(chip.reached),
      calibration: calibrationOf(key),
      fit,
      row: fit?.tile > 1 ? op.row : null,
      first: network === chip.networks[0],
      capacity: chip.memory?.capacity ? rational(chip.memory.capacity) : null,
    };
  }

  // ---------------------------------------------------------------- the answers

  /** A table of numbers by the names in its first column. */
  const scrolled = (label, columns, rows) => make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    make("table", {}, ...tableParts(columns.map((text, i) => [text, i > 0]), rows)));

  function bars(side, row) {
    const longest = number(row.lower);
    const rows = resources.flatMap((resource, i) => {
      if (!row.rates[i]) return [];
      const unit = resource.name === "math" ? "FLOP" : "B";
      const bar = make("span", { class: `bar ${resource.bound}` });
      bar.style.inlineSize = `${Math.max(100 * number(row.seconds[i]) / longest, 0.5)}%`;
      return [make("tr", { class: resource.bound === row.bound ? "binds" : null },
        make("th", { scope: "row" }, resource.bound, make("span", { class: "track", "aria-hidden": "true" }, bar)),
        make("td", { class: "number" }, shown(`t_${resource.name}_s`, seconds(row.seconds[i]))),
        make("td", { class: "number" }, shown(resource.work, si(row.works[i], unit))),
        make("td", { class: "number" }, shown(`rate_${resource.name}`, si(row.rates[i], `${unit}/s`, 4))))];
    });
    return scrolled(`Times of side ${side.key.toUpperCase()}`, ["Resource", "Time", "Work", "Rate"], rows);
  }

  /** The time by estimate, with its band and bound. */
  function estimateOf({ estimate: { time, bound, band, sender }, calibration, fit }) {
    const by = calibration === "own" ? "measurements" : [calibration, ...(sender ? [sender] : [])].join(" and ");
    const ends = band ? [", ", shown("t_estimate_p10_s", seconds(band[0])), " to ", shown("t_estimate_p90_s", seconds(band[1]))] : [];
    return ["Estimate", [shown("t_estimate_s", seconds(time)), ...ends, "; ", shown("estimate_bound", `${bound}-bound`), `, calibrated to ${by}`, ...fit.contents.map((each) => `; includes ${each}`)]];
  }

  function facts(side, row) {
    const room = side.capacity ? `${compare(row.footprint, side.capacity) <= 0 ? "yes" : "no"}: ` : "not known: ";
    const of = side.capacity ? [" of ", shown("capacity_bytes", si(side.capacity, "B"))] : [", capacity not published"];
    const list = [
      ["Time", [shown("t_lower_s", seconds(row.lower)), " with full overlap, ", shown("t_upper_s", seconds(row.upper)), " without"]],
      ...(side.estimate ? [estimateOf(side)] : []),
      ["Intensity", [shown("memory_intensity", significant(number(row.intensity), 4)), " of ", shown("ridge", significant(number(over(side.peak, side.memory)), 4)), " FLOP/B"]],
      ["Fits", [room, shown("footprint_bytes", si(row.footprint, "B")), ...of]],
    ];
    return make("dl", { class: "facts" }, ...list.flatMap(([name, text]) => [make("dt", {}, name), make("dd", {}, ...text)]));
  }

  /** Why there is no critical size, or what binds on its other side. */
  function reason(axis, answer, name) {
    if (answer.outcome === ANSWERS.NEVER && answer.tends) {
      const most = compare(answer.tends, ONE) < 0 ? ["at most ", shown(`${name}.tends`, percent(answer.tends)), " of the attainable peak"] : ["stays just below the peak"];
      return [`${answer.limit}-bound at every size: `, ...most];
    }
    if (axis === "shards") return [answer.limit ? `${answer.outcome === ANSWERS.NEVER ? "" : "beyond that "}${answer.limit}-bound` : answer.outcome === ANSWERS.UNKNOWN ? "more are not published" : ""];
    return [answer.limit ? `below that ${answer.limit}-bound` : ""];
  }

  const WORDS = { always: "any", never: "never", beyond: "beyond 2^62", endless: "any", unknown: "unknown" };
  function answered(axis, answer) {
    if (answer.size === undefined) return WORDS[answer.outcome];
    return `${axis === "shards" ? "≤ " : ""}${count(answer.size)}`;
  }

  function calibrated(side, axis, beyond) {
    const { size } = ANSWERS.criticalEstimate(side, axis);
    return answered(axis, size === null ? { outcome: "never" } : size >= beyond ? { outcome: "beyond" } : size === 1n ? { outcome: "always" } : { size });
  }

  function criticals(side) {
    const beyond = BigInt(limits.count);
    const solve = (axis, share) => (axis === "shards" ? ANSWERS.shards(side, share, BigInt(limits.shards)) : ANSWERS.critical(side, axis, share, beyond));
    const axes = [...operationNow().dims, ...(side.scheme.split && side.network ? ["shards"] : [])];
    const rows = axes.map((axis) => {
      const [all, most] = [solve(axis, ONE), solve(axis, ALMOST)];
      const name = `critical.${axis}`;
      return make("tr", {}, make("th", { scope: "row" }, axis, make("small", { class: "why" }, ...reason(axis, all, name))),
        make("td", { class: "number answer" }, shown(name, answered(axis, all))),
        make("td", { class: "number" }, shown(`${name}.0.9`, answered(axis, most))),
        ...(side.fit ? [make("td", { class: "number" }, ...(axis === "shards" ? ["–"] : [shown(`${name}.estimate`, calibrated(side, axis, beyond))]))] : []));
    });
    const columns = ["Along", "Compute-bound from", `${percent(ALMOST)} of peak from`, ...(side.fit ? ["By estimate from"] : [])];
    return scrolled(`Critical sizes of side ${side.key.toUpperCase()}`, columns, rows);
  }

  function showSide(key, side) {
    const into = $(`side-${key}`);
    into.querySelector(".name").textContent = chipOf(key).name;
    if (side.lack) {
      into.querySelector(".answer-of").replaceChildren(make("p", { class: "notice" }, side.lack));
      return null;
    }
    const row = ANSWERS.row(side);
    side.estimate = side.fit && ANSWERS.estimate(side);
    const finding = make("p", { class: "finding" }, shown("bound", `${row.bound}-bound`), ": ",
      shown("attained_flops_per_s", si(row.attained, "FLOP/s")), ", ", shown("utilization", percent(row.share)), " of peak");
    into.querySelector(".answer-of").replaceChildren(finding, bars(side, row), facts(side, row), criticals(side));
    return row;
  }

  /** Which of two times is less, and by what factor. */
  function compared([a, b], name) {
    const order = compare(a, b);
    if (order === 0) return ["A and B take the same time."];
    const [faster, slower, factor] = order < 0 ? ["A", "B", over(b, a)] : ["B", "A", over(a, b)];
    return [`${faster} takes `, shown(`${name}.faster`, seconds(order < 0 ? a : b)), `, ${slower} `, shown(`${name}.slower`, seconds(order < 0 ? b : a)), ": ", shown(`${name}.factor`, significant(number(factor), 4)), " times as long."];
  }

  function verdict(sides, rows) {
    if (rows.includes(null)) return [];
    const estimates = sides.map((side) => side.estimate?.time);
    return [...compared(rows.map((row) => row.lower), "bound"), ...(estimates.every(Boolean) ? [" By estimate ", ...compared(estimates, "estimate")] : [])];
  }

  function draw(sides, rows) {
    const both = sides.flatMap((side, i) => (rows[i] ? [{
      key: side.key,
      label: `${side.key.toUpperCase()} ${side.chip.id}, ${side.form.name}`,
      ridge: number(over(side.peak, side.memory)),
      peak: number(side.peak),
      intensity: number(rows[i].intensity),
      attained: number(rows[i].attained),
      estimated: side.estimate ? number(over(rows[i].works[0], side.estimate.time)) : null,
      roof: (intensity) => number(ANSWERS.roof(side, decimal(intensity.toExponential()))),
    }] : []));
    $("roofline").replaceChildren();
    if (both.length) ROOFLINE.draw($("roofline"), both, (value) => prefixed(value, "FLOP/s", [...prefixes.large, ["", 1]]));
    $("roofline").setAttribute("aria-label", `Rooflines. ${both.map((one) => `${one.label}: ridge at ${significant(one.ridge, 4)} FLOP/B, the operation at ${significant(one.intensity, 4)}.`).join(" ")}`);
  }

  // ---------------------------------------------------------------- the controls

  const field = (label, attributes, change) => {
    const input = make("input", { autocomplete: "off", spellcheck: "false", ...attributes, onfocus: () => input.select() });
    onEntered(input, (text) => change(text.replaceAll(",", "")));
    return make("label", { class: "control" }, make("span", {}, label), input);
  };
  /** Set a value unless it is being typed. */
  const fill = (control, value) => {
    const input = control.querySelector("input, select");
    if (document.activeElement !== input || input.localName === "select") input.value = value;
  };

  const sizeControls = new Map();
  let controlsOf = "";
  function showOperation() {
    const op = operationNow();
    if (controlsOf !== op.name) {
      const choice = menu("Operation", operations.map((one) => [one.name, one.name]), op.name, (value) => {
        go(Object.fromEntries([...op.dims.map((dim) => [dim, null]), ["op", value]]), true);
      });
      sizeControls.clear();
      for (const dim of op.dims) {
        const typed = field(dim, { inputmode: "numeric", "data-size": dim }, (value) => go({ [dim]: value || null }));
        const slider = make("input", { type: "range", min: 0, max: POWERS, step: 0.25, "aria-label": `${dim}, on a logarithmic scale`,
          oninput: () => soon(() => go({ [dim]: Math.round(2 ** Number(slider.value)) })) });
        sizeControls.set(dim, { typed, slider });
      }
      const focused = document.activeElement?.closest("#operation .control") !== null && document.activeElement?.localName === "select";
      $("operation").replaceChildren(choice, ...[...sizeControls.values()].map(({ typed, slider }) => make("div", { class: "size" }, typed, slider)));
      if (focused) choice.querySelector("select").focus();
      controlsOf = op.name;
    }
    for (const [dim, { typed, slider }] of sizeControls) {
      fill(typed, String(sizeOf(dim)));
      if (document.activeElement !== slider) slider.value = Math.log2(sizeOf(dim));
      slider.setAttribute("aria-valuetext", count(sizeOf(dim)));
    }
  }

  const controls = {};
  function buildSide(key) {
    const set = (name) => (value) => go({ [keyOf(key, name)]: value || null });
    const made = {
      chip: field("Chip", { list: "chip-list" }, set("chip")),
      dtypes: field("Data types", { list: "dtypes-list" }, set("dtypes")),
      sharding: menu("Split", [], "", set("sharding")),
      shards: field("Chips", { inputmode: "numeric" }, set("shards")),
      network: menu("Network", [], "", set("network")),
      calibration: menu("Estimate by", [], "", set("calibration")),
    };
    const own = Object.fromEntries(Object.entries(OWN).map(([name, [label, prefix, unit]]) => [name, field(`${label} [${prefix}${unit}]`, { inputmode: "decimal" }, set(name))]));
    $(`side-${key}`).querySelector(".controls").replaceChildren(...Object.values(made),
      make("details", { class: "own" }, make("summary", {}, "Own numbers"), make("div", { class: "controls" }, ...Object.values(own))));
    controls[key] = { ...made, ...own };
  }

  function showControls(key) {
    const of = controls[key];
    const options = (control, names) => {
      const select = control.querySelector("select");
      if ([...select.options].map((option) => option.value).join() !== names.join()) select.replaceChildren(...names.map((name) => make("option", { value: name }, name)));
    };
    options(of.sharding, Object.keys(operationNow().shardings));
    options(of.network, chipOf(key).networks.map((network) => network.name));
    options(of.calibration, [...fitsOf(key).keys(), NONE]);
    of.calibration.querySelector("select").disabled = !fitsOf(key).size;
    fill(of.calibration, calibrationOf(key));
    const split = shardingOf(key) !== "none";
    for (const [control, off] of [[of.shards, !split], [of.network, !split], [of.link, !split || !networkOf(key)?.link]]) control.querySelector("input, select").disabled = off;
    fill(of.chip, chipOf(key).id);
    fill(of.dtypes, dtypesOf(key).name);
    fill(of.sharding, shardingOf(key));
    fill(of.shards, String(shardsOf(key)));
    fill(of.network, networkOf(key)?.name ?? "");
    for (const [name, [, prefix]] of Object.entries(OWN)) {
      const nominal = { peak: chipOf(key).units[operationNow().unit]?.[dtypesOf(key).compute]?.nominal, memory: chipOf(key).memory?.nominal, link: networkOf(key)?.link }[name];
      fill(of[name], ownOf(key, name) ? asked(key, name) : "");
      of[name].querySelector("input").placeholder = nominal ? String(number(rational(nominal)) / Object.fromEntries(prefixes.large)[prefix]) : "";
    }
    if (Object.keys(OWN).some((name) => ownOf(key, name))) $(`side-${key}`).querySelector(".own").open = true;
  }

  function apply() {
    showUnknown();
    showOperation();
    SIDES.forEach(showControls);
    const sides = SIDES.map(sideOf);
    const rows = sides.map((side, i) => showSide(SIDES[i], side));
    $("verdict").replaceChildren(...verdict(sides, rows));
    draw(sides, rows);
    document.querySelector(".what-if").dataset.drawn = location.hash;
  }

  $("chip-list").replaceChildren(...chips.map((chip) => make("option", { value: chip.id }, chip.name)));
  $("dtypes-list").replaceChildren(...dtypes.map((one) => make("option", { value: one.name }, `computes in ${one.compute}`)));
  SIDES.forEach(buildSide);
  follow(apply);
  addEventListener("resize", () => soon(apply));
});
