// The public grid on which noise is exact: mirrors `blurfit.agreement.numbers`.

import { BEYOND, demand, finite, isAbove } from "./checks.js";
import { formOf } from "./forms.js";
import { logDelta } from "./gaussian.js";

const ROUNDING = 2 ** -11; // bounds are enlarged by this share, which pays for rounding
const PROVED_ROUNDING = 2 ** -7; // where submissions are proved to be short
export const DISCRETE_SHARE = 1e-3; // of δ, kept back for noise that is discrete
const RESOLUTION = { whole: 2 ** -10, shared: 2 ** -11, proved: 2 ** -5 };
const MOST_STEPS = 2 ** 52;

export const roundingOf = ({ proofs }) => (proofs ? PROVED_ROUNDING : ROUNDING);

/** Refuse a step that is no power of two, coarser than the noise allows, or absurdly fine. `size` is how
 * many rows zzᵀ has. */
export function verifyStep({ step, calibration, databases, proofs }, size) {
  demand(finite(step), "step", step);
  const most = coarsest(calibration, size, databases?.length > 0, proofs);
  demand(most > 0 && finite(most), "the least step", most);
  const isNear = step > (most / 2) * (1 - BEYOND) && step <= most * (1 + BEYOND);
  demand(isNear && step === powerOfTwoBelow(step), "step", step);
}

/** How large the steps may be; finer where there are two databases, and coarser again with proofs. */
function coarsest(calibration, size, isShared, proofs) {
  const rounding = roundingOf({ proofs });
  const slack = (rounding * calibration.reach.sums) / (1 + rounding) / 2;
  let coarse = isShared ? RESOLUTION.shared : RESOLUTION.whole;
  if (proofs) coarse = Math.min(RESOLUTION.proved, coarse * Math.sqrt(calibration.quorum));
  return Math.min(slack / size, noiseOf(calibration) * coarse);
}

/** Each value as a whole number of steps: the nearest (even ones for ties); or, where `drawn` gives
 * numbers u from 0 to 1, ⌊steps + u⌋, without bias. */
export function inSteps(values, step, drawn = null) {
  return values.map((value) => {
    const steps = value / step;
    if (!(Math.abs(steps) < MOST_STEPS)) {
      throw new RangeError(`Expected ${value} to be below 2^52 steps of ${step}.`);
    }
    if (drawn) return Math.floor(steps + drawn()) + 0;
    return roundHalfEven(steps) + 0;
  });
}

function roundHalfEven(value) {
  const floor = Math.floor(value);
  const rest = value - floor;
  if (rest !== 0.5) return rest < 0.5 ? floor : floor + 1;
  return floor % 2 === 0 ? floor : floor + 1;
}

function powerOfTwoBelow(value) {
  demand(value > 0 && Number.isFinite(value), "the least step", value);
  let power = 2 ** Math.floor(Math.log2(value));
  while (power > value) power /= 2;
  while (power * 2 <= value) power *= 2;
  return power;
}

// ---- What the noise of a `moment` collection keeps: mirrors `blurfit.theory.moments`. The
// sums of a quorum of records are Δ/σ-GDP, one submission is √n·Δ₁/σ-GDP. How far records reach is
// never taken from the agreement: `forms.js` computes it from the schema and the weights.

/** σ/√n: the deviation of what one contributor adds to a number on the diagonal. */
export const noiseOf = ({ sigma, quorum }) => sigma / Math.sqrt(quorum);

/** √n·Δ₁/σ of one submission, for any two records that reach so far. */
export const submissionMu = ({ sigma, quorum }, reach) => (Math.sqrt(quorum) * reach.submission) / sigma;

/** Whether the stated μ keeps what is promised; refused unless it bounds that of the noise. */
export function verifyMoment(calibration, reach) {
  const { model, sigma } = calibration;
  isAbove("reach of the sums", calibration.reach.sums, reach.sums);
  isAbove("reach of a submission", calibration.reach.submission, reach.submission);
  isAbove("mu", calibration.mu, reach.sums / sigma);
  return logDelta(calibration.mu, model.epsilon) <= Math.log(model.delta);
}

// ---- How the numbers that a contributor sends are blurred: mirrors `blurfit.agreement.numbers`.

// deviation/step, as in Python: below, noise would hardly show; above, sums would not be exact
export const LEAST_RATIO = 2 ** -10;
export const MOST_RATIO = 2 ** 45;

/** The step of the grid, whether numbers are rounded to it at random, the deviation of each number's
 * noise, and a bound on the norm of the exact numbers. */
export function noiseFor(agreement) {
  const { calibration, step, proofs } = agreement;
  const { counts, reach } = formOf(agreement);
  const diagonal = noiseOf(calibration);
  return {
    step,
    atRandom: proofs === true,
    deviations: counts.map((count) => diagonal / Math.sqrt(count)),
    bound: reach("zero-out"),
  };
}
