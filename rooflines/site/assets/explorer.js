"use strict";
/* The page: its controls, and what follows from the state in the address.

   What has a name of the state in the form, or below it, shows that part of the state and sets it;
   what is of one subject has it as `data-of`. */

const EXPLORER = (() => {
  const { significant, count, several } = NUMBERS;
  const {
    MATMUL, MODEL, CLEARS, NAMES, OWN, TABS, MOST_CHIPS, read, numberOf, sheetOf, altered,
    answering, rowOf, commandOf,
  } = STATE;
  const { $, make, fill, headed, state, go, follow, load, soon, tellUnknown } = ROOFLINES;
  const { onEntered, save, csv, copy } = ROOFLINES;
  const PER_OCTAVE = 4; // steps of a slider in a factor of two
  const QUIET = 700; // after the last change until the answer is read out [ms]
  const SPLITS = {
    none: "none", "contracting/all-reduce": "rows of w, all-reduce",
    "contracting/reduce-scatter": "rows of w, reduce-scatter", column: "columns of w",
    "column/gather-x": "columns of w, gather x", batch: "tokens",
    "batch/gather-w": "tokens, gather w (FSDP)",
  };
  let [data, shownTable, told] = [null, [], 0];
  const now = () => read(state(), data);

  const toggle = (chip) => {
    const { chips } = now();
    const next = chips.includes(chip) ? chips.filter((one) => one !== chip) : [...chips, chip];
    go({ chips: next.slice(-MOST_CHIPS).map(({ id }) => id).join(), of: null }, true);
  };

  // ---------------------------------------------------------------- controls

  /** The options of menus, as of `fill`, and what is chosen. */
  function menus(of) {
    const { steps, works } = data;
    const same = (name) => [name, name];
    const plain = (name) => !of.model.experts && steps.formats[name].includes("experts=");
    const able = ({ compute }) => of.chips.some((chip) => chip.peaks[compute]);
    return {
      is: [[MATMUL, MODEL].map(same), of.subject],
      model: [steps.models.map(({ id, name }) => [id, name]), of.model.id],
      phase: [steps.phases.map(same), of.phase],
      format: [Object.keys(steps.formats).map((name) => [
        name, name === of.model.format ? `${name} (published)` : name, plain(name)]), of.format],
      split: [steps.splits.map(({ name, chips, dp }) => [
        name, `${name}, ${several(chips, "chip")}`, dp > 1 && !of.model.experts]), of.split.name],
      dtypes: [data.dtypes.map((one) => [one.name, one.name, !able(one)]), of.dtypes.name],
      sharding: [Object.keys(works).map((name) => [name, SPLITS[name] ?? name]), of.sharding],
      seller: [of.sellers.map(same), of.seller ?? ""],
      of: [of.chips.map(({ id, short }) => [id, short]), of.of.id],
    };
  }

  function showForm(of) {
    for (const box of document.querySelectorAll("[data-of]")) {
      box.hidden = box.dataset.of !== of.subject;
    }
    const listed = menus(of);
    for (const menu of document.querySelectorAll("select")) fill(menu, ...listed[menu.name]);
    for (const input of document.querySelectorAll("#choices input[name]")) {
      const value = of[input.name];
      if (input.type === "radio") input.checked = input.value === value;
      else if (input !== document.activeElement) {
        input.value = input.type === "number" ? value : Math.round(Math.log2(value) * PER_OCTAVE);
      }
      if (input.type === "range") input.setAttribute("aria-valuetext", count(value));
    }
    $("n").disabled = of.sharding === "none";
    $("seller").disabled = !of.sellers.length;
    const { model, dtypes, format, B, D, F, S, chips } = of; // in a line where room is little
    const what = of.subject === MODEL
      ? `${model.name}, ${format}, B = ${count(B)}, S = ${count(S)}`
      : `matmul ${count(B)} x ${count(D)} x ${count(F)}, ${dtypes.name}`;
    $("asked").textContent = `${what}, ${several(chips.length, "chip")}`;
  }

  function showChosen(of) {
    $("chosen").replaceChildren(...of.chips.map((chip) => {
      const onclick = () => { toggle(chip); $("add").focus(); };
      const [disabled, label] = [of.chips.length === 1, `Remove ${chip.short}`];
      return make("li", { style: PICTURES.styleOf(chip) }, PICTURES.swatch(), chip.short,
        make("button", { type: "button", "aria-label": label, disabled, onclick }, "×"));
    }));
  }

  /** A field with a list that typing filters; `options` gives [value, text, short name].

      What is entered chooses the option of that short name, else the first with all its words. */
  function searched(input, options, take, text = () => "") {
    input.addEventListener("focus", () => {
      fill(input.list, options().map(([, name]) => [name, ""]), "");
      input.value = "";
    });
    input.addEventListener("blur", () => { input.value = text(); });
    onEntered(input, (typed) => {
      const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
      const has = (one) => words.every((word) => one.join(" ").toLowerCase().includes(word));
      const found = options().find(([, , short]) => short === words.join(" "))
        ?? (words.length ? options().find(has) : null);
      input.value = "";
      if (found) take(found[0]);
    });
    return () => { if (document.activeElement !== input) input.value = text(); };
  }

  // ---------------------------------------------------------------- own numbers

  /** Take what is typed into a field of `own` numbers; what is no number is the data sheet's. */
  function setOwn(input) {
    const { own, unit } = input.dataset;
    const [value, next] = [numberOf(input.value.trim()), { ...now().own }];
    if (value === null) delete next[own];
    else next[own] = Number((value * unit).toPrecision(12));
    input.value = value === null ? "" : input.value;
    go({ own: Object.entries(next).map((one) => one.join(":")).join() }, true);
  }

  function showOwn(of) {
    const number = Object.keys(of.own).length;
    $("own-count").textContent = number ? ` · ${several(number, "own number")}` : "";
    $("own-said").hidden = !of.chips.some((chip) => altered(of, chip));
    if ($("own-table").contains(document.activeElement)) return; // it has what is typed there
    const compute = of.subject === MODEL ? data.steps.compute[of.format] : of.dtypes.compute;
    const heads = Object.entries(OWN).map(([name, [label, , unit]]) => make("th", { scope: "col" },
      `${label}${name === "peak" ? `, ${compute}` : ""}`, make("small", {}, ` ${unit}`)));
    const rows = of.chips.map((chip) => {
      const sheet = sheetOf(of, chip, compute);
      const inputs = Object.entries(OWN).map(([name, [label, unit, text]]) => {
        const key = `${chip.id}.${name}`;
        return make("td", {}, make("input", {
          type: "text", inputmode: "decimal", "data-own": key, "data-unit": unit,
          "aria-label": `${label} of ${chip.short}, ${text}`,
          placeholder: sheet[name] ? significant(sheet[name] / unit, 4) : "–",
          value: of.own[key] ? Number((of.own[key] / unit).toPrecision(12)) : "",
        }));
      });
      return make("tr", {}, make("th", { scope: "row" }, chip.short), ...inputs);
    });
    $("own-table").replaceChildren(...headed(["chip", ...heads], rows));
  }

  // ---------------------------------------------------------------- all of it

  function showTabs(of) {
    const focused = document.activeElement?.getAttribute("role") === "tab";
    $("tabs").replaceChildren(...TABS[of.subject].map(([name, text]) => make("button", {
      type: "button", role: "tab", id: `tab-${name}`, "aria-controls": "panel",
      "aria-selected": String(name === of.tab), tabindex: name === of.tab ? 0 : -1,
      onclick: () => go({ tab: name }, true),
    }, text)));
    if (focused) $(`tab-${of.tab}`).focus();
    const [content, one] = TABLES.CONTENT[of.tab];
    $("panel").setAttribute("aria-labelledby", `tab-${of.tab}`);
    $("panel").replaceChildren(content(of));
    $("of").hidden = of.chips.length < 2 || (!one && of.subject === MATMUL);
  }

  function showVerdict(of, rows) {
    const { off, lead, lines } = SENTENCES.verdict(of, rows);
    const parts = { off, lead, rest: lines.join(" ") };
    for (const [id, text] of Object.entries(parts)) $(id).textContent = text;
    clearTimeout(told);
    told = setTimeout(() => { $("said").textContent = Object.values(parts).join(" "); }, QUIET);
    document.title = `${(lead || off).split(". ")[0]} – rooflines`;
  }

  let layerBox = () => {};
  async function show() {
    const of = now();
    if (of.subject === MODEL && !of.model.steps) {
      const index = data.steps.models.indexOf(of.model);
      Object.assign(of.model, await load(`steps-${index}`, `data/steps-${index}.js`));
      return show();
    }
    const rows = of.chips.map((chip) => rowOf(of, chip));
    of.of ??= answering(rows).chip;
    const others = of.all
      ? data.chips.filter((chip) => !chip.variant && !of.chips.includes(chip)) : [];
    const more = others.map((chip) => rowOf(of, chip)).filter(({ time }) => time);
    showForm(of);
    showChosen(of);
    layerBox();
    showVerdict(of, rows);
    PICTURES.draw(of, rows, pick);
    shownTable = TABLES.showChips($("chips-table"), of, [...rows, ...more], toggle);
    tellUnknown(NAMES, of.lost);
    $("prices").textContent = of.seller ? `Prices: ${of.seller}, on demand.` : "";
    $("all").textContent = of.all ? "Chosen chips only" : "All chips";
    showOwn(of);
    showTabs(of);
    $("command").textContent = commandOf(of, answering(rows).chip);
    document.body.dataset.drawn = location.hash;
    return null;
  }
  const pick = (changes) => soon(() => go(changes));

  function build() {
    const text = ([, label, D, F]) => `${label}  ${count(D)} x ${count(F)}`;
    layerBox = searched($("layer"), () => data.layers.map((one, i) => [i, text(one)]),
      (i) => go({ D: data.layers[i][2], F: data.layers[i][3], shape: null }, true), () => {
        const { D, F } = now();
        const found = data.layers.find((one) => one[2] === D && one[3] === F);
        return found ? text(found) : "own sizes";
      });
    const addable = () => data.chips.filter((chip) => !now().chips.includes(chip));
    const named = ({ id, short, name, vendor, usual }) =>
      [id, `${short} · ${vendor}`, usual, name];
    searched($("add"), () => addable().map(named),
      (id) => toggle(data.chips.find((chip) => chip.id === id)));
    const taken = ({ target }) => {
      const { name, type, value } = target;
      if (target.dataset.own) setOwn(target);
      else if (name && type !== "range") go({ [name]: value, ...CLEARS[name] }, type !== "number");
    };
    $("main").addEventListener("change", taken);
    $("main").addEventListener("keydown", (event) => { if (event.key === "Enter") taken(event); });
    $("main").addEventListener("input", ({ target: { name, type, value } }) => {
      if (type === "range") pick({ [name]: Math.round(2 ** (value / PER_OCTAVE)) });
    });
    $("choices").addEventListener("submit", (event) => event.preventDefault());
    $("tabs").addEventListener("keydown", ({ key }) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
      const { subject, tab } = now();
      const names = TABS[subject].map(([name]) => name);
      if (step) go({ tab: names.at((names.indexOf(tab) + step) % names.length) });
    });
    const click = (id, act) => $(id).addEventListener("click", ({ target }) => act(target));
    click("all", () => go({ rows: now().all ? null : "all" }, true));
    click("other", () => {
      const { dataset } = $("plots");
      dataset.shown = dataset.shown === "left" ? "right" : "left";
      show();
    });
    click("copy-link", (button) => copy(location.href, button));
    click("copy-command", (button) => copy($("command").textContent, button));
    click("save-csv", () => save("rooflines.csv", csv(shownTable, data.formula), "text/csv"));
    for (const kind of ["png", "svg"]) {
      click(`save-${kind}`, () => pictures().forEach((one, i) =>
        SVG.file(one, kind, (...file) => save(`rooflines-${i + 1}.${kind}`, ...file))));
    }
  }
  const pictures = () => [...document.querySelectorAll(".plot svg")];

  document.addEventListener("DOMContentLoaded", async () => {
    const [plain, steps] = await Promise.all(
      ["explorer", "steps"].map((name) => load(name, `data/${name}.js`)));
    data = { ...plain, steps };
    build();
    const narrow = matchMedia("(max-width: 700px)"); // then the form is closed to one line
    const closed = () => { $("ask").open = !narrow.matches; };
    narrow.addEventListener("change", closed);
    closed();
    follow(show);
    const stale = ({ viewBox, parentElement: { clientWidth } }) =>
      clientWidth > SVG.WIDE && Math.abs(viewBox.baseVal.width - clientWidth) > 2;
    new ResizeObserver(() => { if (pictures().some(stale)) show(); }).observe($("plots"));
    for (const name of ["beforeprint", "afterprint"]) {
      window.addEventListener(name, () => {
        document.documentElement.classList.toggle("printed", name === "beforeprint");
        show();
      });
    }
  });

  /** The numbers of the present state, as tests compare them: rows of chips. */
  const answers = () => {
    const of = now();
    return of.chips.map((chip) => rowOf(of, chip));
  };
  return { answers, now };
})();
