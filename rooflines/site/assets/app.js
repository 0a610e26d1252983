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
  const [data, loading] = [new Map(), {}];

  /** Called by data files; a promise has the data. */
  function put(name, text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const inflated = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    data.set(name, new Response(inflated).json());
  }

  /** The data called `name`, from the script `file`, which is loaded once. */
  function load(name, file) {
    loading[name] ??= new Promise((resolve, reject) => {
      const onload = () => resolve(data.get(name));
      const onerror = () => {
        delete loading[name];
        reject(new Error(`${file} is missing from this folder`));
      };
      document.head.append(make("script", { src: file, onload, onerror }));
    });
    return loading[name];
  }

  /** An element with attributes and children, strings become text. `tag` may be an element.

      The policy of the page allows a style as a property, not as an attribute. */
  function make(tag, attributes = {}, ...children) {
    const element = typeof tag === "string" ? document.createElement(tag) : tag;
    for (const [name, value] of Object.entries(attributes)) {
      if (value === false || value == null) continue;
      if (name === "style") element.style.cssText = value;
      else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children);
    return element;
  }

  /** Put children into an element; what had the focus there has it again, by its `data-key`.

      If that has gone, the first that has a key takes it. */
  function refill(into, ...children) {
    const focused = into.contains(document.activeElement) && document.activeElement.dataset.key;
    into.replaceChildren(...children);
    const again = focused && into.querySelector(`[data-key="${CSS.escape(focused)}"]`);
    if (focused) (again ?? into.querySelector("[data-key]"))?.focus();
  }

  /** Give a menu its options, [value, text, disabled]. */
  function fill(select, options, value) {
    select.replaceChildren(...options.map(([option, text, disabled]) =>
      make("option", { value: option, disabled }, text)));
    select.value = value;
  }

  /** A labelled menu that sets `name` of the state, with options as of `fill`. */
  function menu(name, label, options, value) {
    const onchange = () => go({ [name]: select.value });
    const select = make("select", { "data-key": name, onchange });
    fill(select, options, value);
    return make("label", { class: "control" }, make("span", {}, label), select);
  }

  /** Head and body of a table: cells of the head, or their texts, and rows. */
  function headed(heads, rows) {
    const cells = heads.map((head) =>
      (typeof head === "string" ? make("th", { scope: "col" }, head) : head));
    return [make("thead", {}, make("tr", {}, ...cells)), make("tbody", {}, ...rows)];
  }

  /** Rows in the order that the state asks for, and heads of `columns` that sort: up, down, not.

      A column has a `name`, a `head`, a `meaning`, a class `kind`, and the `value` of a row. */
  function sorted(rows, columns, lost) {
    const sort = state().get("sort") ?? "";
    const name = sort.replace(/^-/, "");
    const by = columns.find((column) => column.name === name);
    if (sort && !by) lost.push(["sort", sort, "no column of this table"]);
    const compared = (a, b) => NUMBERS.compare(by.value(a), by.value(b), sort !== name);
    const heads = columns.map((column) => {
      const order = column !== by ? null : sort === name ? "ascending" : "descending";
      const next = { null: column.name, ascending: `-${name}`, descending: null }[order];
      const onclick = () => go({ sort: next });
      return make("th", { scope: "col", "aria-sort": order, class: column.kind }, make("button", {
        type: "button", "data-key": column.name, title: column.meaning, onclick,
      }, column.head));
    });
    return [by ? [...rows].sort(compared) : rows, heads];
  }

  /** The state in the address after #, without empty values; of a very long one nothing. */
  function state() {
    const written = location.hash.length > LONGEST ? "" : location.hash.slice(1);
    return new URLSearchParams([...new URLSearchParams(written)].filter(([, value]) => value));
  }

  /** The address of a changed state; `null` or no text removes a name. */
  function addressOf(changes) {
    const next = state();
    for (const [name, value] of Object.entries(changes)) next.set(name, value ?? "");
    const text = new URLSearchParams([...next].filter(([, value]) => value)).toString();
    return `#${text.replace(/%(2C|3A|2F)/g, decodeURIComponent)}`;
  }

  /** Change the state. A step back from it is in the history. */
  function go(changes, step = false) {
    location[step ? "assign" : "replace"](addressOf(changes));
  }

  let waiting = 0;
  /** Act at most every 60 ms: browsers limit how often the address may change. */
  function soon(act) {
    waiting ||= setTimeout(() => { waiting = 0; act(); }, 60);
  }

  /** Report what the address asks for that is not there, such as a link to an older site does.

      `names` are those that the page uses; `lost` are values that it does not have, as [name,
      value, what is shown]. */
  function tellUnknown(names, lost) {
    const all = [...state(), ...(location.hash.length > LONGEST ? [[location.hash, ""]] : [])]
      .filter(([name]) => !names.includes(name))
      .map(([name, value]) => [name, value, value ? "no choice of this page" : "too long"]);
    all.push(...lost);
    const cut = (text) => (text.length > MOST_LETTERS ? `${text.slice(0, MOST_LETTERS)}…` : text);
    const lines = all.slice(0, MOST_LINES).map(([name, value, said]) =>
      `${[name, value].filter(Boolean).map(cut).join(" ")}: ${said}`);
    if (all.length > MOST_LINES) lines.push(`and ${all.length - MOST_LINES} more`);
    $("unknown").hidden = !lines.length;
    $("unknown").replaceChildren(make("p", {}, "Some settings of this link are unavailable:"),
      make("ul", {}, ...lines.map((text) => make("li", {}, text))));
  }

  /** Call `apply` now, and whenever the address changes. */
  function follow(apply) {
    addEventListener("hashchange", apply);
    apply();
  }

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

  // The address after # is the state, so a skip link must not put its target there.
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    $("main").focus();
  });

  return {
    $, put, load, make, refill, fill, menu, headed, sorted, state, go, soon, tellUnknown, addressOf,
    follow, save, csv, copy,
  };
})();
