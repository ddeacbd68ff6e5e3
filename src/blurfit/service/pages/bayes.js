// Linear Bayes over a few priors: what `blurfit.learning.linear_bayes` and `step` share.

import * as m from "./algebra.js";
import { sandwich } from "./denoise.js";

export const PASSES = 3;

/** So many numbers from low to high, each the same multiple of the last. */
export function spaced(low, high, count) {
  return Array.from({ length: count }, (_, i) => low * (high / low) ** (i / (count - 1)));
}

/** {theta, second, evidence} of one prior: θ̂ = PA·T⁻¹t, by three passes. */
export function posterior(gram, prior, fixed, seen, { noise, share, isJoint }) {
  const before = m.times(prior, gram);
  let second = prior;
  let [theta, solved] = [null, null];
  for (let pass = 0; pass < PASSES; pass++) {
    const blurred = m.scaled(share, sandwich(noise, second));
    if (isJoint) blurred[0][0] = 0; // the prior is on the target at the features' means
    solved = m.inverted(m.add(fixed, blurred));
    const gain = m.times(before, solved.inverse);
    theta = m.apply(gain, seen);
    second = m.minus(m.add(m.outer(theta, theta), prior), m.times(gain, gram, prior));
  }
  const distance = m.dot(seen, m.apply(solved.inverse, seen));
  return { theta, second, evidence: -(solved.logDeterminant + distance) / 2 };
}

/** How probable each prior is, given what was seen. */
export function weightsOf(found) {
  const logs = found.map(({ logPrior, evidence }) => logPrior + evidence);
  const most = Math.max(...logs);
  const weights = logs.map((one) => Math.exp(one - most));
  const sum = m.total(weights);
  return weights.map((one) => one / sum);
}
