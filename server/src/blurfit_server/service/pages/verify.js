// Need not trust whoever sent the agreement: everything that privacy rests upon is checked here,
// before the page asks for a single answer. What is stated must be enough, by inequality: nothing is
// computed again to be compared for equality, for machines round differently. Mirrors
// `Agreement.verify`; what it cannot check, it refuses.

import {
  BEYOND, COMPARED, canonical, demand, demandThis, exactly, fingerprintOf, finite, HARMFUL, isAbove, isDigest, isWord,
  NotCertified,
} from "./checks.js";
import { formOf, isLater, multiplied, ready } from "./forms.js";
import { logDelta } from "./gaussian.js";
import {
  LEAST_RATIO, MOST_RATIO, noiseFor, noiseOf, roundingOf, submissionMu as momentMu, verifyStep, verifyMoment,
} from "./grid.js";
import { t } from "./language.js";
import {
  askedOf, columnsFor, columnsOf, derived, INTERCEPT, isDerived, isLabel, NOT_SAID, questionsOf,
} from "./schema.js";
import { verifyKeys } from "./signing.js";

export { NotCertified };

/** Fields that came later: left out where they have their default, and never written out then. */
const LEFT_OUT = { admission: "anyone", database_noise: true, proofs: true, diaries: true };
const FIELDS = {
  agreement: [
    "format", "version", "schema", "weights", "calibration", "step", "databases", "wave", "fingerprint",
  ],
  calibration: ["quorum", "model", "local", "sigma", "reach", "mu"],
  model: ["epsilon", "delta", "neighbours"],
  local: ["mu", "epsilon", "delta"],
};
const [LEAST_WEIGHT, LARGEST_WEIGHT] = [1e-3, 1e3];

/** Refuse (throw NotCertified) unless this is the agreement meant, and its noise keeps what it
 * promises. Returns the submission's μ, as computed here. */
export async function verify(agreement, expectedFingerprint) {
  const others = ["groups", "overlap", "weighting", "factors", "signing_keys"];
  exactly(agreement, FIELDS.agreement, "agreement", [...Object.keys(LEFT_OUT), ...others]);
  for (const [name, other] of Object.entries(LEFT_OUT)) {
    demand(!(name in agreement) || agreement[name] === other, name, agreement[name]);
  }
  const own = await fingerprintOf(agreement);
  demandThis(own, agreement.fingerprint, expectedFingerprint);
  demand(agreement.format === "blurfit-agreement", "format", agreement.format);
  demand(agreement.version === 1, "version", agreement.version);
  const { calibration } = agreement;
  verifySchema(agreement.schema);
  verifyWave(agreement);
  await ready(agreement);
  exactly(calibration, FIELDS.calibration, "calibration");
  verifyPromises(calibration);
  const { size, mu, keeps } = momentOf(agreement);
  if (!keeps) throw new NotCertified(t("refused.noise", calibration.model));
  verifyKeys(agreement);
  verifyStep(agreement, size);
  await verifyDatabases(agreement);
  verifyNoise(agreement);
  verifyLocal(calibration, mu);
  return mu;
}

/** {size, mu, keeps}: how many rows zzᵀ has, the μ of one submission, and whether the noise is enough. */
function momentOf(agreement) {
  const { weights, calibration } = agreement;
  if (isLater(agreement)) demand(weights === null, "weights", weights);
  else verifyWeights(weights, multiplied(agreement));
  exactly(calibration.reach, ["sums", "submission"], "reach");
  demand(finite(calibration.sigma) && calibration.sigma > 0, "sigma", calibration.sigma);
  whole("quorum", calibration.quorum);
  const form = formOf(agreement);
  const rounding = roundingOf(agreement);
  const reach = {
    sums: (1 + rounding) * form.reach(calibration.model.neighbours),
    submission: (1 + rounding) * form.reach("replace"),
  };
  return { keeps: verifyMoment(calibration, reach), mu: momentMu(calibration, reach), size: form.size };
}

function verifyWeights(weights, questions) {
  const names = [INTERCEPT, ...questions.map(({ name }) => name)];
  exactly(weights, names, "weights");
  const columns = [INTERCEPT, ...questions.flatMap(columnsFor)];
  demand(new Set(columns).size === columns.length, "columns", columns.join(", "));
  for (const name of names) {
    const weight = weights[name];
    const isFine = finite(weight) && weight >= LEAST_WEIGHT && weight <= LARGEST_WEIGHT;
    demand(isFine, `weight of “${name}”`, weight);
  }
}

// ---- the questions

