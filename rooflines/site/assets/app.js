"use strict";
/* Functions that all pages share: data files, state in the address, elements, files to save.

   A page opened from a folder may not fetch anything, but it may load scripts: every data file is a
   script that calls ROOFLINES.put(name, text), with its data as JSON, compressed with zlib, in
   Base64. Text from data only ever becomes text, never markup. */

const ROOFLINES = (() => {
  const MAX_ADDRESS_LENGTH = 4096; // characters
  const MAX_NOTICE_LETTERS = 60; // of a name or a value
  const MAX_NOTICE_LINES = 12;
  const NAVIGATION_DELAY = 60; // browsers limit how often the address may change [ms]
  const CONFIRMATION_TIME = 1500; // time a button says what it did [ms]
  const $ = (id) => document.getElementById(id);

  // ------------------------------------------------------------------------------------- data

  const [datasets, loading] = [new Map(), {}];

  /** Store a promise of data; data files call it. */
  function put(name, text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const inflated = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    datasets.set(name, new Response(inflated).json());
  }

  /** Data called `name` from the script `file`, which is loaded once. */
  function load(name, file) {
    loading[name] ??= new Promise((resolve, reject) => {
      const onload = () => resolve(datasets.get(name));
      const onerror = () => {
        delete loading[name];
        reject(new Error(`${file} is missing from this folder`));
      };
      document.head.append(make("script", { src: file, onload, onerror }));
    });
    return loading[name];
  }

  // --------------------------------------------------------------------------------- elements

  /** Make an element with attributes and children; strings become text. `tag` may be an element.

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

  /** Replace an element's children; the focus returns to the element with the same `data-key`.

      If that has gone, the first element with a key takes the focus. */
  function refill(parent, ...children) {
    const focusedKey =
      parent.contains(document.activeElement) && document.activeElement.dataset.key;
    parent.replaceChildren(...children);
    if (!focusedKey) return;
    const same = parent.querySelector(`[data-key="${CSS.escape(focusedKey)}"]`);
    (same ?? parent.querySelector("[data-key]"))?.focus();
  }

  /** Fill a menu or a list with options, { value, text, disabled }. */
  function fillMenu(select, options, value) {
    select.replaceChildren(...options.map(({ value: option, text, disabled }) =>
      make("option", { value: option, disabled }, text)));
    select.value = value;
  }

  /** Make a labelled menu that sets `name` of the state, with options as in `fillMenu`. */
  function makeMenu(name, label, options, value) {
    const onchange = () => navigate({ [name]: select.value });
    const select = make("select", { "data-key": name, onchange });
    fillMenu(select, options, value);
    return make("label", { class: "control" }, make("span", {}, label), select);
  }

  /** Head and body of a table, from head cells, or their texts, and rows. */
  function tableParts(heads, rows) {
    const cells = heads.map((head) =>
      (typeof head === "string" ? make("th", { scope: "col" }, head) : head));
    return [make("thead", {}, make("tr", {}, ...cells)), make("tbody", {}, ...rows)];
  }

  /** Direction in which the state sorts by a column: ascending, descending, or null. */
  function sortDirection(sort, name) {
    if (sort === name) return "ascending";
    return sort === `-${name}` ? "descending" : null;
  }

  /** Column head whose button sorts by it: ascending, then descending, then not at all. */
  function sortingHead({ name, head, meaning, kind }, sort) {
    const direction = sortDirection(sort, name);
    const next = { null: name, ascending: `-${name}`, descending: null }[direction];
    const onclick = () => navigate({ sort: next });
    const button = { type: "button", "data-key": name, title: meaning, onclick };
    return make("th", { scope: "col", "aria-sort": direction, class: kind },
      make("button", button, head));
  }

  /** Rows in the order that the state asks for, and `heads` of columns that sort.

      A column has a `name`, a `head`, a `meaning`, a class `kind`, and the `value` of a row. */
  function sortRows(rows, columns, unavailable) {
    const sort = readAddress().get("sort") ?? "";
    const sortColumn = columns.find(({ name }) => sortDirection(sort, name));
    if (sort && !sortColumn) {
      unavailable.push({ name: "sort", value: sort, reason: "no column of this table" });
    }
    const isDescending = sort.startsWith("-");
    const order = (a, b) =>
      NUMBERS.compare(sortColumn.value(a), sortColumn.value(b), isDescending);
    const heads = columns.map((column) => sortingHead(column, sort));
    return { rows: sortColumn ? [...rows].sort(order) : rows, heads };
  }

  // ---------------------------------------------------------------------------------- address

  /** State in the address after #, as URLSearchParams without empty values: without one the page's
      opening state, which is about the run; a very long address has none. */
  function readAddress() {
    const { hash } = location;
    const address = hash.length > MAX_ADDRESS_LENGTH ? "" : hash.slice(1);
    const text = hash ? address : document.body.dataset.opening ?? "";
    return new URLSearchParams([...new URLSearchParams(text)].filter(([, value]) => value));
  }

  /** Address of a changed state; null or no text removes a name. */
  function addressWith(changes) {
    const next = readAddress();
    for (const [name, value] of Object.entries(changes)) next.set(name, value ?? "");
    const text = new URLSearchParams([...next].filter(([, value]) => value)).toString();
    return `#${text.replace(/%(2C|3A|2F)/g, decodeURIComponent)}`;
  }

  /** Change the state; with `inHistory` the back button undoes it. */
  function navigate(changes, inHistory = false) {
    location[inHistory ? "assign" : "replace"](addressWith(changes));
  }

  let timer = 0;
  /** Call a function after a delay, once for all calls before. */
  function throttle(action) {
    timer ||= setTimeout(() => { timer = 0; action(); }, NAVIGATION_DELAY);
  }

  /** Report settings in the address that the page does not have, as in a link to another version.

      `names` are those that the page has; `unavailable` are refused values, { name, value,
      reason }. */
  function reportUnavailable(names, unavailable) {
    const unknown = [...readAddress()].filter(([name]) => !names.includes(name))
      .map(([name, value]) => ({ name, value, reason: "no choice of this page" }));
    if (location.hash.length > MAX_ADDRESS_LENGTH) {
      unknown.push({ name: location.hash, value: "", reason: "too long" });
    }
    const settings = [...unknown, ...unavailable];
    const abridge = (text) =>
      (text.length > MAX_NOTICE_LETTERS ? `${text.slice(0, MAX_NOTICE_LETTERS)}…` : text);
    const lines = settings.slice(0, MAX_NOTICE_LINES).map(({ name, value, reason }) =>
      `${[name, value].filter(Boolean).map(abridge).join(" ")}: ${reason}`);
    if (settings.length > MAX_NOTICE_LINES) {
      lines.push(`and ${settings.length - MAX_NOTICE_LINES} more`);
    }
    $("unknown").hidden = !lines.length;
    $("unknown").replaceChildren(make("p", {}, "Some settings of this link are unavailable:"),
      make("ul", {}, ...lines.map((text) => make("li", {}, text))));
  }

  /** Call a function now, and whenever the address changes. */
  function followAddress(action) {
    addEventListener("hashchange", action);
    action();
  }

  // ------------------------------------------------------------------------------------ files

  /** Save a text of a type, or the content of an address, as a file. */
  function save(name, content, type = null) {
    const href = type ? URL.createObjectURL(new Blob([content], { type })) : content;
    make("a", { href, download: name }).click();
    if (type) setTimeout(() => URL.revokeObjectURL(href), CONFIRMATION_TIME);
  }

  /** Rows as CSV; text that a spreadsheet would run as a formula gets an apostrophe. */
  function csv(table, formulaPattern) {
    const formula = new RegExp(formulaPattern, "g");
    const cell = (value) => {
      const plain =
        typeof value === "string" ? value.replace(formula, "$1'$2") : String(value ?? "");
      return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
    };
    return table.map((row) => `${row.map(cell).join()}\n`).join("");
  }

  /** Copy a text; the button says so. A page opened from a folder may be refused the clipboard. */
  async function copy(text, button) {
    const label = button.textContent;
    const isCopied = await navigator.clipboard?.writeText(text).then(() => true, () => false);
    button.textContent = isCopied ? "Copied" : "Select and press Ctrl+C";
    setTimeout(() => { button.textContent = label; }, CONFIRMATION_TIME);
  }

  // The address after # is the state, so a skip link must not put its target there.
  for (const link of document.querySelectorAll(".skip")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      document.querySelector(link.getAttribute("href")).focus();
    });
  }

  return {
    $, put, load, make, refill, fillMenu, makeMenu, tableParts, sortRows, readAddress, addressWith,
    navigate, throttle, reportUnavailable, followAddress, save, csv, copy,
  };
})();
