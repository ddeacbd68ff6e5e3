// What the noise of an `input` collection keeps: mirrors the theorem in
// `blurfit.theory.certified`, whose proof it rests upon.
//
// The agreement states the theorem's intermediate numbers. Each quantile among them is checked by
// evaluating the probability that it must not exceed, so nothing has to be searched for here; each
// of the others must bound what follows from those that are stated before it.

import { demand, isAbove, isBelow } from "./checks.js";
import { lowerTail, noncentralUpperTail, upperTail } from "./chisquare.js";
import { gaussLegendre, logUpperTail, mills } from "./gaussian.js";
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

// ---- How much of δ the noise on p spends: mirrors `blurfit.theory.gradient_delta`, which has the
// theorem, its proof and the meaning of *line*, *plane*, *space* and *angles*. Nodes and safety are the same
// as there.

const ROOT_HALF_PI = Math.sqrt(Math.PI / 2);
const SLOPE = 0.2945;
const LOG_TAIL = 60;
const LOG_SAFETY = 1e-10;
const LOG_ANGLES_SAFETY = 1e-3;
const ARITHMETIC = 4e-15;
const ANGLES_FROM = 0.3;
const LEAST_RADIUS_SHARE = 1 / 30;
const COSINES = cosines(16, 1.25);

/** ln of the least bound on sup H(α) that holds, for headroom ε − J, a = fixed and b = moving. */
export function logGradientDelta(headroom, fixed, moving, dimension) {
  const m = fixed + moving;
  if (!(m < 1e6)) return 0; // hardly any noise: all of δ is spent
  const room = headroom - (m * m) / 2;
  const k = Math.min(3, dimension);
  if (!(room > 0)) return withoutRoom(room, m, k === 3 && fixed === 0 ? 2 : k);
  if (fixed === 0) return logRadial(room, m, Math.min(2, k)) + LOG_SAFETY;
  if (k === 1) return line(room, fixed, moving) + LOG_SAFETY;
  if (k === 2 || room >= Math.sqrt(3) * m) return plane(room, fixed, moving) + LOG_SAFETY;
  const always = space(room, fixed, moving) + LOG_SAFETY;
  if (room < ANGLES_FROM * m) return always;
  return Math.min(always, angles(headroom, room, fixed, moving) + LOG_ANGLES_SAFETY);
}

/** e^{r₀²/2}·E[(1 − e^{−v(r − r₀)})₊] for r ~ χ_k: never too small. */
function radial(radius, v, k) {
  const beyond = mills(radius + v);
  if (k === 2) return v * beyond * (1 + ARITHMETIC);
  const near = mills(radius);
  const gained = near - beyond + ARITHMETIC * near;
  return (k === 1 ? gained : gained + v * (1 - v * beyond + ARITHMETIC)) / ROOT_HALF_PI;
}

function logRadial(room, m, k) {
  const at = room / m;
  return Math.log(radial(at, m, k)) - (at * at) / 2;
}

/** t₀ ≤ 0: everything counts. */
function withoutRoom(room, m, k) {
  if (m > 1e3) return 0;
  const ratio = mills(m);
  const transform = [
    ratio / ROOT_HALF_PI,
    1 - m * ratio,
    ((1 + m * m) * ratio - m) / ROOT_HALF_PI,
  ][k - 1];
  return Math.log(Math.min(1, 1 - Math.exp(room) * Math.max(0, transform) + 1e-13));
}

function line(room, fixed, moving) {
  const together = logRadial(room, fixed + moving, 1);
  if (moving <= fixed) return together - Math.LN2;
  const against = logRadial(room, moving - fixed, 1);
  return together + Math.log1p(Math.exp(against - together)) - Math.LN2;
}

