"use strict";
/* The page: its controls, and what follows from the state in the address.

   What has a name of the state in the form, or below it, shows that part of the state and sets it;
   what is of one subject has it as `data-of`. */

const EXPLORER = (() => {
  const { significant, count, several } = NUMBERS;
  const {
    MODEL, CLEARS, MOST_CHIPS, read, matchesState, numberOf, sheetOf, altered, featuredRow,
    rowOf, commandOf,
  } = STATE;
  const { $, make, fill, headed, state, go, follow, load, soon, tellUnknown } = ROOFLINES;
  const { save, csv, copy } = ROOFLINES;
  const PER_OCTAVE = 4; // steps of a slider in a factor of two
  const QUIET = 700; // after the last change until the answer is read out [ms]
  let [data, shownTable, told] = [null, [], 0];
  const now = () => read(state(), data);

  const toggle = (chip) => {
    const { chips } = now();
    const next = chips.includes(chip) ? chips.filter((one) => one !== chip) : [...chips, chip];
    go({ chips: next.slice(-MOST_CHIPS).map(({ id }) => id).join(), of: null }, true);
  };

  function showForm(of) {
    for (const box of document.querySelectorAll("[data-of]")) {
      box.hidden = !matchesState(of, box.dataset.of);
    }
    for (const menu of document.querySelectorAll("select")) {
      fill(menu, ...of.menus[menu.name] ?? [[], ""]);
    }
    for (const input of document.querySelectorAll("#main input[name]")) {
      const value = of[input.name];
      if (input.type === "radio") input.checked = input.value === value;
      else if (input !== document.activeElement) {
        input.value = input.type === "number" ? value : Math.round(Math.log2(value) * PER_OCTAVE);
      }
      if (input.type === "range") input.setAttribute("aria-valuetext", count(value));
    }
    for (const [id, { text }] of Object.entries(SEARCHED)) {
      if ($(id) !== document.activeElement) $(id).value = text();
    }
    $("n").disabled = of.sharding === "none";
    $("seller").disabled = !of.seller;
    const { model, dtypes, format, B, D, F, S, chips } = of; // in a line where room is little
    const what = of.is === MODEL
      ? `${model.name}, ${format}, B = ${count(B)}, S = ${count(S)}`
      : `matmul ${count(B)} × ${count(D)} × ${count(F)}, ${dtypes.name}`;
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

  /** Fields with a list that typing filters: what they offer, do, and show without the focus. */
  const SEARCHED = {
    layer: {
      options: () => data.layers.map(([text, D, F]) => ({ text, words: text, value: { D, F } })),
      take: (sizes) => go(sizes, true),
      text: () => {
        const { D, F } = now();
        const same = ({ value }) => value.D === D && value.F === F;
        return SEARCHED.layer.options().find(same)?.text ?? "custom sizes";
      },
    },
    add: {
      options: () => data.chips.filter((chip) => !now().chips.includes(chip)).map((chip) => {
        const { id, short, name, vendor, usual } = chip;
        const text = `${short} · ${vendor}`;
        return { text, words: [id, text, usual, name].join(" "), usual, value: chip };
      }),
      take: toggle, text: () => "",
    },
  };
  /** Choose what is typed: the usual chip of that name, or the first option with all words. */
  function choose(input) {
    const { options, take } = SEARCHED[input.id];
    const typed = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const has = ({ words }) => typed.every((word) => words.toLowerCase().includes(word));
    const found = options().find(({ usual }) => usual === typed.join(" "))
      ?? (typed.length ? options().find(has) : null);
    input.value = "";
    if (found) take(found.value);
  }

  /** Take what is typed into a field of `own` numbers; what is no number is reported as such. */
  function setOwn(input) {
    const { own, unit } = input.dataset;
    const [typed, next] = [input.value.replaceAll(",", "").trim(), { ...now().own }];
    const value = numberOf(typed);
    if (!typed) delete next[own];
    else next[own] = value === null ? typed : Number((value * unit).toPrecision(12));
    go({ own: Object.entries(next).map((one) => one.join(":")).join() }, true);
  }

  function showOwn(of) {
    const number = Object.keys(of.own).length;
    $("own-count").textContent = number ? ` · ${several(number, "custom number")}` : "";
    $("own-said").hidden = !of.chips.some((chip) => altered(of, chip));
    if ($("own-table").contains(document.activeElement)) return; // it has what is typed there
    const compute = of.is === MODEL ? data.steps.compute[of.format] : of.dtypes.compute;
    const numbers = Object.entries(data.offered.own);
    const heads = numbers.map(([name, [label, , unit]]) => make("th", { scope: "col" },
      `${label}${name === "peak" ? `, ${compute}` : ""}`, make("small", {}, ` ${unit}`)));
    const rows = of.chips.map((chip) => {
      const sheet = sheetOf(of, chip, compute);
      const inputs = numbers.map(([name, [label, unit, text]]) => {
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

  function showVerdict(of, rows) {
    const { off, lead, lines } = SENTENCES.verdict(of, rows);
    const parts = { off, lead, rest: lines.join(" ") };
    for (const [id, text] of Object.entries(parts)) $(id).textContent = text;
    clearTimeout(told);
    told = setTimeout(() => { $("said").textContent = Object.values(parts).join(" "); }, QUIET);
    document.title = `${(lead || off).split(". ")[0]} – rooflines`;
  }

  /** The rows of the chosen chips. */
  const answers = (of = now()) => of.chips.map((chip) => rowOf(of, chip));

  async function show() {
    const of = now();
    if (of.is === MODEL && !of.model.steps) {
      const index = data.steps.models.indexOf(of.model);
      Object.assign(of.model, await load(`steps-${index}`, `data/steps-${index}.js`));
    }
    const rows = answers(of);
    const { chip } = featuredRow(rows);
    if (!state().has("of")) [of.of, of.menus.of[1]] = [chip, chip.id];
    const others = data.chips.filter((chip) => !chip.variant && !of.chips.includes(chip));
    const more = of.all ? answers({ ...of, chips: others }).filter(({ time }) => time) : [];
    showForm(of);
    showChosen(of);
    showVerdict(of, rows);
    PICTURES.draw(of, rows, pick);
    shownTable = TABLES.showChips($("chips-table"), of, [...rows, ...more], toggle);
    tellUnknown(data.offered.names, of.lost);
    $("prices").textContent = of.seller ? `Prices: ${of.seller}, on demand.` : "";
    $("all").textContent = of.all ? "Chosen chips only" : "All chips";
    showOwn(of);
    $("panel").replaceChildren(TABLES[of.tab](of));
    $("of").hidden = of.chips.length < 2 || of.tab === "dtypes";
    $("command").textContent = commandOf(of, chip);
    document.body.dataset.drawn = location.hash;
  }
  /** Set a size that a hand drags: of training whole shares of micro-batches and of chips. */
  function pick(name, size) {
    const { trains, split, micro_batch } = now();
    const step = (trains && { B: split.dp * micro_batch, S: split.cp }[name]) || 1;
    soon(() => go({ [name]: Math.max(1, Math.round(size / step)) * step }));
  }

  const pictures = () => [...document.querySelectorAll(".plot svg")];

  const taken = ({ target }) => {
    const { name, type, value, list } = target;
    if (list) choose(target);
    else if (target.dataset.own) setOwn(target);
    else if (name && type !== "range") go({ [name]: value, ...CLEARS[name] }, type !== "number");
  };
  const on = (event, act) => $("main").addEventListener(event, act);
  on("change", taken);
  on("keydown", (event) => { if (event.key === "Enter") taken(event); }); // not all report both
  on("input", (event) => {
    const { target: { name, type, value }, inputType } = event;
    if (type === "range") pick(name, 2 ** (value / PER_OCTAVE));
    if (inputType === "insertReplacementText") taken(event);
  });
  on("focusin", ({ target }) => {
    if (!target.list) return;
    fill(target.list, SEARCHED[target.id].options().map(({ text }) => [text, ""]), "");
    target.value = "";
  });
  on("focusout", ({ target }) => { if (target.list) target.value = SEARCHED[target.id].text(); });
  $("choices").addEventListener("submit", (event) => event.preventDefault());
  const click = (id, act) => $(id).addEventListener("click", ({ target }) => act(target));
  click("all", () => go({ rows: now().all ? null : "all" }, true));
  click("copy-link", (button) => copy(location.href, button));
  click("copy-command", (button) => copy($("command").textContent, button));
  click("save-csv", () => save("rooflines.csv", csv(shownTable, data.formula), "text/csv"));
  for (const kind of ["png", "svg"]) {
    click(`save-${kind}`, () => pictures().forEach((one, i) =>
      SVG.file(one, kind, (...file) => save(`rooflines-${i + 1}.${kind}`, ...file))));
  }

  document.addEventListener("DOMContentLoaded", async () => {
    const [plain, steps] = await Promise.all(
      ["explorer", "steps"].map((name) => load(name, `data/${name}.js`)));
    data = { ...plain, steps };
    const narrow = matchMedia("(max-width: 700px)"); // then the form is closed to one line
    const closed = () => { $("ask").open = !narrow.matches; };
    narrow.addEventListener("change", closed);
    closed();
    follow(show);
    const stale = ({ viewBox, parentElement: { clientWidth } }) =>
      clientWidth > SVG.WIDE && Math.abs(viewBox.baseVal.width - clientWidth) > 2;
    const observer = new ResizeObserver(() => { if (pictures().some(stale)) show(); });
    document.querySelectorAll(".plot").forEach((plot) => observer.observe(plot));
    for (const name of ["beforeprint", "afterprint"]) {
      window.addEventListener(name, () => {
        document.documentElement.classList.toggle("printed", name === "beforeprint");
        show();
      });
    }
  });

  return { answers, now };
})();
