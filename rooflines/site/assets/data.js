"use strict";
/* The pages of data and of chips: a table with filters, an order and pages, all in the address.

   A row of a chip opens: its numbers are loaded then. */

document.addEventListener("DOMContentLoaded", async () => {
  const { load, make, menu, state, go, tellUnknown, follow } = ROOFLINES;
  const { si, count } = NUMBERS;
  const $ = (id) => document.getElementById(id);
  const { name: table, file } = $("table").dataset;
  const { lists, columns, facets: menus, answers, length } = await load(table, file);
  const opens = table === "chips";
  const NUMBER = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 6 });
  const names = Object.keys(lists);
  const rows = (lists[names[0]] ?? []).map((_, i) =>
    Object.fromEntries(names.map((name) => [name, lists[name][i]])));
  const levels = {};
  for (const name of names) levels[name] = [...new Set(lists[name])];
  const shown = names.filter((name) =>
    answers.includes(name) || (name !== "outcome" && levels[name].length > 1));
  const facets = menus.filter((name) => levels[name]?.length > 1);
  const numeric = new Set(names.filter((name) =>
    levels[name].some((one) => typeof one === "number")));
  const about = new Map(columns.map((column) => [column.name, column]));

  function text(name, row) {
    const value = row[name];
    if (value === null) return answers.includes(name) ? row.outcome : "–";
    if (typeof value !== "number") return String(value);
    const unit = about.get(name)?.unit ?? "";
    return ["", "1"].includes(unit) ? NUMBER.format(value) : si(value, unit, 4);
  }
  for (const row of rows) row.found = shown.map((name) => text(name, row)).join(" ").toLowerCase();

  const order = () => /^(.*)\.(up|down)$/.exec(state().get("sort") ?? "") ?? [];
  const has = (name) => levels[name].some((level) => String(level) === state().get(name));

  function filtered() {
    const words = (state().get("find") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = facets.filter((name) => state().has(name) && has(name));
    const found = rows.filter((row) => words.every((word) => row.found.includes(word))
      && wanted.every((name) => String(row[name]) === state().get(name)));
    const [, by, way] = order();
    if (!names.includes(by)) return found;
    return found.sort((a, b) => {
      const [x, y] = [a[by], b[by]];
      if (x === null || y === null) return (x === null) - (y === null);
      const sign = way === "down" ? -1 : 1;
      return sign * (numeric.has(by) ? x - y : x.localeCompare(y, "en", { numeric: true }));
    });
  }

  function showHead() {
    const [, by, way] = order();
    const focused = document.activeElement?.dataset?.sort;
    $("head").replaceChildren(...shown.map((name) => {
      const turned = by !== name ? "none" : way === "down" ? "descending" : "ascending";
      const next = by !== name ? `${name}.up` : way === "up" ? `${name}.down` : null;
      const title = about.get(name)?.meaning ?? name;
      const onclick = () => go({ sort: next, page: null });
      return make("th", { scope: "col", "aria-sort": turned, class: numeric.has(name) && "number" },
        make("button", { type: "button", "data-sort": name, title, onclick }, name));
    }));
    if (focused) $("head").querySelector(`[data-sort="${CSS.escape(focused)}"]`)?.focus();
  }

  /** Show a page of rows; the buttons lead to the others. */
  function showRows(found) {
    const pages = Math.max(1, Math.ceil(found.length / length));
    const asked = Number.parseInt(state().get("page"), 10) || 1;
    const page = Math.min(Math.max(asked, 1), pages);
    $("page").textContent = `Page ${page} of ${pages}`;
    const buttons = { first: null, previous: page - 1, next: page + 1, last: pages };
    for (const [id, to] of Object.entries(buttons)) {
      $(id).disabled = ["first", "previous"].includes(id) ? page === 1 : page === pages;
      $(id).hidden = pages === 1;
      $(id).onclick = () => go({ page: to });
    }
    const focused = document.activeElement?.dataset?.opens;
    const kind = (name) =>
      [numeric.has(name) && "number", answers.includes(name) && "answer"].filter(Boolean).join(" ");
    const cell = (name, row) => (opens && name === "chip" ? opener(row.chip)
      : make("td", { class: kind(name) }, text(name, row)));
    $("body").replaceChildren(...found.slice((page - 1) * length, page * length).map((row) =>
      make("tr", {}, ...shown.map((name) => cell(name, row)))));
    if (focused) $("body").querySelector(`[data-opens="${CSS.escape(focused)}"]`)?.focus();
    $("empty").hidden = found.length > 0;
    $("count").textContent = `${count(found.length)} of ${count(rows.length)} rows.`;
  }

  function showMenus() {
    const focused = document.activeElement?.closest("[data-param]")?.dataset.param;
    $("controls").replaceChildren(...facets.map((name) => {
      const options = levels[name].map((level) => [String(level), String(level ?? "none")]);
      const value = has(name) ? state().get(name) : "";
      const take = (chosen) => go({ [name]: chosen || null, page: null });
      const control = menu(name, [["", "all"], ...options], value, take);
      control.dataset.param = name;
      return control;
    }));
    $("controls").querySelector(`[data-param="${focused}"] select`)?.focus();
  }

  // ---------------------------------------------------------------- a chip

  /** The first cell of a chip, which opens and closes its numbers. */
  function opener(chip) {
    const open = state().get("chip") === chip;
    const onclick = () => go({ chip: open ? null : chip }, true);
    return make("th", { scope: "row" }, make("button", {
      type: "button", class: "open", "data-opens": chip, "aria-expanded": String(open), onclick,
    }, chip));
  }

  /** A source as a link, if it is a document of the web. */
  function source(id, sources) {
    const [title, url, date] = Object.hasOwn(sources, id) ? sources[id] : [];
    if (!/^https?:\/\//.test(url ?? "")) return make("span", { title }, id);
    return make("a", { href: url, title: `${title}, ${date}`, rel: "noopener noreferrer" }, id);
  }

  /** Below the row of the open chip: what there is to say of it, and its numbers. */
  async function showChip() {
    const button = $("body").querySelector("[data-opens][aria-expanded=true]");
    if (!button) return;
    const chip = button.dataset.opens;
    const { chips, sources } = await load("chip-numbers", "data/chip-numbers.js");
    if (!button.isConnected) return;
    const heads = ["Number", "Value", "Source", "Read from", "Note"];
    const body = chips[chip].numbers.map(([label, shown, exact, ids, kind, estimate, note]) => {
      const links = ids.flatMap((id, i) => [i ? ", " : "", source(id, sources)]);
      const badges = [
        kind && make("span", { class: "badge" }, kind),
        estimate && make("span", { class: "badge warn" }, "estimate"),
      ].filter(Boolean);
      return make("tr", {}, make("th", { scope: "row" }, label),
        make("td", { class: "number", title: exact }, shown), make("td", {}, ...links),
        make("td", {}, ...badges), make("td", {}, note));
    });
    const explorer = make("a", { href: `index.html#chips=${encodeURIComponent(chip)}` },
      "Open it in the explorer");
    const cell = make("td", { colspan: shown.length, "data-chip": chip },
      ...chips[chip].about.map((text) => make("p", { class: "note" }, text)),
      make("table", {}, make("thead", {}, make("tr", {},
        ...heads.map((head) => make("th", { scope: "col" }, head)))), make("tbody", {}, ...body)),
      make("p", {}, explorer));
    button.closest("tr").after(make("tr", { class: "details" }, cell));
  }

  follow(async () => {
    showMenus();
    if (document.activeElement !== $("find")) $("find").value = state().get("find") ?? "";
    showHead();
    showRows(filtered());
    const lost = facets.filter((name) => state().has(name) && !has(name))
      .map((name) => [name, state().get(name), "not in this table; shown is all of it"]);
    if (opens && state().has("chip") && !has("chip")) {
      lost.push(["chip", state().get("chip"), "no chip of this site"]);
    }
    if (state().has("sort") && !names.includes(order()[1])) {
      lost.push(["sort", state().get("sort"), "no column of this table"]);
    }
    tellUnknown([...facets, "find", "sort", "page"], lost);
    await showChip();
    $("table").dataset.drawn = location.hash;
  });
  $("find").addEventListener("input", () => go({ find: $("find").value || null, page: null }));
});
