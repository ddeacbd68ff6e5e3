// The numbers that a later wave's map makes of a record: mirrors `blurfit.theory.forms`.
//
//   residual   upper triangle of zzᵀ, and if the map is robust that of ω·g²xxᵀ, z = (x, b·g)
//   Newton's   upper triangle of M, then p, whose noise is τ times as large, and if the map is
//              robust the upper triangle of ω·ppᵀ

import { demand, exactly, finite } from "./checks.js";
import { NUDGE, sumOf, triangle } from "./forms.js";
import { columnsFor, isLabel, questionsOf } from "./schema.js";

export function waveForm({ schema, wave: { map } }) {
  const kept = keptColumns(schema);
  const isNewton = map.kind !== "residual";
  const rows = kept.length + (isNewton ? 1 : 2);
  const upper = triangle(rows);
  const slopes = isNewton ? Array.from({ length: rows }, (_, i) => [rows + 0.3, i]) : [];
  const squared = triangle(map.robust ? kept.length + 1 : 0); // all rows, but the error's own
  const squares = squared.map(([row, column]) => [row + rows + 1, column]);
  const often = ([row, column]) => (row === column ? 1 : 2);
  const ofSlopes = slopes.map(() => map.balance ** -2);
  const counts = [...upper.map(often), ...ofSlopes, ...squared.map(often)];
  return {
    sent: [...upper, ...slopes, ...squares],
    counts,
    size: Math.ceil(Math.sqrt(sumOf(counts))),
    products: (values) =>
      productsOf(map, upper, squared, kept.map((i) => values[i]), values.at(-1)),
    reach: (neighbours) => reachOf(map, neighbours),
  };
}

function productsOf(map, upper, squared, v, target) {
  const weight = robustWeight(map);
  const squaresOf = (p) => squared.map(([row, column]) => weight * (p[row] * p[column]));
  if (map.kind === "residual") {
    const z = residualVector(map, v, target);
    const g = z.at(-1) / map.weights[2];
    const products = upper.map(([row, column]) => z[row] * z[column]);
    return [...products, ...squaresOf(z.map((one) => one * g))];
  }
  const y = map.kind === "poisson" ? ((target + 1) / 2) * map.count_bound : target;
  const { u, g, h } = newtonRecord(map, v, y);
  const p = u.map((one) => -g * one);
  return [...upper.map(([row, column]) => h * (u[row] * u[column])), ...p, ...squaresOf(p)];
}

/** Δ, whatever the map is: only the constant, or the loss and τ, decide it. */
function reachOf(map, neighbours) {
  if (map.kind === "residual") {
    const [c, a, b] = map.weights; // zzᵀ has its first entry blurred as well
    const squares = map.robust ? robustWeight(map) ** 2 : 0;
    const apart = neighbours === "zero-out" ? 0 : b ** 4 / (1 + squares);
    const whole = (c ** 2 + 1) ** 2 + squares * ((c ** 2 + a ** 2) ** 2 - apart);
    return Math.sqrt((neighbours === "zero-out" ? 1 : 2) * whole) * NUDGE;
  }
  if (map.kind === "logistic") return logisticSensitivity(map.balance, neighbours, map.robust);
  return poissonSensitivity(map, neighbours);
}

// ---- The public map of a later wave, from a record's columns v to what is blurred: mirrors
// `blurfit.theory.maps`. What privacy rests upon is the ball alone, whoever chose the map. So:
//
// 1. everything public is checked before a record is read (`verifyMap`);
// 2. from then on the map is total: what is not a number becomes 0, scores are clipped, and nothing
//    is thrown for a value.

const LARGEST_NUMBER = 1e6; // of means, coefficients and scales: records lie in [−1, 1]
const [LARGEST_WHITENING, LARGEST_SCORE, LARGEST_RADIUS] = [1e12, 500, 1e6];
const LARGEST_SLOPE = 1e13; // of counts
const NEWTON = ["constant", "radius", "robust", "stride", "balance"];
const COMMON = ["kind", "mean", "whitening", "coefficients", "intercept"];
const OWN = {
  residual: ["radius", "scale", "bound", "weights", "robust", "stride"],
  logistic: NEWTON,
  poisson: [...NEWTON, "count_bound", "curvature_bound", "gradient_bound"],
};

