// What the survey says in its own words, in the reader's language: mirrors `blurfit.schema.columns`
// and `titles`. A text is a string, or strings by language.

import { number, t, wanted } from "./language.js";

/** {words, lang}: the text in a language that the reader wants, else in English, else in the first;
 * `lang` is null where nobody says which it is. */
function pick(text) {
  if (typeof text === "string") return { words: text, lang: null };
  const tags = wanted.flatMap((tag) => [tag, tag.split("-")[0]]);
  const lang = [...tags, "en"].find((tag) => Object.hasOwn(text, tag)) ?? Object.keys(text).sort()[0];
  return { words: text[lang], lang };
}

export const inWords = (text) => pick(text).words;

/** Attributes of the element that holds a text: its language, and its own direction. */
export function attributes(text) {
  const { lang } = text === undefined ? { lang: null } : pick(text);
  return { lang, dir: "auto" };
}

/** What a question is called where there is little room. */
export const titleOf = (column) => column.title === undefined ? column.name : inWords(column.title);

/** What people are asked besides the target; what is computed from that is not. */
export const featuresInWords = ({ features }) =>
  features.filter(({ of }) => of === undefined).map(titleOf).join(", ");

export function questionOf(column) {
  if (column.question !== undefined) return inWords(column.question);
  const title = titleOf(column);
  return "above" in column ? t("question.above", { title, above: measured(column, column.above) }) : title;
}

/** An answer as people call it: a level or yes and no by their labels, a number with its unit. */
export function answerOf(column, value, digits) {
  if (value === null) return t("unsaid");
  if (typeof value === "number") return measured(column, value, digits);
  const word = typeof value === "boolean" ? (value ? "yes" : "no") : value;
  if (Object.hasOwn(column.labels ?? {}, word)) return inWords(column.labels[word]);
  if (value === false && column.kind === "exit") return t("exit.notYet");
  return typeof value === "boolean" ? t(word) : word;
}

export function measured(column, value, digits) {
  const text = number(value, digits);
  return column.unit === undefined ? text : `${text} ${inWords(column.unit)}`;
}

export const boundsOf = (column) =>
  t("bounds", { lower: number(column.lower), upper: measured(column, column.upper) });

/** The name of an encoded column for people: “Region: north” for region=n. */
export function columnTitle(column, name) {
  const title = titleOf(column);
  if (name === column.name) {
    const isNumber = column.unit !== undefined && column.kind === "numeric";
    return isNumber ? `${title} (${inWords(column.unit)})` : title;
  }
  const level = name.slice(column.name.length + 1);
  const label = level === "(not said)" ? t("notSaid") : answerOf(column, level);
  return `${title}: ${label}`;
}

const TEXTS = ["title", "purpose", "organiser", "contact", "question", "hint", "unit", "section"];

export function languagesOf(schema) {
  const textsOf = (thing) => [...TEXTS.map((name) => thing[name]), ...Object.values(thing.labels ?? {})];
  const all = [schema, ...schema.features, schema.target].flatMap(textsOf);
  return [...new Set(all.flatMap((text) => (typeof text === "object" ? Object.keys(text) : [])))];
}
