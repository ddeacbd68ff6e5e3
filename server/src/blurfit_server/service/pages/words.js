// Promises in plain words. Words must not say more than the numbers: mirrors
// `blurfit.agreement.statement` and the statement of a model.

import { multiplied, widthOf } from "./forms.js";
import { logDelta } from "./gaussian.js";
import { atMost, number, t } from "./language.js";
import { INTERCEPT, askedOf, isDerived, isLabel, questionsOf } from "./schema.js";
import { answerOf, boundsOf, inWords, measured, titleOf } from "./texts.js";

const YARDSTICK = Math.log(1e-6);
const DISCRETE = 1e-3; // of δ, kept back for noise that is discrete; far more than it differs from a Gaussian

// ---- what an agreement says

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

export const names = ({ databases }) => ({ first: databases[0].name, second: databases[1].name });

/** “income”, or “income above 37,000”. */
export function targetInWords({ target }) {
  if (!("above" in target)) return titleOf(target);
  return t("target", { title: titleOf(target), above: measured(target, target.above) });
}

export const titleIn = (schema) => (schema.title === undefined ? targetInWords(schema) : inWords(schema.title));

/** Whether a count has two digits, and then zeros: as strangers are told, until it is published. */
export const isRounded = ({ count, state }) => count >= 100 && !["published", "released"].includes(state);

/** A count, or the difference to one. */
export const countOf = (status, count = status.count) =>
  isRounded(status) ? t("counted.about", { count: number(count) }) : number(count);

export function countInWords(status) {
  const { count, quorum, invited } = status;
  const what = t(invited ? "people" : "submissions");
  const values = { count: countOf(status), quorum: number(quorum), what };
  return t(count < quorum ? "countBelow" : "count", values);
}

/** How many more or fewer the other of two databases has than this one. */
export function sideInWords(name, count, own) {
  const values = { name, count: number(Math.abs(count - own)) };
  return t(count > own ? "side.more" : count < own ? "side.fewer" : "side.same", values);
}

// ---- what is promised

/** ε and δ of what is published, what is kept back for the grid included. */
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

/** “ε = 1, δ = 10⁻⁶”. */
export function promiseInWords(agreement) {
  const { epsilon, delta } = promiseOf(agreement);
  return t("promise", { epsilon: atMost(epsilon), delta: atMost(delta) });
}

/** How much could be learned from a single submission, by its ε at δ = 10⁻⁶: strong, some or weak. */
export function strengthOf(mu) {
  const isAtMost = (epsilon) => logDelta(mu, epsilon) <= YARDSTICK;
  return isAtMost(1) ? "strong" : isAtMost(10) ? "some" : "weak";
}

/** What the published model could tell about one person, no stronger than its ε. */
export function modelInShort(agreement) {
  const { epsilon } = promiseOf(agreement);
  return t(epsilon <= 1 ? "little.next" : epsilon <= 10 ? "little.limited" : "little.lot");
}

/** How much likelier a conclusion can become by one answer; `whose` is “yours” or “anyone's”. */
export function modelInWords(agreement, whose = "your") {
  const { epsilon, delta } = promiseOf(agreement);
  if (epsilon > 20) return t("noBound");
  const isReplace = agreement.calibration.model.neighbours === "replace";
  const change = t(`change.${whose}.${isReplace ? "replace" : "zero"}`);
  return t("times", { change, times: atMost(Math.exp(epsilon), 3), delta: atMost(delta) });
}

/** What the promise to readers needs: mirrors `blurfit.agreement.statement`. */
export function premiseInWords(agreement) {
  const quorum = number(quorumOf(agreement));
  const people = t(isOpenToAnyone(agreement) ? "premise.anyone" : "premise.invited", { quorum });
  if (!agreement.database_noise) return people;
  return `${t(isShared(agreement) ? "premise.databases" : "premise.database")} ${people}`;
}

/** What the promise against either of two databases depends on. */
export function conditionInWords(agreement) {
  if (agreement.database_noise) return t("condition.noise");
  const kept = t(isOpenToAnyone(agreement) ? "condition.anyone" : "condition.invited");
  return `${t("condition", { quorum: number(quorumOf(agreement)) })} ${kept}`;
}

