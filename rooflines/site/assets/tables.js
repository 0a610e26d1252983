"use strict";
/* The table of chips of a state, and the tables of its tabs. */

const TABLES = (() => {
  const { significant, seconds, count, percent, short, bytes, money } = NUMBERS;
  const { ALWAYS, NEVER } = ANSWERS;
  const { CALIBRATED, matchesState, matmulOf, stepOf, rowOf, shareOf, tokensOf } = STATE;
  const { cannot, tends } = SENTENCES;
  const { octaves, styleOf, swatch } = PICTURES;
  const { make, refill, headed, sorted } = ROOFLINES;
  const GRID = octaves(1024, 32768, 1);
  const CONTEXTS = octaves(1024, 131072, 1);
  const BATCHES = octaves(1, 65536, 1);
  const CHIPS = octaves(1, 256, 1);
  const LARGEST_BATCH = 1024; // of the table of contexts
  const NONE = "–";
  const bindsCell = (bound, tip) => [bound[0].toUpperCase(), `is-${bound}`, tip];
  const LETTERS = "C compute-bound, M memory-bound, N network-bound";

  const size = ({ outcome, size: of }) =>
    ({ [ALWAYS]: "any", [NEVER]: "never" })[outcome] ?? count(of);
  const known = (text) => (value, now) => (value == null ? NONE : text(value, now));
  /** Texts of values, by the names that columns have for them. */
  const TEXTS = {
    seconds, percent, count, bytes, short, money, threshold: size, plain: String,
    significant: (value) => significant(value),
    spread: ({ low, high }) => `${significant(low)}–${significant(high)} ×`,
    faster: (value) => (Math.abs(value) < 5e-4 ? "none" : `−${significant(-100 * value, 2)}%`),
    yes: (value) => (value ? "yes" : "no"),
    context: (value, { model: { trained } }) =>
      (trained && value >= trained ? `${count(trained)}, all` : count(value)),
  };
  /** By what values that are no numbers are sorted. */
  const RANKS = {
    threshold: ({ outcome, size: of }) => (outcome === NEVER ? Infinity : of),
    spread: ({ middle }) => middle,
  };

  /** The columns of a state, with the `cell` of a row, and its `value` for orders. */
  function columns(now) {
    return now.data.offered.columns.filter(({ of }) => matchesState(now, of)).map((column) => {
      const { name, value = name, text } = column;
      const of = (row) => value.split(".").reduce((all, key) => all?.[key], row) ?? null;
      const rank = (found) => (found === null ? null : RANKS[text]?.(found) ?? found);
      return {
        ...column, kind: "number", value: (row) => (row.unsupported ? null : rank(of(row))),
        cell: (row) => (row.fits === null && name === "fits" ? "not known"
          : known(TEXTS[text])(of(row), now)),
      };
    });
  }

  /** Show rows of chips; returns the same in SI units and all digits, for CSV. */
  function showChips(into, now, rows, toggle) {
    const list = columns(now);
    const [shown, heads] = sorted(rows, list, now.lost);
    const body = shown.map((row) => {
      const { chip, fits } = row;
      const chosen = now.chips.includes(chip);
      const pick = make("button", {
        type: "button", class: "pick", "data-key": `pick ${chip.id}`,
        "aria-label": `${chosen ? "Remove" : "Add"} ${chip.short}`,
        disabled: chosen && now.chips.length === 1, onclick: () => toggle(chip),
      }, chosen ? "×" : "+");
      const head = { scope: "row", class: chosen ? "chosen" : null, style: styleOf(chip) };
      const cell = ({ name: key, cell: text }) => {
        const kind = { fits: fits === false ? "lack" : "", bound: `is-${row.bound}` }[key] ?? "";
        return make("td", { class: `number ${kind}`, "data-value": key }, text(row));
      };
      const cells = row.unsupported
        ? [make("td", { colspan: list.length, class: "lack" }, row.unsupported)] : list.map(cell);
      return make("tr", { class: fits === false ? "off" : null, "data-chip": chip.id },
        make("th", head, pick, swatch(), chip.short), ...cells);
    });
    refill(into, ...headed(["chip", ...heads], body));
    const saved = list.flatMap((one) => (one.name !== "measuredRatio" ? [[one.saved, one.value]]
      : ["low", "high"].map((end) => [`timed_${end}`, (row) => row.measuredRatio?.[end]])));
    const number = (value) => (value === Infinity ? "never" : value);
    return [["chip", ...saved.map(([name]) => name)], ...shown.map((row) => [
      row.chip.id, ...(row.unsupported ? [row.unsupported]
        : saved.map(([, value]) => number(value(row)))),
    ])];
  }

  /** A table of cells, of rows and columns as [name, value].

      `loaded` gives what a cell is of, and `cell` its text, class, tip and a number by which it is
      shaded among the others; an unsupported one has `unsupported` instead. */
  function cells(caption, corner, rows, columns, loaded, cell, note = null) {
    const found = rows.map(([, row]) => columns.map(([, column]) => {
      const of = loaded(row, column);
      return of.unsupported ? [NONE, "none", of.unsupported] : cell(of, column);
    }));
    const heats = found.flat().flatMap(([, , , heat]) => heat ?? []);
    const [low, high] = [Math.min(...heats), Math.max(...heats)];
    const shade = (heat) => 100 * (high > low ? (heat - low) / (high - low) : 0.3);
    const made = ([text, kind, title, heat = null]) => make("td", {
      class: kind, title, style: heat === null ? null : `--heat: ${shade(heat).toFixed(0)}%`,
    }, text);
    const head = ([text]) => make("th", { scope: "col", class: "number" }, text);
    const body = rows.map(([name], i) =>
      make("tr", {}, make("th", { scope: "row" }, name), ...found[i].map(made)));
    const region = { class: "scroll", tabindex: "0", role: "region", "aria-label": caption };
    return make("div", region, make("table", { class: "cells" }, make("caption", {}, caption),
      ...headed([corner, ...columns.map(head)], body)),
    ...(note ? [make("p", { class: "note" }, note)] : []));
  }
  const counts = (list) => list.map((number) => [count(number), number]);
  const sentence = (text) => make("p", {}, text);
  const byBound = (now) => (now.basis === CALIBRATED ? ", by the bound" : "");

  /** A table of the B from which on matmuls are compute-bound, shaded by its logarithm. */
  function critical(now, what, corner, rows, columns, loaded) {
    const cell = (of) => {
      const crossover = ANSWERS.critical(of);
      if (crossover.outcome !== NEVER) {
        return [size(crossover), "heat", null, Math.log(crossover.size)];
      }
      const share = tends({ of, critical: crossover });
      const tip = `each token adds more ${crossover.limit} time: below ${share} of peak`;
      return ["never", "never", tip];
    };
    const caption = `Compute-bound from B tokens: ${what}${byBound(now)}`;
    return cells(caption, corner, rows, columns, loaded, cell);
  }

  function sizes(now) {
    const of = matmulOf(now, now.of);
    if (of.unsupported) return sentence(cannot([of])[0]);
    return critical(now, `${now.of.short}, ${now.dtypes.name}`, "D \\ F", counts(GRID),
      counts(GRID), (D, F) => matmulOf({ ...now, D, F }, now.of));
  }

  const named = (chips) => chips.map((chip) => [chip.short, chip]);
  function dtypes(now) {
    const { data, data: { offered } } = now;
    const chips = now.all ? data.chips.filter(({ variant }) => !variant) : now.chips;
    const list = data.dtypes.filter(({ name }) => offered.dtypes.includes(name));
    const what = `D = ${count(now.D)}, F = ${count(now.F)}`;
    return critical(now, what, "chip", named(chips), list.map((one) => [one.name, one]),
      (chip, one) => matmulOf({ ...now, dtypes: one }, chip));
  }

  function binds(now) {
    const { of: { short: name }, sharding } = now;
    const cell = (of, B) => {
      const answer = ANSWERS.times(of, B);
      const share = percent(shareOf({ of, answer }, answer.lower));
      return bindsCell(answer.bound, `${seconds(answer.lower)}, ${share} of peak`);
    };
    const split = sharding !== "none";
    const rows = split
      ? CHIPS.map((n) => [`${n} ×`, matmulOf({ ...now, n }, now.of)])
        .filter(([, of]) => !of.unsupported)
      : now.chips.map((chip) => [chip.short, matmulOf(now, chip)]);
    const caption = split ? `Bottleneck of ${name}: B × chips` : "Bottleneck: B × chip";
    const left = split ? ` Left out: numbers of chips that no network of ${name} joins.` : "";
    return cells(caption, split ? "chips \\ B" : "chip \\ B", rows, counts(BATCHES), (of) => of,
      cell, `${LETTERS}.${left} Point at a cell for its time.`);
  }

  function context(now) {
    const { dp, chips, name } = now.split;
    const contexts = CONTEXTS.filter((S) => !now.model.trained || S <= now.model.trained);
    const rows = contexts.map((S) => [count(S), { ...stepOf({ ...now, S }, now.of), S }]);
    const cell = (of, B) => {
      if (of.footprint(B).fits === false) return ["full", "never", "does not fit"];
      const { bound, ops } = ANSWERS.times(of, B);
      const rate = short(tokensOf({ ...now, S: of.S }, B) / ops / chips);
      return bindsCell(bound, `${seconds(ops)}, ${rate} tokens/s a chip`);
    };
    const on = `${name} of ${now.of.short}`;
    const caption = `${now.model.name} in ${now.format} on ${on}: context × batch`;
    return cells(caption, "S \\ B", rows, counts(octaves(dp, LARGEST_BATCH, 1)), (of) => of, cell,
      `${LETTERS}, full: does not fit. Point at a cell for its time.`);
  }

  function kernels(now) {
    const row = rowOf(now, now.of);
    if (row.unsupported) return sentence(cannot([row])[0]);
    const { kernels: list, ops } = row.answer;
    const estimate = ANSWERS.estimate(row.of, now.B);
    const some = (time) => [time ? seconds(time) : NONE];
    const part = (place) => ({ parts }) => some(parts[place]);
    const fitted = (one) => estimate?.times?.[list.indexOf(one)];
    const columns = [
      ["layers", ({ layers }) => [count(layers)]], ["time", ({ time }) => some(time)],
      ["share", ({ time }) => [time ? percent(time / ops) : NONE]],
      ["bound", ({ time, bound }) => (time ? [bound, `is-${bound}`] : ["engine"])],
      ["compute", part(0)], ["memory", part(1)], ["network", part(2)],
      ...(estimate?.times ? [["calibrated", (one) => some(fitted(one))]] : []),
    ];
    const size = (one) => (now.basis === CALIBRATED && fitted(one)) || one.time;
    const rows = list.filter((one) => one.time || fitted(one))
      .sort((a, b) => size(b) - size(a)).map((one) => [one.name, one]);
    const at = `B = ${count(now.B)}, S = ${count(now.S)}`;
    const caption = `Kernels of a step on ${now.of.short}${byBound(now)}, ${at}`;
    return cells(caption, "kernel", rows, columns, (one) => one, (one, text) => text(one));
  }

  function splits(now) {
    const { trains } = now;
    const loaded = (chip, split) => {
      const step = trains ? split.dp * now.micro_batch : 1;
      const B = Math.ceil(Math.max(now.B, split.dp) / step) * step;
      const S = Math.ceil(now.S / split.cp) * split.cp;
      return rowOf({ ...now, split, B, S }, chip);
    };
    const cell = (row, split) => {
      const tip = `${seconds(row.answer.ops)} a step, ${row.bound}-bound,`
        + ` ${bytes(row.footprint.weights)} of ${trains ? "states" : "weights"} on a chip`;
      const most = trains ? bytes(row.footprint.bytes) : known(count)(row.footprint.most);
      if (row.fits === false) return [`${most} · full`, "never", tip];
      return [`${most} · ${known(short)(row.rate)}`, split === now.split ? "here" : null, tip];
    };
    const first = trains ? "Memory of a chip" : "Largest batch";
    const caption = `${first} · tokens/s of a chip at B = ${count(now.B)}`;
    const columns = now.splits.map((split) => [split.name, split]);
    return cells(caption, "chip", named(now.chips), columns, loaded, cell);
  }

  return { showChips, sizes, dtypes, binds, context, kernels, splits };
})();
