// Blur a record before it leaves: mirrors `blurfit.contributor.blur`.
//
//   input:  q̃ = ⌊q⌋ + N(0, σ_u²/n),  p̃ = ⌊p⌋ + N(0, σ_b²/n) + dither
//   moment: the products of z = (c, ωv), each + N(0, σ²/n) on the diagonal, N(0, σ²/(2n)) off it;
//           in a later wave, what its map makes of the record

import { formOf, valuesOf } from "./forms.js";
import { LEAST_RATIO, MOST_RATIO, inSteps, partsOf } from "./grid.js";
import { lossOf, terms } from "./loss.js";
import { discreteGaussian, fractionOf, newIdentifier, uniformBits } from "./noise.js";
import { encode } from "./schema.js";

/** A function from records to the numbers that each would send without any noise. */
export function exactly(agreement) {
  const { schema } = agreement;
  if (agreement.calibration.mechanism === "input") {
    const loss = lossOf(agreement);
    return (record) => {
      const { q, p } = terms(loss, encode(schema, record));
      return [...q, ...p];
    };
  }
  const form = formOf(agreement);
  return (record) => form.products(valuesOf(schema, record));
}

/** What will be blurred, in whole steps of the grid. */
export function onGrid(agreement, record) {
  const exact = exactly(agreement)(record);
  return partsOf(agreement).flatMap(({ start, end, step, towardZero, atRandom }) =>
    inSteps(exact.slice(start, end), step, towardZero, atRandom ? uniform : null),
  );
}

/** {identifier, numbers, exact}: what is sent, and for the page alone what it was. */
export function perturb(agreement, record) {
  const whole = onGrid(agreement, record);
  const parts = partsOf(agreement);
  const numbers = parts.flatMap(({ start, end, step, fine, deviations }) =>
    dithered(blurred(whole.slice(start, end), deviations, step), step, fine),
  );
  const exact = parts.flatMap(({ start, end, step }) =>
    whole.slice(start, end).map((steps) => steps * step),
  );
  return { identifier: newIdentifier(), numbers, exact };
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

/** Fills the gaps of the grid: post-processing, which costs nothing. */
function dithered(values, step, fine) {
  const bits = Math.round(Math.log2(step / fine));
  if (bits === 0) return values;
  return values.map((value) => value + (Number(uniformBits(bits)) - 2 ** (bits - 1)) * fine);
}
