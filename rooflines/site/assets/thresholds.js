"use strict";
/* The page of the thresholds: one table at a time, sorted, filtered and cut into pages. Every value comes from the files. */

document.addEventListener("DOMContentLoaded", async () => {
  const { load, unpacked, make, menu, state, go, tellUnknown, follow } = ROOFLINES;
  const { sorted, showHead, paged, lostOf } = TABLE;
  const { tables, columns, table: first, chip } = await load("thresholds", "data/thresholds.js");
  const $ = (id) => document.getElementById(id);
  if (!tables.length) return;

  const ROWS = 50; // of a page
  const FACETS = ["share", "dtypes", "sharding", "shards", "memory", "network", "unit", "limit"]; // columns that get a menu
  const ANSWERS = ["critical", "critical_exact", "critical_rule", "limit"]; // stay in sight, whatever else is shown
  const OF_SHARE = [...ANSWERS, "critical_estimate", "outcome_estimate", "outcome", "share"]; // differ between the shares of one case
  const FIRST = ["critical", "critical_exact"]; // a size or a number of chips, and the factor on a rate
  const LABELS = { share: "Share of peak", dtypes: "Data types" };
  const NAMES = ["table", "chip", "find", "sort", "page", ...FACETS]; // of the state
  const ALL = "all"; // the value of the chip menu that shows all chips
  const MOST = 20000; // rows of all chips together
  const NUMBERS = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 6 });
  const ABOUT = new Map(columns.map((column) => [column.name, column]));
  let open = { key: null, names: [], rows: [] };
  let turn = 0;

  const label = (name) => LABELS[name] ?? name[0].toUpperCase() + name.slice(1);
  const table = () => tables.find((one) => one.id === state().get("table")) ?? tables.find((one) => one.id === first);

  /** The file to show: a large table has one for each chip. */
  function part() {
    const { parts } = table();
    return parts.find((one) => one.chip === null || one.chip === state().get("chip")) ?? parts.find((one) => one.chip === chip) ?? parts[0];
  }

  /** The files to show: one, or those of all chips. */
  const parts = () => (state().get("chip") === ALL && table().parts.length > 1 ? table().parts : [part()]);
  const words = () => (state().get("find") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (row) => words().every((word) => row.text.includes(word));

  /** What a value says; an answer that is no number is the outcome. */
  function text(name, value, row) {
    if (value === null || value === undefined) return FIRST.includes(name) ? row.outcome : row.outcomes?.[name] ?? "–";
    return typeof value === "number" ? NUMBERS.format(value) : String(value);
  }

  /** The share of peak whose rows are shown; all of it unless another one is chosen. */
  function share() {
    const levels = open.levels.get("share") ?? [];
    return levels.find((level) => String(level) === state().get("share")) ?? Math.max(...levels);
  }

  /** The answer at a share of peak, as a column beside the one at the share that is chosen. */
  const besideName = (level) => `${open.answer} at ${NUMBERS.format(100 * level)} %`;
  const beside = () => (open.levels.get("share") ?? []).filter((level) => level !== share()).map(besideName);

  /** Give each row the answers of its case at all shares of peak. */
  function addShares() {
    const same = open.names.filter((name) => !OF_SHARE.includes(name));
    const cases = Map.groupBy(open.rows, (row) => JSON.stringify(same.map((name) => row[name])));
    for (const rows of cases.values()) {
      const answers = rows.map((row) => [besideName(row.share), row[open.answer], row.outcome]);
      const outcomes = Object.fromEntries(answers.map(([name, , outcome]) => [name, outcome]));
      const values = Object.fromEntries(answers.map(([name, value]) => [name, value]));
      for (const row of rows) Object.assign(row, values, { outcomes });
    }
  }

  function filtered() {
    const wanted = [...FACETS, "chip"].filter((name) => name !== "share" && open.names.includes(name) && state().has(name))
      .filter((name) => open.levels.get(name).some((level) => String(level) === state().get(name)))
      .map((name) => [name, state().get(name)]);
    if (open.names.includes("share")) wanted.push(["share", String(share())]);
    const rows = open.rows.filter((row) => wanted.every(([name, value]) => String(row[name]) === value)
      && fits(row));
    return sorted(rows, [...open.names, ...beside()]);
  }

  function showMenus() {
    const focused = document.activeElement?.closest("[data-param]")?.dataset.param;
    const one = table();
    const named = (name, control) => { control.dataset.param = name; return control; };
    const menus = [named("table", menu("Table", tables.map((t) => [t.id, `${t.sweep}, ${t.rate ? "factor on" : "critical"} ${t.axis}`]), one.id,
      (value) => go({ table: value, page: null, sort: null, find: null }, true)))];
    const chips = one.parts.map((p) => p.chip).filter((chip) => chip !== null);
    const chosen = parts().length > 1 ? ALL : part()?.chip;
    if (chips.length) menus.push(named("chip", menu("Chip", [[ALL, "all chips"], ...chips.map((chip) => [chip, chip])], chosen, (value) => go({ chip: value, page: null }))));
    for (const name of chips.length ? FACETS : ["chip", ...FACETS]) {
      const levels = open.levels.get(name) ?? [];
      if (levels.length < 2) continue;
      if (name === "share") {
        const shares = [...levels].sort((a, b) => b - a).map((level) => [String(level), `${text(name, 100 * level)} %`]);
        menus.push(named(name, menu(label(name), shares, String(share()), (v) => go({ share: v, page: null }))));
        continue;
      }
      const asked = state().get(name);
      const value = levels.some((level) => String(level) === asked) ? asked : "";
      const options = [["", "all"], ...levels.map((level) => [String(level), level === null ? "none" : String(level)])];
      menus.push(named(name, menu(label(name), options, value, (v) => go({ [name]: v || null, page: null }))));
    }
    $("controls").replaceChildren(...menus);
    $("controls").querySelector(`[data-param="${focused}"] select`)?.focus();
  }

  /** A column as its name in the table shows it. */
  function titled(name) {
    if (!ABOUT.has(name)) return { name, text: name, title: `${ABOUT.get(open.answer).meaning}; for that share of the attainable peak`, kind: "number" };
    const { unit, meaning } = ABOUT.get(name);
    const kinds = [open.numeric.has(name) ? "number" : "", FIRST.includes(name) ? "answer" : ""];
    return { name, text: name, title: unit && unit !== "1" ? `${meaning} [${unit}]` : meaning, kind: kinds.join(" ").trim() };
  }

  function showRows() {
    const rows = filtered();
    const own = open.names.filter((name) => ANSWERS.includes(name) || (name !== "share" && open.levels.get(name).length > 1));
    const names = own.flatMap((name) => (name === open.answer ? [name, ...beside()] : [name]));
    const fixed = open.names.filter((name) => !names.includes(name) && open.levels.get(name).length === 1).map((name) => `${name} ${text(name, open.levels.get(name)[0], {})}`);
    $("fixed").textContent = fixed.length ? `In all rows: ${fixed.join(" · ")}.` : "";
    showHead(names.map(titled));
    $("body").replaceChildren(...paged(rows, ROWS).map((row) => make("tr", {}, ...names.map((name) => {
      const kinds = [open.numeric.has(name) || !ABOUT.has(name) ? "number" : "", row[name] == null ? "none" : "", FIRST.includes(name) ? "answer" : ""];
      return make("td", { class: kinds.filter(Boolean).join(" ") || null }, text(name, row[name], row));
    }))));
    const one = part();
    const all = open.cut ? " There are more: find a shape or a size to see it on all chips; the downloads have all."
      : parts().length === 1 && one.all > one.rows ? ` The file has the first ${one.rows.toLocaleString("en-US")} of ${one.all.toLocaleString("en-US")}; the downloads have all.` : "";
    $("count").textContent = `${rows.length.toLocaleString("en-US")} of ${open.rows.length.toLocaleString("en-US")} rows.${all}`;
    $("empty").hidden = rows.length > 0;
  }

  /** What a search finds a value by: as it is, and as it is printed. */
  const searched = new Map();
  function wordsOf(value) {
    if (!searched.has(value)) searched.set(value, typeof value === "number" ? `${value} ${NUMBERS.format(value)}` : String(value ?? "").toLowerCase());
    return searched.get(value);
  }

  /** The rows of files, of all chips at most `MOST` that fit the search, and their columns. */
  async function read(files) {
    const names = new Set();
    let rows = [];
    for (const file of files) {
      const packed = await load(file, file);
      for (const name of Object.keys(packed)) names.add(name);
      const inSearch = Object.keys(packed).filter((name) => !ANSWERS.includes(name));
      const own = unpacked(packed);
      for (const row of own) row.text = inSearch.map((name) => wordsOf(row[name])).join(" ");
      rows = rows.concat(files.length > 1 ? own.filter(fits) : own);
      if (files.length > 1 && rows.length > MOST) break;
    }
    const cut = files.length > 1 && rows.length > MOST;
    return { names: [...names], rows: cut ? rows.slice(0, MOST) : rows, cut };
  }

  /** What the address asks for that this table lacks. */
  function unknown() {
    const lost = [];
    const miss = (name, what) => lost.push([name, state().get(name), `not in this ${what}`]);
    if (state().has("table") && table().id !== state().get("table")) miss("table", `site; shown is ${table().id}`);
    for (const name of ["chip", ...FACETS].filter((one) => state().has(one) && !(one === "chip" && state().get(one) === ALL))) {
      const levels = open.levels.get(name) ?? [];
      if (!levels.some((level) => String(level) === state().get(name))) miss(name, `table; shown is ${levels.length === 1 ? levels[0] : "all of it"}`);
    }
    return [...lost, ...lostOf([...open.names, ...beside()])];
  }

  async function apply() {
    const mine = ++turn;
    if (!table().parts.length) {
      open = { key: null, names: [], rows: [], levels: new Map(), numeric: new Set() };
      $("body").replaceChildren();
      $("head").replaceChildren();
      showMenus();
      $("count").textContent = "This table is too large for the page; the downloads have it.";
      return;
    }
    const files = parts().map((one) => one.file);
    const key = [...files, ...(files.length > 1 ? words() : [])].join(" ");
    if (open.key !== key) {
      const { names, rows, cut } = await read(files);
      if (mine !== turn) return;
      const levels = new Map(names.map((name) => [name, [...new Set(rows.map((row) => row[name] ?? null))]]));
      const numeric = new Set(names.filter((name) => levels.get(name).some((value) => typeof value === "number")));
      open = { key, names, rows, cut, levels, numeric, answer: FIRST.find((name) => names.includes(name)) };
      if (levels.get("share")?.length > 1) addShares();
    }
    showMenus();
    if (document.activeElement !== $("find")) $("find").value = state().get("find") ?? "";
    showRows();
    tellUnknown(NAMES, unknown());
    $("table").dataset.drawn = key;
  }

  $("find").addEventListener("input", () => go({ find: $("find").value || null, page: null }));
  follow(apply);
});
