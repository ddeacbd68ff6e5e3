// Blur a record before it leaves: mirrors `blurfit.contributor.blur`.
//
//   the products of z = (c, ωv), each + N(0, σ²/n) on the diagonal, N(0, σ²/(2n)) off it; in a later
//   wave, what its map makes of the record

import { formOf, valuesOf } from "./forms.js";
import { inSteps, LEAST_RATIO, MOST_RATIO, noiseFor } from "./grid.js";
import { discreteGaussian, fractionOf, newIdentifier, uniformBits } from "./noise.js";

/** A function from records to the numbers that each would send without any noise: of several entries
 * of one person their mean, where the agreement allows that. */
export function exactly(agreement) {
  const { schema, diaries, wave } = agreement;
  const form = formOf(agreement);
  const products = (record) => form.products(valuesOf(schema, record));
  return (record) => {
    if (!Array.isArray(record)) return products(record);
    if (!diaries || wave !== null || record.length === 0) throw new RangeError("Expected one entry.");
    const each = record.map(products);
    return each[0].map((_, i) => each.reduce((sum, one) => sum + one[i], 0) / each.length);
  };
}

export function onGrid(agreement, record) {
  const { step, atRandom } = noiseFor(agreement);
  return inSteps(exactly(agreement)(record), step, atRandom ? uniform : null);
}

/** {identifier, numbers, exact}: what is sent, and for the page alone what it was. */
export function perturb(agreement, record) {
  const whole = onGrid(agreement, record);
  const { step, deviations } = noiseFor(agreement);
  const exact = whole.map((steps) => steps * step);
  return { identifier: newIdentifier(), numbers: blurred(whole, deviations, step), exact };
}

/** A multiple of 2⁻⁵³ from 0 to 1, each as likely as the others. */
const uniform = () => Number(uniformBits(53)) * 2 ** -53;

function blurred(steps, deviations, step) {
  const fractions = new Map();
  return steps.map((whole, i) => {
    const scale = deviations[i];
    if (!(scale >= LEAST_RATIO * step && scale <= MOST_RATIO * step)) {
      throw new RangeError(`Expected noise of ${scale} between 2^-10 and 2^45 steps of ${step}.`);
    }
    if (!fractions.has(scale)) fractions.set(scale, fractionOf(scale / step));
    return Number(BigInt(whole) + discreteGaussian(...fractions.get(scale))) * step;
  });
}
