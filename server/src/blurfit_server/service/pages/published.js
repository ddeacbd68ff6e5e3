// What a published model says, in the reader's units: mirrors `blurfit.model.model`. Errors, intervals
// and p-values are the service's own (`estimates`), which it signs; nothing is estimated here.

import { number, percent, t } from "./language.js";
import { NOT_SAID, affine, affines, columnsFor, isLabel, questionsOf, scaled } from "./schema.js";
import { measured } from "./texts.js";

export const aimOf = ({ agreement, target }) =>
  questionsOf(agreement.schema).find(({ name }) => name === target);

export function featuresOf({ agreement, features }) {
  const questions = questionsOf(agreement.schema);
  return features.map((name) => questions.find((one) => one.name === name));
}

/** What has a score: the target, or each class of it. */
export const outputsOf = ({ weights }) => Object.keys(weights);

// ---- predictions

/** {number} in its own units and within the bounds, {likely} of a label, or
    {classes: [{name, likely}]}. */
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
    return { number: Math.min(Math.max((score - constant) / slope, aim.lower), aim.upper) };
  }
  const [shift, factor] = model.curve ?? (model.link === "logistic" ? [0, 1] : []);
  if (factor) return { likely: 0.5 * (1 + Math.tanh((shift + factor * score) / 2)) };
  return { likely: Math.min(1, Math.max(0, (score + 1) / 2)) };
}

/** [lower, upper] for one more person with these answers, or null where no errors are known. How many
 * errors a 95 % interval reaches is that of the estimates. */
export function predictionInterval(model, record, estimates) {
  const inference = inferenceOf(model, model.target);
  if (!inference || inference.residual_variance === null || !estimates[model.target]?.length) return null;
  const aim = aimOf(model);
  if (aim.kind !== "numeric" || isLabel(aim)) return null;
  const answers = answersIn(model, record);
  const { names, coefficients, sampling, privacy, residual_variance: beyond } = inference;
  const row = names.map((name, i) => (i === 0 ? 1 : answers.get(name)));
  const value = row.reduce((sum, one, i) => sum + one * coefficients[i], 0);
  const first = estimates[model.target].find((one) => one.standard_error !== null);
  if (first === undefined) return null;
  const deviation = Math.sqrt(quadratic(sampling, row) + quadratic(privacy, row) + beyond);
  const reach = ((first.upper - first.value) / first.standard_error) * deviation;
  // where all answers are
  return [value - reach, value + reach].map((end) => Math.min(Math.max(end, aim.lower), aim.upper));
}

function quadratic(matrix, row) {
  return row.reduce(
    (sum, one, i) => (one ? sum + row.reduce((s, other, j) => s + one * other * matrix[i][j], 0) : sum),
    0,
  );
}

/** What a coefficient of each column is multiplied with, in the units of the answers. */
function answersIn(model, record) {
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
  return answers;
}

// ---- coefficients

const placeOf = (aim, output) => (aim.kind === "categorical" ? aim.levels.indexOf(output) : 0);

/** The errors of one output's coefficients; undefined where they are refused. */
export const inferenceOf = (model, output) => model.inference[placeOf(aimOf(model), output)];

/** Each coefficient with its errors, and what predictions are made with: the constant first. Answers that
 * hardly anybody gave are left out. */
export function estimatesOf(model, output, estimates) {
  const predicting = model.coefficients[output];
  const found = estimates[output]?.length ? estimates[output] : Object.keys(predicting).map((name) => ({ name }));
  const shown = found.filter(({ name }) => !model.hidden.includes(name));
  const isKnown = (one) => one.standard_error !== null; // else the noise hides it
  return shown.map((one) => ({ ...(isKnown(one) ? one : { name: one.name }), prediction: predicting[one.name] }));
}

/** What each answer changes, on a scale that all share: a number from its lowest to its highest, a yes
 * instead of a no, a level instead of the reference. The estimates where there are errors, else what
 * predictions are made with. */
export function effectsOf(model, output, estimates) {
  const found = new Map(estimatesOf(model, output, estimates).map((one) => [one.name, one]));
  return featuresOf(model).flatMap((feature) => {
    const reference = model.references[feature.name] ?? feature.levels?.[0];
    const columns = columnsFor(feature).filter(
      (name) => name in model.coefficients[output] && found.has(name), // too few may have been silent
    );
    const span = feature.kind === "numeric" && !isLabel(feature) ? feature.upper - feature.lower : 1;
    return columns.map((name) => {
      const level = name === feature.name ? null : name.slice(feature.name.length + 1);
      const much = level === NOT_SAID ? 1 : span;
      const { value, prediction, lower, upper } = found.get(name);
      const about = { feature, level, reference, value: much * (value ?? prediction) };
      return value === undefined ? about : { ...about, lower: much * lower, upper: much * upper };
    });
  });
}

// ---- Whether a model is any good, in words that need no statistics.

const VERDICTS = [0.05, 0.3, 0.7, 1.01];

/** {verdict, facts: [[what, words]]} for one output; null where no errors are known. */
export function qualityOf(model, output) {
  const inference = inferenceOf(model, output);
  if (!inference || inference.r_squared === null) return null; // a curve's spread is not known
  const { r_squared: share, residual_variance: variance } = inference;
  const aim = aimOf(model);
  const deviation = Math.sqrt(variance);
  const isShare = aim.kind === "categorical" || isLabel(aim);
  const typical = isShare ? t("points", { points: number(100 * deviation, 3) }) : measured(aim, deviation, 3);
  const without = deviation / Math.sqrt(1 - Math.min(share, 1));
  const plain = !isShare && Number.isFinite(without);
  return {
    verdict: t(`verdict.${VERDICTS.findIndex((below) => share < below)}`),
    facts: [
      [t("quality.explained"), t("quality.explained.words", { percent: percent(share), share: number(share, 3) })],
      [t("quality.error"), plain ? t("quality.error.words", { typical, plain: measured(aim, without, 3) }) : typical],
    ],
  };
}
