// What people read of a survey is one line of text, plain or by language, and cannot hide or reorder
// what is read: mirrors `blurfit.schema.wording`. Each function returns the fields that it found.

import { HARMFUL, demand } from "./checks.js";
import { isLabel } from "./schema.js";

const ABOUT = ["title", "purpose", "organiser", "contact"];
const WORDS = ["title", "question", "hint", "unit", "section"];
const LONGEST = 2000;

export function verifyAbout(schema) {
  return texts(schema ?? {}, ABOUT, "the survey");
}

export function verifyWording(column, what) {
  const found = texts(column, WORDS, what);
  const isNumber = column.kind === "numeric";
  demand(isNumber || !found.includes("unit"), `unit of ${what}`, column.unit, "left out");
  if (!("labels" in column)) return found;
  const { labels } = column;
  const isTable = labels !== null && typeof labels === "object" && !Array.isArray(labels);
  const known = isLabel(column) ? ["yes", "no"] : (column.levels ?? []);
  const names = isTable ? Object.keys(labels) : [];
  const isFine = names.length > 0 && names.every((name) => known.includes(name) && isText(labels[name]));
  demand(isFine, `labels of ${what}`, names.join(", "), "texts for answers");
  return [...found, "labels"];
}

function texts(thing, names, what) {
  const found = names.filter((name) => name in thing);
  for (const name of found) demand(isText(thing[name]), `${name} of ${what}`, "it", "a line of text");
  return found;
}

function isText(text) {
  if (typeof text === "string") return isLine(text);
  if (text === null || typeof text !== "object" || Array.isArray(text)) return false;
  const entries = Object.entries(text);
  const isTag = (tag) => /^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$/.test(tag);
  return entries.length > 0 && entries.every(([tag, line]) => isTag(tag) && isLine(line));
}

function isLine(text) {
  return (
    typeof text === "string" &&
    text.trim() !== "" &&
    [...text].length <= LONGEST &&
    !HARMFUL.test(text)
  );
}
