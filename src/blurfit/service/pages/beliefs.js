// How much the blurred numbers give away: for each answer, what someone could believe who sees
// the submission and knows everything else about the person. This is the strongest reader that
// differential privacy is about; anyone real knows less.
//
// For each value that the answer could have, the numbers that it would give are compared with
// those that leave. The noise is normal and known, so the probability of the value, if all were
// alike beforehand, is ∝ exp(−½Σ((sent − would be)/deviation)²). An illustration of one draw; the
// promise is the ε of the agreement.

import { partsOf } from "./parts.js";
import { exactly } from "./perturb.js";
import { isLabel, questionsOf, unscale } from "./schema.js";

const POINTS = 121;

/** [{column, candidates, probabilities}] for each feature and the target. */
export function beliefs(agreement, record, sent) {
  const exact = exactly(agreement);
  const deviations = partsOf(agreement).flatMap((part) => part.deviations);
  const misfit = (numbers) =>
    numbers.reduce((sum, one, i) => sum + ((sent.numbers[i] - one) / deviations[i]) ** 2, 0) / 2;
  return questionsOf(agreement.schema).map((column) => {
    const candidates = candidatesOf(column);
    const misfits = candidates.map((value) => misfit(exact({ ...record, [column.name]: value })));
    return { column, candidates, probabilities: normalised(misfits) };
  });
}

/** The shortest run of candidates that holds so much of the probability: [lowest, highest]. */
export function likelyRange({ candidates, probabilities }, share = 0.95) {
  let best = [0, candidates.length - 1];
  let end = 0;
  let sum = 0;
  for (let start = 0; start < candidates.length; start++) {
    while (end < candidates.length && sum < share) sum += probabilities[end++];
    if (sum < share) break;
    if (end - 1 - start < best[1] - best[0]) best = [start, end - 1];
    sum -= probabilities[start];
  }
  return best.map((place) => candidates[place]);
}

function candidatesOf(column) {
  if (column.kind === "categorical") return column.levels;
  if (isLabel(column)) return [false, true];
  return Array.from({ length: POINTS }, (_, i) => unscale(column, (2 * i) / (POINTS - 1) - 1));
}

function normalised(misfits) {
  const least = Math.min(...misfits);
  const weights = misfits.map((one) => Math.exp(least - one));
  const total = weights.reduce((sum, one) => sum + one, 0);
  return weights.map((one) => one / total);
}