/** No wave, or one of a plan: the first has no map, and a later one a map that can do no harm. That
 * it follows from the plan and the releases is checked by `plan.js`. */
function verifyWave({ wave, calibration }) {
  if (wave === null) return;
  exactly(wave, ["plan", "number", "follows", "map", "people"], "wave");
  demand(isDigest(wave.plan), "plan", wave.plan);
  whole("number of the wave", wave.number);
  const { follows, number, people } = wave;
  const isOne = Array.isArray(people) && people.every((one) => Number.isSafeInteger(one) && one > 0);
  demand(isOne && number <= people.length, "people of each wave", people);
  const { quorum } = calibration;
  demand(quorum <= people[number - 1], "honest people", quorum);
  const isList = Array.isArray(follows) && follows.every(isDigest);
  demand(isList && follows.length === number - 1, "follows", follows);
  demand((wave.map === null) === (number === 1), "map", wave.map);
}

function verifySchema(schema) {
  const sources = ["sources", "predictors"].filter((name) => name in schema);
  const fields = ["features", "target", "intercept", "targets", ...sources];
  exactly(schema, [...fields, ...texts(schema ?? {}, ABOUT, "the survey")], "schema");
  const isList = (name) => Array.isArray(schema[name]) && schema[name].length > 0;
  demand(sources.every(isList), "sources or predictors", "none");
  schema.sources?.forEach((source) => verifyColumn(source, false));
  demand(typeof schema.intercept === "boolean", "intercept", schema.intercept);
  demand(Array.isArray(schema.features) && schema.features.length > 0, "features", "none");
  schema.features.forEach((feature) => isDerived(feature) || verifyColumn(feature, false));
  verifyColumn(schema.target, true);
  const asked = new Map(askedOf(schema).map((one) => [one.name, one]));
  schema.features.filter(isDerived).forEach((feature) => verifyDerived(feature, asked));
  [...asked.values()].forEach(verifyAsked);
  const names = questionsOf(schema).map(({ name }) => name);
  const named = [...names, ...(schema.sources ?? []).map(({ name }) => name)];
  const used = schema.features.filter(isDerived).flatMap(({ of }) => of);
  demand((schema.sources ?? []).every(({ name }) => used.includes(name)), "sources", "one");
  const predicts = ({ of }) => of === undefined || ![of].flat().includes(schema.target.name);
  const fitting = schema.features.filter(predicts).map(({ name }) => name);
  const isFitting = (schema.predictors ?? []).every((name) => fitting.includes(name));
  demand(isFitting, "predictors", schema.predictors);
  const encoded = schema.target.kind === "categorical" ? columnsFor(schema.target) : [];
  for (const all of [named, [...columnsOf({ ...schema, intercept: true }), ...encoded]]) {
    demand(new Set(all).size === all.length, "names", all.join(", "));
  }
  const { targets } = schema;
  const isSaid = (name) => !schema.features.some((one) => one.optional && one.name === name);
  const isFine = Array.isArray(targets) && targets.every((name) => names.includes(name) && isSaid(name));
  demand(isFine && targets.includes(schema.target.name), "targets", targets);
}

function verifyColumn(column, isTarget) {
  const { kind, name } = column ?? {};
  const what = `column “${name}”`;
  demand(isWord(name), "name", name);
  const more = verifyWording(column, what);
  if ("optional" in column) {
    demand(column.optional === true && !isTarget, "optional", column.optional);
    more.push("optional");
  }
  if (kind === "binary") return exactly(column, ["name", "kind", ...more], what);
  if (kind === "exit" && isTarget) {
    demand(isWord(column.time), `time of ${what}`, column.time);
    return exactly(column, ["name", "kind", "time", "horizon", "bands", ...more], what);
  }
  if (kind === "categorical") {
    exactly(column, ["name", "kind", "levels", ...more], what);
    const { levels } = column;
    const silent = column.optional && levels?.includes(NOT_SAID);
    const fine = Array.isArray(levels) && levels.every(isWord) && !silent;
    return demand(fine && new Set(levels).size === levels.length && levels.length > 1, what, levels);
  }
  demand(kind === "numeric", `kind of ${what}`, kind);
  const fields = ["name", "kind", "lower", "upper", "outside", ...more];
  exactly(column, isTarget && "above" in column ? [...fields, "above"] : fields, what);
  const { lower, upper, outside, above } = column;
  demand(["clip", "refuse"].includes(outside), `outside of ${what}`, outside);
  const width = upper - lower;
  demand(finite(lower, upper) && width >= 1e-300 && width <= 1e301, `bounds of ${what}`, width);
  if ("above" in column) {
    demand(finite(above) && lower < above && above < upper, `above of ${what}`, above);
  }
}

