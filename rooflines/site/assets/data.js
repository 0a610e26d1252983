"use strict";
/* The pages of data and of chips: a table with filters and an order, all in the address.

   A row of a chip opens: its numbers are loaded then. */

document.addEventListener("DOMContentLoaded", async () => {
  const { $, load, make, refill, menu, headed, sorted, state, go, tellUnknown, follow } = ROOFLINES;
  const { count, significant } = NUMBERS;
  const { name: table, file } = $("table").dataset;
  const { columns, rows, facets, length } = await load(table, file);
  const opens = table === "chips";
  const place = Object.fromEntries(columns.map(({ name }, i) => [name, i]));
  columns.forEach((column, i) => {
    const isNumber = column.kind.includes("number");
    column.value = (row) => (isNumber && typeof row[i] !== "number" ? null : row[i]);
  });
  const text = (value) =>
    (value === null ? "–" : typeof value === "number" ? significant(value, 6) : value);
  const words = new Map(rows.map((row) => [row, row.map(text).join(" ").toLowerCase()]));
  const asked = (name) => state().get(name);
  const has = (name) => facets[name].some((option) => String(option) === asked(name));
  const used = () => Object.keys(facets).filter((name) => asked(name) !== null);

  function filtered() {
    const typed = (asked("find") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = used().filter(has);
    return rows.filter((row) => typed.every((word) => words.get(row).includes(word))
      && wanted.every((name) => String(row[place[name]]) === asked(name)));
  }

  /** Show the first rows that there is room for; menus and words find the others. */
  function showRows(found, heads) {
    const cell = (value, i) => (opens && !i ? opener(value)
      : make("td", { class: columns[i].kind }, text(value)));
    const line = (row) => make("tr", {}, ...row.map(cell));
    const variant = place["variant of"]; // of another chip: these come last
    const last = (row) => row[variant] !== null;
    const ordered = [...found].sort((a, b) => last(a) - last(b));
    refill($("head"), ...heads);
    refill($("body"), ...ordered.slice(0, length).map(line));
    $("empty").hidden = found.length > 0;
    const first = found.length > length ? ` Shown are the first ${count(length)}.` : "";
    $("count").textContent = `${count(found.length)} of ${count(rows.length)} rows.${first}`;
  }

  /** The first cell of a chip, which opens and closes its numbers. */
  function opener(chip) {
    const open = asked("chip") === chip;
    const onclick = () => go({ chip: open ? null : chip }, true);
    return make("th", { scope: "row" }, make("button", {
      type: "button", class: "open", "data-key": chip, "aria-expanded": String(open), onclick,
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
    const button = $("body").querySelector("[aria-expanded=true]");
    if (!button) return;
    const chip = button.dataset.key;
    const { chips, sources } = await load("chip-numbers", "data/chip-numbers.js");
    if (!button.isConnected) return;
    const body = chips[chip].numbers.map(([label, shown, exact, ids, kind, estimate, note]) => {
      const links = ids.flatMap((id, i) => [i ? ", " : "", source(id, sources)]);
      const badges = [[kind, "badge"], [estimate && "estimate", "badge warn"]]
        .flatMap(([badge, name]) => (badge ? make("span", { class: name }, badge) : []));
      return make("tr", {}, make("th", { scope: "row" }, label),
        make("td", { class: "number", title: exact }, shown), make("td", {}, ...links),
        make("td", {}, ...badges), make("td", {}, note));
    });
    const explorer = make("a", { href: `index.html#chips=${encodeURIComponent(chip)}` },
      "Open it in the explorer");
    button.closest("tr").after(make("tr", { class: "details" },
      make("td", { colspan: columns.length, "data-chip": chip },
        ...chips[chip].about.map((said) => make("p", { class: "note" }, said)),
        make("table", {}, ...headed(["Number", "Value", "Source", "Read from", "Note"], body)),
        make("p", {}, explorer))));
  }

  follow(async () => {
    refill($("controls"), ...Object.entries(facets).map(([name, options]) =>
      menu(name, name, [["", "all"], ...options.map((one) => [String(one), String(one ?? "none")])],
        has(name) ? asked(name) : "")));
    if (document.activeElement !== $("find")) $("find").value = asked("find") ?? "";
    const lost = used().filter((name) => !has(name))
      .map((name) => [name, asked(name), "not in this table; shown is all of it"]);
    showRows(...sorted(filtered(), columns, lost));
    if (opens && asked("chip") && !rows.some(([chip]) => chip === asked("chip"))) {
      lost.push(["chip", asked("chip"), "no chip of this site"]);
    }
    tellUnknown([...Object.keys(facets), "find", "sort", ...(opens ? ["chip"] : [])], lost);
    await showChip();
    $("table").dataset.drawn = location.hash;
  });
  $("find").addEventListener("input", () => go({ find: $("find").value }));
});
