// What a later wave teaches, as a step from the last model: mirrors `blurfit.learning.wave_step` and
// `blurfit.learning.step`.

import * as m from "./algebra.js";
import { posterior, spaced, weightsOf } from "./bayes.js";
import { clip, masked, median, shrinkBeside, softFloor } from "./denoise.js";
import { onCurve } from "./learn.js";

const FACTORS = spaced(1 / 16, 16, 9);

/** What is believed after a wave that was collected under its map. */
export function learnWave(belief, release) {
  const { map } = release.agreement.wave;
  const at = map.kind === "residual" ? belief : onCurve(belief);
  const read = stepSums(map, release);
  const into = coordinates(map);
  const prior = m.times(into, at.covariance, m.transpose(into));
  const slack = (0.25 * m.total(m.diagonalOf(prior).slice(1))) / (prior.length - 1);
  const wider = m.diagonal(prior.map((row, i) => (i === 0 ? row[0] : slack)));
  const step = bayesStep(read, m.add(prior, wider));
  const back = m.inverse(into);
  const move = m.apply(back, step.theta);
  const learned = {
    ...at,
    coefficients: at.coefficients.map((one, i) => one + move[i]),
    covariance: m.even(m.times(back, step.covariance, m.transpose(back))),
  };
  return map.kind === "residual" ? whitenedAgain(learned, map, read, step) : learned;
}

/** The wave's quadratic, the constant first, with the law of its noise. */
function stepSums(map, { sums, count, deviation }) {
  const size = map.mean.length + 1;
  const rows = map.kind === "residual" ? size + 1 : size;
  const matrix = m.zeros(rows);
  let at = 0;
  for (let i = 0; i < rows; i++) {
    for (let j = i; j < rows; j++) {
      const isKnown = map.kind === "residual" && i === 0 && j === 0;
      const value = isKnown ? map.weights[0] ** 2 * count : sums[at++];
      matrix[i][j] = value;
      matrix[j][i] = value;
    }
  }
  const square = deviation ** 2;
  const variance = m.zeros(size).map((row, i) => row.map((_, j) => (i === j ? square : square / 2)));
  const noise = { variance, ties: new Array(size).fill(0) };
  if (map.kind === "residual") {
    variance[0][0] = 0;
    return {
      count,
      noise,
      gram: matrix.slice(0, size).map((row) => row.slice(0, size)),
      linear: matrix.slice(0, size).map((row) => row[size]),
      linearVariance: square / 2,
      curvature: featureScale(map) ** 2,
      dispersion: residualVariance(map, matrix[size][size] / count, (deviation / count) ** 2),
    };
  }
  const order = [size - 1, ...Array.from({ length: size - 1 }, (_, i) => i)];
  const linear = sums.slice(at);
  const [ofFeatures] = newtonScale(map);
  return {
    count,
    noise,
    gram: order.map((i) => order.map((j) => matrix[i][j])),
    linear: order.map((i) => linear[i]),
    linearVariance: square * map.balance ** 2,
    curvature: (map.kind === "logistic" ? 0.15 : 1) * ofFeatures ** 2,
    dispersion: 1,
  };
}

const featureScale = ({ weights, radius, mean }) =>
  weights[1] / (radius * Math.sqrt(mean.length));
const targetScale = ({ weights, bound }) => weights[2] / bound;

function newtonScale({ constant, mean }) {
  const length = Math.hypot(1, constant);
  return [1 / (Math.sqrt(mean.length) * length), constant / length];
}

function residualVariance(map, seen, noise) {
  const expected = targetScale(map) ** 2;
  const prior = (0.5 * expected) ** 2;
  return clip((prior * seen + noise * expected) / (prior + noise), 0.1 * expected, 4 * expected);
}

/** J with θ = J·(β₀, β). */
function coordinates(map) {
  const p = map.mean.length;
  const lower = map.whitening.map((row) => [...row, ...new Array(p - row.length).fill(0)]);
  const inner = m.transpose(m.inverse(lower));
  const found = [[1, ...map.mean], ...inner.map((row) => [0, ...row])];
  const [ofFeatures, constant] = newtonScaleOr(map);
  return found.map((row, i) => row.map((one) => one * (i === 0 ? constant : ofFeatures)));
}