/** Of some people alone only what need not be said is asked, by an earlier answer. */
function verifyAsked({ name, only_if: rule, optional }, place, all) {
  if (rule === undefined) return;
  const [, of, how, value] = rule.match(COMPARED);
  const source = all.slice(0, place).find((one) => one.name === of);
  const answers = source?.kind === "categorical" ? source.levels : ["yes", "no"];
  const isFine =
    source?.kind === "numeric"
      ? /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(value)
      : ["=", "!="].includes(how) && answers.includes(value);
  demand(source && optional && isFine, `only_if of column “${name}”`, rule);
}

/** Whether these are at least so many numbers, each above the one before. */
const isRising = (some, least) =>
  Array.isArray(some) &&
  some.length >= least &&
  finite(...some) &&
  some.every((one, i) => one < (some[i + 1] ?? Infinity));

/** What is computed from answers, by a stated rule: of questions that everybody answers, within the
 * bounds of what can be answered. Mirrors `blurfit.schema.derived`. */
function verifyDerived(column, asked) {
  const { kind, name, of, edges, knots, degree, above, level } = column;
  const what = `column “${name}”`;
  demand(isWord(name), "name", name);
  const isPair = kind === "cross" || kind === "product";
  const names = isPair ? of : [of];
  const sources = Array.isArray(names) ? names.map((one) => asked.get(one)) : [];
  const isAsked = sources.length === (isPair ? 2 : 1) && sources.every((one) => one && !one.optional);
  demand(isAsked, `of of ${what}`, of);
  const [source] = sources;
  const areNumbers = sources.every((one) => one.kind === "numeric" && !isLabel(one));
  const rules = {
    bands: () =>
      areNumbers && isRising(edges, 1) && source.lower < edges[0] && edges.at(-1) < source.upper,
    curve: () =>
      areNumbers && isRising(knots, 3) && source.lower <= knots[0] && knots.at(-1) <= source.upper,
    poly: () => areNumbers && Number.isInteger(degree) && 2 <= degree && degree <= 9,
    cross: () => of[0] !== of[1] && sources.every((one) => one.kind !== "numeric"),
    product: () =>
      sources.some((one) => one.kind === "numeric" && !isLabel(one)) &&
      !sources.some((one) => "above" in one),
    condition: () =>
      "level" in column
        ? source.kind === "categorical" && source.levels.includes(level)
        : areNumbers && finite(above) && source.lower <= above && above < source.upper,
  };
  const isKnown = Object.hasOwn(rules, kind);
  demand(isKnown, `kind of ${what}`, kind);
  demand(rules[kind](), `rule of ${what}`, canonical(column));
  const whole = derived(column, asked);
  const condition = ["level" in column ? "level" : "above"];
  const rule = { bands: ["edges"], curve: ["knots"], poly: ["degree"], condition }[kind] ?? [];
  exactly(column, ["name", "kind", "of", ...rule, ...verifyWording(whole, what)], what);
}

// ---- what is promised

function verifyPromises({ model, local }) {
  exactly(model, FIELDS.model, "model");
  exactly(local, FIELDS.local, "local");
  const { epsilon, neighbours } = model;
  const isKnown = ["replace", "zero-out"].includes(neighbours);
  demand(isKnown, "neighbours", neighbours);
  demand(finite(epsilon) && epsilon >= 0, "epsilon", epsilon);
  for (const { delta } of [model, local]) {
    demand(finite(delta) && delta > 0 && delta < 1, "delta", delta);
  }
}

/** What a submission alone keeps: no more than follows from its noise, and hardly less. */
function verifyLocal({ local }, mu) {
  isAbove("local.mu", local.mu, mu);
  const { epsilon, delta } = local;
  demand(finite(epsilon) && epsilon >= 0, "local.epsilon", epsilon);
  const spent = (by) => logDelta(local.mu, epsilon * by) - Math.log(delta);
  demand(spent(1) <= 1e-9, "local.epsilon", epsilon);
  demand(epsilon === 0 || spent(1 - BEYOND) >= -1e-9, "local.epsilon", epsilon);
}

/** Noise that can be drawn exactly, and numbers that can be added so: whether a record can be sent
 * must not depend on its answers. Mirrors `blurfit.agreement.agreement.refuse_unless_blurrable`. */
