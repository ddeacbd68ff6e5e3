// Weights in the user's units, with intervals: mirrors `Schema.user_units_matrix` and
// `PublishedModel.estimates`.

import { INTERCEPT, columnsOf, isLabel, scaleOf } from "./schema.js";

const LEVEL = 1.959963984540054; // of a two-sided interval of 95 %

/** [{name, value}]: the coefficients, the intercept first. */
export function coefficientsOf({ agreement, weights }) {
  const { matrix, offset, names } = userUnits(agreement.schema);
  const w = inOrder(agreement.schema, weights);
  return names.map((name, i) => ({ name, value: dot(matrix[i], w) + (i === 0 ? offset : 0) }));
}

/** The same with intervals {name, value, lower, upper}, where the model tells its uncertainty. */
export function estimatesOf(model) {
  const { matrix } = userUnits(model.agreement.schema);
  return coefficientsOf(model).map((one, i) => ({
    ...one,
    ...interval(model, matrix[i], one.value),
  }));
}

/**
 * What each answer changes in the prediction, on a scale that all share: a number from its lowest
 * to its highest, a yes instead of a no, a choice instead of the average of the choices. (The
 * coefficient of one choice alone means little: what is added to all of them can be taken from the
 * intercept.)
 */
export function effectsOf(model) {
  const { schema } = model.agreement;
  const { matrix } = userUnits(schema);
  const w = inOrder(schema, model.weights);
  let place = 1;
  return schema.features.flatMap((feature) => {
    const names = feature.kind === "categorical" ? feature.levels : [feature.name];
    const rows = matrix.slice(place, (place += names.length));
    const span = feature.kind === "numeric" ? feature.upper - feature.lower : 1;
    return names.map((name, i) => {
      const row = rows[i].map((one, j) =>
        rows.length > 1
          ? one - rows.reduce((sum, other) => sum + other[j], 0) / rows.length
          : span * one,
      );
      const value = dot(row, w);
      return { feature, name, value, ...interval(model, row, value) };
    });
  });
}

/** value ± 1.96 deviations ± what the ridge may have taken: see `PublishedModel.estimates`. */
function interval({ uncertainty }, row, value) {
  if (!uncertainty) return {};
  let variance = 0;
  row.forEach((one, j) => {
    row.forEach((other, k) => {
      variance += one * other * (uncertainty.covariance[j][k] + uncertainty.sampling[j][k]);
    });
  });
  const half = LEVEL * Math.sqrt(Math.max(0, variance)) + Math.abs(dot(row, uncertainty.bias));
  return { lower: value - half, upper: value + half };
}

function inOrder(schema, weights) {
  return columnsOf(schema).map((name) => weights[name]);
}

function userUnits(schema) {
  const columns = schema.features.flatMap((feature) => {
    if (feature.kind === "categorical") {
      return feature.levels.map((level) => ({
        name: `${feature.name}=${level}`,
        slope: 1,
        constant: 0,
      }));
    }
    if (feature.kind === "binary") return [{ name: feature.name, slope: 2, constant: -1 }];
    const { lower, upper } = feature;
    const width = upper - lower;
    const constant = -(lower / width + upper / width);
    return [{ name: feature.name, slope: 2 / width, constant }];
  });
  const { target } = schema;
  const half = isLabel(schema) ? 1 : (target.upper - target.lower) / 2;
  const s = scaleOf(schema) * half;
  const constants = [...columns.map(({ constant }) => constant), ...(schema.intercept ? [1] : [])];
  const effects = columns.map(({ slope }, i) => constants.map((_, j) => (i === j ? slope * s : 0)));
  return {
    matrix: [constants.map((constant) => constant * s), ...effects],
    offset: isLabel(schema) ? 0 : target.lower / 2 + target.upper / 2,
    names: [INTERCEPT, ...columns.map(({ name }) => name)],
  };
}

function dot(one, other) {
  return one.reduce((sum, value, i) => sum + value * other[i], 0);
}
