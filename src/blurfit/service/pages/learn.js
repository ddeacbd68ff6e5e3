// What the first wave has taught, and the map of the next: mirrors `blurfit.learning.belief` and
// `linear_bayes`, so that this page can compute again the map that it is asked to use. Nothing
// private rests on it: it shows that nobody could hide a choice in the map.

import * as m from "./algebra.js";
import { PASSES, posterior, spaced, weightsOf } from "./bayes.js";
import {
  clip,
  denoise,
  featureNoise,
  gramOf,
  largestVariance,
  sandwich,
  shrunk,
  softFloor,
  submodel,
} from "./denoise.js";
import { keptColumns } from "./maps.js";

const EXPLAINED = spaced(0.003, 1, 12);

// ---- the first wave

/** {task, isLine, coefficients, covariance, mean, spread, scale, countBound} after a first wave. */
export function firstBelief(plan, release) {
  const sums = submodel(release, keptColumns(plan.schema));
  const model = linearBayes(sums);
  const { weight } = sums.target;
  const jacobian = m.diagonal(sums.scale.map((one) => one / weight));
  const weights = sums.scale.slice(1);
  const variance = model.variance / weight ** 2;
  const posterior = posteriorCovariance(sums, model);
  return {
    task: plan.task,
    isLine: true,
    coefficients: model.theta.map((one, i) => (one * sums.scale[i]) / weight),
    covariance: m.times(jacobian, posterior, jacobian),
    mean: model.features.mean.map((one, i) => one / weights[i]),
    spread: m.entries((a, b) => a / b, whiteOf(sums, model), m.outer(weights, weights)),
    scale: Math.sqrt(variance * Math.max(1 - model.explained, 0.1)),
    countBound: plan.task === "count" ? plan.schema.target.upper : null,
  };
}

function linearBayes(sums) {
  const features = denoise(sums);
  const gram = gramOf(features, sums.constant);
  const cross = sums.cross.map((one) => one / sums.count);
  const variance = targetVariance(sums);
  const last = sums.scale.length;
  const noise = m.diagonal(
    sums.noise.variance.slice(0, last).map((row) => row[last] / sums.count ** 2),
  );
  const left = { noise: featureNoise(sums), share: features.kept / sums.count ** 2, isJoint: true };
  const found = EXPLAINED.map((explained) => {
    const share = (explained * variance) / features.mean.length;
    const spread = features.variance.map((one) => share / one);
    const prior = moved(features.mean, sums.constant, [0.36 * sums.target.weight ** 2, ...spread]);
    const sampling = (variance * Math.max(1 - explained, 0.2)) / sums.count;
    const fixed = m.add(m.times(gram, prior, gram), noise, m.scaled(sampling, gram));
    return { ...posterior(gram, prior, fixed, cross, left), logPrior: Math.log(explained) / 2 };
  });
  const weights = weightsOf(found);
  return {
    features,
    variance,
    theta: cross.map((_, i) => m.total(found.map(({ theta }, r) => weights[r] * theta[i]))),
    explained: m.dot(weights, EXPLAINED),
  };
}

/** A prior that is independent at the features' means, moved to the origin of z. */
function moved(means, constant, spread) {
  const move = m.diagonal([1 / constant, ...means.map(() => 1)]);
  means.forEach((one, i) => {
    move[0][i + 1] = -one / constant;
  });
  return m.times(move, m.diagonal(spread), m.transpose(move));
}

function targetVariance({ target, cross, square, count, constant, noise }) {
  const b = target.weight;
  const mean = cross[0] / (count * constant);
  const at = clip(mean, target.kind === "level" ? 0 : -b, b);
  const largest = Math.max(largestVariance(target, at), 0.03 * b ** 2);
  if (target.kind === "sign") return largest;
  const spread = noise.variance.at(-1).at(-1) / count ** 2;
  const found = shrunk(square / count - mean ** 2, spread, 0.3 * largest, (0.25 * largest) ** 2);
  return clip(found, 0.01 * b ** 2, largest);
}

function posteriorCovariance(sums, { features, variance, explained, theta }) {
  const { count: n, constant: c } = sums;
  const gram = gramOf(features, c);
  const share = features.variance.map(
    (one) => (explained * variance) / (features.mean.length * one),
  );
  const prior = moved(features.mean, c, [0.36 * sums.target.weight ** 2, ...share]);
  const last = gram.length;
  const noise = m.diagonal(sums.noise.variance.slice(0, last).map((row) => row[last] / n ** 2));
  const sampling = (variance * Math.max(1 - explained, 0.2)) / n;
  const fixed = m.add(m.times(gram, prior, gram), noise, m.scaled(sampling, gram));
  const before = m.times(prior, gram);
  let left = prior;
  for (let pass = 0; pass < PASSES; pass++) {
    const second = m.add(m.outer(theta, theta), left);
    const blurred = m.scaled(features.kept / n ** 2, sandwich(featureNoise(sums), second));
    blurred[0][0] = 0;
    const solved = m.inverse(m.add(fixed, blurred));
    left = m.minus(prior, m.times(before, solved, gram, prior));
  }
  return m.even(left);
}

