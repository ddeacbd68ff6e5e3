// Need not trust whoever sent the agreement: everything that privacy rests upon is checked here,
// before the page asks for a single answer. What is stated must be enough, by inequality: nothing is
// computed again to be compared for equality, for machines round differently. Mirrors
// `Agreement.verify`; what it cannot check, it refuses.
//
// Not checked, because no privacy depends on it: `excess_risk`, a forecast of accuracy.

import { canonical, fingerprintOf } from "./canonical.js";
import {
  BEYOND,
  NotCertified,
  atLeast,
  demand,
  exactly,
  finite,
  isAbove,
  isDigest,
  isWord,
  positive,
} from "./checks.js";
import { verifyDatabases } from "./databases.js";
import { formOf, isLater, ready } from "./forms.js";
import { logDelta } from "./gaussian.js";
import {
  LEAST_RATIO,
  MOST_RATIO,
  ROUNDING,
  partsOf,
  roundingOf,
  submissionMu as momentMu,
  verifyGrid,
  verifyMoment,
} from "./grid.js";
import { lossOf } from "./loss.js";
import { verifyKeys } from "./signing.js";
import {
  INTERCEPT,
  NOT_SAID,
  askedOf,
  columnsFor,
  columnsOf,
  derived,
  isDerived,
  isLabel,
  questionsOf,
} from "./schema.js";
import { verifyAbout, verifyWording } from "./wording.js";

export { NotCertified };

/** Fields that came later: left out where they have their default, and never written out then. */
const LEFT_OUT = {
  admission: ["anyone"],
  database_noise: [true],
  proofs: [true],
  sends: ["targets"],
};
const FIELDS = {
  agreement: [
    "format",
    "version",
    "schema",
    "mechanism",
    "weights",
    "objective",
    "calibration",
    "grid",
    "databases",
    "wave",
    "public_rows",
    "fingerprint",
  ],
  moment: ["mechanism", "quorum", "model", "local", "sigma", "reach", "mu"],
  input: [
    "mechanism",
    "rule",
    "setting",
    "model",
    "local",
    "excess_risk",
    "sigma_u",
    "sigma_b",
    "ridge",
    "split",
    "shares",
    "loss",
    "kept",
    "local_claim",
  ],
  setting: ["dimension", "quorum", "q_bound", "p_bound", "weight_bound", "neighbours"],
  model: ["epsilon", "delta", "neighbours", "releases", "proved"],
  local: ["mu", "epsilon", "delta"],
  shares: ["gram", "record", "spectrum", "gradient"],
  lossNumbers: [
    "record_energy",
    "gram_floor",
    "spectrum_floor",
    "strong_convexity",
    "determinant_loss",
    "moving_sensitivity",
  ],
};
const [LEAST_WEIGHT, LARGEST_WEIGHT] = [1e-3, 1e3];

/** Refuse (throw NotCertified) unless this is the agreement meant, and its noise keeps what it
 * promises. Returns the submission's μ, as computed here. */
export async function verify(agreement, expectedFingerprint) {
  exactly(agreement, FIELDS.agreement, "agreement", [...Object.keys(LEFT_OUT), "signing_keys"]);
  for (const [name, choices] of Object.entries(LEFT_OUT)) {
    const isFine = !(name in agreement) || choices.includes(agreement[name]);
    demand(isFine, name, agreement[name], `left out, or ${choices.join(" or ")}`);
  }
  const own = await fingerprintOf(agreement);
  if (own !== expectedFingerprint || agreement.fingerprint !== expectedFingerprint) {
    throw new NotCertified(
      `You were invited to the agreement ${expectedFingerprint}, but the service sent ${own}. ` +
        "It was changed on its way, or the link is wrong. Nothing has left this device.",
    );
  }
  demand(agreement.format === "blurfit-agreement", "format", agreement.format, "blurfit-agreement");
  demand(agreement.version === 1, "version", agreement.version, 1);
  const { mechanism, calibration } = agreement;
  demand(["moment", "input"].includes(mechanism), "mechanism", mechanism, "moment or input");
  verifySchema(agreement.schema);
  verifyWave(agreement);
  await ready(agreement);
  exactly(calibration, FIELDS[mechanism], "calibration");
  const named = calibration.mechanism;
  demand(named === mechanism, "mechanism of the calibration", named, mechanism);
  verifyPromises(calibration);
  const { size, mu, keeps } = await (mechanism === "moment" ? momentOf : inputOf)(agreement);
  if (!keeps) {
    throw new NotCertified(
      `The noise is too small: it does not keep ε = ${calibration.model.epsilon}, ` +
        `δ = ${calibration.model.delta}, which the agreement promises. Do not take part.`,
    );
  }
  const isNoisy = agreement.database_noise === true;
  demand(!isNoisy || mechanism === "moment", "database_noise", isNoisy, "left out with input");
  verifyKeys(agreement);
  verifyGrid(agreement, size);
  await verifyDatabases(agreement);
  verifyNoise(agreement);
  verifyLocal(calibration, mu);
  return mu;
}