function verifyNoise(agreement) {
  const { step, deviations, bound } = noiseFor(agreement);
  demand(bound < 2 ** 51 * step, "numbers in steps", bound / step);
  const isFine = deviations.every((one) => one >= LEAST_RATIO * step && one <= MOST_RATIO * step);
  demand(isFine, "noise in steps", `${deviations[0] / step}, …`);
}

function whole(name, value) {
  demand(Number.isSafeInteger(value) && value > 0, name, value);
}

// ---- What people read of a survey is one line of text, plain or by language, and cannot hide or reorder
// what is read: mirrors `blurfit.schema.columns`. Each function returns the fields that it found.

const ABOUT = ["title", "purpose", "organiser", "contact"];
const WORDS = ["title", "question", "hint", "unit", "section"];
const LONGEST = 2000;

export function verifyWording(column, what) {
  const found = texts(column, WORDS, what);
  const isNumber = column.kind === "numeric";
  demand(isNumber || !found.includes("unit"), `unit of ${what}`, column.unit);
  if ("only_if" in column) {
    const isRule = isLine(column.only_if) && COMPARED.test(column.only_if);
    demand(isRule, `only_if of ${what}`, column.only_if);
    found.push("only_if");
  }
  if (!("labels" in column)) return found;
  const { labels } = column;
  const isTable = labels !== null && typeof labels === "object" && !Array.isArray(labels);
  const known = isLabel(column) ? ["yes", "no"] : (column.levels ?? []);
  const names = isTable ? Object.keys(labels) : [];
  const isFine = names.length > 0 && names.every((name) => known.includes(name) && isText(labels[name]));
  demand(isFine, `labels of ${what}`, names.join(", "));
  return [...found, "labels"];
}

function texts(thing, names, what) {
  const found = names.filter((name) => name in thing);
  for (const name of found) demand(isText(thing[name]), `${name} of ${what}`, "it");
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
  const isSaid = typeof text === "string" && text.trim() !== "";
  return isSaid && [...text].length <= LONGEST && !HARMFUL.test(text);
}

// ---- The databases of an agreement: none, or two different ones at addresses that nobody can listen to,
// and numbers that can be shared. Mirrors `blurfit.agreement.terms`.

const LARGEST_NAME = 100;

export async function verifyDatabases(agreement) {
  const { databases, calibration, step, proofs = false, wave } = agreement;
  demand(Array.isArray(databases), "databases", databases);
  demand(!proofs || databases.length === 2, "proofs", proofs);
  demand(!proofs || wave === null, "proofs", proofs);
  if (databases.length === 0) return;
  demand(databases.length === 2, "databases", databases.length);
  for (const one of databases) {
    exactly(one, ["name", "url"], "a database", ["key"]);
    demand(!("key" in one) || /^[0-9a-f]{64}$/.test(one.key), "key", one.key);
    demand(isName(one.name), "name", one.name);
    demand(isOrigin(one.url), "url", one.url);
  }
  const [first, second] = databases;
  const different = first.name !== second.name && first.url !== second.url;
  demand(different, "databases", `${first.name}, ${second.name}`);
  const keys = "key" in first || "key" in second;
  const bothSealed = "key" in first && "key" in second && first.key !== second.key;
  demand(!keys || bothSealed, "keys", `${first.key}, ${second.key}`);
  const noise = noiseOf(calibration);
  const least = (noise / Math.SQRT2 / step) * (proofs ? Math.sqrt(calibration.quorum) : 1);
  demand(least >= 2 ** 10, "noise in steps", least);
  const scale = Math.max(1, ...formOf(agreement).counts.map((count) => count ** -0.5));
  const largest = (scale * (calibration.reach.submission + 40 * noise)) / step + 1;
  demand(largest * 2 ** 32 < 2 ** 63, "largest number in steps", largest);
  if (proofs) (await import("./proving.js")).provingOf(agreement);
}

/** Printable, in one line, and no longer than people read. */
function isName(name) {
  if (!isWord(name) || name !== name.trim() || [...name].length > LARGEST_NAME) return false;
  return !/[\p{C}\p{Zl}\p{Zp}]/u.test(name) && !/\p{Zs}/u.test(name.replaceAll(" ", ""));
}

function isOrigin(url) {
  try {
    const { origin, protocol, host, hostname } = new URL(url);
    if (!/^([a-z0-9.-]+|\[[0-9a-f:.]+\])(:[1-9][0-9]{0,4})?$/.test(host)) return false;
    const isHere = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
    return origin === url && (protocol === "https:" || (protocol === "http:" && isHere));
  } catch { return false; }
}