/** The places of the columns that maps speak of: all of the model's, but a categorical's last level.
 * A plan has no columns that follow from others in another way. */
function keptColumns(schema) {
  const { predictors, sources = [], target } = schema;
  const isSource = (name) => sources.some((one) => one.name === name);
  const byItself = (of) => !of.includes(target.name) && (!of.length || of.some(isSource));
  const predicts = ({ name, of = [] }) => predictors?.includes(name) ?? byItself([of].flat());
  let at = 0;
  return questionsOf(schema).slice(0, -1).flatMap((feature) => {
    const width = columnsFor(feature).length;
    const start = at;
    at += width;
    const kept = predicts(feature) ? width - (feature.kind === "categorical" ? 1 : 0) : 0;
    return Array.from({ length: kept }, (_, i) => start + i);
  });
}

/** Refuse a map for which the arithmetic below could fail, or that is not for this schema. */
export function verifyMap(map, schema) {
  demand(Object.hasOwn(OWN, map?.kind ?? ""), "map", map?.kind);
  exactly(map, [...COMMON, ...OWN[map.kind]], "map");
  const size = keptColumns(schema).length;
  numbers("mean", map.mean, size, LARGEST_NUMBER);
  numbers("coefficients", map.coefficients, size, LARGEST_NUMBER);
  numbers("intercept", [map.intercept], 1, LARGEST_NUMBER);
  const rows = map.whitening;
  demand(Array.isArray(rows) && rows.length === size, "whitening", rows?.length);
  rows.forEach((row, i) => {
    numbers("whitening", row, i + 1, LARGEST_WHITENING);
    demand(row[i] !== 0, "the whitening’s diagonal", 0);
  });
  const own = { residual: verifyResidual, logistic: verifyLogistic, poisson: verifyPoisson };
  own[map.kind](map, schema);
}

function verifyResidual({ radius, bound, scale, weights, robust, stride }, { target }) {
  demand(stride === 1, "stride", stride); // more is for rows that are held
  demand(typeof robust === "boolean", "robust", robust);
  demand(target.kind !== "categorical", `target “${target.name}”`, target.kind);
  between("radius", radius, 1e-4, LARGEST_RADIUS);
  between("bound", bound, 1e-4, LARGEST_RADIUS);
  between("scale", scale, 1 / LARGEST_NUMBER, LARGEST_NUMBER);
  demand(Array.isArray(weights) && weights.length === 3, "weights", weights);
  for (const weight of weights) between("weight", weight, 0.01, 1);
  const [, a, b] = weights;
  demand(a * a + b * b <= 1, "weights", weights);
}

function verifyLogistic(map, { target }) {
  demand(isLabel(target), `target “${target.name}”`, target.kind);
  verifyNewton(map);
  if (map.robust) between("balance", map.balance, 1, FREE_SQUARES);
}

function verifyPoisson(map, { target }) {
  const { kind, lower, upper, name } = target;
  demand(kind === "numeric" && !isLabel(target) && lower === 0, `target “${name}”`, kind);
  demand(map.count_bound === upper, "count_bound", map.count_bound);
  for (const bound of ["count_bound", "curvature_bound", "gradient_bound"]) {
    between(bound, map[bound], 1 / LARGEST_SLOPE, LARGEST_SLOPE);
  }
  verifyNewton(map);
}

function verifyNewton({ constant, radius, robust, stride, balance }) {
  demand(stride === 1, "stride", stride); // as of a residual map
  between("constant", constant, 0.01, 100);
  between("radius", radius, 1, LARGEST_RADIUS); // below 1 a finite record could become infinite
  demand(typeof robust === "boolean", "robust", robust);
  between("balance", balance, 1, 1e6); // below 1 the grid would be too coarse for the noise
}

