"use strict";
/* The page of data: a table of thresholds with filters, an order and pages, all in the address. */

document.addEventListener("DOMContentLoaded", async () => {
  const { load, unpacked, make, menu, state, go, tellUnknown, follow } = ROOFLINES;
  const { rows: packed, columns } = await load("thresholds", "data/thresholds.js");
  const $ = (id) => document.getElementById(id);
  const PAGE = 50; // rows of a page
  const FACETS = ["chip", "dtypes", "share", "sharding", "shards", "memory", "network", "limit"];
  const ANSWERS = ["critical", "critical_exact"]; // what is no number is the outcome
  const NUMBERS = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 6 });
  const names = Object.keys(packed);
  const rows = names.length ? unpacked(packed) : [];
  const levels = {};
  for (const name of names) levels[name] = [...new Set(rows.map((row) => row[name] ?? null))];
  const shown = names.filter((name) => ANSWERS.includes(name) || levels[name].length > 1);
  const facets = FACETS.filter((name) => levels[name]?.length > 1);
  const numeric = new Set(names.filter((name) => levels[name].some((one) => typeof one === "number")));
  const about = new Map(columns.map((column) => [column.name, column]));

  function text(name, row) {
    const value = row[name];
    if (value === null || value === undefined) return ANSWERS.includes(name) ? row.outcome : "–";
    return typeof value === "number" ? NUMBERS.format(value) : String(value);
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
      if (x == null || y == null) return (x == null) - (y == null);
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
    if (focused) $("head").querySelector(`[data-sort="${focused}"]`)?.focus();
  }

  /** Show a page of rows; the buttons lead to the others. */
  function showRows(found) {
    const pages = Math.max(1, Math.ceil(found.length / PAGE));
    const asked = Number.parseInt(state().get("page"), 10) || 1;
    const page = Math.min(Math.max(asked, 1), pages);
    $("page").textContent = `Page ${page} of ${pages}`;
    const buttons = { first: null, previous: page - 1, next: page + 1, last: pages };
    for (const [id, to] of Object.entries(buttons)) {
      $(id).disabled = ["first", "previous"].includes(id) ? page === 1 : page === pages;
      $(id).onclick = () => go({ page: to });
    }
    const kind = (name) =>
      [numeric.has(name) && "number", ANSWERS.includes(name) && "answer"].filter(Boolean).join(" ");
    $("body").replaceChildren(...found.slice((page - 1) * PAGE, page * PAGE).map((row) =>
      make("tr", {}, ...shown.map((name) => make("td", { class: kind(name) }, text(name, row))))));
    $("empty").hidden = found.length > 0;
    const count = (number) => number.toLocaleString("en-US");
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

  follow(() => {
    showMenus();
    if (document.activeElement !== $("find")) $("find").value = state().get("find") ?? "";
    showHead();
    showRows(filtered());
    const lost = facets.filter((name) => state().has(name) && !has(name))
      .map((name) => [name, state().get(name), "not in this table; shown is all of it"]);
    if (state().has("sort") && !names.includes(order()[1])) {
      lost.push(["sort", state().get("sort"), "no column of this table"]);
    }
    tellUnknown([...facets, "find", "sort", "page"], lost);
    $("table").dataset.drawn = location.hash;
  });
  $("find").addEventListener("input", () => go({ find: $("find").value || null, page: null }));
});