export const eitherInWords = (agreement) =>
  t("either", { ...names(agreement), little: modelInShort(agreement) });

/** That a proof goes along, and what either learns from it. */
export const proofInWords = (agreement) => t("proof.words", names(agreement));

/** How often in 100, at most, somebody guesses right who tells two answers apart by what is
 * published: mirrors `blurfit.theory.moments`, rounded up. */
function guessesFromModel(agreement) {
  const { mu, model } = agreement.calibration;
  let { epsilon, delta } = promiseOf(agreement);
  const steps = model.neighbours === "zero-out" ? 2 : 1;
  if (steps === 2) [epsilon, delta] = [2 * epsilon, Math.min(1, (1 + Math.exp(epsilon)) * delta)];
  const right = 0.5 + Math.tanh(epsilon / 2) / 2 + delta / (1 + Math.exp(epsilon));
  return inHundred(Math.min(right, rightBy(steps * mu)));
}

const rightBy = (mu) => Math.min(1, 0.5 + Math.exp(logDelta(mu, 0)) / 2 + DISCRETE);
const inHundred = (right) => Math.min(100, Math.ceil(100 * right * (1 + 1e-12)));

/** A sentence of risk that needs no ε. */
export function guessInWords(agreement) {
  const hundred = guessesFromModel(agreement);
  return t(hundred < 100 ? "guess.model" : "guess.model.surely", { hundred });
}

/** The same for whoever sees a single submission. */
export function guessOfDatabase(mu) {
  const hundred = inHundred(rightBy(mu));
  return t(hundred < 100 ? "guess.local" : "guess.local.surely", { hundred });
}

// ---- the three things to know before the first question

/** {lines, more}: [words, the survey's own text in it] for who asks, who sees what, and what becomes
 * public; and [what, words] for whoever wants to know more. They follow from the agreement alone, as
 * does whether most answers could be read back (`isRead`). */
export function inShort(agreement, mu, isRead) {
  const { organiser, purpose, contact } = agreement.schema;
  const asks = organiser === undefined ? t("asks.nobody") : t("asks.organiser", { organiser: inWords(organiser) });
  const strength = strengthOf(mu) === "weak" && !isRead ? "worst" : strengthOf(mu);
  const sees = isShared(agreement) ? t("sees.two", names(agreement)) : t(`sees.${strength}`);
  const quorum = number(peopleOf(agreement));
  const values = { quorum, what: countedIn(agreement), little: modelInShort(agreement) };
  const seen = isShared(agreement)
    ? conditionInWords(agreement)
    : `${t("sees.numbers", { count: number(widthOf(agreement)) })} ${guessOfDatabase(mu)}`;
  const more = [
    purpose === undefined ? null : [t("short.purpose"), inWords(purpose), purpose],
    contact === undefined ? null : [t("short.contact"), inWords(contact), contact],
    [t("short.sees"), seen],
    [t("short.public"), `${t("public.more", values)} ${guessInWords(agreement)} ${premiseInWords(agreement)}`],
  ];
  return { lines: [[asks, organiser], [sees], [t("public", values)]], more: more.filter(Boolean) };
}

// ---- the agreement as rows [what, words]

export function agreementInWords(agreement, mu) {
  const { schema } = agreement;
  const asked = { quorum: number(peopleOf(agreement)), what: countedIn(agreement) };
  return [
    [t("fact.learned"), learnedInWords(schema)],
    [t("fact.from"), schema.features.map((one) => describeColumn(one, schema)).join("; ")],
    [t("fact.admission"), t(isOpenToAnyone(agreement) ? "fact.anyone" : "fact.invited")],
    [t("fact.quorum"), t("fact.quorum.words", asked)],
    [t("fact.sends"), t("fact.sends.words", { count: number(widthOf(agreement)) })],
    [t("fact.promise"), `${promiseInWords(agreement)}. ${premiseInWords(agreement)}`],
    ...againstDatabases(agreement, mu),
    [t("fact.published"), releasesInWords(agreement)],
    ...groupsAndWeights(agreement),
    ...(agreement.signing_keys ? [[t("fact.signed"), agreement.signing_keys.join(", ")]] : []),
  ];
}

