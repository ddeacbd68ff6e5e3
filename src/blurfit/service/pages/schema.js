// From answers to x in the unit ball and y in [−1, 1], by public bounds alone; and from weights
// back to predictions. Each line mirrors `blurfit.schema.columns` and `schema`, operation by
// operation, so that both round alike.

export const INTERCEPT = "(intercept)";

export class AnswerError extends Error {
  constructor(name, message) {
    super(message);
    this.field = name;
  }
}

export function columnsOf(schema) {
  const names = schema.features.flatMap((feature) =>
    feature.kind === "categorical"
      ? feature.levels.map((level) => `${feature.name}=${level}`)
      : [feature.name],
  );
  return schema.intercept ? [...names, INTERCEPT] : names;
}

export function isLabel(schema) {
  return schema.target.kind === "binary" || "above" in schema.target;
}

/** s = 1/√m, less a hair, so that ‖x‖ ≤ 1 however it is computed. */
export function scaleOf(schema) {
  const m = schema.features.length + (schema.intercept ? 1 : 0);
  return (1 - (m + 4) * 2 ** -53) / Math.sqrt(m);
}

/** {x, y} of a record: an object of numbers, booleans and words by name. */
export function encode(schema, record) {
  return { x: encodeFeatures(schema, record), y: encodeTarget(schema.target, record) };
}

export function encodeFeatures(schema, record) {
  const z = schema.features.flatMap((feature) => scaled(feature, answer(feature, record)));
  if (schema.intercept) z.push(1);
  const s = scaleOf(schema);
  return z.map((value) => value * s);
}

/** Of a label only "above or not" is needed, so that may be given in the place of the number. */
function encodeTarget(target, record) {
  const value = answer(target, record);
  if (!("above" in target)) return scaled(target, value)[0];
  const isAbove = typeof value === "boolean" ? value : inside(target, value) > target.above;
  return isAbove ? 1 : -1;
}

/** The prediction in the user's units; for a label the score, whose sign decides. */
export function predict(schema, weights, record) {
  const x = encodeFeatures(schema, record);
  const score = x.reduce((sum, value, i) => sum + value * weights[i], 0);
  if (isLabel(schema)) return score;
  const { lower, upper } = schema.target;
  return lower / 2 + upper / 2 + ((upper - lower) / 2) * score;
}

/** The value that z in [−1, 1] stands for. */
export function unscale(column, z) {
  const t = (Math.max(-1, Math.min(1, z)) + 1) / 2;
  return (1 - t) * column.lower + t * column.upper;
}

function answer(column, record) {
  if (!Object.hasOwn(record, column.name)) {
    throw new AnswerError(column.name, `Please answer “${column.name}”.`);
  }
  return record[column.name];
}

function scaled(column, value) {
  if (column.kind === "categorical") {
    if (!column.levels.includes(value)) {
      throw new AnswerError(column.name, `Please choose one of: ${column.levels.join(", ")}.`);
    }
    return column.levels.map((level) => (level === value ? 1 : 0));
  }
  if (column.kind === "binary") {
    if (typeof value !== "boolean") throw new AnswerError(column.name, "Please answer yes or no.");
    return [value ? 1 : -1];
  }
  let z = inside(column, value) - column.lower;
  z /= column.upper - column.lower;
  z *= 2;
  z -= 1;
  return [z];
}

function inside(column, value) {
  if (typeof value !== "number" || !Number.isFinite(value)) {
    throw new AnswerError(column.name, `Please enter a number for “${column.name}”.`);
  }
  if (column.outside === "refuse" && !(column.lower <= value && value <= column.upper)) {
    throw new AnswerError(
      column.name,
      `${value} is not within ${column.lower} and ${column.upper}, which was agreed on; ` +
        "this collection cannot take it.",
    );
  }
  return Math.min(Math.max(value, column.lower), column.upper);
}
