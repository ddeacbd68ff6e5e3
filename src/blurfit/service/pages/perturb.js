// Blur a record before it leaves: mirrors `blurfit.contributor.perturb`.
//
//   input:  q̃ = ⌊q⌋ + N(0, σ_u²/n),  p̃ = ⌊p⌋ + N(0, σ_b²/n) + dither
//   moment: M̃ = [qqᵀ] + E,  p̃ = [p] + N(0, τ²σ²/n),  E_jj ~ N(0, σ²/n), E_jk ~ N(0, σ²/(2n))

import { inSteps } from "./grid.js";
import { lossOf, terms } from "./loss.js";
import { discreteGaussian, fractionOf, newIdentifier, uniformBits } from "./noise.js";
import { encode } from "./schema.js";

/** What will be blurred, in whole steps of the grid. */
export function onGrid(agreement, record) {
  const { q, p } = terms(lossOf(agreement), encode(agreement.schema, record));
  const isMoment = agreement.calibration.mechanism === "moment";
  const numbers = isMoment ? q.flatMap((one, row) => q.slice(row).map((other) => one * other)) : q;
  return {
    quadratic: inSteps(numbers, agreement.grid.quadratic, !isMoment),
    linear: inSteps(p, agreement.grid.linear, !isMoment),
  };
}

/** The noise's deviation for each number, in the user's sight: {quadratic: [...], linear}. */
export function scalesOf({ mechanism, setting, ...noise }) {
  const root = Math.sqrt(setting.quorum);
  const d = setting.dimension;
  if (mechanism === "input") {
    return { quadratic: new Array(d).fill(noise.sigma_u / root), linear: noise.sigma_b / root };
  }
  const diagonal = noise.sigma_m / root;
  const quadratic = [];
  for (let row = 0; row < d; row++) {
    for (let column = row; column < d; column++) {
      quadratic.push(row === column ? diagonal : diagonal / Math.SQRT2);
    }
  }
  return { quadratic, linear: noise.sigma_p / root };
}

/** {identifier, quadratic, linear, exact}: what is sent, and for the page alone what it was. */
export function perturb(agreement, record) {
  const { grid } = agreement;
  const whole = onGrid(agreement, record);
  const scales = scalesOf(agreement.calibration);
  const linear = blurred(
    whole.linear,
    whole.linear.map(() => scales.linear),
    grid.linear,
  );
  return {
    identifier: newIdentifier(),
    quadratic: blurred(whole.quadratic, scales.quadratic, grid.quadratic),
    linear: dithered(linear, grid.linear, grid.dither),
    exact: {
      quadratic: whole.quadratic.map((steps) => steps * grid.quadratic),
      linear: whole.linear.map((steps) => steps * grid.linear),
    },
  };
}

// s = deviation/step, as in Python: below, noise would hardly show; above, sums would not be exact.
const LEAST_RATIO = 2 ** -10;
const MOST_RATIO = 2 ** 45;

function blurred(steps, scales, step) {
  const fractions = new Map();
  return steps.map((whole, i) => {
    const scale = scales[i];
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
