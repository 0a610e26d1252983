"use strict";
/* The page of the chips: the filter, the order of the summary, and links to one chip or one source. */

document.addEventListener("DOMContentLoaded", () => {
  const { state, go, follow } = ROOFLINES;
  const $ = (id) => document.getElementById(id);
  const found = [...document.querySelectorAll("[data-find]")];
  const rows = [...document.querySelectorAll("#summary tbody tr")];
  const heads = [...document.querySelectorAll("#summary th button")];
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
    const [by, way] = (state().get("sort") ?? "").split(".");
    go({ sort: by !== String(place) ? `${place}.up` : way === "up" ? `${place}.down` : null });
  }));

  function apply() {
    const words = (state().get("find") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
    for (const element of found) element.hidden = !words.every((word) => element.dataset.find.includes(word));
    const [place, way] = (state().get("sort") ?? "-1.up").split(".");
    sortBy(Number(place) < heads.length ? Number(place) : -1, way);
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
  follow(apply);
});