/** H(0): over the angle φ in the plane, in panels that shorten towards both ends. */
function plane(room, fixed, moving) {
  const m = fixed + moving;
  const nearest = room / m;
  const least = room / Math.sqrt(nearest ** 2 + 2 * LOG_TAIL);
  const end = least < m ? Math.acos(Math.max(-1, (least - moving) / fixed)) : 0;
  const at = (angle) => {
    const v = moving + fixed * Math.cos(angle);
    const radius = room / v;
    return radial(radius, v, 2) * Math.exp(((nearest - radius) * (nearest + radius)) / 2);
  };
  const narrow = 1 / (1 + nearest * Math.sqrt(fixed / m));
  const low = shortening(at, end / 2, narrow);
  const high = shortening((step) => at(end - step), end / 2, Math.min(1, nearest));
  return Math.log((low + high) / Math.PI) - nearest ** 2 / 2;
}

/** Any angle: over x = t₀/(b + au), u uniform on [−1, 1]. */
function space(room, fixed, moving) {
  const nearest = room / (fixed + moving);
  let end = (2 * LOG_TAIL) / (nearest + Math.sqrt(nearest ** 2 + 2 * LOG_TAIL));
  if (moving > fixed) end = Math.min(end, (2 * fixed * nearest) / (moving - fixed));
  const integral = shortening(
    (step) => {
      const x = nearest + step;
      return (radial(x, room / x, 3) * Math.exp(-step * (nearest + step / 2))) / x ** 2;
    },
    end,
    Math.min(1, nearest, 1 / nearest),
  );
  return Math.log((room / (2 * fixed)) * integral) - nearest ** 2 / 2;
}

/** max over a grid of angles of H(α_j) + K(cos α_j − cos α_{j+1}). */
function angles(headroom, room, fixed, moving) {
  const slope = (SLOPE * fixed * moving) / room;
  let most = 0;
  for (let j = 0; j + 1 < COSINES.length; j++) {
    const here = atAngle(headroom, fixed, moving, COSINES[j]);
    most = Math.max(most, here + slope * (COSINES[j] - COSINES[j + 1]));
  }
  return Math.log(most);
}

/** H(α), over half of the sphere. */
function atAngle(headroom, fixed, moving, cos) {
  const { nodes, weights } = gaussLegendre(24);
  const sin = Math.sqrt(1 - cos ** 2);
  const room = headroom - (fixed ** 2 + moving ** 2 + 2 * fixed * moving * cos) / 2;
  const end = Math.PI - Math.atan2(fixed * sin, moving + fixed * cos);
  let mean = 0;
  for (let i = 0; i < nodes.length; i++) {
    const theta = end * nodes[i];
    const level = fixed * sin * Math.cos(theta) + moving * Math.sin(theta);
    const across = fixed * cos * Math.sin(theta);
    const width = Math.acos(Math.min(1, Math.max(-1, -level / across)));
    let inner = 0;
    for (let j = 0; j < nodes.length; j++) {
      const v = Math.max(level + across * Math.cos(width * nodes[j]), room * LEAST_RADIUS_SHARE);
      const radius = room / v;
      inner += weights[j] * radial(radius, v, 3) * Math.exp(-(radius ** 2) / 2);
    }
    mean += weights[i] * ((end * width) / (2 * Math.PI)) * Math.sin(theta) * inner;
  }
  return mean;
}

/** ∫ f over [0, end], in panels that double in length from shortest/2 or less. */
function shortening(f, end, shortest) {
  const panels = Math.max(1, Math.ceil(Math.log2(Math.max(end, 1e-300) / shortest)) + 1);
  const { nodes, weights } = gaussLegendre(16);
  let integral = 0;
  let from = 0;
  for (let panel = panels; panel >= 0; panel--) {
    const to = end * 0.5 ** panel;
    let sum = 0;
    for (let i = 0; i < nodes.length; i++) sum += weights[i] * f(to - (to - from) * nodes[i]);
    integral += (to - from) * sum;
    from = to;
  }
  return integral;
}

/** 1 = cos α₀ > … > cos α_k = 0, each step `ratio` times the last. */
function cosines(count, ratio) {
  const steps = Array.from({ length: count }, (_, j) => ratio ** j);
  const whole = steps.reduce((sum, step) => sum + step, 0);
  const found = [1];
  let sum = 0;
  for (const step of steps) found.push(1 - (sum += step) / whole);
  found[count] = 0;
  return found;
}
