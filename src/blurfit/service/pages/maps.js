// The public map of a later wave, from a record's columns v to what is blurred: mirrors
// `blurfit.theory.maps`. What privacy rests upon is the ball alone, whoever chose the map. So:
//
// 1. everything public is checked before a record is read (`verifyMap`);
// 2. from then on the map is total: what is not a number becomes 0, scores are clipped, and nothing
//    is thrown for a value.

import { demand, exactly, finite } from "./checks.js";
import { FREE_SQUARES, logisticSlopes, poissonSlopes, within } from "./newton.js";
import { columnsFor, isLabel } from "./schema.js";

const LARGEST_NUMBER = 1e6; // of means, coefficients and scales: records lie in [−1, 1]
const LARGEST_WHITENING = 1e12;
const LARGEST_SCORE = 500;
const LARGEST_RADIUS = 1e6;
const LARGEST_SLOPE = 1e13; // of counts
const NEWTON = ["constant", "radius", "robust", "balance"];
const COMMON = ["kind", "mean", "whitening", "coefficients", "intercept"];
const OWN = {
  residual: ["radius", "scale", "bound", "weights"],
  logistic: NEWTON,
  poisson: [...NEWTON, "count_bound", "curvature_bound", "gradient_bound"],
};

/** The places of the columns that maps speak of: all features', but a categorical's last level. */
export function keptColumns({ features }) {
  let at = 0;
  return features.flatMap((feature) => {
    const width = columnsFor(feature).length;
    const start = at;
    at += width;
    const kept = width - (feature.kind === "categorical" ? 1 : 0);
    return Array.from({ length: kept }, (_, i) => start + i);
  });
}

/** Refuse a map for which the arithmetic below could fail, or that is not for this schema. */
export function verifyMap(map, schema) {
  demand(Object.hasOwn(OWN, map?.kind ?? ""), "map", map?.kind, "residual, logistic or poisson");
  exactly(map, [...COMMON, ...OWN[map.kind]], "map");
  const size = keptColumns(schema).length;
  numbers("mean", map.mean, size, LARGEST_NUMBER);
  numbers("coefficients", map.coefficients, size, LARGEST_NUMBER);
  numbers("intercept", [map.intercept], 1, LARGEST_NUMBER);
  const rows = map.whitening;
  demand(Array.isArray(rows) && rows.length === size, "whitening", rows?.length, `${size} rows`);
  rows.forEach((row, i) => {
    numbers("whitening", row, i + 1, LARGEST_WHITENING);
    demand(row[i] !== 0, "the whitening’s diagonal", 0, "not zero");
  });
  ({ residual: verifyResidual, logistic: verifyLogistic, poisson: verifyPoisson })[map.kind](
    map,
    schema,
  );
}

function verifyResidual({ radius, bound, scale, weights }, { target }) {
  demand(target.kind !== "categorical", `target “${target.name}”`, target.kind, "no classes");
  between("radius", radius, 1e-4, LARGEST_RADIUS);
  between("bound", bound, 1e-4, LARGEST_RADIUS);
  between("scale", scale, 1 / LARGEST_NUMBER, LARGEST_NUMBER);
  demand(Array.isArray(weights) && weights.length === 3, "weights", weights, "three numbers");
  for (const weight of weights) between("weight", weight, 0.01, 1);
  const [, a, b] = weights;
  demand(a * a + b * b <= 1, "weights", weights, "inside of the unit ball");
}

function verifyLogistic(map, { target }) {
  demand(isLabel(target), `target “${target.name}”`, target.kind, "a label");
  verifyNewton(map);
  if (map.robust) between("balance", map.balance, 1, FREE_SQUARES);
}

function verifyPoisson(map, { target }) {
  const { kind, lower, upper, name } = target;
  const isCount = kind === "numeric" && !isLabel(target) && lower === 0;
  demand(isCount, `target “${name}”`, kind, "a number from 0 on");
  demand(map.count_bound === upper, "count_bound", map.count_bound, upper);
  for (const bound of ["count_bound", "curvature_bound", "gradient_bound"]) {
    between(bound, map[bound], 1 / LARGEST_SLOPE, LARGEST_SLOPE);
  }
  verifyNewton(map);
}

function verifyNewton({ constant, radius, robust, balance }) {
  between("constant", constant, 0.01, 100);
  between("radius", radius, 1, LARGEST_RADIUS); // below 1 a finite record could become infinite
  demand(typeof robust === "boolean", "robust", robust, "true or false");
  between("balance", balance, 1, 1e6); // below 1 the grid would be too coarse for the noise
}

function numbers(name, values, length, most) {
  const isFine =
    Array.isArray(values) &&
    values.length === length &&
    finite(...values) &&
    values.every((one) => Math.abs(one) <= most);
  demand(isFine, `${name} of the map`, values, `${length} numbers of at most ${most}`);
}

function between(name, value, low, high) {
  demand(finite(value) && low <= value && value <= high, name, value, `${low} to ${high}`);
}

// ---- the map, for every record

/** f = W(v − m); 0 if that is not a finite vector. */
function featuresOf({ mean, whitening }, v) {
  const centred = v.map((one, i) => one - mean[i]);
  const f = whitening.map((row) => dot(row, centred));
  return f.every(Number.isFinite) ? f : f.map(() => 0);
}

/** t = β·v + β₀, clipped. */
function scoreOf({ coefficients, intercept }, v) {
  return within(dot(coefficients, v) + intercept, -LARGEST_SCORE, LARGEST_SCORE);
}

/** z = s·(c, a·f/(r√p), b·g/bound) of a residual map, s = min(1, r√p/‖f‖), with s·g cut. */
export function residualVector(map, v, y) {
  const [constant, a, b] = map.weights;
  const reach = map.radius * Math.sqrt(v.length);
  const f = featuresOf(map, v);
  const s = reach / Math.max(normOf(f), reach);
  const g = within((s * (y - scoreOf(map, v))) / map.scale, -map.bound, map.bound) / map.bound;
  return [constant * s, ...intoBall(f, reach).map((one) => a * one), b * g];
}

/** {u, g, h} of a Newton map: (h·uuᵀ, −g·u) is sent, with ‖u‖ ≤ 1. */
export function newtonRecord(map, v, y) {
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

function dot(a, b) {
  return a.reduce((sum, one, i) => sum + one * b[i], 0);
}
