// Blurred sums read with all that is known of their noise: mirrors `blurfit.learning.joint_sums`
// and `blurfit.learning.denoise`, whose docstrings have the reasons.

import {
  diagonalOf,
  dot,
  eigen,
  entries,
  mean,
  minus,
  outer,
  total,
  transpose,
  zeros,
} from "./algebra.js";
import { formOf } from "./joint.js";

/** Σzzᵀ of a first wave, what is publicly known written into it, for the target and the features
 * in these places among the columns: {count, constant, features, target, scale, gram, cross,
 * square, noise}, the constant first. */
export function submodel({ agreement, sums, count, deviation }, kept) {
  const { constant, columns, sent } = formOf(agreement);
  const matrix = zeros(columns.length + 1);
  sent.forEach(([row, column], i) => {
    matrix[row][column] = sums[i];
    matrix[column][row] = sums[i];
  });
  const noise = writeWhatIsKnown(matrix, { constant, columns, count, deviation });
  const last = columns.length;
  const rows = [0, ...kept.map((place) => place + 1)];
  const chosen = [...rows, last];
  const features = kept.map((place) => columns[place]);
  return {
    count,
    constant,
    features,
    target: columns[last - 1],
    scale: [constant, ...features.map(({ weight }) => weight)],
    gram: rows.map((i) => rows.map((j) => matrix[i][j])),
    cross: rows.map((i) => matrix[i][last]),
    square: matrix[last][last],
    noise: {
      variance: chosen.map((i) => chosen.map((j) => noise.variance[i][j])),
      ties: chosen.map((i) => noise.ties[i]),
    },
  };
}

/** The noise on the features alone. */
export function featureNoise({ noise }) {
  const all = noise.ties.length - 1;
  return {
    variance: noise.variance.slice(0, all).map((row) => row.slice(0, all)),
    ties: noise.ties.slice(0, all),
  };
}

function writeWhatIsKnown(matrix, { constant: c, columns, count, deviation }) {
  const size = matrix.length;
  const s2 = deviation ** 2;
  const variance = matrix.map((row, i) => row.map((_, j) => (i === j ? s2 : s2 / 2)));
  const ties = new Array(size).fill(0);
  const write = (i, j, value, spread) => {
    for (const [row, column] of [[i, j], [j, i]]) {
      matrix[row][column] = value;
      variance[row][column] = spread;
    }
  };
  write(0, 0, c ** 2 * count, 0);
  columns.forEach(({ kind, group, weight: w }, place) => {
    const row = place + 1;
    if (kind === "sign") write(row, row, w ** 2 * count, 0);
    if (kind !== "level") return;
    const by = w ** 2 * (w ** 2 + 2 * c ** 2);
    const people = (w ** 2 * matrix[row][row] + 2 * c * w * matrix[0][row]) / by;
    columns.forEach((other, i) => other.group === group && write(row, i + 1, 0, 0));
    write(row, row, w ** 2 * people, (w ** 4 * s2) / by);
    write(0, row, c * w * people, ((c * w) ** 2 * s2) / by);
    ties[row] = (c * w ** 3 * s2) / by;
  });
  return { variance, ties };
}

/** E[EBE] for a symmetric B. */
export function sandwich({ variance, ties }, middle) {
  const inner = diagonalOf(middle);
  const found = entries((v, b) => v * b, variance, middle);
  found.forEach((row, i) => {
    row[i] = dot(variance[i], inner) + 2 * ties[i] * middle[0][i];
  });
  ties.forEach((tie, j) => {
    found[0][j] += tie * inner[j];
    found[j][0] += tie * inner[j];
  });
  return found;
}

/** {mean, variance, covariance, kept} of the features in z-space. */
export function denoise(sums) {
  const gram = entries((one) => one / sums.count, sums.gram);
  const variance = entries((one) => one / sums.count ** 2, featureNoise(sums).variance);
  const noiseOfMean = variance[0].slice(1).map((one) => one / sums.constant ** 2);
  const { means, largest } = meansOf(sums, gram, noiseOfMean);
  const spread = sums.features.map((column, j) => {
    const floor = leastVariance(column);
    if (column.kind !== "numeric") return Math.max(largest[j], floor);
    const noise = variance[j + 1][j + 1] + 4 * means[j] ** 2 * noiseOfMean[j];
    const seen = gram[j + 1][j + 1] - means[j] ** 2;
    const found = shrunk(seen, noise, 0.35 * largest[j], (0.3 * largest[j]) ** 2);
    return clip(found, floor, largest[j]);
  });
  const pairs = pairsOf(sums.features);
  const inner = variance.slice(1).map((row) => row.slice(1));
  const seen = minus(gram.slice(1).map((row) => row.slice(1)), outer(means, means));
  const { covariance, kept } = covariances(seen, inner, pairs, { means, spread, noiseOfMean });
  const free = means.length > 1 ? 2 * median(masked(inner, pairs)) : 0;
  return {
    mean: means,
    variance: spread,
    covariance: free ? softFloor(covariance, ((means.length * kept) / 4) * free) : covariance,
    kept,
  };
}

