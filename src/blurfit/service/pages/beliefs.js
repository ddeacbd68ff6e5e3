// How much the blurred numbers give away: for each answer, what someone could believe who sees
// the submission and knows everything else about the person. This is the strongest reader that
// differential privacy is about; anyone real knows less.
//
// For each value that the answer could have, the numbers that it would give are compared with
// those that leave. The noise is normal and known, so the probability of the value, if all were
// alike beforehand, is ∝ exp(−½Σ((sent − would be)/deviation)²). An illustration of one draw; the
// promise is the ε of the agreement.

import { lossOf, terms } from "./loss.js";
import { scalesOf } from "./perturb.js";
import { encode, isLabel, unscale } from "./schema.js";

const POINTS = 121;

/** [{column, candidates, probabilities}] for each feature and the target. */
export function beliefs(agreement, record, sent) {
  const { schema, calibration } = agreement;
  const scales = scalesOf(calibration);
  const loss = lossOf(agreement);
  return [...schema.features, schema.target].map((column) => {
    const candidates = candidatesOf(column, column === schema.target && isLabel(schema));
    const misfits = candidates.map((value) =>
      misfit(agreement, loss, scales, encode(schema, { ...record, [column.name]: value }), sent),
    );
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

function candidatesOf(column, asLabel) {
  if (column.kind === "categorical") return column.levels;
  if (column.kind === "binary" || asLabel) return [false, true];
  return Array.from({ length: POINTS }, (_, i) => unscale(column, (2 * i) / (POINTS - 1) - 1));
}

function misfit(agreement, loss, scales, encoded, sent) {
  const { q, p } = terms(loss, encoded);
  let sum = 0;
  if (agreement.calibration.mechanism === "input") {
    q.forEach((value, i) => (sum += ((sent.quadratic[i] - value) / scales.quadratic[i]) ** 2));
  } else {
    let place = 0;
    for (let row = 0; row < q.length; row++) {
      for (let column = row; column < q.length; column++, place++) {
        sum += ((sent.quadratic[place] - q[row] * q[column]) / scales.quadratic[place]) ** 2;
      }
    }
  }
  p.forEach((value, i) => (sum += ((sent.linear[i] - value) / scales.linear) ** 2));
  return sum / 2;
}

function normalised(misfits) {
  const least = Math.min(...misfits);
  const weights = misfits.map((one) => Math.exp(least - one));
  const total = weights.reduce((sum, one) => sum + one, 0);
  return weights.map((one) => one / total);
}