// ---- the two mechanisms: {size, mu, keeps}

function momentOf(agreement) {
  const { weights, objective, calibration, schema } = agreement;
  demand(objective === null, "objective", objective, "null with moment");
  if (isLater(agreement)) demand(weights === null, "weights", weights, "null in a later wave");
  else verifyWeights(weights, schema);
  exactly(calibration.reach, ["sums", "submission"], "reach");
  positive(calibration, "sigma");
  whole("quorum", calibration.quorum);
  const form = formOf(agreement);
  const rounding = roundingOf(agreement);
  const reach = {
    sums: (1 + rounding) * form.reach(calibration.model.neighbours),
    submission: (1 + rounding) * form.reach("replace"),
  };
  return {
    keeps: verifyMoment(calibration, reach),
    mu: momentMu(calibration, reach),
    size: form.size,
  };
}

function verifyWeights(weights, schema) {
  const questions = questionsOf(schema);
  const names = [INTERCEPT, ...questions.map(({ name }) => name)];
  exactly(weights, names, "weights");
  const columns = [INTERCEPT, ...questions.flatMap(columnsFor)];
  demand(new Set(columns).size === columns.length, "columns", columns.join(", "), "different");
  for (const name of names) {
    const isFine =
      finite(weights[name]) && weights[name] >= LEAST_WEIGHT && weights[name] <= LARGEST_WEIGHT;
    demand(isFine, `weight of “${name}”`, weights[name], `${LEAST_WEIGHT} to ${LARGEST_WEIGHT}`);
  }
}

/** The theorem of `input` is long, and few collections need it: it comes when one does. */
async function inputOf(agreement) {
  const { weights, calibration, schema } = agreement;
  demand(weights === null, "weights", weights, "null with input");
  const { target } = schema;
  demand(!schema.features.some(isDerived), "features", "computed from answers", "asked");
  demand(target.kind !== "categorical", `target “${target.name}”`, target.kind, "no classes");
  verifyObjective(agreement);
  verifyNumbers(calibration);
  const { setting } = calibration;
  const size = columnsOf(schema).length;
  demand(setting.dimension === size, "dimension", setting.dimension, size);
  const loss = lossOf(agreement);
  atLeast("q_bound", setting.q_bound, loss.qBound * (1 + ROUNDING));
  atLeast("p_bound", setting.p_bound, loss.pBound * (1 + ROUNDING));
  const { submissionMu, verifyInput } = await import("./certified.js");
  const mu = submissionMu(calibration);
  return { keeps: verifyInput(calibration), mu, size };
}

// ---- the questions

/** No wave, or one of a plan: the first has no map, and a later one a map that can do no harm. That
 * it follows from the plan and the releases is checked by `plan.js`. */
function verifyWave({ wave, mechanism, public_rows: rows, sends, calibration, schema }) {
  demand(rows === null || (isDigest(rows) && mechanism === "moment"), "public_rows", rows, "a hash");
  demand(!sends || (rows !== null && wave === null), "sends", sends, "public rows, and one wave");
  if (wave === null) return;
  exactly(wave, ["plan", "number", "follows", "map", "people"], "wave");
  demand(mechanism === "moment" && isDigest(wave.plan), "plan", wave.plan, "a hash");
  whole("number of the wave", wave.number);
  const { follows, number, people } = wave;
  const isOne = Array.isArray(people) && people.every((one) => Number.isSafeInteger(one) && one > 0);
  demand(isOne && number <= people.length, "people of each wave", people, "whole numbers");
  const { quorum } = calibration;
  demand(quorum <= people[number - 1], "honest people", quorum, `at most ${people[number - 1]}`);
  const isList = Array.isArray(follows) && follows.every(isDigest);
  demand(isList && follows.length === number - 1, "follows", follows, `${number - 1} hashes`);
  demand((wave.map === null) === (number === 1), "map", wave.map, "none in the first wave alone");
}


