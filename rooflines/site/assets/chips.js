"use strict";
/* The page of the chips: the filter, the order of the summary, two side by side, and links to one chip or one source. */

document.addEventListener("DOMContentLoaded", async () => {
  const { load, make, onEntered, state, go, tellUnknown, follow } = ROOFLINES;
  const chips = await load("chips", "data/chips.js");
  const $ = (id) => document.getElementById(id);
  const found = [...document.querySelectorAll("[data-find]")];
  const rows = [...document.querySelectorAll("#summary tbody tr")];
  const heads = [...document.querySelectorAll("#summary th button")];
  const known = (chip) => Object.hasOwn(chips, chip ?? "");
  const order = () => (state().get("sort") ?? "").split("."); // the column that sorts, and the way: up or down
  const sorts = (place) => /^\d$/.test(place) && Number(place) < heads.length;
  const compared = document.querySelector("#compared table");
  let last = "";

  function sortBy(place, way) {
    const sign = way === "down" ? -1 : 1;
    const key = (row) => row.cells[place].dataset.value ?? row.cells[place].textContent;
    const order = place < 0 ? rows : [...rows].sort((a, b) => {
      const [x, y] = [key(a), key(b)];
      if (x === "" || y === "") return (x === "") - (y === "");
      return sign * (Number.isNaN(Number(x)) ? x.localeCompare(y, "en", { numeric: true }) : Number(x) - Number(y));
    });
    $("summary").tBodies[0].append(...order);
    heads.forEach((head, at) => head.parentElement.setAttribute("aria-sort", at !== place ? "none" : way === "down" ? "descending" : "ascending"));
  }
  heads.forEach((head, place) => head.addEventListener("click", () => {
    const [by, way] = order();
    go({ sort: by !== String(place) ? `${place}.up` : way === "up" ? `${place}.down` : null });
  }));

  /** The numbers of two chips; what one of them lacks comes last. */
  function compare() {
    const [left, right] = ["left", "right"].map((side) => (known(state().get(side)) ? chips[state().get(side)] : null));
    const both = left !== null && right !== null;
    $("compared").hidden = $("both").hidden = !both;
    if (!both) return;
    $("both").hash = `chips=${state().get("left")},${state().get("right")}`;
    [left, right].forEach((chip, i) => { compared.tHead.rows[0].cells[i + 1].textContent = chip.name; });
    const all = [...new Set([...Object.keys(left.numbers), ...Object.keys(right.numbers)])];
    const shared = (path) => path in left.numbers && path in right.numbers;
    const paths = [...all.filter(shared), ...all.filter((path) => !shared(path))];
    compared.tBodies[0].replaceChildren(...paths.map((path) => {
      const pair = [left, right].map((chip) => chip.numbers[path] ?? null);
      const [label] = pair.find((one) => one !== null);
      const [first, second] = pair.map((one) => one?.[1]);
      const factor = first && second !== undefined ? (second / first).toLocaleString("en-US", { maximumSignificantDigits: 4 }) : "–";
      return make("tr", {}, make("th", { scope: "row" }, label),
        ...pair.map((one) => make("td", { class: "number" }, one ? one[2] : "–")), make("td", { class: "number" }, factor));
    }));
  }

  function unknown() {
    const lost = [];
    for (const name of ["left", "right"]) if (state().has(name) && !known(state().get(name))) lost.push(["chip", state().get(name), "not in the catalogue"]);
    for (const name of ["chip", "source"]) {
      const there = [...document.querySelectorAll(`[data-${name}]`)].some((one) => one.dataset[name] === state().get(name));
      const why = name === "chip" && known(state().get(name)) ? "in the catalogue, but not among the chips of this site" : "unknown";
      if (state().has(name) && !there) lost.push([name, state().get(name), why]);
    }
    const [place, way] = order();
    if (state().has("sort") && !sorts(place)) lost.push(["sort", state().get("sort"), "no column of this table"]);
    else if (state().has("sort") && !["up", "down"].includes(way)) lost.push(["sort", state().get("sort"), "neither up nor down; shown is up"]);
    return lost;
  }

  function apply() {
    tellUnknown(["left", "right", "source", "find", "sort"], unknown());
    compare();
    for (const side of ["left", "right"]) if (document.activeElement !== $(side)) $(side).value = state().get(side) ?? "";
    const words = (state().get("find") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
    for (const element of found) element.hidden = !words.every((word) => element.dataset.find.includes(word));
    const [place, way] = order();
    sortBy(sorts(place) ? Number(place) : -1, way);
    $("count").textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} chips`;
    if (document.activeElement !== $("find")) $("find").value = state().get("find") ?? "";
    const asked = state().has("source") ? `source ${state().get("source")}` : `chip ${state().get("chip") ?? ""}`;
    if (asked === last) return;
    const chip = [...document.querySelectorAll("details[data-chip]")].find((one) => asked === `chip ${one.dataset.chip}`);
    const source = [...document.querySelectorAll("[data-source]")].find((one) => asked === `source ${one.dataset.source}`);
    if (chip) chip.open = true;
    // Coming from another page with a chip chosen opens that chip and stays at the top; a click here goes there.
    if (last || source) (chip?.querySelector("summary") ?? source)?.scrollIntoView({ block: "center" });
    (source ?? (last ? chip?.querySelector("summary") : null))?.focus({ preventScroll: true });
    last = asked;
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#chip='], a[href^='#source=']");
    if (!link) return;
    event.preventDefault();
    const [name, value] = [...new URLSearchParams(link.hash.slice(1))][0];
    last ||= "before";
    if (asked(name, value)) last = "again"; // a second click on the same link goes there again
    go({ source: null, [name]: value }, true);
    if (last === "again") apply();
  });
  const asked = (name, value) => state().get(name) === value;
  $("find").addEventListener("input", () => go({ find: $("find").value || null }));
  $("chip-list").replaceChildren(...Object.entries(chips).map(([id, { name }]) => make("option", { value: id }, name)));
  for (const side of ["left", "right"]) onEntered($(side), (text) => go({ [side]: text || null }));
  follow(apply);
  document.querySelector(".compare").dataset.ready = "";
});
