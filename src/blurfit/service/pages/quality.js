// Whether a model is any good, in words that need no statistics.

import { number } from "./numerals.js";
import { isLabel } from "./schema.js";
import { aimOf, inferenceOf } from "./published.js";

const VERDICTS = [
  [0.05, "It says next to nothing about a single person."],
  [0.3, "It says a little about a single person; most of what makes people differ is not in it."],
  [0.7, "It says a good deal about a single person, and leaves much open."],
  [1.01, "It says most of what there is to say about a single person."],
];

/** {verdict, facts: [[what, words]]} for one output; null where no errors are known. */
export function qualityOf(model, output) {
  const inference = inferenceOf(model, output);
  if (!inference || inference.r_squared === null) return null; // a curve's spread is not known
  const { r_squared: share, residual_variance: variance } = inference;
  const aim = aimOf(model);
  const isShare = aim.kind === "categorical" || isLabel(aim);
  const deviation = Math.sqrt(variance);
  const without = share < 1 ? deviation / Math.sqrt(1 - share) : Number.POSITIVE_INFINITY;
  const percent = number(100 * share, 2);
  return {
    verdict: VERDICTS.find(([below]) => share < below)[1],
    facts: [
      [
        "Share of the spread explained",
        `${percent} % (R² = ${share.toFixed(3)}, the privacy noise taken out)`,
      ],
      [
        "Residual deviation",
        isShare
          ? `${number(100 * deviation, 3)} percentage points`
          : `${number(deviation, 3)}: so far people typically lie from the prediction` +
            (Number.isFinite(without) ? `, and ${number(without, 3)} from the plain average` : ""),
      ],
    ],
  };
}
