// Tails of χ², central and not, as sums of positive numbers: nothing cancels, so small
// probabilities keep their digits. They serve to check quantiles that someone else has computed:
// to evaluate a probability is much easier than to invert it.

import { logUpperTail } from "./gaussian.js";

const NEGLIGIBLE = 1e-18;
const ROOT_PI = Math.sqrt(Math.PI);

/** P(χ²_m > x). */
export function upperTail(x, freedom) {
  return x <= 0 ? 1 : gammaUpper(freedom / 2, x / 2);
}

/** P(χ²_m < x), by the series P(a, y) = y^a e^{−y}/Γ(a + 1)·Σ y^k/((a + 1)···(a + k)). Below the
 * mean, where lower tails are; above it, 1 is bound enough. */
export function lowerTail(x, freedom) {
  if (x <= 0) return 0;
  if (!(x < freedom)) return 1;
  const a = freedom / 2;
  const y = x / 2;
  let term = 1;
  let sum = 1;
  for (let k = 1; term > NEGLIGIBLE * sum; k++) {
    term *= y / (a + k);
    sum += term;
  }
  return Math.exp(logPoisson(a, y)) * sum;
}

/**
 * P(χ²_m(θ) > x), θ the noncentrality.
 *
 * It is a Poisson(θ/2) mixture of central tails Q(m/2 + j, x/2), and Q(b + 1, y) = Q(b, y) + t(b)
 * with t(b) = y^b e^{−y}/Γ(b + 1). Summed by parts: Q(m/2, y) + Σ_i t(m/2 + i)·P(Poisson > i).
 */
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

/**
 * ln(y^b e^{−y}/Γ(b + 1)) for b ≥ 0: with Γ(b + 1) = √(2πb)(b/e)^b e^{c(b)} it is
 * −y·h(b/y) − ½ln(2πb) − c(b), h(r) = r ln r − r + 1, which does not cancel (Loader 2000).
 */
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
