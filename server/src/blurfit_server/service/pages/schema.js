// From answers to columns, by public bounds alone. Each line mirrors `blurfit.schema.columns` and
// `schema`, operation by operation, so that both round alike.

import { t } from "./language.js";

export const INTERCEPT = "(intercept)";
export const NOT_SAID = "(not said)";

export class AnswerError extends Error {}

/** Refuse what no field of the form lets through. */
function need(holds, { name }) {
  if (!holds) throw new AnswerError(t("wrong.choose", { question: name }));
}

/** All that a record becomes: the features in their order, then the target. */
export function questionsOf(schema) {
  const { features, target } = schema;
  const asked = new Map(askedOf(schema).map((one) => [one.name, one]));
  return [...features.map((one) => (isDerived(one) ? derived(one, asked) : one)), target];
}

/** What people are asked: everything but what is computed from other answers, and what is asked
 * only for that. */
export function askedOf({ features, target, sources = [] }) {
  const asked = features.filter((one) => !isDerived(one));
  const until = (one) => (one.name === target.time ? { ...one, isUntil: true } : one);
  return [...sources, ...asked.map(until), target];
}

export const isDerived = (column) => column?.of !== undefined;

/** A derived column as a question of the kind that it is like, which answers itself by `derive`:
 * mirrors `blurfit.schema.derived`, whose proofs it rests upon. */
export function derived(column, asked) {
  const [one, other] = [column.of].flat().map((name) => asked.get(name));
  if (column.kind === "bands") {
    const edges = column.edges.map(String);
    const middle = edges.slice(1).map((edge, i) => `${edges[i]} to ${edge}`);
    const levels = [`under ${edges[0]}`, ...middle, `${edges.at(-1)} or more`];
    const derive = (record) => {
      const value = inside(one, answer(one, record));
      return levels[column.edges.filter((edge) => edge <= value).length];
    };
    return { ...column, kind: "categorical", levels, derive };
  }
  if (column.kind === "cross") {
    const levels = wordsOf(one).flatMap((first) => wordsOf(other).map((last) => `${first}:${last}`));
    const derive = (record) => `${wordOf(one, record)}:${wordOf(other, record)}`;
    return { ...column, kind: "categorical", levels, derive };
  }
  if (column.kind === "curve") {
    const derive = (record) => hats(column.knots, inside(one, answer(one, record)));
    return { ...column, kind: "categorical", levels: column.knots.map(String), derive };
  }
  const computed = { ...column, kind: "numeric", lower: -1, upper: 1, outside: "clip" };
  if (column.kind === "product") {
    const derive = (record) =>
      said(one, record).flatMap((first) => said(other, record).map((last) => first * last));
    const levels = [one, other].find(({ kind }) => kind === "categorical")?.levels;
    return levels ? { ...computed, levels, derive } : { ...computed, derive };
  }
  if (column.kind === "poly") {
    return { ...computed, derive: (record) => [legendre(column.degree, said(one, record)[0])] };
  }
  const derive = (record) =>
    "level" in column
      ? wordOf(one, record) === column.level
      : inside(one, answer(one, record)) > column.above;
  return { ...column, kind: "binary", derive };
}

/** How near a number is to each knot: linear B-splines, which sum to 1 to the last bit. */
function hats(knots, value) {
  const x = Math.min(Math.max(value, knots[0]), knots.at(-1));
  const place = Math.min(knots.filter((knot) => knot <= x).length - 1, knots.length - 2);
  const left = 1 - (x - knots[place]) / (knots[place + 1] - knots[place]);
  return knots.map((_, i) => (i === place ? left : i === place + 1 ? 1 - left : 0));
}

function legendre(degree, z) {
  let [before, found] = [1, z];
  for (let k = 1; k < degree; k++) {
    [before, found] = [found, ((2 * k + 1) * z * found - k * before) / (k + 1)];
  }
  return Math.min(Math.max(found, -1), 1);
}

const wordsOf = ({ kind, levels }) => (kind === "categorical" ? levels : ["yes", "no"]);

function wordOf(question, record) {
  const columns = said(question, record);
  return wordsOf(question)[question.kind === "categorical" ? columns.indexOf(1) : Number(columns[0] < 0)];
}

/** The names of the columns that a question becomes: its own, or one for each level; and one for
 * not saying, where that is allowed. */
export function columnsFor({ name, levels, optional }) {
  const said = levels ? levels.map((level) => `${name}=${level}`) : [name];
  return optional ? [...said, `${name}=${NOT_SAID}`] : said;
}

export function columnsOf(schema) {
  const names = questionsOf(schema).slice(0, -1).flatMap(columnsFor);
  return schema.intercept ? [...names, INTERCEPT] : names;
}

/** Whether a question has yes and no: a binary one, an event, or a number above a threshold. */
export const isLabel = (question) =>
  question.kind === "binary" || question.kind === "exit" || "above" in question;

/** The columns of one question: a number in [−1, 1], ±1, or one 1 among zeros. Where it need not be
 * said (null), 0 beside what was said, and 1 alone for not saying: `blurfit.schema.columns`. */
export function scaled(question, record) {
  if (!question.optional) return said(question, record);
  if (answer(question, record) !== null) return [...said(question, record), 0];
  return columnsFor(question).map((_, i, all) => (i === all.length - 1 ? 1 : 0));
}

function said(question, record) {
  const value = answer(question, record);
  if (Array.isArray(value)) return value; // columns that were computed
  if (question.kind === "categorical") {
    need(question.levels.includes(value), question);
    return question.levels.map((level) => (level === value ? 1 : 0));
  }
  if (question.kind === "binary" || question.kind === "exit") {
    need(typeof value === "boolean", question);
    return [value ? 1 : -1];
  }
  if ("above" in question) {
    // only "above or not" is needed, so that may be given in the place of the number
    const isAbove = typeof value === "boolean" ? value : inside(question, value) > question.above;
    return [isAbove ? 1 : -1];
  }
  const { lower, upper } = question;
  return [((inside(question, value) - lower) / (upper - lower)) * 2 - 1];
}

/** The slope and the constant of v = slope·answer + constant; a yes and a level count 1. Of each
 * column of a question: `affines`. */
export function affines(question) {
  const isUnsaid = (name) => name === `${question.name}=${NOT_SAID}`;
  return columnsFor(question).map((name) => (isUnsaid(name) ? [1, 0] : affine(question)));
}

export function affine(question) {
  if (question.kind === "categorical") return [1, 0];
  if (isLabel(question)) return [2, -1];
  const width = question.upper - question.lower;
  return [2 / width, -(question.lower / width + question.upper / width)];
}

/** The value that z in [−1, 1] stands for. */
export function unscale(column, z) {
  const t = (Math.max(-1, Math.min(1, z)) + 1) / 2;
  return (1 - t) * column.lower + t * column.upper;
}

function answer(column, record) {
  if (column.derive) return column.derive(record);
  need(Object.hasOwn(record, column.name), column);
  return record[column.name];
}

function inside(column, value) {
  need(Number.isFinite(value), column);
  need(column.outside !== "refuse" || (column.lower <= value && value <= column.upper), column);
  return Math.min(Math.max(value, column.lower), column.upper);
}
