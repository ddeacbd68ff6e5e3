// Weights in the user's units, with intervals: mirrors `Schema.user_units_matrix` and
// `PublishedModel.estimates`.

import { INTERCEPT, isLabel, scaleOf } from "./schema.js";

const LEVEL = 1.959963984540054; // of a two-sided interval of 95 %

/** [{name, value, lower?, upper?, span, words}], the intercept first. `span` is by how many units
 * the column's value can move, so that effects of all columns can be compared. */
export function effectsOf({ agreement, weights, uncertainty }) {
  const { schema } = agreement;
  const { matrix, offset, names, spans } = userUnits(schema);
  const w = names.slice(1).concat(schema.intercept ? [INTERCEPT] : []).map((name) => weights[name]);
  return names.map((name, i) => {
    const row = matrix[i];
    const value = dot(row, w) + (i === 0 ? offset : 0);
    if (!uncertainty) return { name, value, span: spans[i] };
    let variance = 0;
    row.forEach((one, j) => {
      row.forEach((other, k) => {
        variance += one * other * (uncertainty.covariance[j][k] + uncertainty.sampling[j][k]);
      });
    });
    const half = LEVEL * Math.sqrt(Math.max(0, variance)) + Math.abs(dot(row, uncertainty.bias));
    return { name, value, lower: value - half, upper: value + half, span: spans[i] };
  });
}

function userUnits(schema) {
  const columns = schema.features.flatMap((feature) => {
    if (feature.kind === "categorical") {
      return feature.levels.map((level) => ({ name: `${feature.name}=${level}`, slope: 1, constant: 0, span: 1 }));
    }
    if (feature.kind === "binary") return [{ name: feature.name, slope: 2, constant: -1, span: 1 }];
    const { lower, upper } = feature;
    const width = upper - lower;
    const constant = -(lower / width + upper / width);
    return [{ name: feature.name, slope: 2 / width, constant, span: width }];
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
    spans: [0, ...columns.map(({ span }) => span)],
  };
}

function dot(one, other) {
  return one.reduce((sum, value, i) => sum + value * other[i], 0);
}
