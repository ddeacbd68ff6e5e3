// How much of δ the noise on p spends: mirrors `blurfit.theory.gradient_delta`, which has the theorem,
// its proof and the meaning of *line*, *plane*, *space* and *angles*. Nodes and safety are the same
// as there.

import { mills } from "./gaussian.js";
import { gaussLegendre } from "./quadrature.js";

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
