"use strict";
/* Data page and chip page: a table with filters and an order, all in the address.

   A chip's row opens: its numbers are loaded then. */

document.addEventListener("DOMContentLoaded", async () => {
  const { $, load, make, refill, makeMenu, tableParts, sortRows, readAddress } = ROOFLINES;
  const { navigate, reportUnavailable, followAddress } = ROOFLINES;
  const { integer, significant } = NUMBERS;
  const DIGITS = 6; // significant digits of a number
  const MISSING = "–";
  const { name: tableName, file } = $("table").dataset;
  const { columns, rows, facets, length } = await load(tableName, file);
  const hasDetails = tableName === "chips";
  const columnIndex = Object.fromEntries(columns.map(({ name }, i) => [name, i]));
  columns.forEach((column, i) => {
    const isNumber = column.kind.includes("number");
    column.value = (row) => (isNumber && typeof row[i] !== "number" ? null : row[i]);
  });

  /** Cell text. */
  function cellText(value) {
    if (value === null) return MISSING;
    return typeof value === "number" ? significant(value, DIGITS) : value;
  }
  const searchTexts = new Map(rows.map((row) =>
    [row, row.map(cellText).join(" ").toLowerCase()]));
  const setting = (name) => readAddress().get(name);
  const isOption = (name) => facets[name].some((option) => String(option) === setting(name));
  const usedFacets = () => Object.keys(facets).filter((name) => setting(name) !== null);

  /** Rows with all search words and all chosen options. */
  function filterRows() {
    const words = (setting("find") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
    const names = usedFacets().filter(isOption);
    const matches = (row) => words.every((word) => searchTexts.get(row).includes(word))
      && names.every((name) => String(row[columnIndex[name]]) === setting(name));
    return rows.filter(matches);
  }

  /** Show the first rows that there is room for, chip variants last. */
  function showRows(filtered, heads) {
    const cell = (value, i) => (hasDetails && i === 0 ? chipCell(value)
      : make("td", { class: columns[i].kind }, cellText(value)));
    const isVariant = (row) => row[columnIndex["variant of"]] !== null;
    const ordered = [...filtered].sort((a, b) => isVariant(a) - isVariant(b));
    refill($("head"), ...heads);
    refill($("body"), ...ordered.slice(0, length).map((row) => make("tr", {}, ...row.map(cell))));
    $("empty").hidden = filtered.length > 0;
    const cut = filtered.length > length ? ` Shown are the first ${integer(length)}.` : "";
    $("count").textContent =
      `${integer(filtered.length)} of ${integer(rows.length)} rows.${cut}`;
  }

  // ---------------------------------------------------------------------------- numbers of a chip

  /** First cell in a chip's row, with the button that opens and closes its numbers. */
  function chipCell(chip) {
    const isOpen = setting("chip") === chip;
    const onclick = () => navigate({ chip: isOpen ? null : chip }, true);
    return make("th", { scope: "row" }, make("button", {
      type: "button", class: "open", "data-key": chip, "aria-expanded": String(isOpen), onclick,
    }, chip));
  }

  /** Source as a link, if it is a document on the web. */
  function sourceLink(id, sources) {
    const { title, url, date } = Object.hasOwn(sources, id) ? sources[id] : {};
    if (!/^https?:\/\//.test(url ?? "")) return make("span", { title }, id);
    const attributes = { href: url, title: `${title}, ${date}`, rel: "noopener noreferrer" };
    return make("a", attributes, id);
  }

  /** Row for a chip's number: quantity, value, sources, confidence, note. */
  function numberRow(number, sources) {
    const links = number.sources.flatMap((id, i) => [i > 0 ? ", " : "", sourceLink(id, sources)]);
    const badge = (text, style) => (text ? [make("span", { class: style }, text)] : []);
    return make("tr", {},
      make("th", { scope: "row" }, number.quantity),
      make("td", { class: "number", title: number.exact }, number.text),
      make("td", {}, ...links),
      make("td", {}, ...badge(number.confidence, "badge"),
        ...badge(number.is_estimate ? "estimate" : "", "badge warn")),
      make("td", {}, number.note));
  }

  /** Show the open chip's remarks and numbers below its row. */
  async function showChip() {
    const button = $("body").querySelector("[aria-expanded=true]");
    if (!button) return;
    const chip = button.dataset.key;
    const { chips, sources } = await load("chip-numbers", "data/chip-numbers.js");
    if (!button.isConnected) return;
    const { remarks, numbers } = chips[chip];
    const heads = ["Number", "Value", "Source", "Read from", "Note"];
    const body = numbers.map((number) => numberRow(number, sources));
    const link = make("a", { href: `index.html#chips=${encodeURIComponent(chip)}` },
      "Open it in the explorer");
    const cell = make("td", { colspan: columns.length, "data-chip": chip },
      ...remarks.map((text) => make("p", { class: "note" }, text)),
      make("table", {}, ...tableParts(heads, body)), make("p", {}, link));
    button.closest("tr").after(make("tr", { class: "details" }, cell));
  }

  // -------------------------------------------------------------------------------- filter menus

  /** Menu with a column's values. */
  function facetMenu(name, values) {
    const options = values.map((value) =>
      ({ value: String(value), text: String(value ?? "none") }));
    const chosen = isOption(name) ? setting(name) : "";
    const { head } = columns[columnIndex[name]];
    return makeMenu(name, head, [{ value: "", text: "all" }, ...options], chosen);
  }

  followAddress(async () => {
    const menus = Object.entries(facets).map(([name, values]) => facetMenu(name, values));
    refill($("controls"), ...menus);
    if (document.activeElement !== $("find")) $("find").value = setting("find") ?? "";
    const unavailable = usedFacets().filter((name) => !isOption(name)).map((name) => (
      { name, value: setting(name), reason: "not in this table; shown is all of it" }));
    const sorted = sortRows(filterRows(), columns, unavailable);
    showRows(sorted.rows, sorted.heads);
    const chip = hasDetails ? setting("chip") : null;
    if (chip && !rows.some(([id]) => id === chip)) {
      unavailable.push({ name: "chip", value: chip, reason: "no chip of this site" });
    }
    const names = [...Object.keys(facets), "find", "sort", ...(hasDetails ? ["chip"] : [])];
    reportUnavailable(names, unavailable);
    await showChip();
    $("table").dataset.drawn = location.hash;
  });
  $("find").addEventListener("input", () => navigate({ find: $("find").value }));
});
