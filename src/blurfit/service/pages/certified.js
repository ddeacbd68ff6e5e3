// What the noise of an `input` collection keeps: mirrors the theorem in
// `blurfit.theory.certified`, whose proof it rests upon.
//
// The agreement states the theorem's intermediate numbers. Each quantile among them is checked by
// evaluating the probability that it must not exceed, so nothing has to be searched for here;
// everything else is computed again.

import { lowerTail, noncentralUpperTail, upperTail } from "./chisquare.js";
import { logUpperTail } from "./gaussian.js";
import { gaussLegendre } from "./quadrature.js";

const HAIR = 1 + 1e-9; // to how many digits a stated number is taken for what it should be
const EXACT_FREEDOM = 1e6;
const EXACT_NONCENTRALITY = 1e6;
const SHARE_OF_REST = 0.01;
const LOG_TAIL = 60;
const LOG_SAFETY = 1e-10;

/** a = s²·max(0, √(n−1−d) − √d − √(2 ln(1/γ)))² ≤ λ_min of the others' noise, but for γ. */
export function spectrumFloor(s, dimension, records, probability) {
  if (probability === 0 || records - 1 < dimension) return 0;
  const bracket =
    Math.sqrt(records - 1 - dimension) -
    Math.sqrt(dimension) -
    Math.sqrt(2 * Math.log(1 / probability));
  return (s * Math.max(0, bracket)) ** 2;
}

/** 2√n·√(R_q²/σ_u² + R_p²/σ_b²) of one submission, for any two records. */
export function submissionMu({ setting, sigma_u, sigma_b }) {
  const reach = Math.hypot(setting.q_bound / sigma_u, setting.p_bound / sigma_b);
  return 2 * Math.sqrt(setting.quorum) * reach;
}

export function verifyInput(calibration, { agree, demand }) {
  const { setting, model, shares, loss, sigma_u, sigma_b, ridge, rule } = calibration;
  demand(rule === "certified", "rule", rule, "certified, which is proved");
  demand(model.releases === 1, "releases", model.releases, 1);
  demand(model.proved === true, "proved", model.proved, true);
  const { dimension: d, quorum: n, q_bound: radius } = setting;
  demand(n > d, "quorum", n, `more than ${d}`);
  const s = sigma_u / Math.sqrt(n);
  const energy = loss.record_energy * HAIR;
  const floor = loss.gram_floor / HAIR;
  demand(energyIsEnough(energy, d, radius, s, shares.record), "record_energy", energy, "larger");
  demand(floorIsLow(floor / s ** 2, n - d, shares.gram), "gram_floor", floor, "smaller");
  const spectrum = spectrumFloor(s, d, n, shares.spectrum);
  agree("spectrum_floor", loss.spectrum_floor, spectrum);
  if (ridge < 0) demand(-ridge < spectrum, "ridge", ridge, `more than ${-spectrum}`);
  const convexity = ridge < 0 ? loss.gram_floor * (1 + ridge / spectrum) : loss.gram_floor + ridge;
  demand(convexity > 0, "strong_convexity", convexity, "positive");
  agree("strong_convexity", loss.strong_convexity, convexity);
  const determinant = Math.log1p(loss.record_energy / convexity);
  agree("determinant_loss", loss.determinant_loss, determinant);
  demand(
    gradientIsEnough(setting, loss, s, shares.record),
    "gradient_sensitivity",
    loss.gradient_sensitivity,
    "larger",
  );
  const spent = logGradientDelta(
    model.epsilon - determinant,
    loss.gradient_sensitivity / sigma_b,
    d,
  );
  const total = shares.gram + 2 * shares.record + shares.spectrum + shares.gradient;
  return total <= model.delta * (1 + 1e-12) && spent <= Math.log(shares.gradient);
}

/** P(‖v + N(0, s²I)‖² > energy) ≤ γ for every ‖v‖ ≤ radius. */
function energyIsEnough(energy, d, radius, s, probability) {
  const noncentrality = (radius / s) ** 2;
  const x = energy / s ** 2;
  if (noncentrality <= EXACT_NONCENTRALITY) {
    return noncentralUpperTail(x, d, noncentrality) <= probability;
  }
  // two bounds, each proved in `blurfit.theory.quantiles`; one of them is enough
  const scaled = (energy / radius ** 2) * EXACT_NONCENTRALITY;
  if (noncentralUpperTail(scaled, d, EXACT_NONCENTRALITY) <= probability) return true;
  const across = d > 1 ? ceiling(probability * SHARE_OF_REST, d - 1) : 0;
  const along = Math.sqrt(Math.max(0, x - across)) - Math.sqrt(noncentrality);
  return logUpperTail(along) <= Math.log(probability * (1 - SHARE_OF_REST));
}

/** P(χ²_m < x) ≤ γ; beyond 10⁶ degrees of freedom by Laurent and Massart's bound. */
function floorIsLow(x, freedom, probability) {
  if (x <= Math.max(0, freedom - 2 * Math.sqrt(freedom * Math.log(1 / probability)))) return true;
  return freedom <= EXACT_FREEDOM && lowerTail(x, freedom) <= probability;
}

/** S ≥ η·min(λ̃, R_q² + 4R_q·ρ) + 2R_p (replace); zero-out has 2 and 1 for 4 and 2. */
function gradientIsEnough({ neighbours, ...setting }, loss, s, probability) {
  const [cross, linear] = neighbours === "replace" ? [4, 2] : [2, 1];
  const { q_bound: radius, p_bound, weight_bound: ball, dimension: d } = setting;
  const bracket = (loss.gradient_sensitivity * HAIR - linear * p_bound) / ball;
  if (bracket >= loss.record_energy) return true;
  const noise = (bracket - radius ** 2) / (cross * radius);
  return noise > 0 && upperTail((noise / s) ** 2, d) <= probability;
}

/** x with P(χ²_m > x) ≤ γ, by bisection from above. */
function ceiling(probability, freedom) {
  let low = 0;
  let high = freedom + 1;
  while (upperTail(high, freedom) > probability) high *= 2;
  for (let step = 0; step < 60; step++) {
    const middle = (low + high) / 2;
    if (upperTail(middle, freedom) > probability) low = middle;
    else high = middle;
  }
  return high;
}

/** ln E[(1 − exp(headroom − m²/2 − mX))₊], X ~ χ_k, k = min(3, d). */
export function logGradientDelta(headroom, m, dimension) {
  if (!(m < 1e6)) return 0; // hardly any noise: all of δ is spent, and there is nothing to add up
  const k = Math.min(3, dimension);
  const x0 = headroom / m - m / 2;
  const start = Math.max(x0, 0);
  const end = (2 * LOG_TAIL) / (start + Math.sqrt(start ** 2 + 2 * LOG_TAIL));
  const panels = Math.max(1, Math.ceil(Math.log2(end * Math.max(1, m, start))) + 1);
  const { nodes, weights } = gaussLegendre(16);
  let integral = 0;
  let from = 0;
  for (let panel = panels; panel >= 0; panel--) {
    const to = end * 0.5 ** panel;
    let sum = 0;
    for (let i = 0; i < nodes.length; i++) {
      const t = from + (to - from) * nodes[i];
      const gap = -Math.expm1(-m * (t + (start - x0)));
      sum += weights[i] * Math.exp(-t * (start + t / 2)) * gap * (start + t) ** (k - 1);
    }
    integral += (to - from) * sum;
    from = to;
  }
  const constant = k === 2 ? 0 : Math.log(2 / Math.PI) / 2;
  return constant - start ** 2 / 2 + Math.log(integral) + LOG_SAFETY;
}