function newtonScaleOr(map) {
  if (map.kind !== "residual") return newtonScale(map).map((one) => 1 / one);
  const unit = targetScale(map) / map.scale;
  return [unit / featureScale(map), unit / map.weights[0]];
}

function bayesStep(sums, prior) {
  const { gram, kept } = denoisedStep(sums);
  const linear = sums.linear.map((one) => one / sums.count);
  const own = m.diagonal(linear.map(() => sums.linearVariance / sums.count ** 2));
  const left = { noise: sums.noise, share: kept / sums.count ** 2, isJoint: false };
  const found = FACTORS.map((factor) => {
    const wider = m.scaled(factor, prior);
    const sampling = m.scaled(sums.dispersion / sums.count, gram);
    const fixed = m.add(m.times(gram, wider, gram), own, sampling);
    return { ...posterior(gram, wider, fixed, linear, left), logPrior: -(Math.log(factor) ** 2) / 2 };
  });
  const weights = weightsOf(found);
  const theta = linear.map((_, i) => m.total(found.map((one, r) => weights[r] * one.theta[i])));
  const second = m.add(...found.map((one, r) => m.scaled(weights[r], one.second)));
  return { theta, gram, covariance: m.even(m.minus(second, m.outer(theta, theta))) };
}

function denoisedStep({ gram, noise: law, count, curvature }) {
  const seen = m.entries((one) => one / count, gram);
  const noise = m.entries((one) => one / count ** 2, law.variance);
  const spread = diagonalOfStep(m.diagonalOf(seen), m.diagonalOf(noise), curvature);
  const pairs = seen.map((row, i) => row.map((_, j) => i !== j));
  const scale = m.outer(spread, spread);
  const { found, kept } = shrinkBeside(seen, noise, scale, pairs, [0.001, 0.15]);
  const whole = found.map((row, i) => row.map((one, j) => (i === j ? spread[i] : one)));
  const free = 2 * median(masked(noise, pairs));
  return { gram: softFloor(whole, ((seen.length * kept) / 4) * free), kept };
}

function diagonalOfStep([constant, ...features], [ofConstant, ...noise], curvature) {
  const ofEach = m.mean(noise);
  const ofMean = ofEach / features.length;
  const prior = (0.3 * curvature) ** 2;
  const average = m.mean(features);
  const mean = Math.max(
    (prior * average + ofMean * curvature) / (prior + ofMean),
    0.1 * curvature,
  );
  const spread = m.mean(features.map((one) => (one - average) ** 2));
  const between = Math.max(spread - ofEach, (0.1 * mean) ** 2);
  const shrink = (one) => mean + (between / (between + ofEach)) * (one - mean);
  return [
    Math.max(constant, 3 * Math.sqrt(ofConstant), 1e-3 * mean),
    ...features.map((one) => Math.max(shrink(one), 0.1 * mean)),
  ];
}

/** The belief with its features whitened again by what this wave saw of them. */
function whitenedAgain(belief, map, read, step) {
  const p = map.mean.length;
  const scale = featureScale(map);
  const full = map.whitening.map((row) => [...row, ...new Array(p - row.length).fill(0)]);
  const lower = m.inverse(full);
  const shift = step.gram[0].slice(1).map((one) => one / (map.weights[0] * scale));
  const inner = step.gram.slice(1).map((row) => row.slice(1).map((one) => one / scale ** 2));
  const centred = m.minus(inner, m.outer(shift, shift));
  const by = p / m.total(m.diagonalOf(centred));
  const spread = m.times(lower, m.scaled(by, centred), m.transpose(lower));
  const explained = m.dot(step.theta, m.apply(step.gram, step.theta));
  const left = Math.max(read.dispersion - explained, 0.1 * read.dispersion);
  const move = m.apply(lower, shift);
  return {
    ...belief,
    mean: belief.mean.map((one, i) => one + move[i]),
    spread: m.even(spread),
    scale: (Math.sqrt(left) / targetScale(map)) * map.scale,
  };
}
