// Promises in plain words. Words must not say more than the numbers: mirrors
// `blurfit.agreement.statement` and the statement of a model.

import { multiplied, widthOf } from "./forms.js";
import { logDelta } from "./gaussian.js";
import { atMost, locale, number, t } from "./language.js";
import { askedOf, INTERCEPT, isDerived, isLabel, questionsOf } from "./schema.js";
import { answerOf, boundsOf, measured, titleOf } from "./texts.js";

const YARDSTICK = Math.log(1e-6);
const DISCRETE = 1e-3; // far more than discrete noise differs from a Gaussian's

/** What could be learned from a single submission, by its ε at δ = 10⁻⁶: by the database (“local”),
 * or by two “together”. */
export function localInWords(mu, who = "local") {
  const isAtMost = (epsilon) => logDelta(mu, epsilon) <= YARDSTICK;
  const strength = isAtMost(1) ? "strong" : isAtMost(10) ? "some" : "weak";
  return { strength, words: t(`${who}.${strength}`) };
}

/** Whether an agreement is between two databases, neither of which gets a whole submission. */
export const isShared = ({ databases }) => databases.length > 0;

/** How many must have contributed: nothing is published below it. */
export const peopleOf = (agreement) => agreement.wave?.people[agreement.wave.number - 1] ?? quorumOf(agreement);

/** How many of them must be honest: as many as the noise is sized for. */
export const quorumOf = ({ calibration }) => calibration.quorum;

/** Whether anyone may send submissions, as often as they like; else each needs an invitation. */
export const isOpenToAnyone = ({ admission }) => admission === "anyone";

/** What is counted: people who were invited, or submissions of nobody knows whom. */
export const countedIn = (agreement) => t(isOpenToAnyone(agreement) ? "submissions" : "people");

/** What the promise to the model’s readers needs: mirrors `blurfit.agreement.statement`. */
export function premiseInWords(agreement) {
  const quorum = number(quorumOf(agreement));
  const people = t(isOpenToAnyone(agreement) ? "premise.anyone" : "premise.invited", { quorum });
  if (!agreement.database_noise) return people;
  const holds = t(isShared(agreement) ? "premise.databases" : "premise.database");
  return `${holds} ${people[0].toLowerCase()}${people.slice(1)}`;
}

/** What one of two databases learns. */
export function eitherInWords(agreement) {
  const [first, second] = agreement.databases.map(({ name }) => name);
  return t("either", { first, second, little: modelInShort(agreement) });
}

/** That a proof goes along, and what either learns from it. */
export function proofInWords({ databases }) {
  const [first, second] = databases.map(({ name }) => name);
  return t("proof.words", { first, second });
}

/** What that depends on: mirrors `blurfit.agreement.statement.condition_in_words`. */
export function conditionInWords(agreement) {
  if (agreement.database_noise) return t("condition.noise");
  return t(isOpenToAnyone(agreement) ? "condition.anyone" : "condition", { quorum: number(quorumOf(agreement)) });
}

/** ε and δ of the published model, what is kept back for the grid included. */
export function promiseOf({ calibration }) {
  const { epsilon, delta } = calibration.model;
  return { epsilon: inTwelveDigits(epsilon), delta: inTwelveDigits(delta / (1 - DISCRETE)) };
}

/** Never rounded down: mirrors `promised_in_all` of `blurfit.agreement.agreement`. */
function inTwelveDigits(whole) {
  const rounded = Number(whole.toPrecision(12));
  if (rounded >= whole * (1 - 4e-16)) return rounded;
  return Number((rounded + 10 ** (Math.floor(Math.log10(whole)) - 11)).toPrecision(12));
}

/** What the published model could tell about one person, no stronger than its ε. */
export function modelInShort(agreement) {
  const { epsilon } = promiseOf(agreement);
  return t(epsilon <= 1 ? "little.next" : epsilon <= 10 ? "little.limited" : "little.lot");
}

export function modelInWords(agreement) {
  const { epsilon, delta } = promiseOf(agreement);
  if (epsilon > 20) return t("noBound");
  const isReplace = agreement.calibration.model.neighbours === "replace";
  const change = t(isReplace ? "change.replace" : "change.zero");
  return t("times", { change, times: atMost(Math.exp(epsilon), 3), delta: atMost(delta) });
}

/** How often in 100, at most, somebody guesses right who tells two answers apart by what is
 * published: mirrors `blurfit.theory.guarantees`, rounded up. */
