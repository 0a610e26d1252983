"use strict";
/* The verdict: sentences about a state's rows. No page is needed.

   A sentence names its chips; a network only where it moves bytes; a lead only where it is larger
   than the timings' spread. What cannot run comes first. */

const SENTENCES = (() => {
  const { TOLERANCE, significant, si, seconds, integer, percent, compact, bytes } = NUMBERS;
  const { counted, joinNames, usd } = NUMBERS;
  const { ALWAYS, NEVER, BEYOND } = EVALUATION;
  const { BOUND, DECODE, KERNEL, MATMUL, MODEL, hasCustomRate, featuredRow } = STATE;
  const { measuredQuantiles, evaluateChip, peakShare, tokensAt } = STATE;
  const { TIME, BELOW, INSIDE, ABOVE } = MEASUREMENT;
  const UNKNOWN = "Accuracy unknown:";
  const MIN_LEAD = 1.2; // smallest lead of bounds that counts, where there are no timings

  const chipsText = (number, chip) => (number > 1 ? `${number} × ${chip.label}` : chip.label);
  const rangeText = ({ p10, p90 }) => `${significant(p10)} to ${significant(p90)} times`;
  const chipNames = (rows) => joinNames(rows.map(({ chip }) => chip.label));

  /** Measurements that an estimate's band has inside. */
  function bandShare({ subject, isTraining }) {
    if (subject !== MODEL) return "80% of the timings";
    return isTraining ? "80% of fitted steps" : "80% of held-out runs";
  }
  /** True if a bound is a mean over uniform routing, which another routing may beat. */
  const isMeanBound = ({ subject, isTraining, model }) =>
    subject !== MATMUL && !isTraining && Boolean(model?.has_experts);
  /** Bound in words: at least, or a mean. */
  const stepBoundText = (state, lower) => (isMeanBound(state)
    ? `${seconds(lower)} at the mean of uniform routing` : `at least ${seconds(lower)}`);
  /** Estimate with its band, and the bound. */
  function estimateText(state, { estimate: { time, band }, times: { lower } }) {
    const bandText = band ? ` (${band.map(seconds).join(" to ")}, ${bandShare(state)})` : "";
    return `${seconds(time)}${bandText}, ${stepBoundText(state, lower)}`;
  }
  /** Noun for the shown times. */
  function basisNoun({ basis, subject, question }) {
    if (basis !== BOUND) return "estimate";
    if (question?.isMean) return "mean of uniform routing";
    return subject === MODEL ? "serialized time" : "bound";
  }

  /** Reasons why rows have no numbers; chips with one reason in one sentence. */
  function unsupportedReasons(rows) {
    const reasons = [...new Set(rows.map(({ unsupported }) => unsupported))].filter(Boolean);
    return reasons.map((reason) =>
      `${chipNames(rows.filter(({ unsupported }) => unsupported === reason))}: ${reason}.`);
  }

  // ------------------------------------------------------------------------------ which is best

  /** Ranking of the two fastest chips, if the lead exceeds the timings' spread. */
  function ranking(state, rows) {
    const timed = rows.filter(({ time, fits }) => time && fits !== false)
      .sort((a, b) => a.time - b.time);
    if (timed.length < 2) return null;
    const [first, second] = timed;
    const lead = second.time / first.time;
    const [factor, names] = [significant(lead), chipNames([first, second])];
    const claim = `${first.chip.label} is the fastest of the chosen chips: ${seconds(first.time)},`
      + ` ${factor} times as fast as ${second.chip.label}.`;
    if (first.measuredRatio && second.measuredRatio) {
      const spreads = [first, second].map(({ measuredRatio: { p10, p90 } }) => p90 / p10);
      return lead > Math.max(...spreads) ? claim : `${names} are too close to call: ${factor}`
        + ` times apart, and timings of one chip spread more.`;
    }
    if (lead <= MIN_LEAD) return `${names} differ by a factor of ${factor}: no lead.`;
    return `By ${basisNoun(state)} alone, without timings of both, ${claim}`;
  }

  // -------------------------------------------------------------------------- a measured number

  /** Measured time over the bound. */
  function besideBound({ boundShare, beatsBound, lower }) {
    const bound = `the bound of ${seconds(lower)}`;
    if (beatsBound) {
      return `${significant(boundShare)} times as fast as ${bound}, which no run can be: other`
        + " dtypes, smaller sizes, operands in cache, sparsity or another count of tokens may"
        + " explain it";
    }
    if (boundShare >= 1) return `as fast as ${bound}, within the digits typed`;
    return `${significant(1 / boundShare)} times ${bound}, ${percent(boundShare)} of its speed`;
  }

  /** Measured time over the estimate, and its place in the band. */
  function besideEstimate({ estimate, estimateRatio, place }) {
    if (!estimate) return "";
    const places = {
      [BELOW]: ", faster than its band", [INSIDE]: ", inside its band",
      [ABOVE]: ", above its band",
    };
    const band = place ? `${places[place]} (${estimate.band.map(seconds).join(" to ")})` : "";
    return `; ${significant(estimateRatio)} times the estimate of ${seconds(estimate.time)}${band}`;
  }

  /** Measured number beside bound and estimate. */
  function numberLine(state, { chip, split, measured }) {
    const { measurement, shards } = state;
    if (!measurement) return null;
    const { text, kind } = measurement;
    if (!measured) return `${text} is no rate of this: type its time, or a share of peak.`;
    const chips = state.subject === MODEL ? split.chips : shards;
    const typed = kind === TIME ? "" : ` (${text})`;
    return `Measured ${seconds(measured.time)}${typed} on ${chipsText(chips, chip)}:`
      + ` ${besideBound(measured)}${besideEstimate(measured)}.`;
  }

  // ---------------------------------------------------------------------------------- matmuls

  /** Limit that the peak share tends to as B grows, for a row that is never compute-bound. */
  const shareLimit = ({ workload, critical: { mathSlope, limitSlope } }) =>
    percent((mathSlope / limitSlope) * workload.mathEfficiency);

  /** Reason why no B makes a row compute-bound. */
  function neverText({ workload, critical, critical90 }) {
    const noun = critical90 ? "token" : "sequence";
    const { limit, limitSlope, mathSlope } = critical;
    const slopes = mathSlope === null ? "" : `: each ${noun} adds more ${limit} time than compute,`
      + ` ${seconds(limitSlope)} against ${seconds(mathSlope)}`;
    const share = critical90 ? `; at most ${shareLimit({ workload, critical })} of peak` : "";
    return `No B makes it compute-bound${slopes}${share}.`;
  }

  /** Critical batch in words. */
  function thresholdText(row) {
    const { critical, critical90, footprint: { maxBatch } } = row;
    if (critical.outcome === ALWAYS) return "Compute-bound from any B.";
    if (critical.outcome === NEVER) return neverText(row);
    const noun = critical90 ? "token" : "sequence";
    const start = `Compute-bound from ${counted(critical.size, noun)}`;
    if (critical90) {
      const size = critical90.outcome === ALWAYS ? "any B" : integer(critical90.size);
      return `${start}, 90% of peak from ${size}.`;
    }
    const isBeyond = maxBatch !== null && critical.size > maxBatch;
    return `${start}${isBeyond ? `, more than the ${integer(maxBatch)} that fit` : ""}.`;
  }

  /** Matmul's lead: peak share, time and bottleneck. */
  function matmulLead(state, row) {
    const { times: { bound, lower }, estimate, plateau } = row;
    const place = chipsText(state.shards, row.chip);
    const size = `B = ${integer(state.B)}`;
    if (!estimate) {
      const share = peakShare(row, lower);
      const shareText = share >= 1 - TOLERANCE ? "up to all" : `at most ${percent(share)}`;
      return `On ${place} ${shareText} of peak at ${size}: ${bound}-bound, at least`
        + ` ${seconds(lower)}. ${thresholdText(row)}`;
    }
    const plateauText = plateau.size ? ` 90% of its plateau of ${si(plateau.rate, "FLOP/s")}`
      + ` from ${counted(plateau.size, "token")}.` : "";
    return `On ${place} about ${percent(row.share)} of peak at ${size}:`
      + ` ${estimateText(state, row)}, ${estimate.bound}-bound.${plateauText}`;
  }

  /** Collective time beside math time. */
  function collectiveLine({ chip, workload, times: { byResource } }) {
    if (!(byResource.network > 0)) return null;
    return `The ${workload.collective} over ${chip.link_name} takes ${seconds(byResource.network)},`
      + ` the math ${seconds(byResource.compute)}.`;
  }

  /** Timed kernels over the shown time, in quantiles. */
  function measuredLine(state, { chip, measuredRatio }) {
    const { timed_dtypes: timed, min_long_bound_s: minLong } = state.data.measured;
    if (hasCustomRate(state, chip)) return `${UNKNOWN} no timings for custom numbers.`;
    if (state.shards > 1) return `${UNKNOWN} timings are of one chip.`;
    if (!measuredRatio) {
      const timedDtypes = timed[chip.id] ? `, only in ${timed[chip.id]}` : "";
      return `${UNKNOWN} no timings of ${chip.label} in ${state.dtypes.name}${timedDtypes}.`;
    }
    const { over, length, timings, p10 } = measuredRatio;
    const bound = length === "short" ? `a bound below ${seconds(minLong)}` : "this bound";
    const subject = over === "bound" ? bound : "this estimate";
    const cached = over === "bound" && p10 < 1 ? "; those below it in cache" : "";
    return `Timed kernels take ${rangeText(measuredRatio)} ${subject}`
      + ` (${timings}, p10 to p90${cached}).`;
  }

  /** Tokens that B counts, where the layer is one expert's. */
  function expertLine({ data, D, F }) {
    const layer = data.layers.find((sizes) => sizes.D === D && sizes.F === F);
    return layer?.name.includes("expert")
      ? `The layer is one expert's (${layer.name}): B counts its tokens alone.` : null;
  }

  // ------------------------------------------------------------------------------------- kernels

  /** A bottleneck in words. */
  const bottleneckText = (bound) =>
    (bound === KERNELS.VECTOR ? "bound by the vector unit" : `${bound}-bound`);

  /** Rate in a time: FLOP/s with the peak share, else the traffic. */
  function kernelRate(state, { workload, times: { work }, estimate }, time) {
    const { isVector, nominal } = workload;
    if (isVector || !work.flops) return `${si(work.memoryBytes, "B")} of compulsory traffic`;
    const rate = work.flops / time;
    const most = estimate || state.question.isMean ? "" : "at most ";
    return `${most}${si(rate, "FLOP/s")}, ${percent(rate / nominal.peak)} of peak`;
  }

  /** Kernel's time and bound; under uniform routing its mean, beside the strict bound. */
  function kernelTime(state, row) {
    const { times: { lower, bound }, estimate, strict } = row;
    const least = state.question.isMean
      ? `${seconds(lower)} at the mean of uniform routing, at least ${seconds(strict)} whatever`
        + " the routing"
      : `at least ${seconds(lower)}`;
    if (!estimate) return `${least}, ${bottleneckText(bound)}`;
    const { time, band } = estimate;
    const bandText = band ? ` (${band.map(seconds).join(" to ")}, ${bandShare(state)})` : "";
    return `about ${seconds(time)}${bandText}, ${least}, ${bottleneckText(bound)}`;
  }

  /** Kernel's lead: time, bottleneck and rate. */
  function kernelLead(state, row) {
    const { question } = state;
    const options = KERNELS.optionsText(question);
    const subject = options ? `${question.name} (${options})` : question.name;
    const rate = kernelRate(state, row, row.time ?? row.times.lower);
    return `On ${row.chip.label} ${subject}: ${kernelTime(state, row)}; ${rate}.`;
  }

  /** Critical size along a letter in words. */
  function criticalText({ axis, outcome, size, isLargest, limitIntensity: limit, ridge }) {
    if (outcome === ALWAYS) return `Compute-bound at any ${axis}.`;
    if (outcome === BEYOND) return `Compute-bound only at ${axis} beyond 2^53.`;
    if (outcome !== NEVER) {
      return `Compute-bound ${isLargest ? "up to" : "from"} ${axis} = ${integer(size)}.`;
    }
    const start = `Compute-bound at no ${axis}`;
    if (limit === null || ridge === null || limit >= ridge) return `${start}.`;
    return `${start}: its intensity tends to ${significant(limit, 4)} of`
      + ` ${significant(ridge, 4)} FLOP/B.`;
  }

  /** Missing timings, or an estimate beyond them. */
  function timedLine({ form }, { workload, estimate }) {
    if (!form.timed) return "Untimed: no timings of this kernel are fitted, the bound alone.";
    if (!workload.fit) return `Untimed: no timings of this on ${workload.chip.label}.`;
    const beyond = [
      estimate?.isOtherEngine ? "timed with another engine" : null,
      estimate?.isOutside ? "beyond the timed sizes" : null,
    ].filter(Boolean);
    return beyond.length ? `The estimate is ${joinNames(beyond)}: its band is wider.` : null;
  }

  /** Experts or rows that a mean counts. */
  function meanLine({ isMean, name }, { times: { work: { touched } } }) {
    if (!isMean) return null;
    const noun = name === "experts" ? "experts" : "rows";
    return `Uniform routing touches ${significant(touched, 4)} ${noun} in the mean.`;
  }

  /** Exponentials, which the bound leaves out. */
  function exponentialLine({ workload: { isVector, rates }, times: { work: { exponentials } } }) {
    if (!exponentials || isVector) return null;
    const timed = rates.exp
      ? `${seconds(exponentials / rates.exp)} at ${si(rates.exp, "/s")}, not in the bound`
      : "untimed, no sourced rate";
    return `${si(exponentials, "").trim()} exponentials: ${timed}.`;
  }

  /** Sentences about a kernel's thresholds, routing and what is not counted. */
  function kernelLines({ question }, row) {
    const { workload: { isVector, rates }, times: { work } } = row;
    const lacksPeak = isVector && work.vectorFlops && rates.peak === null;
    return [
      criticalText(row.critical), meanLine(question, row),
      lacksPeak ? "Vector work is untimed: no fp32 peak of the vector unit is published." : null,
      timedLine(question, row), exponentialLine(row), ...question.kind.notes,
    ];
  }

  // --------------------------------------------------------------------------------- model steps

  /** Overlap's effect on a training step, and where its estimate comes from. */
  function overlapLine({ data: { software: names } }, { workload, times: { lower, upper } }) {
    const { slowdown, of_math: ofMath, fitted_steps: steps, software } = workload;
    const overlap = `With full overlap ${seconds(lower)}, without any ${seconds(upper)}.`;
    if (!slowdown) return overlap;
    const base = ofMath ? "the compute time with the bubble" : "the latter";
    return `${overlap} The estimate is ${significant(slowdown)} times ${base}, as in`
      + ` ${counted(steps, "measured step")} (${names[software] ?? software}).`;
  }

  /** Served runs over the shown time, in quantiles, for this chip or all; only decode is timed. */
  function servedLine(state, { measuredRatio, time }) {
    const { phase, basis } = state;
    const over = basis === BOUND || time === null ? "bound" : "estimate";
    const quantiles = measuredRatio ?? measuredQuantiles(state, { subject: phase, over });
    if (!quantiles) return `${UNKNOWN} no timings of ${phase}.`;
    const source =
      `(median ${significant(quantiles.p50)}; ${quantiles.timings}, p10 to p90).`;
    const divisor = over === "bound" ? "such a bound" : "such estimates";
    return `Served runs take ${rangeText(quantiles)} ${divisor} ${source}`;
  }

  /** Step that a lead is about. */
  function stepText({ isTraining, phase, model, format, B, S }) {
    const named = `${model.name} in ${format}`;
    const tokens = `of ${integer(S)} tokens`;
    if (isTraining) {
      return `a step of training of ${named} over ${counted(B, "sequence")} ${tokens}`;
    }
    return phase === DECODE ? `a token (TPOT) of ${named}`
      : `prefill of ${counted(B, "prompt")} ${tokens} by ${named}`;
  }

  /** Rates, cost and time to first token on the shown basis. */
  function ratesText(state, { split, cost, firstToken, firstTokenBound, ...row }, time) {
    const isBare = row.estimate || isMeanBound(state);
    const [most, least] = isBare ? ["", ""] : ["at most ", "at least "];
    const { B, isTraining, phase } = state;
    const chipRate = `${compact(tokensAt(state, B) / time / split.chips)} tokens/s/chip`;
    const userRate = `${significant(tokensAt(state, 1) / time)} tokens/s/user`;
    const price = cost ? `, ${least}${usd(cost)}/Mtok` : "";
    if (isTraining) return `${most}${chipRate}, ${percent(peakShare(row, time))} MFU${price}`;
    if (phase !== DECODE) return `${most}${chipRate}${price}`;
    const first = firstToken
      ? `; TTFT at least ${seconds(firstTokenBound)},`
        + ` prefill ${seconds(firstToken)} on an idle server`
      : "";
    return `${most}${userRate}, ${chipRate}${price}${first}`;
  }

  /** Model step's lead: its time, tokens/s and cost. */
  function modelLead(state, row) {
    const { chip, times, estimate, split } = row;
    const start = `On ${chipsText(split.chips, chip)} ${stepText(state)} takes`;
    const time = row.time ?? times.serial;
    const timeText = estimate ? `about ${estimateText(state, row)}`
      : `${seconds(time)} if every kernel ran at its bound, one after another,`
        + ` ${stepBoundText(state, times.lower)}`;
    return `${start} ${timeText}, ${times.bound}-bound: ${ratesText(state, row, time)}.`;
  }

  /** Context that a model is not made for, and format that it is not published in. */
  function modelLines({ model, S, format, isTraining }) {
    const { name, context } = model;
    const isBeyond = context && S > context;
    return [
      isBeyond
        ? `S = ${integer(S)} is beyond the ${integer(context)} tokens that ${name} is made for.`
        : null,
      format !== model.format && !isTraining ? `${name} is published in ${model.format}.` : null,
    ];
  }

  /** Torus axes that chips take, where they take several. */
  const axesLine = ({ workload: { axes } }) =>
    (axes ? `The chips take axes ${axes} of a torus.` : null);

  // ------------------------------------------------------------------------------- does not fit

  /** Split with which a step fits a chip, or in training the context. */
  function remedy(state, { chip, footprint: { maxContext } }) {
    const { isTraining, splits } = state;
    const enough = splits.find((split) =>
      (isTraining || split.dp === 1) && evaluateChip({ ...state, split }, chip).fits);
    if (enough) return `; ${enough.name} is enough`;
    return isTraining && maxContext ? `; up to S = ${integer(maxContext)} it does` : "";
  }

  /** Sentence about chips that a matmul's operands do not fit. */
  function largeOperands({ shards }, rows) {
    const chips = rows.map(({ chip, footprint: { capacity } }) =>
      `${chipsText(shards, chip)} (${bytes(capacity)} of memory)`);
    const total = bytes(rows[0].footprint.bytes);
    return `The operands do not fit ${joinNames(chips)}: ${total} on a chip.`;
  }

  /** Sentence about chips that a step does not fit, and what would. */
  function largeStep(state, rows) {
    const { isTraining, model, format } = state;
    const chips = rows.map((row) => `${chipsText(row.split.chips, row.chip)}`
      + ` (${bytes(row.footprint.capacity)} of memory${remedy(state, row)})`);
    const [{ split, footprint: { fixedBytes, cacheBytes } }] = rows;
    const [fixed, cached] = isTraining ? ["states", "saved tensors"] : ["weights", "KV cache"];
    return `${model.name} in ${format} does not fit ${joinNames(chips)}: ${bytes(fixedBytes)} of`
      + ` ${fixed} and ${bytes(cacheBytes)} of ${cached} on`
      + ` ${split.chips > 1 ? "each" : "the"} chip.`;
  }

  /** Chips without a calibration, where bounds are shown for them. */
  function lackingLine({ lacking, subject, question }) {
    if (!lacking.length || (question && !question.form.timed)) return null;
    const names = joinNames(lacking.map(({ label }) => label));
    const shown = subject === MODEL ? "times of kernels one after another" : "bounds";
    return `Shown are ${shown}: no calibration of ${names} for this.`;
  }

  /** Sentences about a row's accuracy, thresholds and overlap. */
  function detailLines(state, row) {
    if (state.subject === MATMUL) {
      return [collectiveLine(row), measuredLine(state, row), expertLine(state)];
    }
    if (state.subject === KERNEL) return kernelLines(state, row);
    const showsThreshold = state.basis === BOUND && !state.isTraining;
    return [
      showsThreshold ? thresholdText(row) : null, ...modelLines(state), axesLine(row),
      state.isTraining ? overlapLine(state, row) : servedLine(state, row),
    ];
  }

  const LEADS = { [MATMUL]: matmulLead, [MODEL]: modelLead, [KERNEL]: kernelLead };

  /** The verdict: `unable`, what cannot run; `lead`, about one chip; and further `lines`. */
  function verdict(state, rows) {
    const isModel = state.subject === MODEL;
    const supported = rows.filter(({ unsupported }) => !unsupported);
    const tooLarge = supported.filter(({ fits }) => fits === false);
    const large = isModel ? largeStep : largeOperands;
    const unable = [
      ...unsupportedReasons(rows), ...(tooLarge.length ? [large(state, tooLarge)] : []),
    ].join(" ");
    const featured = featuredRow(supported);
    const nothingRuns = !featured || (isModel && featured.fits === false);
    if (nothingRuns) return { unable, lead: "", lines: [] };
    const uncalibrated = supported.filter(({ time }) => time === null);
    const lines = [
      numberLine(state, featured), ...detailLines(state, featured), lackingLine(state),
      uncalibrated.length ? `Without a calibration: ${chipNames(uncalibrated)}.` : null,
      ranking(state, supported),
    ];
    const lead = LEADS[state.subject](state, featured);
    return { unable, lead, lines: lines.filter(Boolean) };
  }

  return { unsupportedReasons, rangeText, shareLimit, thresholdText, criticalText, verdict };
})();