function whiteOf(sums, { features }) {
  const noise = Math.max(...featureNoise(sums).variance.flat()) / sums.count ** 2;
  const missing = Math.max(3 - features.mean.length / 4, 0);
  return softFloor(features.covariance, missing * noise);
}

// ---- from a line to a curve

/** Log-odds or log rates from a line; a curve, or a line for a number, stays as it is. */
export function onCurve(belief) {
  if (belief.task === "number" || !belief.isLine) return belief;
  const { mean, spread, coefficients, covariance, task, countBound } = belief;
  const [constant, ...beta] = coefficients;
  const explained = m.dot(beta, m.apply(spread, beta));
  let average = constant + m.dot(mean, beta);
  let [factor, atMean] = [0, 0];
  if (task === "label") {
    average = clip(average, -0.98, 0.98);
    const variance = 1 - average ** 2;
    factor = 2 / Math.max(variance - explained, 0.2 * variance);
    factor *= caution(belief, factor, explained);
    atMean = 2 * Math.atanh(average) * Math.sqrt(1 + (Math.PI * factor ** 2 * explained) / 8);
  } else {
    const rate = Math.max((average + 1) / 2, 1e-3);
    factor = Math.min(0.5 / rate, 1.5 / Math.sqrt(Math.max(explained, 1e-12)));
    factor *= caution(belief, factor, explained);
    atMean = Math.log(rate * countBound) - (factor ** 2 * explained) / 2;
  }
  const slope = beta.map((one) => factor * one);
  const wrong = misfit(mean, spread, m.dot(slope, m.apply(spread, slope)));
  return {
    ...belief,
    isLine: false,
    coefficients: [atMean - m.dot(mean, slope), ...slope],
    covariance: m.add(m.scaled(factor ** 2, covariance), wrong),
  };
}

function caution({ covariance, spread }, factor, explained) {
  const inner = covariance.slice(1).map((row) => row.slice(1));
  const error = factor ** 2 * m.total(m.entries((a, b) => a * b, inner, spread).flat());
  const dampened = Math.sqrt(1 + (Math.PI * error) / 8);
  const size = (factor * Math.sqrt(Math.max(explained, 1e-12))) / dampened;
  return Math.min(1, 2.5 / size) / dampened;
}

function misfit(mean, spread, size) {
  const slope = m.scaled((0.25 * Math.max(size, 0.1)) / mean.length, m.inverse(spread));
  const move = [mean.map((one) => -one), ...m.diagonal(mean.map(() => 1))];
  const found = m.times(move, slope, m.transpose(move));
  found[0][0] += 0.02;
  return found;
}

// ---- the next map

/** The numbers of the next wave's map, each in 24 bits. */
export function nextMap(belief, kind, count, mu) {
  const at = kind === "residual" ? belief : onCurve(belief);
  const p = at.mean.length;
  const [intercept, ...coefficients] = at.coefficients.map(rounded);
  const white = {
    mean: at.mean.map(rounded),
    whitening: m.inverse(m.cholesky(at.spread)).map((row, i) => row.slice(0, i + 1).map(rounded)),
    coefficients,
    intercept,
  };
  if (kind === "residual") {
    const radius = rounded(clip(0.3 * Math.cbrt((count * mu) / p ** 1.5), 0.6, 3));
    const weights = [0.25, 0.8, 0.6];
    const bound = clip(2.2 * radius, 1.5, 5);
    return { kind, ...white, radius, scale: rounded(at.scale), bound, weights };
  }
  if (at.task === "label") return { kind: "logistic", ...white, constant: 0.3, balance: 4.96 };
  const most = at.countBound;
  const reach = Math.max(1, Math.log(most));
  const balance = Math.max(Math.exp(reach), most - Math.exp(-reach)) / Math.exp(reach);
  const own = { balance, count_bound: most, score_bound: reach };
  return { kind: "poisson", ...white, constant: 0.3, ...own };
}

/** A number in 24 bits, halves to even. */
export function rounded(value) {
  if (value === 0) return value;
  let unit = 2 ** (Math.floor(Math.log2(Math.abs(value))) - 23);
  if (Math.abs(value) / unit >= 2 ** 24) unit *= 2;
  if (Math.abs(value) / unit < 2 ** 23) unit /= 2;
  const steps = Math.abs(value) / unit;
  const floor = Math.floor(steps);
  const isUp = steps - floor > 0.5 || (steps - floor === 0.5 && floor % 2 === 1);
  return Math.sign(value) * (floor + (isUp ? 1 : 0)) * unit;
}