function guessesFromModel(agreement) {
  const { mu, model } = agreement.calibration;
  let { epsilon, delta } = promiseOf(agreement);
  const steps = model.neighbours === "zero-out" ? 2 : 1;
  if (steps === 2) [epsilon, delta] = [2 * epsilon, Math.min(1, (1 + Math.exp(epsilon)) * delta)];
  const right = 0.5 + Math.tanh(epsilon / 2) / 2 + delta / (1 + Math.exp(epsilon));
  return inHundred(Math.min(right, rightBy(steps * mu)));
}

/** The same for whoever sees a single submission. */
const guessesFromSubmission = (mu) => inHundred(rightBy(mu));

const rightBy = (mu) => Math.min(1, 0.5 + Math.exp(logDelta(mu, 0)) / 2 + DISCRETE);
const inHundred = (right) => Math.min(100, Math.ceil(100 * right * (1 + 1e-12)));

/** A sentence of risk that needs no ε. */
export function guessInWords(agreement) {
  const hundred = guessesFromModel(agreement);
  return t(hundred < 100 ? "guess.model" : "guess.model.surely", { hundred });
}

export function guessOfDatabase(mu) {
  const hundred = guessesFromSubmission(mu);
  return t(hundred < 100 ? "guess.local" : "guess.local.surely", { hundred });
}

/** How many there are, and how many there must be. */
export function countInWords({ count, quorum, invited }) {
  const what = t(invited ? "people" : "submissions");
  const values = { count: number(count), quorum: number(quorum), what };
  return t(count < quorum ? "countBelow" : "count", values);
}

/** “income”, or “income above 37,000”. */
export function targetInWords({ target }) {
  if (!("above" in target)) return titleOf(target);
  return t("target", { title: titleOf(target), above: measured(target, target.above) });
}

/** The agreement as rows [what, words]. */
export function agreementInWords(agreement, mu) {
  const { schema } = agreement;
  const { epsilon, delta } = promiseOf(agreement);
  return [
    [t("fact.learned"), learnedInWords(schema)],
    [t("fact.from"), schema.features.map((one) => describeColumn(one, schema)).join("; ")],
    [t("fact.admission"), t(isOpenToAnyone(agreement) ? "fact.anyone" : "fact.invited")],
    [
      t("fact.quorum"),
      t("fact.quorum.words", { quorum: number(peopleOf(agreement)), what: countedIn(agreement) }),
    ],
    [t("fact.sends"), t("fact.sends.words", { count: number(widthOf(agreement)) })],
    [
      t("fact.promise"),
      `ε = ${atMost(epsilon)}, δ = ${atMost(delta)}. ${premiseInWords(agreement)}`,
    ],
    ...againstDatabases(agreement, mu),
    [t("fact.published"), releasesInWords(agreement)],
    ...publicRows(agreement),
    ...groupsAndWeights(agreement),
    ...(agreement.signing_keys ? [[t("fact.signed"), agreement.signing_keys.join(", ")]] : []),
  ];
}

function learnedInWords(schema) {
  const { target } = schema;
  if (target.kind === "categorical")
    return t("learned.classes", { title: titleOf(target), levels: levelsOf(target) });
  const words = targetInWords(schema);
  return isLabel(target) ? t("learned.label", { target: words }) : words;
}

function publicRows({ public_rows: digest }) {
  return digest === null ? [] : [[t("fact.rows"), t("fact.rows.words", { digest })]];
}

/** By what sums are kept apart, and how much an answer counts. */
function groupsAndWeights({ schema, groups, weighting, factors = [] }) {
  const called = (asked) => titleOf(questionsOf(schema).find(({ name }) => name === asked));
  const rule = factors.map(([level, factor]) => `${level} ${number(factor)}`).join(", ");
  return [
    ...(groups ? [[t("fact.groups"), t("fact.groups.words", { title: called(groups) })]] : []),
    ...(weighting
      ? [[t("fact.weights"), t("fact.weights.words", { title: called(weighting), rule: rule && ` (${rule})` })]]
      : []),
  ];
}

/** Blurred sums can be asked more than one question, and people should know which. */
function releasesInWords(agreement) {
  const { schema, wave, sends } = agreement;
  const others = multiplied(agreement).filter(
    ({ name }) => !sends && schema.targets.includes(name) && name !== schema.target.name,
  );
  const named = others.map(titleOf).join(", ");
  const [all, further] =
    wave === null ? ["releases.any", "releases.more"] : ["releases.waves", "releases.first"];
  return t(all, { more: named ? t(further, { others: named }) : "" });
}