function numbers(name, values, length, most) {
  const isFine =
    Array.isArray(values) &&
    values.length === length &&
    finite(...values) &&
    values.every((one) => Math.abs(one) <= most);
  demand(isFine, `${name} of the map`, values);
}

function between(name, value, low, high) {
  demand(finite(value) && low <= value && value <= high, name, value);
}

// ---- the map, for every record

/** f = W(v − m); 0 if that is not a finite vector. */
function featuresOf({ mean, whitening }, v) {
  const centred = v.map((one, i) => one - mean[i]);
  const f = whitening.map((row) => dot(row, centred));
  return f.every(Number.isFinite) ? f : f.map(() => 0);
}

/** t = β·v + β₀, clipped. */
const scoreOf = ({ coefficients, intercept }, v) =>
  within(dot(coefficients, v) + intercept, -LARGEST_SCORE, LARGEST_SCORE);

/** z = s·(c, a·f/(r√p), b·g/bound) of a residual map, s = min(1, r√p/‖f‖), with s·g cut. */
function residualVector(map, v, y) {
  const [constant, a, b] = map.weights;
  const reach = map.radius * Math.sqrt(v.length);
  const f = featuresOf(map, v);
  const s = reach / Math.max(normOf(f), reach);
  const g = within((s * (y - scoreOf(map, v))) / map.scale, -map.bound, map.bound) / map.bound;
  return [constant * s, ...intoBall(f, reach).map((one) => a * one), b * g];
}

/** {u, g, h} of a Newton map: (h·uuᵀ, −g·u) is sent, with ‖u‖ ≤ 1. */
function newtonRecord(map, v, y) {
  const f = featuresOf(map, v);
  const length = Math.hypot(1, map.constant);
  const ofFeatures = 1 / (map.radius * Math.sqrt(v.length) * length);
  const constant = map.constant / length;
  const x = [...f.map((one) => ofFeatures * one), constant];
  const [g, h] = (map.kind === "logistic" ? logisticSlopes : poissonSlopes)(scoreOf(map, v), y, map);
  const size = Math.hypot(ofFeatures * normOf(f), constant);
  return { u: intoBall(x, 1), g: g / Math.max(1, size), h };
}

/** ‖x‖, scaled by its largest entry: no square overflows or vanishes. */
function normOf(x) {
  const [largest, w] = scaledDown(x);
  return largest * Math.sqrt(dot(w, w));
}

/** x/max(‖x‖, reach). */
function intoBall(x, reach) {
  const [largest, w] = scaledDown(x);
  const by = Math.min(largest / reach, 1 / Math.max(Math.sqrt(dot(w, w)), 1));
  return w.map((one) => one * by);
}

function scaledDown(x) {
  const largest = Math.max(0, ...x.map(Math.abs));
  return [largest, x.map((one) => one / (largest > 0 ? largest : 1))];
}

const dot = (a, b) => a.reduce((sum, one, i) => sum + one * b[i], 0);

// ---- Newton's quadratic of a record around an announced model, and how far one person can move its
// sum: mirrors `blurfit.theory.maps`, whose proofs it rests upon.

const FREE_CURVATURE = Math.sqrt((37 + 14 * Math.sqrt(7)) / 3); // τ*, up to which Δ = 2/τ
const FREE_SQUARES = 4.5; // up to which it is so with the squared slopes as well
const LARGEST_LOG_RATE = 30;

/** (g, h) of ln(1 + e^{−yt}) for a label y = ±1, at any score. */
function logisticSlopes(score, target) {
  const t = Number.isNaN(score) ? 0 : score;
  const y = target > 0 ? 1 : -1;
  const size = 1 / (1 + Math.exp(y * t));
  return [-y * size, size * (1 - size)];
}

