// The public grid on which noise is exact: mirrors `blurfit.agreement.numbers`.

import { BEYOND, demand, exactly, finite, isAbove } from "./checks.js";
import { formOf } from "./forms.js";
import { logDelta } from "./gaussian.js";

export const ROUNDING = 2 ** -11; // bounds are enlarged by this share, which pays for rounding
const PROVED_ROUNDING = 2 ** -7; // where submissions are proved to be short
export const DISCRETE_SHARE = 1e-3; // of δ, kept back for noise that is discrete
export const LATTICE_SHARE = { moment: 0, input: 2 ** -10 };
const RESOLUTION = { moment: 2 ** -10, input: 2 ** -13, shared: 2 ** -11, proved: 2 ** -5 };
const WEIGHT_RESOLUTION = 2 ** -20;
const ERRORS_IN_A_SCALE = 2 ** 12;
const MOST_STEPS = 2 ** 52;

/** The share by which bounds are enlarged. */
export const roundingOf = ({ proofs }) => (proofs ? PROVED_ROUNDING : ROUNDING);

/** Refuse steps that are no powers of two, coarser than the noise allows, or absurdly fine. `size` is d
 * for `input`, and how many rows zzᵀ has for `moment`. */
export function verifyGrid({ grid, calibration, databases, proofs }, size) {
  exactly(grid, ["quadratic", "linear", "dither"], "grid");
  const most = coarsest(calibration, size, databases?.length > 0, proofs);
  most.dither = Math.min(most.dither, grid.linear);
  for (const [name, value] of Object.entries(most)) {
    demand(value > 0 && finite(value), "the least step", value, "a positive number");
    const step = grid[name];
    const isNear = step > (value / 2) * (1 - BEYOND) && step <= value * (1 + BEYOND);
    const isFine = isNear && step === powerOfTwoBelow(step);
    demand(isFine, `grid.${name}`, step, `a power of two up to ${value}, not far below`);
  }
  const { quadratic, linear, dither } = grid;
  const isOne = calibration.mechanism !== "moment" || (quadratic === linear && linear === dither);
  demand(isOne, "grid", `${quadratic}, ${linear}, ${dither}`, "one step, three times");
}

/** How large the steps may be; finer where there are two databases, and coarser again with proofs. */
function coarsest(calibration, size, isShared, proofs) {
  if (calibration.mechanism === "moment") {
    const rounding = roundingOf({ proofs });
    const slack = (rounding * calibration.reach.sums) / (1 + rounding) / 2;
    let coarse = isShared ? RESOLUTION.shared : RESOLUTION.moment;
    if (proofs) coarse = Math.min(RESOLUTION.proved, coarse * Math.sqrt(calibration.quorum));
    const step = Math.min(slack / size, noiseOf(calibration) * coarse);
    return { quadratic: step, linear: step, dither: step };
  }
  const { setting } = calibration;
  const root = Math.sqrt(setting.quorum);
  const errors = (ERRORS_IN_A_SCALE * size) / Math.min(1, calibration.model.epsilon);
  const scale = powerOfTwoBelow(setting.weight_bound * WEIGHT_RESOLUTION);
  return {
    quadratic: (calibration.sigma_u / root) * RESOLUTION.input,
    linear: (calibration.sigma_b / root) * RESOLUTION.input,
    dither: (scale * leastCurvature(calibration)) / errors,
  };
}

/** Each value as a whole number of steps: towards zero, or to the nearest (even ones for ties); or,
 * where `drawn` gives numbers u from 0 to 1, ⌊steps + u⌋, without bias. */
export function inSteps(values, step, towardZero, drawn = null) {
  return values.map((value) => {
    const steps = value / step;
    if (!(Math.abs(steps) < MOST_STEPS)) {
      throw new RangeError(`Expected ${value} to be below 2^52 steps of ${step}.`);
    }
    if (drawn) return Math.floor(steps + drawn()) + 0;
    return towardZero ? Math.trunc(steps) + 0 : roundHalfEven(steps) + 0;
  });
}

function roundHalfEven(value) {
  const floor = Math.floor(value);
  const rest = value - floor;
  if (rest !== 0.5) return rest < 0.5 ? floor : floor + 1;
  return floor % 2 === 0 ? floor : floor + 1;
}