/** What is promised against whoever collects: one database, or two that share each submission. */
function againstDatabases(agreement, mu) {
  const { databases } = agreement;
  const { epsilon, delta } = promiseOf(agreement);
  const { local } = agreement.calibration;
  const alone = t("against.alone", {
    epsilon: atMost(local.epsilon, 4),
    delta: atMost(local.delta, 3),
  });
  if (!isShared(agreement)) {
    return [[t("against.one"), `${alone} ${localInWords(mu).words}`]];
  }
  const promise = {
    epsilon: atMost(epsilon),
    delta: atMost(delta),
    condition: conditionInWords(agreement),
  };
  return [
    [t("fact.collected"), databases.map(({ name, url }) => `${name} (${url})`).join(t("and"))],
    [t("against.either"), t("against.either.words", promise)],
    ...(agreement.proofs ? [[t("proof"), proofInWords(agreement)]] : []),
    [t("against.both"), `${alone} ${localInWords(mu, "together").words}`],
  ];
}

const levelsOf = (column) => column.levels.map((level) => answerOf(column, level)).join(", ");

function describeColumn(column, schema) {
  if (isDerived(column)) return derivedInWords(column, schema);
  const title = titleOf(column);
  const unsaid = column.optional ? t("column.unsaid") : "";
  if (column.kind === "categorical") return `${title} (${levelsOf(column)}${unsaid})`;
  if (column.kind === "binary") {
    const [yes, no] = [true, false].map((answer) => answerOf(column, answer));
    return t("column.yesno", { title, yes, no: `${no}${unsaid}` });
  }
  return `${title} (${boundsOf(column)}${unsaid})`;
}

/** What a column is computed from, and how. */
function derivedInWords(column, schema) {
  const { kind, edges, knots, degree, above, level } = column;
  const sources = [column.of].flat().map((name) => askedOf(schema).find((one) => one.name === name));
  const from = sources.map(titleOf).join(t("and"));
  const rule = kind === "condition" ? (level === undefined ? "above" : "level") : kind;
  const values = {
    edges: (edges ?? knots)?.map((edge) => number(edge)).join(", "),
    degree,
    above: above === undefined ? null : measured(sources[0], above),
    level: level === undefined ? null : answerOf(sources[0], level),
  };
  return t("derived", { title: titleOf(column), from, rule: t(`derived.${rule}`, values) });
}

/** What a reader may expect of the finished model. */
export function errorInWords({ wave }) {
  if (wave !== null) {
    return "The model is made from all waves together, and published with standard errors where they are known.";
  }
  return (
    "Standard errors, intervals and the share of the spread that the model explains are published " +
    "with it, the privacy noise included."
  );
}

/** What the noise of a later wave does, of which no single average tells. */
const LATER_NOISE =
  "In a later wave the noise is sized for how unusual an answer is, and for how far off the last model " +
  "was, instead of for everything that could be answered. So it drowns far less of what is to be learned.";

/** How blurred the averages over a quorum are, from which the model is made. */
export function noiseInWords(agreement) {
  const { calibration, schema, weights } = agreement;
  const [quorum, all] = [quorumOf(agreement), peopleOf(agreement)];
  if (weights === null) return LATER_NOISE;
  const people = `At the quorum of ${number(all)} people, the noise`;
  const more = "Twice the quorum halves it.";
  const { target } = schema;
  // σ/(√2·c·b) on Σv of the target, in its own units: `blurfit.agreement.numbers.moment_parts`
  const each = weights[INTERCEPT] * weights[target.name] * Math.SQRT2;
  // with noise of the databases themselves: `blurfit.theory.moments`
  const draws = agreement.database_noise ? Math.max(1, agreement.databases.length) : 0;
  const onMean = (calibration.sigma * Math.sqrt(all / quorum + draws)) / each / all;
  const half = target.kind === "categorical" ? 1 : isLabel(target) ? 0.5 : width(target) / 2;
  const isShare = target.kind === "categorical" || isLabel(target);
  const deviation = isShare
    ? `${number(100 * half * onMean, 2)} percentage points on the share of ${targetInWords(schema)}`
    : `${number(half * onMean, 2)} on the average of ${titleOf(target)}`;
  return `${people} has a deviation of ${deviation}. ${more}`;
}

const width = ({ lower, upper }) => upper - lower;

/** A number to as many places as its standard error has two digits of: mirrors
 * `blurfit.model.summary.number`. */
export function withError(value, error) {
  if (value === 0 && !error) return "0";
  const size = error > 0 ? Math.abs(error) : Math.abs(value);
  const places = (error > 0 ? 1 : 2) - Math.floor(Math.log10(size));
  if (Math.abs(value) >= 1e15 || places > 8) return number(value, 3);
  const power = 10 ** -Math.min(places, 0);
  const rounded = Math.round(value / power) * power + 0;
  const digits = Math.max(places, 0);
  return new Intl.NumberFormat(locale, {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  }).format(digits ? value : rounded);
}

/** A p-value, of which nobody needs more than three digits. */
export function probability(p) {
  return p < 0.001 ? "< 0.001" : p.toFixed(3);
}