function verifySchema(schema) {
  const sources = ["sources", "predictors"].filter((name) => name in schema);
  const fields = ["features", "target", "intercept", "targets", ...sources];
  exactly(schema, [...fields, ...verifyAbout(schema)], "schema");
  const isList = (name) => Array.isArray(schema[name]) && schema[name].length > 0;
  demand(sources.every(isList), "sources or predictors", "none", "lists");
  schema.sources?.forEach((source) => verifyColumn(source, false));
  demand(typeof schema.intercept === "boolean", "intercept", schema.intercept, "true or false");
  demand(Array.isArray(schema.features) && schema.features.length > 0, "features", "none", "some");
  schema.features.forEach((feature) => isDerived(feature) || verifyColumn(feature, false));
  verifyColumn(schema.target, true);
  const asked = new Map(askedOf(schema).map((one) => [one.name, one]));
  schema.features.filter(isDerived).forEach((feature) => verifyDerived(feature, asked));
  const names = questionsOf(schema).map(({ name }) => name);
  const named = [...names, ...(schema.sources ?? []).map(({ name }) => name)];
  const used = schema.features.filter(isDerived).flatMap(({ of }) => of);
  const isUsed = (schema.sources ?? []).every(({ name }) => used.includes(name));
  demand(isUsed, "sources", "one", "questions that something is computed from");
  const predicts = ({ of }) => of === undefined || ![of].flat().includes(schema.target.name);
  const fitting = schema.features.filter(predicts).map(({ name }) => name);
  const isFitting = (schema.predictors ?? []).every((name) => fitting.includes(name));
  demand(isFitting, "predictors", schema.predictors, "features that do not follow from the target");
  const encoded = schema.target.kind === "categorical" ? columnsFor(schema.target) : [];
  for (const all of [named, [...columnsOf({ ...schema, intercept: true }), ...encoded]]) {
    demand(new Set(all).size === all.length, "names", all.join(", "), "different");
  }
  const { targets } = schema;
  const isFine =
    Array.isArray(targets) &&
    targets.every((name) => names.includes(name)) &&
    !schema.features.some(({ name, optional }) => optional && targets.includes(name)) &&
    targets.includes(schema.target.name);
  demand(isFine, "targets", targets, `columns, “${schema.target.name}” among them`);
}

function verifyColumn(column, isTarget) {
  const { kind, name } = column ?? {};
  const what = `column “${name}”`;
  demand(isWord(name), "name", name, "a word");
  const more = [...verifyOptional(column, isTarget), ...verifyWording(column, what)];
  if (kind === "binary") return exactly(column, ["name", "kind", ...more], what);
  if (kind === "categorical") {
    exactly(column, ["name", "kind", "levels", ...more], what);
    const { levels } = column;
    const silent = column.optional && levels?.includes(NOT_SAID);
    const fine = Array.isArray(levels) && levels.every(isWord) && !silent;
    return demand(
      fine && new Set(levels).size === levels.length && levels.length > 1,
      what,
      levels,
      "words",
    );
  }
  demand(kind === "numeric", `kind of ${what}`, kind, "numeric, binary or categorical");
  const fields = ["name", "kind", "lower", "upper", "outside", ...more];
  exactly(column, isTarget && "above" in column ? [...fields, "above"] : fields, what);
  const { lower, upper, outside, above } = column;
  demand(["clip", "refuse"].includes(outside), `outside of ${what}`, outside, "clip or refuse");
  const width = upper - lower;
  demand(
    finite(lower, upper) && width >= 1e-300 && width <= 1e301,
    `bounds of ${what}`,
    width,
    "apart",
  );
  if ("above" in column) {
    demand(finite(above) && lower < above && above < upper, `above of ${what}`, above, "inside");
  }
}

/** What is computed from answers, by a stated rule: of questions that everybody answers, within the
 * bounds of what can be answered. Mirrors `blurfit.schema.derived`. */
