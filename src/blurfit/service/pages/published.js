// What a published model says, in the reader's units: mirrors `blurfit.model.model` and
// `blurfit.learning.inference`.

import { NOT_SAID, affine, affines, columnsFor, isLabel, questionsOf, scaled } from "./schema.js";
import { reachOf, twoSided } from "./student.js";

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

/** {number} in its own units, {likely} of a label, or {classes: [{name, likely}]}. */
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
  if (model.link === "log") return { number: Math.exp(Math.max(-500, Math.min(500, score))) };
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
  const answers = new Map(
    featuresOf(model).flatMap((feature) => {
      const [values, units] = [scaled(feature, record), affines(feature)];
      return columnsFor(feature).map((name, i) => [name, (values[i] - units[i][1]) / units[i][0]]);
    }),
  );
  const row = inference.names.map((name, i) => (i === 0 ? 1 : answers.get(name)));
  const { value, lower, upper } = combination(inference, row, inference.residual_variance);
  return value === undefined ? null : [lower, upper];
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
      (name) => name !== `${feature.name}=${reference}` && isTold(name),
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