/** The largest power of two that is at most the value. */
function powerOfTwoBelow(value) {
  demand(value > 0 && Number.isFinite(value), "the least step", value, "a positive number");
  let power = 2 ** Math.floor(Math.log2(value));
  while (power > value) power /= 2;
  while (power * 2 <= value) power *= 2;
  return power;
}

function leastCurvature({ setting, shares, model, sigma_u, ridge }) {
  const probability = shares.spectrum || (DISCRETE_SHARE / 2) * model.delta;
  const s = sigma_u / Math.sqrt(setting.quorum);
  return spectrumFloor(s, setting.dimension, setting.quorum, probability) + ridge;
}

/** a = s²·max(0, √(n−1−d) − √d − √(2 ln(1/γ)))² ≤ λ_min of the others' noise, but for γ. */
export function spectrumFloor(s, dimension, records, probability) {
  if (probability === 0 || records - 1 < dimension) return 0;
  const bracket =
    Math.sqrt(records - 1 - dimension) -
    Math.sqrt(dimension) -
    Math.sqrt(2 * Math.log(1 / probability));
  return (s * Math.max(0, bracket)) ** 2;
}

// ---- What the noise of a `moment` collection keeps: mirrors `blurfit.theory.moments`. The
// sums of a quorum of records are Δ/σ-GDP, one submission is √n·Δ₁/σ-GDP. How far records reach is
// never taken from the agreement: `forms.js` computes it from the schema and the weights.

/** σ/√n: the deviation of what one contributor adds to a number on the diagonal. */
export function noiseOf({ sigma, quorum }) {
  return sigma / Math.sqrt(quorum);
}

/** √n·Δ₁/σ of one submission, for any two records that reach so far. */
export function submissionMu({ sigma, quorum }, reach) {
  return (Math.sqrt(quorum) * reach.submission) / sigma;
}

/** Whether the stated μ keeps what is promised; refused unless it bounds that of the noise. */
export function verifyMoment(calibration, reach) {
  const { model, sigma } = calibration;
  demand(model.releases === "any", "releases", model.releases, "any");
  demand(model.proved === true, "proved", model.proved, true);
  isAbove("reach of the sums", calibration.reach.sums, reach.sums);
  isAbove("reach of a submission", calibration.reach.submission, reach.submission);
  isAbove("mu", calibration.mu, reach.sums / sigma);
  return logDelta(calibration.mu, model.epsilon) <= Math.log(model.delta);
}

// ---- The numbers that a contributor sends, in runs that share a grid: mirrors
// `blurfit.agreement.numbers`.

// deviation/step, as in Python: below, noise would hardly show; above, sums would not be exact
export const LEAST_RATIO = 2 ** -10;
export const MOST_RATIO = 2 ** 45;

/** The numbers that a contributor sends, in runs that share a grid: where each begins and ends, its
 * steps, the deviation of each number's noise, and a bound on the norm of the exact numbers. */
export function partsOf(agreement) {
  const { calibration, grid } = agreement;
  if (calibration.mechanism === "input") {
    const { dimension: d, quorum } = calibration.setting;
    const root = Math.sqrt(quorum);
    const { q_bound: q, p_bound: p } = calibration.setting;
    const part = (start, step, fine, sigma, bound) => {
      const deviations = new Array(d).fill(sigma / root);
      return { start, end: start + d, step, fine, towardZero: true, deviations, bound };
    };
    return [
      part(0, grid.quadratic, grid.quadratic, calibration.sigma_u, q),
      part(d, grid.linear, grid.dither, calibration.sigma_b, p),
    ];
  }
  const diagonal = noiseOf(calibration);
  const form = formOf(agreement);
  const deviations = form.counts.map((count) => diagonal / Math.sqrt(count));
  const [step, bound] = [grid.quadratic, form.reach("zero-out")];
  const [start, end] = [0, deviations.length];
  const atRandom = agreement.proofs === true; // how numbers are rounded to the grid
  return [{ start, end, step, fine: step, towardZero: false, atRandom, deviations, bound }];
}
