"use strict";
/* What pages with a long table share: its order and its pages, both in the address. */

const TABLE = (() => {
  const { make, state, go } = ROOFLINES;
  const $ = (id) => document.getElementById(id);
  let shown = 1; // the page

  /** The column that the address sorts by, and the way: up or down. */
  function order() {
    const sort = state().get("sort") ?? "";
    const dot = sort.lastIndexOf(".");
    return dot < 0 ? [sort] : [sort.slice(0, dot), sort.slice(dot + 1)];
  }

  /** Rows in the order of the address; missing values come last, both ways. */
  function sorted(rows, names) {
    const [by, way] = order();
    if (!names.includes(by)) return rows;
    const sign = way === "down" ? -1 : 1;
    return [...rows].sort((a, b) => {
      const [x, y] = [a[by], b[by]];
      if (x == null || y == null) return (x == null) - (y == null);
      return sign * (typeof x === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true }));
    });
  }

  /** Show the names of columns, which sort; each has `name`, `text`, `title` and `kind`, its class. */
  function showHead(columns) {
    const [by, way] = order();
    const focused = document.activeElement?.dataset?.sort;
    $("head").replaceChildren(...columns.map(({ name, text, title, kind }) => {
      const turned = by === name ? (way === "down" ? "descending" : "ascending") : "none";
      const next = by !== name ? `${name}.up` : way === "up" ? `${name}.down` : null;
      const button = make("button", { type: "button", "data-sort": name, title, onclick: () => go({ sort: next, page: null }) }, text);
      return make("th", { scope: "col", "aria-sort": turned, class: kind || null }, button);
    }));
    if (focused) $("head").querySelector(`[data-sort="${focused}"]`)?.focus();
  }

  /** The rows of the page in the address; the buttons lead to the others. */
  function paged(rows, size) {
    const pages = Math.max(1, Math.ceil(rows.length / size));
    const page = shown = Math.min(Math.max(Number.parseInt(state().get("page"), 10) || 1, 1), pages);
    $("page").textContent = `Page ${page} of ${pages}`;
    $("first").disabled = $("previous").disabled = page === 1;
    $("last").disabled = $("next").disabled = page === pages;
    $("first").onclick = () => go({ page: null });
    $("previous").onclick = () => go({ page: page - 1 });
    $("next").onclick = () => go({ page: page + 1 });
    $("last").onclick = () => go({ page: pages });
    return rows.slice((page - 1) * size, page * size);
  }

  /** What the address asks for that the table on the page does not have; `names` are those of its columns. */
  function lostOf(names) {
    const [by, way] = order();
    const lost = [];
    if (by && !names.includes(by)) lost.push(["sort", by, "no column of this table"]);
    else if (by && !["up", "down"].includes(way)) lost.push(["sort", state().get("sort"), "neither up nor down; shown is up"]);
    if (state().has("page") && state().get("page") !== String(shown)) lost.push(["page", state().get("page"), `no page of this table; shown is ${shown}`]);
    return lost;
  }

  return { sorted, showHead, paged, lostOf };
})();