/** Each eigenvalue λ becomes (λ + √(λ² + 4α))/2. */
export function softFloor(covariance, strength) {
  const { values, vectors } = eigen(covariance);
  const raised = values.map((one) => (one + Math.sqrt(one ** 2 + 4 * strength)) / 2);
  const right = vectors.map((row) => row.map((one, j) => one * raised[j]));
  return right.map((row) => vectors.map((other) => dot(row, other)));
}

export const shrunk = (seen, noise, prior, spread) =>
  (spread * seen + noise * prior) / (spread + noise);
export const clip = (value, low, high) => Math.min(Math.max(value, low), high);

export function largestVariance({ kind, weight: q }, at) {
  return kind === "level" ? at * (q - at) : q ** 2 - at ** 2;
}

/** E[zzᵀ], the constant first. */
export function gramOf({ mean: means, covariance }, constant) {
  const cross = means.map((one) => constant * one);
  const inner = covariance.map((row, i) => row.map((one, j) => one + means[i] * means[j]));
  return [[constant ** 2, ...cross], ...inner.map((row, i) => [cross[i], ...row])];
}

/** Shrink what is beside the diagonal by τ²d_id_j/(τ²d_id_j + noise): {found, kept}. */
export function shrinkBeside(seen, noise, scale, pairs, [least, most]) {
  const weight = entries((n, s, isPair) => (isPair ? (n + 0.04 * s) ** -2 : 0), noise, scale, pairs);
  const sum = (matrix) => total(matrix.flat());
  const excess = sum(entries((w, s, x, n) => w * s * (x ** 2 - n), weight, scale, seen, noise));
  const common = clip(excess / sum(entries((w, s) => w * s ** 2, weight, scale)), least, most);
  const factor = entries((s, n) => (common * s) / (common * s + n), scale, noise);
  return {
    found: entries((x, f, isPair) => (isPair ? x * f : x), seen, factor, pairs),
    kept: mean(masked(factor, pairs)),
  };
}

export function masked(matrix, pairs) {
  return matrix.flatMap((row, i) => row.filter((_, j) => pairs[i][j]));
}

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length / 2;
  return sorted.length % 2 ? sorted[Math.floor(half)] : (sorted[half - 1] + sorted[half]) / 2;
}

function leastVariance({ kind, weight }) {
  return (kind === "level" ? 0.005 : 0.02) * weight ** 2;
}

function meansOf(sums, gram, noise) {
  const { features, constant } = sums;
  const means = [];
  const largest = [];
  features.forEach((column, j) => {
    const { kind, weight: q, group } = column;
    let [prior, spread, low] = [0, q ** 2 / 4, -q];
    if (kind === "level") {
      const levels = Math.max(features.filter((one) => one.group === group).length, 2);
      const share = 1 / levels;
      [prior, spread, low] = [q * share, (q ** 2 * share * (1 - share)) / (levels + 1), 0];
    }
    means[j] = clip(shrunk(gram[0][j + 1] / constant, noise[j], prior, spread), low, q);
    largest[j] = largestVariance(column, means[j]);
    if (kind === "numeric") largest[j] = Math.max(largest[j], 0.05 * q ** 2);
  });
  return { means, largest };
}

function covariances(seen, variance, pairs, { means, spread, noiseOfMean }) {
  let [covariance, kept] = [seen, 1];
  if (pairs.flat().some(Boolean)) {
    const ofProduct = outer(
      means.map((one) => one ** 2),
      noiseOfMean,
    );
    const noise = entries((a, b, c) => a + b + c, variance, ofProduct, transpose(ofProduct));
    const scale = outer(spread, spread);
    ({ found: covariance, kept } = shrinkBeside(seen, noise, scale, pairs, [0.005, 0.15]));
  }
  return {
    covariance: covariance.map((row, i) => row.map((one, j) => (i === j ? spread[i] : one))),
    kept,
  };
}

/** Which entries are blurred covariances: not the diagonal, nor two levels of one group. */
function pairsOf(features) {
  return features.map((one, i) =>
    features.map((other, j) => i !== j && (one.group === null || one.group !== other.group)),
  );
}