/** (g, h) of e^t − yt for a count, each cut to its bound. */
function poissonSlopes(score, target, map) {
  const { count_bound: most, curvature_bound: steepest, gradient_bound: largest } = map;
  const rate = Math.exp(within(score, -LARGEST_LOG_RATE, LARGEST_LOG_RATE));
  return [within(rate - within(target, 0, most), -largest, largest), Math.min(rate, steepest)];
}

/** ω of the squared slopes or errors. */
function robustWeight({ kind, balance, curvature_bound: steepest, gradient_bound: largest }) {
  if (kind === "residual") return 0.5;
  if (kind === "logistic") return 1 / (Math.SQRT2 * balance);
  return Math.min((0.55 * steepest) / largest ** 2, 0.7 / (balance * largest));
}

/** Between two bounds; what is not a number counts as 0. */
export const within = (value, low, high) => Math.min(Math.max(Number.isNaN(value) ? 0 : value, low), high);

/** Δ(τ) of logistic loss, whatever the model is: 2/τ up to τ*, the larger of two maxima beyond. */
export function logisticSensitivity(balance, neighbours, robust = false) {
  const square = balance * balance;
  if (neighbours === "zero-out") {
    const squares = robust ? 0.5 : 0;
    const first = 2 * square + 2 * squares;
    const inner = 9 * square ** 2 - 4 * first * (square + 1);
    const sizes = inner >= 0 ? [1, (3 * square - Math.sqrt(inner)) / (2 * first)] : [1];
    const found = sizes.map((a) =>
      Math.hypot(a * (1 - a), a / balance, (Math.sqrt(squares) * a * a) / balance),
    );
    return Math.max(...found) * NUDGE;
  }
  if (balance <= FREE_CURVATURE) return (2 / balance) * NUDGE;
  const kappa = 1 / (2 * square);
  const first = zerosOf([2 * square, -3 * square, square + 1, 1], 0, 1).map((b) =>
    Math.hypot(b * (1 - b), (1 + b) / balance),
  );
  const second = zerosOf([-2, 1, 0, -kappa], Math.sqrt(kappa), 1).map(
    (u) => Math.SQRT2 * (1 - u) * (u + kappa / u),
  );
  return Math.max(...first, ...second) * NUDGE;
}

/** Δ of counts: curvatures in [0, H], gradients in [−G, G], and their squares if they are sent. */
function poissonSensitivity(map, neighbours) {
  const { curvature_bound: steepest, gradient_bound: largest, balance } = map;
  const ratio = (largest / (balance * steepest)) ** 2;
  const squares = map.robust ? ((robustWeight(map) * largest ** 2) / steepest) ** 2 : 0;
  if (neighbours === "zero-out") return steepest * Math.sqrt(1 + squares + ratio) * NUDGE;
  const first = 2 + 2 * squares;
  const corner = ratio <= first ? first + 2 * ratio + ratio ** 2 / first : 0;
  return steepest * Math.sqrt(Math.max(1 + 4 * ratio, corner)) * NUDGE;
}

/** The ends, and the zeros of ax³ + bx² + cx + d between them: halving, where it is monotone. */
function zerosOf([a, b, c, d], low, high) {
  const at = (x) => ((a * x + b) * x + c) * x + d;
  const inner = b * b - 3 * a * c;
  const turns = inner > 0 ? [-1, 1].map((sign) => (-b + sign * Math.sqrt(inner)) / (3 * a)) : [];
  const ends = [low, ...turns.filter((x) => x > low && x < high).sort((x, y) => x - y), high];
  const zeros = ends.slice(1).flatMap((right, i) => {
    let [from, to] = [ends[i], right];
    if (at(from) > 0 === at(to) > 0) return [];
    for (let step = 0; step < 60; step++) {
      const middle = (from + to) / 2;
      if (at(middle) > 0 === at(from) > 0) from = middle;
      else to = middle;
    }
    return [from];
  });
  return [...ends, ...zeros]; // a point too many does no harm: what is attained there counts too
}
