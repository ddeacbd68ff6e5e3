// What a published model says, in the reader's units: mirrors `blurfit.model.model` and
// `blurfit.learning.inference`.

import { number } from "./language.js";
import { affine, affines, columnsFor, isLabel, NOT_SAID, questionsOf, scaled } from "./schema.js";

const CONFIDENCE = 0.95;

/** The question that is predicted, and those that predict it. */
export function aimOf({ agreement, target }) {
  return questionsOf(agreement.schema).find(({ name }) => name === target);
}

export function featuresOf({ agreement, features }) {
  const questions = questionsOf(agreement.schema);
  return features.map((name) => questions.find((one) => one.name === name));
}

/** What has a score: the target, or each class of it. */
export const outputsOf = ({ weights }) => Object.keys(weights);

// ---- predictions

/** {number} in its own units (an expected count is at most the upper bound), {likely} of a label,
    or {classes: [{name, likely}]}. */
export function predict(model, record) {
  const values = featuresOf(model).flatMap((feature) => scaled(feature, record));
  const outputs = aimOf(model).kind === "categorical" ? aimOf(model).levels : [model.target];
  const scores = outputs.map((name) => {
    const [constant, ...weights] = model.weights[name];
    return weights.reduce((sum, weight, i) => sum + weight * values[i], constant);
  });
  const aim = aimOf(model);
  if (aim.kind === "categorical") {
    const above = scores.map((score) => Math.max(score, 1e-12));
    const total = above.reduce((sum, one) => sum + one, 0);
    return { classes: outputs.map((name, i) => ({ name, likely: above[i] / total })) };
  }
  const [score] = scores;
  if (model.link === "log") {
    const rate = Math.exp(Math.max(-500, Math.min(500, score)));
    return { number: Math.min(rate, aim.upper) };
  }
  if (!isLabel(aim)) {
    const [slope, constant] = affine(aim);
    return { number: (score - constant) / slope };
  }
  if (model.link === "logistic") return { likely: 0.5 * (1 + Math.tanh(score / 2)) };
  return { likely: Math.min(1, Math.max(0, (score + 1) / 2)) };
}

/** [lower, upper] for one more person with these answers, or null where no errors are known. */
export function predictionInterval(model, record) {
  const inference = inferenceOf(model, model.target);
  if (!inference || inference.residual_variance === null) return null;
  if (aimOf(model).kind !== "numeric" || isLabel(aimOf(model))) return null;
  const answers = new Map();
  const isTold = ({ of }) => [of].flat().every((name) => model.features.includes(name));
  for (const feature of featuresOf(model).sort((one, other) => !!one.of - !!other.of)) {
    const names = columnsFor(feature);
    const [values, units] = [scaled(feature, record), affines(feature)];
    names.forEach((name, i) => answers.set(name, (values[i] - units[i][1]) / units[i][0]));
    if (feature.kind !== "numeric" || feature.of?.length !== 2 || !isTold(feature)) continue;
    // a product beside both of its questions is told in their units
    const product = ([one, other], level) =>
      [one, other].reduce((all, name) => all * (answers.get(name) ?? answers.get(`${name}=${level}`)), 1);
    names.forEach((name, i) => answers.set(name, product(feature.of, feature.levels?.[i])));
  }
  const row = inference.names.map((name, i) => (i === 0 ? 1 : answers.get(name)));
  const { value, lower, upper } = combination(inference, row, inference.residual_variance);
  if (value === undefined) return null;
  const aim = aimOf(model);
  return [lower, upper].map((end) => Math.min(Math.max(end, aim.lower), aim.upper)); // where all are
}

// ---- coefficients

const placeOf = (aim, output) => (aim.kind === "categorical" ? aim.levels.indexOf(output) : 0);

/** The errors of one output's coefficients; undefined where they are refused. */
export const inferenceOf = (model, output) => model.inference[placeOf(aimOf(model), output)];

/** Each coefficient with its errors, and what predictions are made with: the constant first. */
export function estimatesOf(model, output) {
  const predicting = model.coefficients[output];
  const inference = inferenceOf(model, output);
  if (!inference) {
    return Object.entries(predicting).map(([name, prediction]) => ({ name, prediction }));
  }
  const moved = model.liars[placeOf(aimOf(model), output)] ?? {};
  return inference.names.map((name, i) => {
    const row = inference.names.map((_, j) => (i === j ? 1 : 0));
    return { name, ...combination(inference, row), liars: moved[name], prediction: predicting[name] };
  });
}

/**
 * What each answer changes, on a scale that all share: a number from its lowest to its highest, a
 * yes instead of a no, a level instead of the reference. The estimates where there are errors, else
 * what predictions are made with.
 */
export function effectsOf(model, output) {
  const inference = inferenceOf(model, output);
  return featuresOf(model).flatMap((feature) => {
    const reference = model.references[feature.name] ?? feature.levels?.[0];
    const isTold = (name) => !inference || inference.names.includes(name); // too few were silent
    const columns = columnsFor(feature).filter(
      (name) => name in model.coefficients[output] && isTold(name),
    );
    const span = feature.kind === "numeric" && !isLabel(feature) ? feature.upper - feature.lower : 1;
    return columns.map((name) => {
      const level = name === feature.name ? null : name.slice(feature.name.length + 1);
      const about = { feature, level, reference };
      const much = level === NOT_SAID ? 1 : span;
      if (!inference) return { ...about, value: much * model.coefficients[output][name] };
      const row = inference.names.map((one) => (one === name ? much : 0));
      return { ...about, ...combination(inference, row) };
    });
  });
}

