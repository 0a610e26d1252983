"use strict";
/* The explorer: its controls, and what follows from the state in the address.

   A form element shows and sets the setting by its `name`; `data-when` has words that a state must
   match for an element to be shown. */

const EXPLORER = (() => {
  const { significant, integer, counted } = NUMBERS;
  const { KERNEL, MODEL, SERVE, RESETS, MAX_CHIPS, NO_LIMIT } = STATE;
  const { read, matchesState, parseNumber, dataSheet } = STATE;
  const { hasCustomRate, featuredRow, evaluateChip, explainCommand } = STATE;
  const { $, make, fillMenu, tableParts, readAddress, navigate, followAddress } = ROOFLINES;
  const { load, throttle, reportUnavailable, save, csv, copy } = ROOFLINES;
  const STEPS_PER_OCTAVE = 4; // of a slider, in a factor of two
  const QUIET_TIME = 700; // after the last change until the answer is announced [ms]
  const CUSTOM_DIGITS = 12; // significant digits of a custom number
  const LIMITS = ["tpot", "ttft"]; // on times, in ms
  const LIMIT_DIGITS = 2; // significant digits of a limit that a slider sets
  const MS_PER_SECOND = 1e3;
  let data = null;
  let csvTable = []; // the table of chips in SI units, to save
  let announcing = 0; // timer
  const readState = () => read(readAddress(), data);

  function toggleChip(chip) {
    const { chips } = readState();
    const rest = chips.filter(({ id }) => id !== chip.id);
    const next = rest.length < chips.length ? rest : [...chips, chip];
    const ids = next.slice(-MAX_CHIPS).map(({ id }) => id);
    navigate({ chips: ids.join(), chip: null }, true);
  }

  // ------------------------------------------------------------------------------------ the form

  /** Show an input's value, unless it has the focus: then it has what is typed. */
  function showInput(input, value) {
    if (input.type === "radio") input.checked = input.value === value;
    else if (input === document.activeElement) return;
    else if (["number", "text"].includes(input.type)) input.value = value;
    else input.value = Math.round(Math.log2(Math.max(value, 1)) * STEPS_PER_OCTAVE);
  }

  /** Input's value by its name, as the input has it. */
  function inputValue(state, name) {
    if (name === "micro_batch") return state.microBatch;
    if (!LIMITS.includes(name) || !(name in state)) return state[name];
    const milliseconds = Number((state[name] * MS_PER_SECOND).toPrecision(CUSTOM_DIGITS));
    return milliseconds === Infinity ? "" : milliseconds;
  }
  /** Slider's value as text. */
  function sliderText(name, value) {
    if (!LIMITS.includes(name)) return integer(value);
    return value === "" ? "none" : `${significant(value)} ms`;
  }

  /** Field with a menu for a setting. */
  const menuField = (name, text) =>
    make("label", { class: "field" }, `${text} `, make("select", { name, id: `kernel-${name}` }));

  /** Field with a number and a slider for a letter. */
  function letterField(letter, { meaning, min }) {
    const id = `letter-${letter}`;
    return make("div", { class: "size" },
      make("label", { for: id }, `${letter} `, make("small", {}, meaning)),
      make("input", { type: "number", id, name: letter, min, inputmode: "numeric" }),
      make("input", { type: "range", name: letter, min: 0, "aria-label": `${letter}, slider` }));
  }

  /** Make a kernel kind's fields, unless they are there. */
  function makeKernelFields({ name, kind, formats, hasFormat }) {
    const [options, sizes] = [$("kernel-options"), $("kernel-sizes")];
    if (options.dataset.kind === name) return;
    options.dataset.kind = name;
    const roles = Object.keys(formats);
    const compute = kind.unit === "matrix" ? ["compute"] : [];
    const menus = [
      ...Object.keys(kind.choices), ...(kind.flags.length ? ["variant"] : []),
      ...(hasFormat ? ["dtypes"] : []), ...roles, ...compute, "along",
    ];
    const titles = {
      along: "curve over", variant: "pass",
      ...Object.fromEntries([...roles, ...compute].map((role) => [role, `of ${role}`])),
    };
    options.replaceChildren(...menus.map((menu) => menuField(menu, titles[menu] ?? menu)));
    sizes.replaceChildren(...Object.entries(kind.letters).map(([letter, record]) =>
      letterField(letter, record)));
  }

  /** Show a kernel's sizes: given ones, and defaults as placeholders. */
  function showLetters({ question }) {
    for (const input of $("kernel-sizes").querySelectorAll("input")) {
      const { name: letter } = input;
      const given = question.sizes[letter];
      const size = given ?? KERNELS.letterSize(question, letter);
      const { max, sliderMax } =
        KERNELS.sizeLimits(question.kind.example.sizes[letter] ?? size ?? 0);
      if (input.type === "number") {
        input.max = max;
        input.placeholder = size ?? "none";
        showInput(input, given ?? "");
      } else {
        input.max = Math.round(Math.log2(sliderMax) * STEPS_PER_OCTAVE);
        showInput(input, size ?? sliderMax);
        input.setAttribute("aria-valuetext", size === null ? "none" : integer(size));
      }
    }
  }

  function showForm(state) {
    if (state.subject === KERNEL) makeKernelFields(state.question);
    for (const element of document.querySelectorAll("[data-when]")) {
      element.hidden = !matchesState(state, element.dataset.when);
    }
    for (const select of document.querySelectorAll("select")) {
      const { options, value } = state.menus[select.name] ?? { options: [], value: "" };
      fillMenu(select, options, value);
    }
    if (state.subject === KERNEL) showLetters(state);
    for (const input of document.querySelectorAll("#main :not(#kernel-sizes *) > input[name]")) {
      const value = inputValue(state, input.name);
      if (value === undefined) continue; // no size of this subject
      const isRange = input.type === "range";
      showInput(input, isRange && value === "" ? Number.MAX_VALUE : value);
      if (isRange) input.setAttribute("aria-valuetext", sliderText(input.name, value));
    }
    for (const [id, { text }] of Object.entries(COMBOS)) {
      if ($(id) !== document.activeElement) $(id).value = text();
    }
    $("shards").disabled = state.sharding === "none";
    $("question").textContent = questionText(state);
  }

  /** Question in one line, for a narrow window. */
  function questionText(state) {
    const { subject, model, dtypes, format, question, B, D, F, S, chips } = state;
    const sizes = (...values) => values.map(integer);
    const works = {
      [SERVE]: () => [
        model.name, format, `${integer(state.isl)} in, ${integer(state.osl)} out`,
        ...DEPLOYMENTS.limitTexts(state), `${counted(state.given, "chip")} each`,
      ].join(", "),
      [MODEL]: () => `${model.name}, ${format}, B = ${integer(B)}, S = ${integer(S)}`,
      [KERNEL]: () => [
        question.name,
        ...Object.entries(question.sizes).map(([letter, size]) => `${letter}=${integer(size)}`),
        KERNELS.optionsText(question), dtypes.name,
      ].filter(Boolean).join(" "),
    };
    const work = works[subject]?.() ?? `matmul ${sizes(B, D, F).join(" × ")}, ${dtypes.name}`;
    return `${work}, ${counted(chips.length, "chip")}`;
  }

  /** Price of each chip, as the data have it, and the chips without one. */
  function priceNotes(chips) {
    const priced = chips.filter(({ price }) => price);
    const unpriced = chips.filter(({ price }) => !price);
    const texts = priced.map(({ label, price }) => `${label} ${price.text}`);
    return [
      priced.length ? `Lowest dated prices: ${texts.join("; ")}.` : "",
      unpriced.length ? `No dated price: ${unpriced.map(({ label }) => label).join(", ")}.` : "",
    ].join(" ").trim();
  }

  function showChosenChips({ chips }) {
    $("chosen").replaceChildren(...chips.map((chip) => {
      const onclick = () => { toggleChip(chip); $("add").focus(); };
      const remove = make("button", {
        type: "button", "aria-label": `Remove ${chip.label}`, disabled: chips.length === 1, onclick,
      }, "×");
      const style = PLOTS.chipStyle(chip);
      return make("li", { style }, PLOTS.swatch(), chip.label, remove);
    }));
  }

  /** Fields with a list that typing filters: options, action, and text without the focus. */
  const COMBOS = {
    layer: {
      options: () => data.layers.map(({ name, D, F }) =>
        ({ text: name, words: name, value: { D, F } })),
      take: (sizes) => navigate(sizes, true),
      text: () => {
        const { D, F } = readState();
        const layer = data.layers.find((sizes) => sizes.D === D && sizes.F === F);
        return layer?.name ?? "custom sizes";
      },
    },
    add: {
      options: () => {
        const { chips } = readState();
        return data.chips.filter((chip) => !chips.includes(chip)).map((chip) => {
          const { id, label, name, vendor, usual } = chip;
          const text = `${label} · ${vendor}`;
          return { text, words: [id, text, usual, name].join(" "), usual, value: chip };
        });
      },
      take: toggleChip,
      text: () => "",
    },
  };

  /** Choose the typed option: the usual chip by that name, or the first option with all words. */
  function chooseTyped(input) {
    const { options, take } = COMBOS[input.id];
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const hasWords = (option) => words.every((word) => option.words.toLowerCase().includes(word));
    const chosen = options().find(({ usual }) => usual === words.join(" "))
      ?? (words.length ? options().find(hasWords) : null);
    input.value = "";
    if (chosen) take(chosen.value);
  }

  // ------------------------------------------------------------------------------ custom numbers

  /** Take a typed custom number; text that is no number is reported as such. */
  function takeCustomNumber(input) {
    const { custom: key, scale } = input.dataset;
    const numbers = { ...readState().custom };
    const text = input.value.replaceAll(",", "").trim();
    const value = parseNumber(text);
    if (!text) delete numbers[key];
    else if (value === null) numbers[key] = text;
    else numbers[key] = Number((value * scale).toPrecision(CUSTOM_DIGITS));
    const items = Object.entries(numbers).map(([name, number]) => `${name}:${number}`);
    navigate({ custom: items.join() }, true);
  }

  /** Input for a custom number, with the data sheet's as its placeholder. */
  function customInput(state, chip, quantity, nominal) {
    const { label, scale, unit } = data.page.custom_numbers[quantity];
    const key = `${chip.id}.${quantity}`;
    const number = state.custom[key];
    return make("input", {
      type: "text", inputmode: "decimal", "data-custom": key, "data-scale": scale,
      "aria-label": `${label} of ${chip.label}, ${unit}`,
      placeholder: nominal ? significant(nominal / scale, 4) : "–",
      value: number ? Number((number / scale).toPrecision(CUSTOM_DIGITS)) : "",
    });
  }

  function showCustomNumbers(state) {
    const { chips, custom, subject, format, dtypes } = state;
    const used = Object.keys(custom).length;
    $("custom-count").textContent = used ? ` · ${counted(used, "custom number")}` : "";
    $("custom-note").hidden = !chips.some((chip) => hasCustomRate(state, chip));
    if ($("custom-table").contains(document.activeElement)) return; // it has what is typed there
    const isModel = [MODEL, SERVE].includes(subject);
    const compute = isModel ? data.steps.compute[format] : dtypes.compute;
    const quantities = Object.entries(data.page.custom_numbers);
    const heads = quantities.map(([quantity, { label, unit }]) => {
      const text = quantity === "peak" ? `${label}, ${compute}` : label;
      return make("th", { scope: "col" }, text, make("small", {}, ` ${unit}`));
    });
    const rows = chips.map((chip) => {
      const sheet = dataSheet(state, chip, compute);
      const cells = quantities.map(([quantity]) =>
        make("td", {}, customInput(state, chip, quantity, sheet[quantity])));
      return make("tr", {}, make("th", { scope: "row" }, chip.label), ...cells);
    });
    $("custom-table").replaceChildren(...tableParts(["chip", ...heads], rows));
  }

  // ----------------------------------------------------------------------------------- the answer

  function showVerdict({ unable, lead, lines }) {
    const texts = { unable, lead, rest: lines.join(" ") };
    for (const [id, text] of Object.entries(texts)) $(id).textContent = text;
    clearTimeout(announcing);
    announcing = setTimeout(() => {
      $("announcement").textContent = Object.values(texts).join(" ");
    }, QUIET_TIME);
    document.title = `${(lead || unable).split(". ")[0]} – rooflines`;
  }

  /** Rows for the chosen chips. */
  const chipRows = (state = readState()) => state.chips.map((chip) => evaluateChip(state, chip));

  /** Rows for chips that are not chosen and have a time. */
  function evaluateUnchosen(state) {
    const unchosen = data.chips
      .filter((chip) => !chip.is_variant && !state.chips.includes(chip));
    return chipRows({ ...state, chips: unchosen }).filter(({ time }) => time);
  }

  /** Load what the chosen subject needs. */
  async function loadSubject() {
    if (!data.servesModels && readAddress().get("subject") === SERVE) {
      await load("deployments", "assets/deployments.js");
      await load("deployment-views", "assets/deployment-views.js");
      data.servesModels = true;
    }
    if (!data.kernels && data.kinds.includes(readAddress().get("subject"))) {
      const [kernels] = await Promise.all([
        load("kernels", "data/kernels.js"), load("kernel-functions", "assets/kernels.js"),
      ]);
      data.kernels = kernels;
    }
    const { subject, model } = readState();
    if ([MODEL, SERVE].includes(subject) && !model.steps) {
      const index = data.steps.models.indexOf(model);
      Object.assign(model, await load(`steps-${index}`, `data/steps-${index}.js`));
    }
  }

  /** Show the state in the address. */
  async function show() {
    await loadSubject();
    const state = readState();
    const isServe = state.subject === SERVE;
    const plan = isServe ? DEPLOYMENTS.plan(state) : null;
    const rows = plan?.rows ?? chipRows(state);
    const { chip: featured } = featuredRow(rows) ?? state;
    if (!readAddress().has("chip")) {
      state.chip = featured;
      state.menus.chip.value = featured.id;
    }
    const unchosenRows = state.showsAllChips && !isServe ? evaluateUnchosen(state) : [];
    showForm(state);
    showChosenChips(state);
    showVerdict(plan ? DEPLOYMENTS.verdict(state, plan) : SENTENCES.verdict(state, rows));
    PLOTS.draw(state, plan ?? rows, state.subject === KERNEL ? dragAlong : dragSize);
    const isListed = ({ isShown = true }) => isShown || state.showsAllChips;
    const listed = [...rows, ...unchosenRows].filter(isListed);
    csvTable = TABLES.showChips($("chips-table"), state, listed, toggleChip);
    const addressNames = [...data.page.address_names, ...data.kernel_names];
    reportUnavailable(addressNames, state.unavailable);
    const prices =
      state.subject === KERNEL ? "" : priceNotes([...new Set(listed.map(({ chip }) => chip))]);
    $("prices").textContent = plan ? `${DEPLOYMENTS.searchedText(state)} ${prices}` : prices;
    const [fewer, more] = isServe ? ["The best of each kind", `All ${rows.length} rows`]
      : ["Chosen chips only", "All chips"];
    $("all-chips").textContent = state.showsAllChips ? fewer : more;
    $("all-chips").hidden = isServe && rows.every(({ isShown = true }) => isShown);
    showCustomNumbers(state);
    $("panel").replaceChildren(TABLES.tabs[state.tab](state, plan));
    $("chip-choice").hidden = state.chips.length < 2 || state.tab === "dtypes"
      || state.subject === KERNEL;
    $("command").textContent =
      plan ? DEPLOYMENTS.command(state, plan) : explainCommand(state, featured);
    document.body.dataset.subject = state.subject;
    document.body.dataset.drawn = location.hash;
  }

  /** Settings that a choice resets, since the next choice may not have them. */
  const resets = (name) => ({
    ...RESETS[name],
    ...(name === "subject" ? Object.fromEntries(data.kernel_names.map((key) => [key, null])) : {}),
  });

  /** Set a dragged limit. */
  function dragLimit(name, milliseconds) {
    throttle(() => navigate({ [name]: Number(milliseconds.toPrecision(LIMIT_DIGITS)) }));
  }

  /** Set a dragged size: in training B is a multiple of the global micro-batch, S of `cp`. */
  function dragSize(name, size) {
    if (LIMITS.includes(name)) { dragLimit(name, size); return; }
    const { isTraining, split, microBatch } = readState();
    const steps = isTraining ? { B: split.dp * microBatch, S: split.cp } : {};
    const step = steps[name] ?? 1;
    const multiple = Math.max(1, Math.round(size / step)) * step;
    throttle(() => navigate({ [name]: multiple }));
  }

  /** Set a kernel's dragged size, and the letter that follows it. */
  function dragAlong(name, size) {
    const { question } = readState();
    const moved = KERNELS.sizesAlong(question, name, Math.max(1, Math.round(size)));
    throttle(() => navigate(moved));
  }

  // --------------------------------------------------------------------------------------- events

  const plots = () => [...document.querySelectorAll(".plot svg")];

  /** Take a form element's value into the state. */
  function takeInput({ target }) {
    const { name, type, value, list } = target;
    if (list) chooseTyped(target);
    else if (target.dataset.custom) takeCustomNumber(target);
    else if (name && type !== "range") {
      const typed = value === "" && LIMITS.includes(name) ? NO_LIMIT : value;
      navigate({ [name]: typed, ...resets(name) }, type !== "number");
    }
  }
  const onEvent = (event, action) => $("main").addEventListener(event, action);
  onEvent("change", takeInput);
  onEvent("keydown", (event) => { // not every browser also reports a change
    if (event.key === "Enter") takeInput(event);
  });
  onEvent("input", (event) => {
    const { target: { name, type, value }, inputType } = event;
    if (type === "range") dragSize(name, 2 ** (value / STEPS_PER_OCTAVE));
    if (inputType === "insertReplacementText") takeInput(event);
  });
  onEvent("focusin", ({ target }) => {
    if (!target.list) return;
    const options = COMBOS[target.id].options().map(({ text }) => ({ value: text, text: "" }));
    fillMenu(target.list, options, "");
    target.value = "";
  });
  onEvent("focusout", ({ target }) => {
    if (target.list) target.value = COMBOS[target.id].text();
  });
  $("choices").addEventListener("submit", (event) => event.preventDefault());
  const onClick = (id, action) =>
    $(id).addEventListener("click", ({ target }) => action(target));
  onClick("all-chips", () => navigate({ rows: readState().showsAllChips ? null : "all" }, true));
  onClick("copy-link", (button) => copy(location.href, button));
  onClick("copy-command", (button) => copy($("command").textContent, button));
  onClick("save-csv", () =>
    save("rooflines.csv", csv(csvTable, data.formula_pattern), "text/csv"));
  for (const kind of ["png", "svg"]) {
    onClick(`save-${kind}`, () => plots().forEach((plot, i) =>
      SVG.toFile(plot, kind, (...file) => save(`rooflines-${i + 1}.${kind}`, ...file))));
  }

  document.addEventListener("DOMContentLoaded", async () => {
    const [matmuls, steps] = await Promise.all(
      ["explorer", "steps"].map((name) => load(name, `data/${name}.js`)));
    data = { ...matmuls, steps };
    const narrow = matchMedia("(max-width: 700px)"); // where the form is closed to one line
    const openForm = () => { $("ask").open = !narrow.matches; };
    narrow.addEventListener("change", openForm);
    openForm();
    followAddress(show);
    const isResized = ({ viewBox, parentElement: { clientWidth } }) =>
      clientWidth > SVG.MIN_WIDTH && Math.abs(viewBox.baseVal.width - clientWidth) > 2;
    const observer = new ResizeObserver(() => { if (plots().some(isResized)) show(); });
    document.querySelectorAll(".plot").forEach((plot) => observer.observe(plot));
    for (const event of ["beforeprint", "afterprint"]) {
      window.addEventListener(event, () => {
        document.documentElement.classList.toggle("printed", event === "beforeprint");
        show();
      });
    }
  });

  return { chipRows, readState };
})();
