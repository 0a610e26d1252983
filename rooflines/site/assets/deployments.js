"use strict";
/* Deployments that keep TPOT and TTFT, and their fronts. No page is needed.

   Steps, prompts and memory are EVALUATION's; the search is `rooflines serve` without pipeline
   stages. A server has `dp` replicas; `phi` = B / (dp OSL) prompts come with a step. */

const DEPLOYMENTS = (() => {
  const { sum, firstInteger, octaves, significant, seconds, integer, counted } = NUMBERS;
  const { joinNames } = NUMBERS;
  const { RESOURCES, kernelEstimate, lineAt, activatedExperts } = EVALUATION;
  const { CALIBRATED, DECODE, PREFILL, stepWorkload, findPrice } = STATE;
  const [COMPUTE, MEMORY, NETWORK] = RESOURCES;
  const [MIXED, POOLS] = ["mixed", "pools"];
  const [HOUR_S, MTOK] = [3600, 1e6];
  const SLACK = 1e-12; // by which a rate may exceed another: both are rounded
  const DIGITS = 3; // of rates in a sentence, and of those that rank
  const FRONT_STEPS = 2; // batches of a front in each doubling
  const MAX_STORED = 512; // servers whose steps are kept
  /** Reasons for a batch, in words. */
  const ENDS = { memory: "memory", tpot: "TPOT", tile: "whole tiles", prefill: "prefill" };

  // ------------------------------------------------------------------------- means over contexts

  /** Sum over n steps: the largest of some lines, each as its values in the first and last step.

      One line is the largest up to a step, then another. */
  function sumOfMaxima(lines, n) {
    const [first, last] = [0, 1].map((end) => lines.reduce((a, b) =>
      (b[end] > a[end] || (b[end] === a[end] && b[1 - end] > a[1 - end]) ? b : a)));
    const [lead, rise] = [first[0] - last[0], last[1] - first[1]];
    if (n < 2 || !(lead > 0 && rise > 0)) return (n * (first[0] + first[1])) / 2;
    const split = Math.min(n - 1, Math.max(1, Math.ceil((lead / (lead + rise)) * (n - 1))));
    const at = ([a, b], step) => a + ((b - a) * step) / (n - 1);
    return sumOfMaxima(lines.map((line) => [line[0], at(line, split - 1)]), split)
      + sumOfMaxima(lines.map((line) => [at(line, split), line[1]]), n - split);
  }

  /** Context stretches, { first, last }, on which all that attention counts is a line. */
  function makeStretches(extents, first, last) {
    const starts = new Set([first]);
    for (const { pieces, period, gain = null } of Object.values(extents)) {
      const before = gain === null ? 0 : Math.floor((first - pieces[0].start) / period) * period;
      for (let shift = Math.max(0, before); shift <= last; shift += period ?? Infinity) {
        for (const { start } of pieces) {
          if (start + shift > first && start + shift <= last) starts.add(start + shift);
        }
        if (gain === null) break;
      }
    }
    const sorted = [...starts].sort((a, b) => a - b);
    return sorted.map((start, i) => ({ first: start, last: (sorted[i + 1] ?? last + 1) - 1 }));
  }

  /** Estimated step time as a function of B, from workloads at both stretch ends [s].

      All that does not depend on B is multiplied out once. */
  function estimator(stretches, workloads) {
    const varies = (name) => /^(B$|activated_experts$|tokens:|sequences:)/.test(name);
    const extents = workloads.map((workload) => workload.extentsAt(1));
    const products = [];
    const fold = (count) => (terms) => Object.entries(terms).map(([product, factor]) => {
      const names = product.split(" ").filter(Boolean);
      const varying = names.filter(varies).join(" ");
      if (!products.includes(varying)) products.push(varying);
      const fixed = names.filter((name) => !varies(name));
      const factors = extents.map((extent) =>
        fixed.reduce((value, name) => value * extent(name), factor * count));
      return { place: products.indexOf(varying), factors };
    });
    const added = [];
    const largest = [];
    for (const { count, common, pieces } of workloads[0].estimates) {
      added.push(...fold(count)(common));
      const folded = pieces.map(({ sums }) => sums.map(fold(count)));
      if (folded.length === 1 && folded[0].length === 1) added.push(...folded[0][0]);
      else if (folded.length) largest.push(folded);
    }
    return (B) => {
      const extent = workloads[0].extentsAt(B);
      const values = products.map((product) =>
        product.split(" ").filter(Boolean).reduce((value, name) => value * extent(name), 1));
      const total = (terms, end) =>
        terms.reduce((value, { place, factors }) => value + values[place] * factors[end], 0);
      return sum(stretches.map(({ first, last }, i) => {
        const [n, ends] = [last - first + 1, [2 * i, 2 * i + 1]];
        const lines = (pieces) => pieces.map((sums) =>
          ends.map((end) => Math.min(...sums.map((terms) => total(terms, end)))));
        return (n * sum(ends.map((end) => total(added, end)))) / 2
          + sum(largest.map((pieces) => sumOfMaxima(lines(pieces), n)));
      }));
    };
  }

  // ------------------------------------------------------------------------------------- servers

  /** Prompt alone on an idle server [s]: bound, kernels one after another, and estimate.

      Among several replicas one has it; expert kernels, which all share, have its tokens alone. */
  function promptAlone(prompt, dp, together) {
    if (dp === 1) return together;
    const experts = [1, dp].map((B) => activatedExperts(prompt, B));
    const sizes = [1, dp].map((B) => EVALUATION.times(prompt, B).kernels);
    const place = ({ shared }) => (shared ? 0 : 1);
    const resource = (measure) => sum(prompt.kernels.map(measure));
    const math = resource((kernel) => lineAt(kernel.math, kernel.shared ? 1 : dp));
    const memory = resource((kernel) => lineAt(kernel.memory, kernel.shared ? 1 : dp)
      + kernel.expertSeconds * experts[place(kernel)]);
    const extents = prompt.estimates && [1, dp].map(prompt.extentsAt);
    return {
      lower: Math.max(math, memory, together.byResource[NETWORK]),
      serial: resource((kernel, i) =>
        Math.max(sizes[place(kernel)][i].time, sizes[1][i].byResource[NETWORK])),
      estimate: extents ? resource((kernel, i) =>
        kernelEstimate(prompt.estimates[i], extents[place(kernel)], extents[1]).time) : null,
    };
  }

  /** Server with a split on a chip, with `at(B)`, means over an answer's steps [s]: `alone`, and
      `mixed` with prompts between steps. `unsupported` says why there is none. */
  function makeServer(state, chip, name) {
    const { data: { steps }, model, isl, osl, format, basis } = state;
    const split = { name, ...steps.servers.splits[name], cp: 1 };
    const { dp } = split;
    const at = (phase, S) => stepWorkload({ ...state, phase, split, S }, chip);
    const prompt = at(PREFILL, isl);
    const [extents] = Object.values(model.extents[DECODE]);
    const stretches = makeStretches(extents, isl + 1, isl + osl);
    const workloads = stretches.flatMap(({ first, last }) => [at(DECODE, first), at(DECODE, last)]);
    const [decode, longest] = [workloads[0], workloads.at(-1)];
    const unsupported = decode.unsupported ?? prompt.unsupported;
    if (unsupported) return { name, split, unsupported };
    const isCalibrated = basis === CALIBRATED;
    const machine = steps.machines.find((entry) => entry.chip === chip.id);
    const kind = `${DECODE} ${format}${model.has_experts ? " experts" : ""}`;
    const estimated = Boolean(decode.estimates && prompt.estimates && machine.prompts?.[kind]);
    if (isCalibrated && !estimated) {
      return { name, split, estimated, unsupported: "no calibration" };
    }
    const together = {
      ...EVALUATION.times(prompt, dp), estimate: EVALUATION.estimate(prompt, dp)?.time ?? null,
    };
    const alone = promptAlone(prompt, dp, together);
    const key = isCalibrated ? "estimate" : "serial";
    const factor = isCalibrated ? machine.prompts[kind] : 1;
    const stepEstimate = isCalibrated ? estimator(stretches, workloads) : null;
    const mean = (addBetween) => sum(stretches.map(({ first, last }, i) =>
      addBetween(2 * i, 2 * i + 1, last - first + 1))) / osl;
    const phi = (B) => B / (dp * osl);
    const timesAt = (B) => workloads.map((workload) => EVALUATION.times(workload, B));
    const linesBetween = ([a, b]) => RESOURCES.map((name) => [a[name], b[name]]);
    /** Kernels one after another. */
    function serialAt(B) {
      const times = timesAt(B).map(({ kernels }) => kernels);
      return mean((start, end, n) => sum(times[start].map((kernel, i) => sumOfMaxima(
        linesBetween([kernel.byResource, times[end][i].byResource]), n))));
    }
    const prompts = {
      [COMPUTE]: together.byResource[COMPUTE], [NETWORK]: 0,
      [MEMORY]: sum(prompt.kernels.map(({ cache }) => lineAt(cache, dp))),
    };
    /** Bound: everything overlaps, and steps share weights and hops with prompts in them. */
    function lowerAt(B, mixed) {
      const times = timesAt(B).map(({ byResource }) => byResource);
      if (!mixed) {
        return mean((start, end, n) =>
          sumOfMaxima(linesBetween([times[start], times[end]]), n));
      }
      const means = RESOURCES.map((name) => phi(B) * prompts[name]
        + mean((start, end, n) => (n * (times[start][name] + times[end][name])) / 2));
      const sent = decode.total.levels.map(({ bytes }, i) => lineAt(bytes, B)
        + phi(B) * lineAt(prompt.total.levels[i]?.bytes ?? { slope: 0, intercept: 0 }, dp));
      return Math.max(...means, ...sent);
    }
    const stored = new Map();
    function stepAt(B) {
      if (!stored.has(B)) {
        const time = isCalibrated ? stepEstimate(B) / osl : serialAt(B);
        stored.set(B, { alone: time, mixed: time + phi(B) * factor * together[key] });
      }
      return stored.get(B);
    }
    const { maxBatch } = longest.footprint(dp);
    return {
      name, split, chip, estimated, at: stepAt, lowerAt, osl, band: decode.bandAt?.() ?? null,
      maxBatch: Math.min(maxBatch ?? Infinity, steps.servers.max_batch),
      firstToken: alone[key], firstTokenBound: alone.lower,
      prompts: dp / (factor * together[key]), promptsBound: dp / together.lower,
      bytesAt: (B) => longest.footprint(B).bytes,
    };
  }

  const servers = new Map();
  /** Chip's servers in a state, from those that are stored. */
  function serversOn(state, chip) {
    const { model, format, isl, osl, basis, custom } = state;
    const key = JSON.stringify([chip.id, model.id, format, isl, osl, basis, custom]);
    if (!servers.has(key)) {
      if (servers.size >= MAX_STORED) servers.clear();
      servers.set(key, model.servers.map((name) => makeServer(state, chip, name)));
    }
    return servers.get(key).filter(({ split }) => split.chips <= state.given);
  }

  /** Servers as a chip's workload: why there are none, and whether all are estimated. */
  function serversWorkload(state, chip) {
    const { data: { steps }, format } = state;
    if (steps.servers.tori.includes(chip.id)) {
      const unsupported = "servers lie along axes of its torus: rooflines serve has them";
      return { chip, unsupported };
    }
    const every = serversOn(state, chip);
    const able = every.filter(({ unsupported }) => !unsupported);
    const lacking = every.find(({ estimated }) => estimated === false);
    const reason = state.basis === CALIBRATED && lacking
      ? `no calibration of ${format}` : every[0].unsupported;
    return able.length && !(state.basis === CALIBRATED && lacking)
      ? { chip, servers: able, estimates: !lacking } : { chip, unsupported: reason };
  }

  // -------------------------------------------------------------------------------------- search

  const tokenTime = (server, B, mixed) => server.at(B)[mixed ? MIXED : "alone"];

  /** Last batch that fits and keeps TPOT, which never falls with it; 0: none. */
  function lastBatch(server, limit, mixed) {
    const { maxBatch, split: { dp } } = server;
    if (maxBatch < dp) return 0;
    if (limit === Infinity) return maxBatch;
    const first = firstInteger(dp, maxBatch, (B) => tokenTime(server, B, mixed) > limit);
    if (first === null) return maxBatch;
    return first === dp ? 0 : first - 1;
  }

  /** Server's largest batch, `B`, and what ends it; by an estimate the last tile multiple where
      that yields more. */
  function largestBatch(server, last, isMixed, { tiles, isCalibrated }) {
    const { maxBatch, split: { dp } } = server;
    const within = last[isMixed ? MIXED : "alone"];
    if (!within) return { B: 0, limit: maxBatch < dp ? "memory" : "tpot" };
    const limit = within >= maxBatch ? "memory" : "tpot";
    if (!isCalibrated) return { B: within, limit };
    const ends = Object.values(last).flatMap((B) => [B, B + 1]);
    const multiples = tiles.flatMap((tile) =>
      ends.map((B) => Math.floor(B / (tile * dp)) * tile * dp));
    const powers = Array.from({ length: 17 }, (_, i) => dp * 2 ** i);
    const rate = (B) => B / tokenTime(server, B, isMixed);
    const best = [within, ...ends, ...multiples, ...powers]
      .filter((B) => B >= dp && B <= within)
      .reduce((a, b) => (rate(b) > rate(a) || (rate(b) === rate(a) && b > a) ? b : a));
    return rate(best) > rate(within) * (1 + SLACK) ? { B: best, limit: "tile" }
      : { B: within, limit };
  }

  /** Chip's servers with their largest batches, with prompts and without; those that make no
      mixed deployment are `lost`, with a reason. */
  function searchChip(state, chip) {
    const workload = serversWorkload(state, chip);
    if (workload.unsupported) return workload;
    const { data: { steps }, tpot, ttft, basis } = state;
    const rules = { tiles: steps.servers.tiles, isCalibrated: basis === CALIBRATED };
    const searched = workload.servers.map((server) => {
      const last = {
        [MIXED]: lastBatch(server, tpot, true), alone: lastBatch(server, tpot, false),
      };
      const fits = server.maxBatch >= server.split.dp;
      const keeps = server.firstTokenBound <= ttft;
      const mixed = largestBatch(server, last, true, rules);
      const decode = largestBatch(server, last, false, rules);
      const answers = decode.B && decode.B / (server.osl * tokenTime(server, decode.B, false));
      const lost = lostReason({ server, fits, keeps, mixed });
      return { server, fits, keeps, mixed, decode, answers, lost };
    });
    return { chip, searched };
  }

  /** Reason why a server makes no mixed deployment, in words; null if it makes one. */
  function lostReason({ server, fits, keeps, mixed }) {
    if (!fits) return "weights and the KV cache of a request do not fit";
    if (!keeps) return `a prompt takes at least ${seconds(server.firstTokenBound)}`;
    if (mixed.B) return null;
    const least = tokenTime(server, server.split.dp, true);
    return `a token takes ${seconds(least)} at the smallest batch`;
  }

  /** Real batch at which a decode server ends some answers a second: a line between whole ones. */
  function batchAtRate(server, largest, rate) {
    const { split: { dp }, osl } = server;
    const rateAt = (B) => B / (osl * tokenTime(server, B, false));
    if (rate * (1 + SLACK) >= rateAt(largest)) return largest;
    const above = firstInteger(dp, largest, (B) => rateAt(B) > rate);
    if (above === dp) return (dp * rate) / rateAt(dp);
    const [low, rise] = [rateAt(above - 1), rateAt(above) - rateAt(above - 1)];
    return above - 1 + (rise > 0 ? Math.min(1, Math.max(0, (rate - low) / rise)) : 0);
  }

  /** Quickest servers, by a key. */
  function quickest(searched, rate, key) {
    const byKey = new Map();
    for (const entry of searched) {
      const best = byKey.get(key(entry));
      if (!best || rate(entry) > rate(best)) byKey.set(key(entry), entry);
    }
    return [...byKey.values()];
  }
  /** Quickest prefill servers: those that keep TTFT by their bound alone are quickest apart. */
  const quickestPrefill = ({ ttft }, { searched }) => quickest(
    searched.filter(({ fits, keeps }) => fits && keeps), ({ server }) => server.prompts,
    ({ server }) => `${server.split.chips} ${server.firstToken <= ttft}`);

  /** Prefill and decode servers on the given chips that serve most, on the fewest chips. */
  function bestCounts(given, prefill, prompts, decode, answers) {
    let best = null;
    const most = Math.floor((given - prefill.split.chips) / decode.split.chips);
    for (let decodes = 1; decodes <= most; decodes += 1) {
      const left = Math.floor((given - decodes * decode.split.chips) / prefill.split.chips);
      const ended = decodes * answers;
      const prefills = Math.min(left, Math.max(1, Math.ceil(ended / prompts - SLACK)));
      const rate = Math.min(prefills * prompts, ended);
      const used = prefills * prefill.split.chips + decodes * decode.split.chips;
      if (!best || rate > best.rate || (rate === best.rate && used < best.used)) {
        best = { rate, used, prefills, decodes };
      }
    }
    return best;
  }

  const mixedName = (count, { name }) => `${count} x ${name}`;
  const poolsName = ({ prefills, decodes }, prefill, decode) =>
    `${prefills}P ${prefill.name} + ${decodes}D ${decode.name}`;

  /** Deployment's row, from its servers, their numbers, rates and times. */
  function makeRow(state, deployment) {
    const { isl, osl, given } = state;
    const { decode, prefill, time, requests, requestsBound, promptShare } = deployment;
    const price = findPrice(state, decode.chip);
    const usd = price && (price * given) / HOUR_S; // a second
    return {
      ...deployment, chip: decode.chip, fits: true,
      firstToken: prefill.firstToken, firstTokenBound: prefill.firstTokenBound,
      isLate: prefill.firstToken > state.ttft,
      band: deployment.bandRatios?.map((ratio) => ratio * time) ?? null,
      inFlight: requests * (prefill.firstToken + osl * time),
      userRate: 1 / time, chipRate: (requests * osl) / given,
      chipRateBound: (requestsBound * osl) / given,
      inputCost: usd && ((usd * promptShare) / (requests * isl)) * MTOK,
      outputCost: usd && ((usd * (1 - promptShare)) / (requests * osl)) * MTOK,
      requestCost: usd && usd / requests,
    };
  }

  /** Mixed servers with one split, as many as the chips make. */
  function mixedRow(state, { server, mixed: { B, limit } }) {
    const { osl, given, basis } = state;
    const count = Math.floor(given / server.split.chips);
    const [time, alone] = [true, false].map((mixed) => tokenTime(server, B, mixed));
    return makeRow(state, {
      kind: MIXED, name: mixedName(count, server), decode: server, prefill: server, B, time,
      requests: (count * B) / (osl * time),
      requestsBound: (count * B) / (osl * server.lowerAt(B, true)),
      promptShare: Math.max(0, 1 - alone / time), busy: null, limit,
      bandRatios: basis === CALIBRATED ? server.band : null, bytes: server.bytesAt(B),
    });
  }

  /** Two pools with the best counts; null if they do not fit on the chips. */
  function poolsRow(state, { server: prefill }, { server: decode, decode: largest, answers }) {
    const { osl, given, basis, data: { steps } } = state;
    const counts = bestCounts(given, prefill, prefill.prompts, decode, answers);
    if (!counts) return null;
    const { prefills, decodes } = counts;
    const [read, written] = [prefills * prefill.prompts, decodes * answers];
    const isPrefill = read < written * (1 - SLACK);
    const requests = isPrefill ? read : written;
    const B = isPrefill ? batchAtRate(decode, largest.B, requests / decodes) : largest.B;
    const whole = Math.max(decode.split.dp, Math.floor(B));
    const [readers, writers] = [prefills * prefill.split.chips, decodes * decode.split.chips];
    return makeRow(state, {
      kind: POOLS, name: poolsName(counts, prefill, decode), decode, prefill, B,
      time: (decodes * B) / (osl * requests), requests,
      requestsBound: Math.min(prefills * prefill.promptsBound,
        (decodes * Math.max(B, whole)) / (osl * decode.lowerAt(whole, false))),
      promptShare: readers / (readers + writers), busy: requests / read,
      limit: isPrefill ? "prefill" : largest.limit,
      bandRatios: basis === CALIBRATED ? steps.servers.pool_band : null,
      bytes: decode.bytesAt(whole),
    });
  }

  /** A chip's deployments, each server at its largest batch. */
  function deploymentsOn(state, search) {
    if (search.unsupported) return [];
    const usable = search.searched.filter(({ lost }) => !lost);
    const mixed = usable.map((entry) => mixedRow(state, entry));
    const decode = quickest(search.searched.filter((entry) => entry.decode.B),
      ({ answers }) => answers, ({ server }) => server.split.chips);
    const pools = quickestPrefill(state, search).flatMap((first) =>
      decode.flatMap((second) => poolsRow(state, first, second) ?? []));
    return [...mixed, ...pools];
  }

  /** Order: those that keep TTFT, rate to three digits, TTFT, TPOT, memory. */
  function compareRows(a, b) {
    const rounded = ({ chipRate }) => Number(chipRate.toPrecision(DIGITS));
    return a.isLate - b.isLate || rounded(b) - rounded(a) || a.firstToken - b.firstToken
      || a.time - b.time || a.bytes - b.bytes;
  }

  /** True for a row closer to the best one than estimates can tell. */
  function isTie({ ties }, best, row) {
    if (best.isLate !== row.isLate) return false;
    const ratio = best.chipRate / row.chipRate;
    if (best.kind !== row.kind) return ratio < ties.kind;
    const isSame = best.decode.split.chips === row.decode.split.chips
      && best.prefill.split.chips === row.prefill.split.chips;
    return ratio < (isSame ? ties.division : ties.chips);
  }

  /** The plan: chips' searches, and deployments, the best first, then chips without servers. */
  function plan(state) {
    const { basis, data: { steps } } = state;
    const searches = state.chips.map((chip) => searchChip(state, chip));
    const rows = searches.flatMap((search) => deploymentsOn(state, search)).sort(compareRows);
    const best = new Map();
    const counts = {};
    const ranked = rows.map((row) => {
      const first = best.get(row.chip) ?? row;
      best.set(row.chip, first);
      const isTied = basis === CALIBRATED && row !== first && isTie(steps.servers, first, row);
      const key = `${row.chip.id} ${row.kind}`;
      counts[key] = (counts[key] ?? 0) + 1;
      return {
        ...row, tie: first === row ? "best" : isTied ? "=" : "",
        isShown: counts[key] <= steps.servers.shown, ends: ENDS[row.limit],
      };
    });
    return { searches, rows: [...ranked, ...searches.filter(({ unsupported }) => unsupported)] };
  }

  // -------------------------------------------------------------------------------------- fronts

  /** Points that no other one exceeds in both rates, the most tokens/s/user first. */
  function paretoPoints(points) {
    let best = 0;
    return points.sort((a, b) => a.time - b.time || b.chipRate - a.chipRate)
      .filter(({ chipRate }) => {
        const isBetter = chipRate > best;
        best = Math.max(best, chipRate);
        return isBetter;
      });
  }

  /** Fronts by chip and kind: deployments that keep TTFT, at some batches. */
  function fronts(state, { searches }) {
    const { given, osl } = state;
    return searches.filter(({ unsupported }) => !unsupported).flatMap((search) => {
      const entries = search.searched.filter(({ fits }) => fits).map((entry) => {
        const { server, mixed, decode } = entry;
        const sizes = octaves(server.split.dp, server.maxBatch, FRONT_STEPS);
        return { ...entry, sizes: [...new Set([...sizes, mixed.B, decode.B])].filter(Boolean) };
      });
      const mixed = entries.filter(({ keeps }) => keeps).flatMap(({ server, sizes }) => {
        const count = Math.floor(given / server.split.chips);
        return sizes.map((B) => {
          const time = tokenTime(server, B, true);
          return { name: mixedName(count, server), B, time, chipRate: (count * B) / time / given };
        });
      });
      const prefill = quickestPrefill(state, search);
      const pools = entries.flatMap(({ server, sizes }) => sizes.flatMap((B) => {
        const time = tokenTime(server, B, false);
        return prefill.flatMap(({ server: first }) => {
          const counts = bestCounts(given, first, first.prompts, server, B / (osl * time));
          if (!counts) return [];
          const name = poolsName(counts, first, server);
          return { name, B, time, chipRate: (counts.rate * osl) / given };
        });
      }));
      return [[MIXED, mixed], [POOLS, pools]]
        .map(([kind, points]) => ({ chip: search.chip, kind, points: paretoPoints(points) }))
        .filter(({ points }) => points.length);
    });
  }

  // ----------------------------------------------------------------------------------- sentences

  /** Search space in words. */
  const searchedText = ({ data: { steps } }) =>
    `Searched: servers of up to ${counted(Math.max(...steps.servers.chips), "chip")} without`
    + " pipeline stages, mixed or as two pools; rooflines serve has larger ones.";

  const limitTexts = ({ tpot, ttft }) => [
    ...(tpot < Infinity ? [`TPOT ${seconds(tpot)}`] : []),
    ...(ttft < Infinity ? [`TTFT ${seconds(ttft)}`] : []),
  ];

  const basisNoun = (basis) => (basis === CALIBRATED ? "estimate" : "serialized time");

  /** The best deployment in a sentence, as `rooflines serve` has it. */
  function bestSentence({ basis, ttft, data: { steps } }, rows) {
    const [best] = rows;
    const { ties } = steps.servers;
    const words = steps.servers.basis[basis === CALIBRATED ? "estimate" : "serialized"];
    const band = best.band ? ` (${best.band.map(seconds).join(" to ")}, 80% of runs)` : "";
    const rate = ({ chipRate }) => significant(chipRate, DIGITS);
    const text = `Best ${words}: ${best.name} on ${best.chip.label}: ${rate(best)} output`
      + ` tokens/s/chip, TPOT ${seconds(best.time)}${band},`
      + ` ${significant(best.userRate, DIGITS)} tokens/s/user.`;
    const rival = rows.find((row) =>
      row.kind !== best.kind && row.chip === best.chip && row.tie === "=");
    const rivalText = rival ? ` ${rival.name} (${rate(rival)}) is within ${ties.kind}x, closer than`
      + " estimates can tell mixed servers from pools: try both." : "";
    const lateText = best.isLate ? ` No deployment keeps TTFT ${seconds(ttft)} by the`
      + ` ${basisNoun(basis)} of a prompt alone: ${seconds(best.firstToken)} here, at least`
      + ` ${seconds(best.firstTokenBound)}.` : "";
    return `${text}${rivalText}${lateText}`;
  }

  /** Reason why no deployment keeps the limits: the nearest that there is. */
  function nothingText(state, searches) {
    const { isl, tpot, ttft, given, basis } = state;
    const fitting = searches.flatMap(({ searched }) => searched ?? []).filter(({ fits }) => fits);
    if (!fitting.length) {
      return `Weights and a KV cache do not fit ${counted(given, "chip")}.`;
    }
    const smallest = Math.min(...fitting.map(({ server }) => server.split.chips));
    const isMixed = ({ split }) => split.chips + smallest > given; // two pools do not fit
    const least = (measure) => fitting.map(({ server }) => ({ server, time: measure(server) }))
      .reduce((a, b) => (b.time < a.time ? b : a));
    const place = ({ server }) => `${server.name} on ${server.chip.label}`;
    const prompt = least(({ firstTokenBound }) => firstTokenBound);
    if (prompt.time > ttft) {
      return `No deployment keeps TTFT ${seconds(ttft)}: a prompt of ${integer(isl)} tokens alone`
        + ` takes at least ${seconds(prompt.time)} on ${place(prompt)}.`;
    }
    const token = least((server) => tokenTime(server, server.split.dp, isMixed(server)));
    return `No deployment keeps TPOT ${seconds(tpot)} by the ${basisNoun(basis)}: the quickest`
      + ` token takes ${seconds(token.time)}, ${place(token)} at its smallest batch.`;
  }

  /** Chip's servers that make no mixed deployment, with reasons. */
  function lostLine({ data: { steps } }, { chip, searched = [] }) {
    const lost = searched.filter((entry) => entry.lost);
    if (!lost.length) return null;
    const most = steps.servers.shown_lost;
    const byReason = Object.entries(Object.groupBy(lost, (entry) => entry.lost));
    const texts = byReason.slice(0, most).map(([reason, entries]) =>
      `${entries.slice(0, most).map(({ server }) => server.name).join(", ")} (${reason})`);
    const shown = sum(byReason.slice(0, most).map(([, entries]) => Math.min(most, entries.length)));
    if (lost.length > shown) texts.push(`${lost.length - shown} more`);
    return `No mixed server on ${chip.label}: ${texts.join("; ")}.`;
  }

  /** Deployments whose TTFT is kept by the bound alone. */
  function lateLine({ ttft, basis }, rows) {
    const late = rows.filter(({ isShown, isLate }) => isShown && isLate);
    const names = [...new Set(late.map(({ name }) => name))].join(", ");
    return names ? `TTFT ${seconds(ttft)} is kept by the bound of a prompt alone, not by its`
      + ` ${basisNoun(basis)}: ${names}.` : null;
  }

  /** The verdict: `unable`, what cannot be served; `lead`, the best; and further `lines`. */
  function verdict(state, { rows, searches }) {
    const { model, isl, osl, lacking } = state;
    const unable = SENTENCES.unsupportedReasons(rows).join(" ");
    const deployments = rows.filter(({ unsupported }) => !unsupported);
    const able = searches.filter(({ unsupported }) => !unsupported);
    const lost = able.map((search) => lostLine(state, search));
    if (!deployments.length) {
      const nothing = able.length ? nothingText(state, able) : "";
      return { unable: [unable, nothing].filter(Boolean).join(" "), lead: "", lines: [] };
    }
    const total = isl + osl;
    const isTied = deployments.some(({ tie }) => tie === "=");
    const lines = [
      lacking.length ? `No calibration of ${joinNames(lacking.map(({ label }) => label))}.` : null,
      isTied ? "= is closer to its chip's best than estimates can tell." : null,
      lateLine(state, deployments),
      model.context && total > model.context
        ? `${integer(total)} tokens are beyond the model's context of ${integer(model.context)}.`
        : null,
      "Prompt alone: a prompt on an idle server; waiting is not in it.", ...lost,
    ];
    return { unable, lead: bestSentence(state, deployments), lines: lines.filter(Boolean) };
  }

  /** Command that prints the same. */
  function command(state, { rows, searches }) {
    const { model, format, isl, osl, tpot, ttft, given, basis, chips, data: { steps } } = state;
    const able = searches.filter(({ unsupported }) => !unsupported).map(({ chip }) => chip);
    const on = (able.length ? able : chips).map(({ id }) => id).join();
    const milliseconds = (time) => `${Number((time * 1000).toPrecision(12))}ms`;
    const hasEstimates = rows.some(({ decode }) => decode?.estimated);
    return [
      "rooflines serve", model.id, steps.formats[format], `isl=${isl}`, `osl=${osl}`, "--on", on,
      "--chips", given, ...(tpot < Infinity ? ["--tpot", milliseconds(tpot)] : []),
      ...(ttft < Infinity ? ["--ttft", milliseconds(ttft)] : []), "--pp", 1,
      ...(basis !== CALIBRATED && hasEstimates ? ["--calibration", "none"] : []),
    ].join(" ");
  }

  return {
    MIXED, POOLS, plan, fronts, serversWorkload, tokenTime, limitTexts, searchedText, verdict,
    command,
  };
})();
