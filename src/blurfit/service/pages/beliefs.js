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
import { askedOf, isLabel, unscale } from "./schema.js";

const POINTS = 121;
export const SAID = Symbol("said"); // some answer, whatever it is

/** [{column, candidates, probabilities}] for each question that was asked. */
export function beliefs(agreement, record, sent) {
  const exact = exactly(agreement);
  const deviations = partsOf(agreement).flatMap((part) => part.deviations);
  const misfit = (numbers) =>
    numbers.reduce((sum, one, i) => sum + ((sent.numbers[i] - one) / deviations[i]) ** 2, 0) / 2;
  return askedOf(agreement.schema).map((column) => {
    const candidates = candidatesOf(column);
    const misfitOf = (value) => misfit(exact({ ...record, [column.name]: value }));
    const misfits = candidates.map(misfitOf);
    if (record[column.name] === null && typeof candidates[0] === "number") {
      return unsaid(column, misfits, misfitOf(null));
    }
    return { column, candidates, probabilities: normalised(misfits) };
  });
}

/** Of a number that was not said: whether there is one at all, if that were as likely as not. */
function unsaid(column, misfits, silent) {
  const least = Math.min(silent, ...misfits);
  const said = misfits.reduce((sum, one) => sum + Math.exp(least - one), 0) / misfits.length;
  const total = said + Math.exp(least - silent);
  const probabilities = [said / total, Math.exp(least - silent) / total];
  return { column, candidates: [SAID, null], probabilities };
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
  const silence = column.optional ? [null] : [];
  if (column.kind === "categorical") return [...column.levels, ...silence];
  if (isLabel(column)) return [false, true, ...silence];
  return Array.from({ length: POINTS }, (_, i) => unscale(column, (2 * i) / (POINTS - 1) - 1));
}

function normalised(misfits) {
  const least = Math.min(...misfits);
  const weights = misfits.map((one) => Math.exp(least - one));
  const total = weights.reduce((sum, one) => sum + one, 0);
  return weights.map((one) => one / total);
}
