"use strict";
/* The page: its controls, and what follows from the state in the address. */

const EXPLORER = (() => {
  const { significant, count, several } = NUMBERS;
  const {
    MATMUL, MODEL, NAMES, OWN, TABS, MOST_CHIPS, MOST_SIZE, MOST_N, read, whole, numberOf, sheetOf,
    altered, answering, rowOf, commandOf,
  } = STATE;
  const { $, make, fill, headed, state, go, follow, load, soon, tellUnknown } = ROOFLINES;
  const { onEntered, save, csv, copy } = ROOFLINES;
  const { colourOf } = PICTURES;
  const PER_OCTAVE = 4; // steps of a slider in a factor of two
  const QUIET = 700; // after the last change until the answer is read out [ms]
  const SPLITS = {
    none: "none", "contracting/all-reduce": "rows of w, all-reduce",
    "contracting/reduce-scatter": "rows of w, reduce-scatter", column: "columns of w",
    "column/gather-x": "columns of w, gather x", batch: "tokens",
    "batch/gather-w": "tokens, gather w (FSDP)",
  };
  const LETTERS = {
    B: { matmul: "tokens", model: "sequences" }, D: { matmul: "contracted" },
    F: { matmul: "columns of w" }, S: { model: "tokens each" },
  };
  let data = null;
  let shownTable = [];
  let told = 0;
  const now = () => read(state(), data);

  const toggle = (chip) => {
    const { chips } = now();
    const next = chips.includes(chip) ? chips.filter((one) => one !== chip) : [...chips, chip];
    go({ chips: next.slice(-MOST_CHIPS).map(({ id }) => id).join() }, true);
  };

  // ---------------------------------------------------------------- controls

  /** A field with a list that typing filters; `options` gives [value, text].

      What is entered chooses the first option that has all its words. */
  function searched(input, options, take, text = () => "") {
    const list = make("datalist", { id: `${input.id}-list` });
    input.after(list);
    for (const [name, value] of [["list", list.id], ["autocomplete", "off"]]) {
      input.setAttribute(name, value);
    }
    input.addEventListener("focus", () => {
      list.replaceChildren(...options().map(([, name]) => make("option", { value: name })));
      input.value = "";
    });
    input.addEventListener("blur", () => { input.value = text(); });
    onEntered(input, (typed) => {
      const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
      const has = (one) => words.every((word) => one.join(" ").toLowerCase().includes(word));
      const found = words.length ? options().find(has) : null;
      input.value = "";
      if (found) take(found[0]);
    });
    return () => { if (document.activeElement !== input) input.value = text(); };
  }

  const sizes = {};
  /** A number and a slider for each letter. */
  function buildSizes() {
    for (const name of Object.keys(LETTERS)) {
      const number = make("input", {
        type: "number", id: `size-${name}`, min: 1, max: MOST_SIZE, inputmode: "numeric",
      });
      const slider = make("input", {
        type: "range", min: 0, max: 20 * PER_OCTAVE, "aria-label": `${name}, slider`,
      });
      const take = (text) => go({ [name]: whole(text, MOST_SIZE) === null ? null : text });
      onEntered(number, take);
      slider.addEventListener("input", () => soon(() =>
        go({ [name]: Math.round(2 ** (slider.value / PER_OCTAVE)) })));
      const unit = make("small");
      const label = make("label", { for: number.id }, name, unit);
      const box = make("div", { class: "size" }, label, number, slider);
      sizes[name] = { number, slider, unit, box };
      $("sizes").append(box);
    }
  }

  function showSizes(of) {
    for (const [name, { number, slider, unit, box }] of Object.entries(sizes)) {
      const meaning = LETTERS[name][of.subject];
      box.hidden = !meaning;
      unit.textContent = ` ${meaning}`;
      if (document.activeElement !== number) number.value = of[name];
      if (document.activeElement !== slider) {
        slider.value = Math.round(Math.log2(of[name]) * PER_OCTAVE);
      }
      slider.setAttribute("aria-valuetext", count(of[name]));
    }
  }

  function showMenus(of) {
    const { steps } = data;
    for (const box of document.querySelectorAll("[data-of]")) {
      box.hidden = box.dataset.of !== of.subject;
    }
    const same = (name) => [name, name];
    fill($("subject"), [same(MATMUL), same(MODEL)], of.subject);
    fill($("model"), steps.models.map(({ id, name }) => [id, name]), of.model.id);
    fill($("phase"), steps.phases.map(same), of.phase);
    const plain = (name) => !of.model.experts && steps.formats[name].includes("experts=");
    fill($("format"), Object.keys(steps.formats).map((name) => [
      name, name === of.model.format ? `${name} (published)` : name, plain(name)]), of.format);
    fill($("split"), steps.splits.map(({ name, chips, dp }) => [
      name, `${name}, ${several(chips, "chip")}`, dp > 1 && !of.model.experts]), of.split.name);
    const able = ({ compute }) => of.chips.some((chip) => chip.peaks[compute]);
    fill($("dtypes"), data.dtypes.map((one) => [one.name, one.name, !able(one)]), of.dtypes.name);
    fill($("sharding"), Object.keys(data.works).map((name) => [name, SPLITS[name] ?? name]),
      of.sharding);
    if (document.activeElement !== $("n")) $("n").value = of.n;
    $("n").disabled = of.sharding === "none";
    for (const radio of document.querySelectorAll("[name=basis]")) {
      radio.checked = radio.value === of.basis;
    }
    fill($("seller"), of.sellers.map(same), of.seller ?? "");
    $("seller").disabled = !of.sellers.length;
  }

  function showChosen(of) {
    $("chosen").replaceChildren(...of.chips.map((chip) => {
      const onclick = () => { toggle(chip); $("add").focus(); };
      const disabled = of.chips.length === 1;
      const label = `Remove ${chip.short}`;
      const swatch = make("span", { class: "swatch", "aria-hidden": "true" });
      const item = make("li", {}, swatch, chip.short,
        make("button", { type: "button", "aria-label": label, disabled, onclick }, "×"));
      item.style.setProperty("--c", colourOf(chip));
      return item;
    }));
  }

  // ---------------------------------------------------------------- own numbers

  function setOwn(key, text, unit) {
    const next = { ...now().own };
    const value = numberOf(text.trim());
    if (value === null) delete next[key];
    else next[key] = Number((value * unit).toPrecision(12));
    go({ own: Object.entries(next).map((one) => one.join(":")).join() }, true);
  }

  function showOwn(of) {
    const into = $("own-table");
    const compute = of.subject === MODEL ? data.steps.compute[of.format] : of.dtypes.compute;
    const key = JSON.stringify([of.chips.map(({ id }) => id), compute, of.seller]);
    if (into.dataset.key !== key) {
      into.dataset.key = key;
      const column = { scope: "col" };
      const heads = Object.entries(OWN).map(([name, [label, , unit]]) => make("th", column,
        `${label}${name === "peak" ? `, ${compute}` : ""}`, make("small", {}, ` ${unit}`)));
      const rows = of.chips.map((chip) => {
        const sheet = sheetOf(of, chip, compute);
        const inputs = Object.entries(OWN).map(([name, [label, unit, text]]) => {
          const published = sheet[name] ? significant(sheet[name] / unit, 4) : "–";
          const own = `${chip.id}.${name}`;
          const input = make("input", {
            type: "text", inputmode: "decimal", "data-own": own, "data-unit": unit,
            "aria-label": `${label} of ${chip.short}, ${text}`, placeholder: published,
          });
          onEntered(input, (text) => setOwn(own, text, unit));
          return make("td", {}, input);
        });
        return make("tr", {}, make("th", { scope: "row" }, chip.short), ...inputs);
      });
      into.replaceChildren(...headed(["chip", ...heads], rows));
    }
    for (const input of into.querySelectorAll("input")) {
      const value = of.own[input.dataset.own];
      if (document.activeElement === input) continue;
      input.value = value ? String(Number((value / input.dataset.unit).toPrecision(12))) : "";
    }
    const number = Object.keys(of.own).length;
    $("own-count").textContent = number ? ` · ${several(number, "own number")}` : "";
    $("own-said").hidden = !of.chips.some((chip) => altered(of, chip));
  }

  // ---------------------------------------------------------------- all of it

  /** What is asked in a line, which stands for the form where there is little room. */
  function showAsked({ subject, model, dtypes, format, B, D, F, S, chips }) {
    const what = subject === MODEL ? `${model.name}, ${format}, B = ${count(B)}, S = ${count(S)}`
      : `matmul ${count(B)} x ${count(D)} x ${count(F)}, ${dtypes.name}`;
    $("asked").textContent = `${what}, ${several(chips.length, "chip")}`;
  }

  function showTabs(of) {
    const tabs = TABS[of.subject];
    const focused = document.activeElement?.getAttribute("role") === "tab";
    $("tabs").replaceChildren(...tabs.map(([name, text]) => make("button", {
      type: "button", role: "tab", id: `tab-${name}`, "aria-controls": "panel",
      "aria-selected": String(name === of.tab), tabindex: name === of.tab ? 0 : -1,
      onclick: () => go({ tab: name }, true),
    }, text)));
    if (focused) $(`tab-${of.tab}`).focus();
    const [content, one] = TABLES.CONTENT[of.tab];
    $("panel").setAttribute("aria-labelledby", `tab-${of.tab}`);
    $("panel").replaceChildren(content(of));
    $("of").hidden = of.chips.length < 2 || (!one && of.subject === MATMUL);
    fill($("of-chip"), of.chips.map(({ id, short }) => [id, short]), of.of.id);
  }

  function showVerdict(of, rows) {
    const { off, lead, lines } = SENTENCES.verdict(of, rows);
    const parts = { off, lead, rest: lines.join(" ") };
    for (const [id, text] of Object.entries(parts)) {
      if ($(id).textContent !== text) $(id).textContent = text;
    }
    clearTimeout(told);
    told = setTimeout(() => { $("said").textContent = Object.values(parts).join(" "); }, QUIET);
    document.title = `${(lead || off).split(". ")[0]} – rooflines`;
  }

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
    showMenus(of);
    showSizes(of);
    showChosen(of);
    showAsked(of);
    layerBox();
    tellUnknown(NAMES, of.lost);
    showVerdict(of, rows);
    PICTURES.draw(of, rows, pick);
    shownTable = TABLES.showChips($("chips-table"), of, [...rows, ...more], toggle);
    $("prices").textContent = of.seller ? `Prices: ${of.seller}, on demand.` : "";
    $("all").textContent = of.all ? "Chosen chips only" : "All chips";
    showOwn(of);
    showTabs(of);
    $("command").textContent = commandOf(of, answering(rows).chip);
    document.body.dataset.drawn = location.hash;
    return null;
  }
  const pick = (changes) => soon(() => go(changes));

  let layerBox = () => {};
  function build() {
    buildSizes();
    const text = ([model, layer, D, F]) => `${model} · ${layer}  ${count(D)} x ${count(F)}`;
    layerBox = searched($("layer"), () => data.layers.map((one, i) => [String(i), text(one)]),
      (i) => go({ D: data.layers[i][2], F: data.layers[i][3] }, true), () => {
        const { D, F } = now();
        const found = data.layers.find((one) => one[2] === D && one[3] === F);
        return found ? text(found) : "own sizes";
      });
    const addable = () => data.chips.filter((chip) => !now().chips.includes(chip));
    searched($("add"), () => addable().map(({ id, name, vendor }) => [id, `${name} · ${vendor}`]),
      (id) => toggle(data.chips.find((chip) => chip.id === id)));
    const take = (id, changes) => $(id).addEventListener("change", () => {
      go(changes($(id).value), true);
    });
    take("subject", (value) => ({ is: value, B: null, tab: null, sort: null }));
    take("model", (value) => ({ model: value, format: null }));
    take("of-chip", (value) => ({ of: value }));
    for (const name of ["phase", "format", "split", "dtypes", "sharding", "seller"]) {
      take(name, (value) => ({ [name]: value }));
    }
    $("n").max = MOST_N;
    onEntered($("n"), (text) => go({ n: text }));
    for (const radio of document.querySelectorAll("[name=basis]")) {
      radio.addEventListener("change", () => go({ basis: radio.value }, true));
    }
    $("choices").addEventListener("submit", (event) => event.preventDefault());
    $("all").addEventListener("click", () => go({ rows: now().all ? null : "all" }, true));
    $("tabs").addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const { subject, tab } = now();
      const names = TABS[subject].map(([name]) => name);
      const place = names.indexOf(tab) + step + names.length;
      if (step) go({ tab: names[place % names.length] });
    });
    $("other").addEventListener("click", () => {
      const { dataset } = $("plots");
      dataset.shown = dataset.shown === "left" ? "right" : "left";
      show();
    });
    buildSaving();
  }

  // ---------------------------------------------------------------- taking along

  const pictures = () => [...document.querySelectorAll(".plot svg")];
  function savePng(picture, name) {
    const { width, height } = picture.viewBox.baseVal;
    const [image, canvas] = [new Image(), make("canvas", { width: 2 * width, height: 2 * height })];
    image.onload = () => {
      const context = canvas.getContext("2d");
      context.fillStyle = getComputedStyle(document.body).backgroundColor;
      context.fillRect(0, 0, canvas.width, canvas.height);
      context.drawImage(image, 0, 0, canvas.width, canvas.height);
      save(name, canvas.toDataURL());
    };
    const text = SVG.standalone(picture).replace("100%", String(width));
    image.src = `data:image/svg+xml,${encodeURIComponent(text)}`;
  }
  function buildSaving() {
    const click = (id, act) => $(id).addEventListener("click", (event) => act(event.target));
    click("copy-link", (button) => copy(location.href, button));
    click("copy-command", (button) => copy($("command").textContent, button));
    click("save-png", () => pictures().forEach((one, i) => savePng(one, `rooflines-${i + 1}.png`)));
    click("save-svg", () => pictures().forEach((one, i) =>
      save(`rooflines-${i + 1}.svg`, SVG.standalone(one), "image/svg+xml")));
    click("save-csv", () => save("rooflines.csv", csv(shownTable, data.formula), "text/csv"));
  }

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
