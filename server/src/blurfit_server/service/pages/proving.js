// A proof that goes along with a share: that what was blurred is no longer than an honest submission.
// Mirrors `blurfit.agreement.numbers`. It comes when an agreement asks for proofs.

import { fromHexadecimal } from "./bytes.js";
import { demand } from "./checks.js";
import { formOf } from "./forms.js";
import { logUpperTail } from "./gaussian.js";
import { DISCRETE_SHARE, noiseFor } from "./grid.js";
import { errorOf, provesSomething, shard, shortVector } from "./prio3.js";

const [PROOFS, ALGORITHM, SOUNDNESS] = [3, 0xffffb1f1, -40];
const [LOG_HASHES, LEAST_WEIGHT, DIGITS, DOUBT] = [80, 2 ** 8, 8, 1e-7]; // doubt of a reader

/** What is proved under an agreement; refused (NotCertified) where it could prove nothing. */
export function provingOf(agreement) {
  const part = noiseFor(agreement);
  const { counts } = formOf(agreement);
  const radius = radiusOf(agreement, part, counts);
  demand(Number.isFinite(radius), "epsilon", agreement.calibration.model.epsilon);
  const reach = rounded(radius / part.step);
  const scale = scaleOf(counts);
  const weights = counts.map((count) => BigInt(Math.floor(count * scale)));
  const largest = Math.floor(reach / Math.sqrt(Math.min(...counts))) + 1;
  const digits = 1 + Math.floor(largest.toString(2).length / 2);
  const ceiling = ((BigInt(scale) * BigInt(reach) ** 2n + 2n) / 3n) * 3n;
  const circuit = shortVector(weights, digits, ceiling);
  demand(provesSomething(circuit), "numbers in steps", largest);
  const soundness = LOG_HASHES + PROOFS * errorOf(circuit);
  demand(soundness <= SOUNDNESS, "how likely a lie is believed", `2^${soundness}`);
  return circuit;
}

/** The words of both shares, as bytes, of numbers in whole steps; `random` are four seeds, which
 * nobody keeps but as the shares themselves. */
export function provedShares(agreement, fingerprint, { identifier, steps }, random) {
  const context = fromHexadecimal(fingerprint);
  const prio3 = { circuit: provingOf(agreement), proofs: PROOFS, algorithm: ALGORITHM, context };
  return shard(prio3, steps, identifier, random);
}

/** The radius in steps, up to eight binary digits, as everyone rounds it. */
function rounded(reach) {
  const unit = 2 ** Math.max(0, Math.floor(Math.log2(reach)) + 1 - DIGITS);
  const units = reach / unit;
  demand(Math.abs(units - Math.round(units)) >= DOUBT, "radius in steps", reach); // computers round others alike
  return Math.ceil(units) * unit;
}

function scaleOf(counts) {
  if (counts.every(Number.isInteger)) return 1;
  return 2 ** Math.max(0, Math.ceil(Math.log2(LEAST_WEIGHT / Math.min(...counts))));
}

// ---- How long an honest submission can be, but for a probability that is accounted in δ: mirrors
// `blurfit.agreement.numbers` and `blurfit.theory.gaussian`.

const [LARGEST_PROBABILITY, LEAST_PROBABILITY, SHARE] = [1e-12, 1e-100, 1e-4]; // share of δ
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
  let [x, value, step] = [mean, logTail(mean) - wanted, Math.sqrt(mean) + 1];
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

// ---- Tails of χ², central and not, as sums of positive numbers: nothing cancels, so small
// probabilities keep their digits. They serve to check quantiles that someone else has computed:
// to evaluate a probability is much easier than to invert it.

const [NEGLIGIBLE, ROOT_PI] = [1e-18, Math.sqrt(Math.PI)];

/** P(χ²_m > x). */
export const upperTail = (x, freedom) => x <= 0 ? 1 : gammaUpper(freedom / 2, x / 2);

/** P(χ²_m(θ) > x), θ the noncentrality: a Poisson(θ/2) mixture of central tails Q(m/2 + j, x/2), and
 * Q(b + 1, y) = Q(b, y) + t(b) with t(b) = y^b e^{−y}/Γ(b + 1). Summed by parts it is
 * Q(m/2, y) + Σ_i t(m/2 + i)·P(Poisson > i). */
export function noncentralUpperTail(x, freedom, noncentrality) {
  const [a, y, mean] = [freedom / 2, x / 2, noncentrality / 2];
  if (mean === 0) return upperTail(x, freedom);
  // beyond `last` both factors are falling, and P(Poisson > i) alone is below e^{-1000}
  const last = Math.ceil(mean + 50 * Math.sqrt(mean) + 1500);
  let pmf = Math.exp(logPoisson(last, mean));
  let beyond = 0; // P(Poisson > i), from the far end downwards
  let sum = 0;
  let term = Math.exp(logPoisson(a + last, y));
  for (let i = last; i >= 0; i--) {
    sum += term * beyond;
    beyond += pmf;
    // what underflows on the way is found again where it matters
    pmf = pmf > 1e-290 ? (pmf * i) / mean : Math.exp(logPoisson(i - 1, mean));
    term = term > 1e-290 ? (term * (a + i)) / y : Math.exp(logPoisson(a + i - 1, y));
    if (i < mean && i < y && term * beyond < NEGLIGIBLE * sum) break;
  }
  return upperTail(x, freedom) + sum;
}

/** Q(a, y) for 2a a whole number: e^{−y}Σ y^k/k!, or 2Φ(−√(2y)) and the like for a half. */
function gammaUpper(a, y) {
  const isHalf = a % 1 !== 0;
  let sum = isHalf ? 2 * Math.exp(logUpperTail(Math.sqrt(2 * y))) : 0;
  for (let b = isHalf ? 0.5 : 0; b < a; b++) sum += Math.exp(logPoisson(b, y));
  return Math.min(1, sum);
}

/** ln(y^b e^{−y}/Γ(b + 1)) for b ≥ 0: with Γ(b + 1) = √(2πb)(b/e)^b e^{c(b)} it is
 * −y·h(b/y) − ½ln(2πb) − c(b), h(r) = r ln r − r + 1, which does not cancel (Loader 2000). */
function logPoisson(b, y) {
  if (b < 0) return -Infinity;
  if (b === 0) return -y;
  return -y * deviance((b - y) / y) - Math.log(2 * Math.PI * b) / 2 - stirlingRest(b);
}

/** (1 + t)ln(1 + t) − t; for small t by its series t²/2 − t³/6 + t⁴/12 − … */
function deviance(t) {
  if (Math.abs(t) > 0.1) return (1 + t) * Math.log1p(t) - t;
  let power = t;
  let sum = 0;
  for (let k = 2; k < 40; k++) {
    power *= k === 2 ? t : -t;
    sum += power / (k * (k - 1));
  }
  return sum;
}

/** ln Γ(b + 1) − ln(√(2πb)(b/e)^b). */
function stirlingRest(b) {
  if (b >= 15) {
    const r = 1 / (b * b);
    return (1 / 12 - r * (1 / 360 - r * (1 / 1260 - r * (1 / 1680 - r / 1188)))) / b;
  }
  let gamma = b % 1 === 0 ? 1 : ROOT_PI; // Γ(1), Γ(½)
  for (let k = b % 1 === 0 ? 1 : 0.5; k <= b; k++) gamma *= k;
  return Math.log(gamma) - (Math.log(2 * Math.PI * b) / 2 + b * Math.log(b) - b);
}