function verifyDerived(column, asked) {
  const { kind, name, of, edges, knots, degree, above, level } = column;
  const what = `column “${name}”`;
  demand(isWord(name), "name", name, "a word");
  const isPair = kind === "cross" || kind === "product";
  const names = isPair ? of : [of];
  const sources = Array.isArray(names) ? names.map((one) => asked.get(one)) : [];
  const isAsked = sources.length === (isPair ? 2 : 1) && sources.every((one) => one && !one.optional);
  demand(isAsked, `of of ${what}`, of, "what everybody is asked");
  const [source] = sources;
  const areNumbers = sources.every((one) => one.kind === "numeric" && !isLabel(one));
  const rules = {
    bands: () =>
      areNumbers &&
      Array.isArray(edges) &&
      edges.length > 0 &&
      finite(...edges) &&
      [source.lower, ...edges].every((one, i) => one < (edges[i] ?? source.upper)),
    curve: () =>
      areNumbers &&
      Array.isArray(knots) &&
      knots.length > 2 &&
      finite(...knots) &&
      knots.every((one, i) => one < (knots[i + 1] ?? Infinity)) &&
      source.lower <= knots[0] &&
      knots.at(-1) <= source.upper,
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
  demand(isKnown, `kind of ${what}`, kind, `numeric, binary, categorical, ${Object.keys(rules).join(", ")}`);
  demand(rules[kind](), `rule of ${what}`, canonical(column), "one that its questions allow");
  const whole = derived(column, asked);
  const condition = ["level" in column ? "level" : "above"];
  const rule = { bands: ["edges"], curve: ["knots"], poly: ["degree"], condition }[kind] ?? [];
  exactly(column, ["name", "kind", "of", ...rule, ...verifyWording(whole, what)], what);
}

/** ["optional"] where a feature need not be said, which only `true` can say. */
function verifyOptional(column, isTarget) {
  if (!("optional" in column)) return [];
  demand(column.optional === true && !isTarget, "optional", column.optional, "true, of a feature");
  return ["optional"];
}

// ---- what `input` minimises

function verifyObjective({ objective, schema, calibration }) {
  exactly(objective, ["loss", "approximation", "l1", "l2"], "objective");
  const { loss, approximation, l1, l2 } = objective;
  demand(finite(l1, l2) && l1 >= 0 && l2 >= 0, "l1 and l2", `${l1}, ${l2}`, "not negative");
  const expected = isLabel(schema.target) ? "logistic" : "squared";
  demand(loss === expected, "loss", loss, expected);
  const isKnown = ["taylor", "chebyshev", "least-squares"].includes(approximation);
  demand(isKnown, "approximation", approximation, "taylor, chebyshev or least-squares");
  if (loss === "logistic" && approximation !== "taylor") {
    const bound = calibration?.setting?.weight_bound;
    demand(finite(bound) && bound > 0, "weight_bound", bound, "a positive number");
  }
}

function verifyNumbers(calibration) {
  const { setting, model } = calibration;
  exactly(setting, FIELDS.setting, "setting");
  for (const name of ["dimension", "quorum"]) whole(name, setting[name]);
  positive(setting, "q_bound", "p_bound", "weight_bound");
  const { neighbours } = setting;
  demand(model.neighbours === neighbours, "neighbours", model.neighbours, neighbours);
  positive(calibration, "sigma_u", "sigma_b");
  demand(finite(calibration.ridge), "ridge", calibration.ridge, "a number");
  const { split, kept, local_claim: claim } = calibration;
  demand(finite(split) && split > 0 && split < 1, "split", split, "between 0 and 1");
  const isKept = canonical(kept) === canonical(model) && claim === null;
  demand(isKept, "kept and local_claim", canonical([kept, claim]), canonical([model, null]));
  exactly(calibration.shares, FIELDS.shares, "shares");
  exactly(calibration.loss, FIELDS.lossNumbers, "loss");
  positive(calibration.shares, "gram", "record", "gradient");
  const { spectrum } = calibration.shares;
  demand(finite(spectrum) && spectrum >= 0 && spectrum < 1, "spectrum", spectrum, "a share of δ");
  positive(calibration.loss, "record_energy", "strong_convexity", "moving_sensitivity");
  const { gram_floor: floor } = calibration.loss;
  demand(finite(floor) && floor >= 0, "gram_floor", floor, "not negative");
}

// ---- what is promised

function verifyPromises({ model, local }) {
  exactly(model, FIELDS.model, "model");
  exactly(local, FIELDS.local, "local");
  const { epsilon, neighbours } = model;
  const isKnown = ["replace", "zero-out"].includes(neighbours);
  demand(isKnown, "neighbours", neighbours, "replace or zero-out");
  demand(finite(epsilon) && epsilon >= 0, "epsilon", epsilon, "not negative");
  for (const { delta } of [model, local]) {
    demand(finite(delta) && delta > 0 && delta < 1, "delta", delta, "between 0 and 1");
  }
}

/** What a submission alone keeps: no more than follows from its noise, and hardly less. */
function verifyLocal({ local }, mu) {
  isAbove("local.mu", local.mu, mu);
  const { epsilon, delta } = local;
  demand(finite(epsilon) && epsilon >= 0, "local.epsilon", epsilon, "a number");
  const spent = (by) => logDelta(local.mu, epsilon * by) - Math.log(delta);
  demand(spent(1) <= 1e-9, "local.epsilon", epsilon, "larger");
  demand(epsilon === 0 || spent(1 - BEYOND) >= -1e-9, "local.epsilon", epsilon, "smaller");
}

/** Noise that can be drawn exactly, and numbers that can be added so: whether a record can be sent
 * must not depend on its answers. Mirrors `blurfit.agreement.agreement.refuse_unless_blurrable`. */
function verifyNoise(agreement) {
  for (const { step, deviations, bound } of partsOf(agreement)) {
    demand(bound < 2 ** 51 * step, "numbers in steps", bound / step, "below 2^51");
    const isFine = deviations.every((one) => one >= LEAST_RATIO * step && one <= MOST_RATIO * step);
    demand(isFine, "noise in steps", `${deviations[0] / step}, …`, "between 2^-10 and 2^45");
  }
}

function whole(name, value) {
  demand(Number.isSafeInteger(value) && value > 0, name, value, "a whole number");
}