function learnedInWords(schema) {
  const { target } = schema;
  if (target.kind === "categorical") return t("learned.classes", { title: titleOf(target), levels: levelsOf(target) });
  const words = targetInWords(schema);
  return isLabel(target) ? t("learned.label", { target: words }) : words;
}

/** By what sums are kept apart, and how much an answer counts. */
function groupsAndWeights({ schema, groups, weighting, factors = [] }) {
  const called = (asked) => titleOf(questionsOf(schema).find(({ name }) => name === asked));
  const rule = factors.map(([level, factor]) => `${level} ${number(factor)}`).join(", ");
  const weights = () => t("fact.weights.words", { title: called(weighting), rule: rule && ` (${rule})` });
  return [
    groups && [t("fact.groups"), t("fact.groups.words", { title: called(groups) })],
    weighting && [t("fact.weights"), weights()],
  ].filter(Boolean);
}

/** Blurred sums can be asked more than one question, and people should know which. */
function releasesInWords(agreement) {
  const { schema, wave } = agreement;
  const isOther = ({ name }) => schema.targets.includes(name) && name !== schema.target.name;
  const named = multiplied(agreement).filter(isOther).map(titleOf).join(", ");
  const more = named ? ` ${t(wave === null ? "releases.more" : "releases.first", { others: named })}` : "";
  return t(wave === null ? "releases.any" : "releases.waves", { more });
}

/** What is promised against whoever collects: one database, or two that share each submission. */
export function againstDatabases(agreement, mu) {
  const { local } = agreement.calibration;
  const alone = t("against.alone", { epsilon: atMost(local.epsilon, 4), delta: atMost(local.delta, 3) });
  const strength = strengthOf(mu);
  if (!isShared(agreement)) return [[t("against.one"), `${alone} ${t(`local.${strength}`)}`]];
  const collected = agreement.databases.map(({ name, url }) => `${name} (${url})`).join(t("and"));
  const promise = { promise: promiseInWords(agreement), condition: conditionInWords(agreement) };
  return [
    [t("fact.collected"), collected],
    [t("against.either"), t("against.either.words", promise)],
    ...(agreement.proofs ? [[t("proof"), proofInWords(agreement)]] : []),
    [t("against.both"), `${alone} ${t(`together.${strength}`)}`],
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

// ---- what may be expected of the finished model

/** How blurred the averages over so many people are, from which the model is made. */
export function noiseInWords(agreement) {
  const { calibration, schema, weights } = agreement;
  const [quorum, all] = [quorumOf(agreement), peopleOf(agreement)];
  if (weights === null) return t("noise.later");
  const { target } = schema;
  if (agreement.groups || agreement.weighting || "horizon" in target) return t("noise.apart");
  // σ/(√2·c·b) on Σv of the target, in its own units: `blurfit.agreement.mechanisms`
  const each = weights[INTERCEPT] * weights[target.name] * Math.SQRT2;
  // with noise of the databases themselves: `blurfit.theory.moments`
  const draws = agreement.database_noise ? Math.max(1, agreement.databases.length) : 0;
  const onMean = (people) => (calibration.sigma * Math.sqrt(people / quorum + draws)) / each / people;
  const isShare = target.kind === "categorical" || isLabel(target);
  const half = target.kind === "categorical" ? 1 : isLabel(target) ? 0.5 : (target.upper - target.lower) / 2;
  const values = { people: number(all), target: isShare ? targetInWords(schema) : titleOf(target) };
  const deviationOf = (people) => // of each person the noise stays the same
    isShare ? number(100 * half * onMean(people), 2) : measured(target, half * onMean(people), 2);
  const deviations = { deviation: deviationOf(all), doubled: deviationOf(2 * all) };
  return t(isShare ? "noise.share" : "noise.average", { ...values, ...deviations });
}
