"use strict";
/* The pages of data and of chips: a table with filters and an order, all in the address.

   A row of a chip opens: its numbers are loaded then. */

document.addEventListener("DOMContentLoaded", async () => {
  const { $, load, make, menu, headed, sortHeads, state, go, tellUnknown, follow } = ROOFLINES;
  const { si, count, significant, compare } = NUMBERS;
  const { name: table, file } = $("table").dataset;
  const { lists, columns, facets: menus, answers, length } = await load(table, file);
  const opens = table === "chips";
  const names = Object.keys(lists);
  const rows = (lists[names[0]] ?? []).map((_, i) =>
    Object.fromEntries(names.map((name) => [name, lists[name][i]])));
  const levels = {};
  for (const name of names) levels[name] = [...new Set(lists[name])];
  const shown = names.filter((name) =>
    answers.includes(name) || (name !== "outcome" && levels[name].length > 1));
  const facets = menus.filter((name) => levels[name]?.length > 1);
  const about = new Map(columns.map((column) => [column.name, column]));
  const kindOf = (name) => [
    levels[name].some((one) => typeof one === "number") && "number",
    answers.includes(name) && "answer",
  ].filter(Boolean).join(" ");

  function text(name, row) {
    const value = row[name];
    if (value === null) return answers.includes(name) ? row.outcome : "–";
    if (typeof value !== "number") return String(value);
    const unit = about.get(name)?.unit ?? "";
    return ["", "1"].includes(unit) ? significant(value, 6) : si(value, unit, 4);
  }
  for (const row of rows) row.found = shown.map((name) => text(name, row)).join(" ").toLowerCase();

  const has = (name) => levels[name].some((level) => String(level) === state().get(name));
  const sort = () => state().get("sort") ?? "";

  function filtered() {
    const words = (state().get("find") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = facets.filter((name) => state().has(name) && has(name));
    const found = rows.filter((row) => words.every((word) => row.found.includes(word))
      && wanted.every((name) => String(row[name]) === state().get(name)));
    const [, down, by] = /^(-?)(.*)$/.exec(sort());
    return names.includes(by) ? found.sort((a, b) => compare(a[by], b[by], down)) : found;
  }

  /** Show the first rows that fit; menus and words find the others. */
  function showRows(found) {
    const focused = document.activeElement?.dataset?.opens;
    const cell = (name, row) => (opens && name === "chip" ? opener(row.chip)
      : make("td", { class: kindOf(name) }, text(name, row)));
    $("body").replaceChildren(...found.slice(0, length).map((row) =>
      make("tr", {}, ...shown.map((name) => cell(name, row)))));
    if (focused) $("body").querySelector(`[data-opens="${CSS.escape(focused)}"]`)?.focus();
    $("empty").hidden = found.length > 0;
    const first = found.length > length ? ` Shown are the first ${count(length)}.` : "";
    $("count").textContent = `${count(found.length)} of ${count(rows.length)} rows.${first}`;
  }

  function showMenus() {
    const focused = document.activeElement?.closest("[data-param]")?.dataset.param;
    $("controls").replaceChildren(...facets.map((name) => {
      const options = levels[name].map((level) => [String(level), String(level ?? "none")]);
      const value = has(name) ? state().get(name) : "";
      const take = (chosen) => go({ [name]: chosen || null });
      return menu(name, name, [["", "all"], ...options], value, take);
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
      make("table", {}, ...headed(heads, body)), make("p", {}, explorer));
    button.closest("tr").after(make("tr", { class: "details" }, cell));
  }

  follow(async () => {
    showMenus();
    if (document.activeElement !== $("find")) $("find").value = state().get("find") ?? "";
    $("head").replaceChildren(...sortHeads(sort(), shown.map((name) =>
      [name, name, about.get(name)?.meaning ?? name, kindOf(name)])));
    showRows(filtered());
    const lost = facets.filter((name) => state().has(name) && !has(name))
      .map((name) => [name, state().get(name), "not in this table; shown is all of it"]);
    if (opens && state().has("chip") && !has("chip")) {
      lost.push(["chip", state().get("chip"), "no chip of this site"]);
    }
    if (sort() && !names.includes(sort().replace(/^-/, ""))) {
      lost.push(["sort", sort(), "no column of this table"]);
    }
    tellUnknown([...facets, "find", "sort", ...(opens ? ["chip"] : [])], lost);
    await showChip();
    $("table").dataset.drawn = location.hash;
  });
  $("find").addEventListener("input", () => go({ find: $("find").value || null }));
});
