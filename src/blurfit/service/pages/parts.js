// The numbers that a contributor sends, in runs that share a grid: mirrors
// `blurfit.agreement.numbers`.

import { formOf } from "./forms.js";
import { noiseOf } from "./moment.js";

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