/** Σ row·coefficients with its errors; `beyond` is the variance of what the model leaves open. */
function combination({ names, count, coefficients, sampling, privacy }, row, beyond = 0) {
  const value = row.reduce((sum, one, i) => sum + one * coefficients[i], 0);
  const [ofSampling, ofPrivacy] = [sampling, privacy].map((matrix) => quadratic(matrix, row));
  const error = Math.sqrt(ofSampling + beyond + ofPrivacy);
  const freedom = count - names.length;
  const reach = reachOf(CONFIDENCE, freedom) * error;
  return {
    value,
    error,
    privacy: Math.sqrt(ofPrivacy),
    lower: value - reach,
    upper: value + reach,
    p: twoSided(error > 0 ? value / error : Number.POSITIVE_INFINITY, freedom),
  };
}

function quadratic(matrix, row) {
  return row.reduce(
    (sum, one, i) => (one ? sum + row.reduce((s, other, j) => s + one * other * matrix[i][j], 0) : sum),
    0,
  );
}

// ---- Student's t: how far an interval reaches, and how surprising an estimate is.
//
// P(|t| > x) = I_z(ν/2, ½), z = ν/(ν + x²), the regularised incomplete beta function, by its
// continued fraction (Lentz) on the side where that converges.

const TINY = 1e-300;

/** P(|t| > |x|) for ν degrees of freedom. */
export function twoSided(x, freedom) {
  if (!Number.isFinite(x)) return 0;
  const square = x * x;
  const [a, b] = [freedom / 2, 0.5];
  const z = freedom / (freedom + square);
  const rest = square / (freedom + square); // 1 − z, of which nothing is lost for small x
  if (square === 0) return 1;
  const front = Math.exp(a * logShare(square / freedom) + b * Math.log(rest) - logBeta(a));
  if (z < (a + 1) / (a + b + 2)) return (front * fraction(z, a, b)) / a;
  return 1 - (front * fraction(rest, b, a)) / b;
}

/** x with P(|t| ≤ x) = confidence. */
export function reachOf(confidence, freedom) {
  let [low, high] = [0, 1];
  while (twoSided(high, freedom) > 1 - confidence) high *= 2;
  for (let step = 0; step < 100 && high - low > 1e-15 * high; step++) {
    const middle = (low + high) / 2;
    if (twoSided(middle, freedom) > 1 - confidence) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

/** ln(1/(1 + r)). */
const logShare = (ratio) => -Math.log1p(ratio);

/** ln B(a, ½) = ln Γ(a) + ln Γ(½) − ln Γ(a + ½): the difference alone, by its asymptotic series,
 * after steps Γ(a)/Γ(a + ½) = (a + ½)/a·Γ(a + 1)/Γ(a + 3/2) to where that has all digits. */
function logBeta(a) {
  let steps = 0;
  for (; a < 40; a++) steps += Math.log1p(0.5 / a);
  const series = 1 / 8 - (1 / 192 - (1 / 640 - 17 / 14336 / a ** 2) / a ** 2) / a ** 2;
  return steps + Math.log(Math.PI) / 2 - Math.log(a) / 2 + series / a;
}

function fraction(z, a, b) {
  let c = 1;
  let d = 1 / away(1 - ((a + b) * z) / (a + 1));
  let value = d;
  for (let m = 1; m < 1e5; m++) {
    const even = (m * (b - m) * z) / ((a + 2 * m - 1) * (a + 2 * m));
    const odd = (-(a + m) * (a + b + m) * z) / ((a + 2 * m) * (a + 2 * m + 1));
    let change = 1;
    for (const term of [even, odd]) {
      d = 1 / away(1 + term * d);
      c = away(1 + term / c);
      change = c * d;
      value *= change;
    }
    if (Math.abs(change - 1) < 1e-15) break;
  }
  return value;
}

const away = (value) => (Math.abs(value) < TINY ? TINY : value);

// ---- Whether a model is any good, in words that need no statistics.

const VERDICTS = [
  [0.05, "It says next to nothing about a single person."],
  [0.3, "It says a little about a single person; most of what makes people differ is not in it."],
  [0.7, "It says a good deal about a single person, and leaves much open."],
  [1.01, "It says most of what there is to say about a single person."],
];

/** {verdict, facts: [[what, words]]} for one output; null where no errors are known. */
export function qualityOf(model, output) {
  const inference = inferenceOf(model, output);
  if (!inference || inference.r_squared === null) return null; // a curve's spread is not known
  const { r_squared: share, residual_variance: variance } = inference;
  const aim = aimOf(model);
  const isShare = aim.kind === "categorical" || isLabel(aim);
  const deviation = Math.sqrt(variance);
  const without = share < 1 ? deviation / Math.sqrt(1 - share) : Number.POSITIVE_INFINITY;
  const percent = number(100 * share, 2);
  return {
    verdict: VERDICTS.find(([below]) => share < below)[1],
    facts: [
      [
        "Share of the spread explained",
        `${percent} % (R² = ${share.toFixed(3)}, the privacy noise taken out)`,
      ],
      [
        "Residual deviation",
        isShare
          ? `${number(100 * deviation, 3)} percentage points`
          : `${number(deviation, 3)}: so far people typically lie from the prediction` +
            (Number.isFinite(without) ? `, and ${number(without, 3)} from the plain average` : ""),
      ],
    ],
  };
}
