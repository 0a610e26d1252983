"use strict";
/* What all pages share: data files, the state in the address, and what is taken along.

   A page opened from a folder may not fetch anything, but it may load scripts: every data file is a
   script that calls ROOFLINES.put(name, text), with its data as JSON, compressed with zlib, in
   Base64. Text from data only ever becomes text, never markup. */

const ROOFLINES = (() => {
  const LONGEST = 4096; // characters of a state
  const MOST_LETTERS = 60; // of a name or a value in a notice
  const MOST_LINES = 12; // of a notice
  const SHORT_WAIT = 1500; // how long a button says what it did [ms]
  const $ = (id) => document.getElementById(id);
  const data = new Map();
  const loading = new Map();

  /** Called by data files; a promise has the data. */
  function put(name, text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const inflated = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    data.set(name, new Response(inflated).json());
  }

  /** The data called `name`, from the script `file`, which is loaded once. */
  function load(name, file) {
    if (data.has(name)) return Promise.resolve(data.get(name));
    if (!loading.has(name)) {
      loading.set(name, new Promise((resolve, reject) => {
        const script = document.createElement("script");
        script.src = file;
        script.onload = () => resolve(data.get(name));
        script.onerror = () => {
          loading.delete(name);
          reject(new Error(`${file} is missing from this folder`));
        };
        document.head.append(script);
      }));
    }
    return loading.get(name);
  }

  /** An element with attributes and children; strings become text. */
  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value === true) element.setAttribute(name, "");
      else if (value !== false && value != null) element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  }

  /** Give a menu its options, [value, text, disabled], which are made anew only if they differ. */
  function fill(select, options, value) {
    const key = JSON.stringify(options);
    if (select.dataset.key !== key) {
      select.replaceChildren(...options.map(([option, text, disabled]) =>
        make("option", { value: option, disabled }, text)));
      select.dataset.key = key;
    }
    select.value = value;
  }

  /** A labelled menu, called `name`, with options as of `fill`. */
  function menu(name, label, options, value, onchange) {
    const select = make("select", { onchange: () => onchange(select.value) });
    fill(select, options, value);
    const attributes = { class: "control", "data-param": name };
    return make("label", attributes, make("span", {}, label), select);
  }

  /** Head and body of a table: cells of the head, or their texts, and rows. */
  function headed(heads, rows) {
    const cells = heads.map((head) =>
      (typeof head === "string" ? make("th", { scope: "col" }, head) : head));
    return [make("thead", {}, make("tr", {}, ...cells)), make("tbody", {}, ...rows)];
  }

  /** Heads of columns, [name, text, meaning, class], whose buttons sort by them: up, down, not.

      `sort` is the present order: the name of a column, after "-" downward. */
  function sortHeads(sort, columns) {
    const focused = document.activeElement?.dataset?.sort;
    return columns.map(([name, text, title, kind]) => {
      const [up, down] = [sort === name, sort === `-${name}`];
      const order = up ? "ascending" : down ? "descending" : null;
      const onclick = () => go({ sort: up ? `-${name}` : down ? null : name });
      const button = make("button", { type: "button", "data-sort": name, title, onclick }, text);
      if (name === focused) queueMicrotask(() => button.focus());
      return make("th", { scope: "col", "aria-sort": order, class: kind }, button);
    });
  }

  /** Call `take` with what was typed into or chosen for an input.

      Firefox reports no change when Enter closes a list. */
  function onEntered(input, take) {
    const entered = () => take(input.value.trim());
    input.addEventListener("change", entered);
    input.addEventListener("keydown", (event) => { if (event.key === "Enter") entered(); });
    input.addEventListener("input", (event) => {
      if (event.inputType === "insertReplacementText") entered();
    });
  }

  /** What comes after # in the address, as [name, value]; of a very long one nothing. */
  const written = () =>
    (location.hash.length > LONGEST ? [] : [...new URLSearchParams(location.hash.slice(1))]);

  /** The state in the address: the first value of each name, without empty ones. */
  function state() {
    const used = new URLSearchParams();
    for (const [name, value] of written()) {
      if (value && !used.has(name)) used.set(name, value);
    }
    return used;
  }

  /** Change the state; `null` removes a name. A step to go back from is in the history. */
  function go(changes, step = false) {
    const next = state();
    for (const [name, value] of Object.entries(changes)) {
      if (value === null) next.delete(name);
      else next.set(name, value);
    }
    const text = next.toString()
      .replaceAll("%2C", ",").replaceAll("%3A", ":").replaceAll("%2F", "/");
    if (step) location.hash = text;
    else location.replace(`#${text}`);
  }

  let waiting = 0;
  /** Act at most every 60 ms: browsers limit how often the address may change. */
  function soon(act) {
    waiting ||= setTimeout(() => { waiting = 0; act(); }, 60);
  }

  /** Names and values of the address that no page uses, given those that this page does. */
  function unused(names) {
    const { length } = location.hash;
    if (length > LONGEST) {
      return [[`${length.toLocaleString("en-US")} characters`, "", "too long; none of it is used"]];
    }
    const seen = new Set();
    return written().flatMap(([name, value]) => {
      if (!names.has(name)) return [[name, value, "no choice of this page"]];
      if (!value) return [[name, value, "empty"]];
      if (seen.has(name)) return [[name, value, "given twice; the first is used"]];
      seen.add(name);
      return [];
    });
  }

  /** Report what the address asks for that is not there, such as a link to an older site does.

      `names` are those that the page uses; `lost` are values that it does not have, as [name,
      value, what is shown]. */
  function tellUnknown(names, lost) {
    const box = $("unknown");
    const all = [...unused(new Set(names)), ...lost];
    const cut = (text) => (text.length > MOST_LETTERS ? `${text.slice(0, MOST_LETTERS)}…` : text);
    const asked = (pair) => pair.filter(Boolean).map(cut).join(" ") || "=";
    const lines = all.slice(0, MOST_LINES).map(([name, value, said]) =>
      `${asked([name, value])}: ${said}`);
    const more = all.length - MOST_LINES;
    if (more > 0) lines.push(`and ${more.toLocaleString("en-US")} more`);
    box.hidden = !lines.length;
    const items = lines.map((text) => make("li", {}, text));
    const head = make("p", {}, "This link asks for what is not here:");
    box.replaceChildren(head, make("ul", {}, ...items));
  }

  /** Call `apply` now, and whenever the address changes. */
  function follow(apply) {
    addEventListener("hashchange", apply);
    apply();
  }

  // ---------------------------------------------------------------- taking along

  /** Save text, or what an address has, as a file. */
  function save(name, content, type = null) {
    const href = type ? URL.createObjectURL(new Blob([content], { type })) : content;
    make("a", { href, download: name }).click();
    if (type) setTimeout(() => URL.revokeObjectURL(href), SHORT_WAIT);
  }

  /** Rows as CSV; text that a spreadsheet would run as a `formula` gets an apostrophe. */
  function csv(table, formula) {
    const cell = (value) => {
      const plain = typeof value === "string"
        ? value.replace(new RegExp(formula, "g"), "$1'$2") : String(value ?? "");
      return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
    };
    return table.map((row) => `${row.map(cell).join()}\n`).join("");
  }

  /** Copy a text; the button says so. A page opened from a folder may be refused the clipboard. */
  async function copy(text, button) {
    const before = button.textContent;
    const done = await navigator.clipboard?.writeText(text).then(() => true, () => false);
    button.textContent = done ? "Copied" : "Select and press Ctrl+C";
    setTimeout(() => { button.textContent = before; }, SHORT_WAIT);
  }

  document.addEventListener("DOMContentLoaded", () => {
    document.documentElement.classList.add("scripted");
    // The address after # is the state, so a skip link must not put its target there.
    document.querySelector(".skip").addEventListener("click", (event) => {
      event.preventDefault();
      $("main").focus();
    });
  });

  return {
    $, put, load, make, fill, menu, headed, sortHeads, onEntered, state, go, soon, tellUnknown,
    follow, save, csv, copy,
  };
})();
