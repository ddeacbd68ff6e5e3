// How long an honest submission can be, but for a probability that is accounted in δ: mirrors
// `blurfit.agreement.proving` and `blurfit.theory.numerics`.

import { noncentralUpperTail, upperTail } from "./chisquare.js";
import { logUpperTail } from "./gaussian.js";
import { DISCRETE_SHARE } from "./grid.js";

const LARGEST_PROBABILITY = 1e-12;
const SHARE = 1e-4; // of δ
const LEAST_PROBABILITY = 1e-100;
const MOST_NONCENTRALITY = 1e6; // beyond it Python's series fails, and two bounds take its place
const SHARE_OF_REST = 0.01;

/** The norm that an honest submission hardly ever exceeds; ∞ where ε leaves no probability for it. */
export function radiusOf({ calibration }, { step, deviations, bound }, counts) {
  const { model, quorum } = calibration;
  const { epsilon } = model;
  const delta = model.delta / (1 - DISCRETE_SHARE);
  const logarithm =
    Math.log(SHARE * delta) - epsilon - Math.log1p(Math.exp(-epsilon)) - Math.log(quorum);
  if (logarithm < Math.log(LEAST_PROBABILITY)) return Infinity;
  const scale = deviations[0] * Math.sqrt(counts[0]);
  const steps = step * Math.sqrt(counts.reduce((sum, one) => sum + one, 0));
  const gamma = Math.min(LARGEST_PROBABILITY, Math.exp(logarithm));
  const coarse = gamma * Math.exp(-((steps / scale) ** 2) / 24);
  return Math.sqrt(energyCeiling(coarse, counts.length, bound, scale)) + 1.5 * steps;
}

/** x with P(‖v + N(0, s²I)‖² > x) = γ for ‖v‖ = r, or a little less. */
function energyCeiling(gamma, dimension, shift, scale) {
  const noncentrality = (shift / scale) ** 2;
  const exact = (theta) =>
    quantile((x) => Math.log(noncentralUpperTail(x, dimension, theta)), gamma, dimension + theta);
  if (noncentrality <= MOST_NONCENTRALITY) return scale ** 2 * exact(noncentrality);
  const along = shift + scale * quantile(logUpperTail, gamma * (1 - SHARE_OF_REST), 1);
  const rest = (x) => Math.log(upperTail(x, dimension - 1));
  const across = dimension > 1 ? quantile(rest, gamma * SHARE_OF_REST, dimension) : 0;
  const atLimit = exact(MOST_NONCENTRALITY);
  return Math.min(along ** 2 + scale ** 2 * across, (shift ** 2 * atLimit) / MOST_NONCENTRALITY);
}

/** x beyond the mean with logTail(x) = ln γ, by secants: the logarithm of such a tail is concave, so
 * that they come from beyond it and never miss. */
function quantile(logTail, gamma, mean) {
  const wanted = Math.log(gamma);
  let x = mean;
  let value = logTail(x) - wanted;
  let step = Math.sqrt(mean) + 1;
  let [before, valueBefore] = [x, value];
  while (value > 0) {
    [before, valueBefore] = [x, value];
    x += step;
    step *= 2;
    value = logTail(x) - wanted;
  }
  for (let i = 0; i < 100 && Math.abs(value) > 1e-12 * Math.abs(wanted); i++) {
    const next = x - (value * (x - before)) / (value - valueBefore);
    [before, valueBefore] = [x, value];
    x = next;
    value = logTail(x) - wanted;
    if (x === before) break;
  }
  return x;
}
