// What the noise of an `input` collection keeps: mirrors the theorem in
// `blurfit.theory.certified`, whose proof it rests upon.
//
// The agreement states the theorem's intermediate numbers. Each quantile among them is checked by
// evaluating the probability that it must not exceed, so nothing has to be searched for here; each
// of the others must bound what follows from those that are stated before it.

import { demand, isAbove, isBelow } from "./checks.js";
import { lowerTail, noncentralUpperTail, upperTail } from "./chisquare.js";
import { logUpperTail } from "./gaussian.js";
import { logGradientDelta } from "./gradient.js";
import { spectrumFloor } from "./grid.js";

const EXACT_FREEDOM = 1e6;
const EXACT_NONCENTRALITY = 1e6;
const SHARE_OF_REST = 0.01;

/** 2√n·√(R_q²/σ_u² + R_p²/σ_b²) of one submission, for any two records. */
export function submissionMu({ setting, sigma_u, sigma_b }) {
  const reach = Math.hypot(setting.q_bound / sigma_u, setting.p_bound / sigma_b);
  return 2 * Math.sqrt(setting.quorum) * reach;
}

export function verifyInput(calibration) {
  const { setting, model, shares, loss, sigma_u, sigma_b, ridge, rule } = calibration;
  demand(rule === "certified", "rule", rule, "certified, which is proved");
  demand(model.releases === 1, "releases", model.releases, 1);
  demand(model.proved === true, "proved", model.proved, true);
  const { dimension: d, quorum: n, q_bound: radius } = setting;
  demand(n > d, "quorum", n, `more than ${d}`);
  const s = sigma_u / Math.sqrt(n);
  const { record_energy: energy, gram_floor: floor } = loss;
  demand(energyIsEnough(energy, d, radius, s, shares.record), "record_energy", energy, "larger");
  demand(floorIsLow(floor / s ** 2, n - d, shares.gram), "gram_floor", floor, "smaller");
  const { spectrum_floor: spectrum } = loss;
  isBelow("spectrum_floor", spectrum, spectrumFloor(s, d, n, shares.spectrum));
  if (ridge < 0) demand(-ridge < spectrum, "ridge", ridge, `more than ${-spectrum}`);
  const convexity = ridge < 0 ? loss.gram_floor * (1 + ridge / spectrum) : loss.gram_floor + ridge;
  demand(convexity > 0, "strong_convexity", convexity, "positive");
  isBelow("strong_convexity", loss.strong_convexity, convexity);
  const determinant = Math.log1p(loss.record_energy / loss.strong_convexity);
  isAbove("determinant_loss", loss.determinant_loss, determinant);
  demand(
    movingIsEnough(setting, loss, s, shares.record),
    "moving_sensitivity",
    loss.moving_sensitivity,
    "larger",
  );
  const fixed = (setting.neighbours === "replace" ? 2 : 1) * setting.p_bound;
  const spent = logGradientDelta(
    model.epsilon - loss.determinant_loss,
    fixed / sigma_b,
    loss.moving_sensitivity / sigma_b,
    d,
  );
  const total = shares.gram + 2 * shares.record + shares.spectrum + shares.gradient;
  return total <= model.delta && spent <= Math.log(shares.gradient);
}

/** P(‖v + N(0, s²I)‖² > energy) ≤ γ for every ‖v‖ ≤ radius. */
function energyIsEnough(energy, d, radius, s, probability) {
  const noncentrality = (radius / s) ** 2;
  const x = energy / s ** 2;
  if (noncentrality <= EXACT_NONCENTRALITY) {
    return noncentralUpperTail(x, d, noncentrality) <= probability;
  }
  // two bounds, each proved in `blurfit.theory.numerics`; one of them is enough
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

/** S_w ≥ η·min(λ̃, R_q² + 4R_q·ρ) (replace); zero-out has 2 for 4. */
function movingIsEnough({ neighbours, ...setting }, loss, s, probability) {
  const cross = neighbours === "replace" ? 4 : 2;
  const { q_bound: radius, weight_bound: ball, dimension: d } = setting;
  const bracket = loss.moving_sensitivity / ball;
  if (energyIsEnough(bracket, d, radius, s, probability)) return true;
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
