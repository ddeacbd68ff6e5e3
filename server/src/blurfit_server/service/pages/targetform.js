// Only the products with the target, where public rows stand for those of the features: mirrors
// `blurfit.theory.forms`, whose proofs it rests upon.

import { NUDGE, radiusOf, sensitivity, sumOf } from "./forms.js";
import { columnsFor, INTERCEPT, isLabel } from "./schema.js";

const FREE = 3.5; // b²/R² up to which y² costs nothing

/** {sent, reach}: the places with a column of the target, which are the last, and how far these
 * reach; never further than the products of all columns, of which they are a part. */
export function targetForm(agreement, { columns, sent }) {
  const first = columns.length + 1 - columnsFor(agreement.schema.target).length;
  const whole = (neighbours) =>
    sensitivity(agreement.weights[INTERCEPT], radiusOf(agreement), neighbours);
  return {
    sent: sent.filter(([, column]) => column >= first),
    reach: (neighbours) => Math.min(partOf(agreement, neighbours) * NUDGE, whole(neighbours)),
  };
}

/** Δ of x·tᵀ and t², ‖x‖ ≤ R of the constant and the features, ‖t‖ ≤ b of the target. */
function partOf({ schema, weights }, neighbours) {
  const { target, features } = schema;
  const [b, constant] = [weights[target.name], weights[INTERCEPT]];
  const inner = Math.sqrt(sumOf(features.map(({ name }) => weights[name] ** 2)));
  const length = Math.hypot(constant, inner);
  if (neighbours === "zero-out") {
    return Math.sqrt(2 * (b * length) ** 2 + (isLabel(target) ? 0 : b ** 4));
  }
  if (target.kind === "categorical") {
    return Math.sqrt(Math.max(4 * (b * length) ** 2 + 2 * b ** 4, 8 * (b * inner) ** 2));
  }
  const isFree = isLabel(target) || b ** 2 <= FREE * length ** 2;
  return Math.sqrt(8 * (b * length) ** 2 + (isFree ? 0 : 4 * b ** 4));
}
