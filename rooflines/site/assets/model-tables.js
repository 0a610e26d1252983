"use strict";
/* Tables of the page "Models": what fits, and requests. The page gives its choices, and how it finds steps and writes numbers. */

const MODEL_TABLES = ({ $, prefixes, stepOf, reason, legend, counted, seconds, rate, perChip, byBasis }) => {
  const { load, unpacked, make, shown, tableParts, state } = ROOFLINES;
  const { number, plus } = EXACT;
  const { si, count } = FORMAT(prefixes);
  const CALIBRATED = "calibrated";

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

  async function showRequests(now) {
    const { requests } = now.model;
    $("requests-panel").hidden = !requests;
    if (!requests) return;
    const { machine } = now;
    const facts = { chip: machine.chip, memory: machine.memory, network: machine.network, dtypes: now.dtypes, split: now.split.name };
    const rows = unpacked(await load(requests, `${requests}.js`)).filter((row) => Object.entries(facts).every(([name, value]) => row[name] === value));
    const calibrated = now.basis === CALIBRATED;
    for (const row of rows) row.rate = row.t_estimate_s ? perChip(row.B, row.t_estimate_s, now.split) : null;
    $("requests-note").textContent = calibrated ? "The time to the first token has no estimate." : "";
    const times = calibrated ? [["Per output token", "t_estimate_s", seconds], ["Tokens/s per chip", "rate", rate]]
      : [["First token", "ttft_s", seconds], ["Per output token", "tpot_s", seconds], ["Kernel after kernel", "tpot_ops_s", seconds], ["Tokens/s per chip", "tokens_per_s_per_chip", rate]];
    const columns = [["Input", "input", count], ["Output", "output", count], ["B", "B", count], ["Fits", "fits", (value) => (value === null ? "–" : value ? "yes" : "no")],
      ...times.map(([label, ...rest]) => [byBasis(label, now), ...rest])];
    const used = columns.filter(([, name]) => rows.some((row) => row[name] !== null && row[name] !== undefined));
    $("requests").replaceChildren(...tableParts(used.map(([label]) => [label, true]),
      rows.map((row) => make("tr", {}, ...used.map(([, name, text]) => make("td", { class: "number" }, row[name] === null ? "–" : text(row[name])))))));
  }

  return { showFits, showRequests };
};
