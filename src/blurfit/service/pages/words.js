// Promises in plain words. Words must not say more than the numbers: mirrors
// `blurfit.agreement.promises` and the statement of a model.

import { logDelta } from "./gaussian.js";
import { widthOf } from "./forms.js";
import { LATTICE_SHARE } from "./grid.js";
import { INTERCEPT, isLabel } from "./schema.js";

const YARDSTICK = Math.log(1e-6);

/** What somebody could learn from a single submission, by its ε at δ = 10⁻⁶. */
export function localInWords(mu, who = "The database") {
  if (logDelta(mu, 1) <= YARDSTICK) {
    return {
      strength: "strong",
      words: `${who} could learn very little from a single submission.`,
    };
  }
  if (logDelta(mu, 10) <= YARDSTICK) {
    return {
      strength: "some",
      words: `${who} could learn something from a single submission, but could not be sure of it.`,
    };
  }
  return {
    strength: "weak",
    words: `${who} could learn a great deal from a single submission.`,
  };
}

/** Whether an agreement is between two databases, neither of which gets a whole submission. */
export const isShared = ({ databases }) => databases.length > 0;

/** The least number of honest contributors, below which nothing is published. */
export const quorumOf = ({ calibration }) => calibration.quorum ?? calibration.setting.quorum;

/** Whether anyone may send submissions, as often as they like; else each needs an invitation. */
export const isOpenToAnyone = ({ admission }) => admission === "anyone";

/** What is counted: people who were invited, or submissions of nobody knows whom. */
export const countedIn = (agreement) => (isOpenToAnyone(agreement) ? "submissions" : "people");

/** What the promise to the model’s readers needs: mirrors `blurfit.agreement.conditions`. */
export function premiseInWords(agreement) {
  const least = number(quorumOf(agreement));
  if (!isOpenToAnyone(agreement)) {
    return (
      `This needs honest people, at least ${least} of those who were invited: they added the noise ` +
      "agreed on, and tell it to nobody."
    );
  }
  return (
    "Anyone may take part, as often as they like, so nobody can tell how many of the submissions are " +
    `honest people's. For one honest person this needs others who are honest too, ${least} with her, and ` +
    "nobody can check that: one sender with enough submissions of known noise voids it."
  );
}

/** What one of two databases learns. */
export function eitherInWords(agreement) {
  const [first, second] = agreement.databases;
  return (
    `Your blurred numbers are shared between ${first.name} and ${second.name}. Either share alone is random ` +
    `numbers that say nothing about you. All that either of them learns is the sums from which the model is ` +
    `made, and these give away ${modelInShort(agreement)} about you.`
  );
}

/** What that depends on: mirrors `blurfit.agreement.promises.condition_in_words`. */
export function conditionInWords(agreement) {
  return (
    "This holds only if the two do not put their shares together, if each follows the protocol, and if " +
    `neither invents contributors: at least ${number(quorumOf(agreement))} of those who are counted ` +
    "must be honest people. Invitations, which each database gives out itself, are there to keep invented " +
    "ones out."
  );
}

/** ε and δ of the published model, what is kept back for the grid included. */
export function promiseOf({ calibration }) {
  const epsilon = calibration.model.epsilon / (1 - LATTICE_SHARE[calibration.mechanism]);
  const delta = calibration.model.delta / (1 - 1e-3);
  return { epsilon: Number(epsilon.toPrecision(12)), delta: Number(delta.toPrecision(12)) };
}

/** What the published model could tell about one person, no stronger than its ε. */
export function modelInShort(agreement) {
  const { epsilon } = promiseOf(agreement);
  if (epsilon <= 1) return "next to nothing";
  if (epsilon <= 10) return "only a limited amount";
  return "a lot, in the worst case,";
}

export function modelInWords(agreement) {
  const { epsilon, delta } = promiseOf(agreement);
  if (epsilon > 20)
    return "An ε as large as this gives no useful bound on what an attacker could infer.";
  const change =
    agreement.calibration.model.neighbours === "replace"
      ? "Had you answered anything else"
      : "Had your record been blank";
  return (
    `${change}, whatever anyone concludes from the model would be at most ${number(Math.exp(epsilon), 3)} ` +
    `times as likely as it is now, plus a probability of ${number(delta)}.`
  );
}

/** How many there are, and how many there must be. */
export function countInWords({ count, quorum, invited }) {
  const what = invited ? "people" : "submissions";
  if (count < quorum) return `${number(count)} of at least ${number(quorum)} ${what}`;
  return `${number(count)} ${what}; at least ${number(quorum)} are needed`;
}

/** “income”, or “income above 37,000”. */
export function targetInWords({ target }) {
  return "above" in target ? `${target.name} above ${number(target.above)}` : target.name;
}

/** The agreement as rows [what, words]. */
export function agreementInWords(agreement, mu) {
  const { schema } = agreement;
  const { epsilon, delta } = promiseOf(agreement);
  return [
    ["What is learned", learnedInWords(schema)],
    ["From what", schema.features.map(describeColumn).join("; ")],
    ["Who may take part", isOpenToAnyone(agreement) ? "anyone" : "those who are invited"],
    [
      "Nothing is published",
      `below ${number(quorumOf(agreement))} ${isOpenToAnyone(agreement) ? "submissions" : "contributors"}`,
    ],
    ["Each sends", `${number(widthOf(agreement))} blurred numbers, once`],
    [
      "Promise to everyone in what is published",
      `ε = ${number(epsilon)}, δ = ${number(delta)}. ${premiseInWords(agreement)}`,
    ],
    ...againstDatabases(agreement, mu),
    ["What may be published", releasesInWords(agreement)],
    ...publicRows(agreement),
  ];
}

function learnedInWords(schema) {
  const { target } = schema;
  if (target.kind === "categorical")
    return `${target.name}, which is one of ${target.levels.join(", ")}`;
  return isLabel(target)
    ? `whether someone’s answer is ${targetInWords(schema)}`
    : targetInWords(schema);
}

function publicRows({ public_rows: digest }) {
  if (digest === null) return [];
  const words =
    "Models may be read beside a public file of other people’s answers, which is not covered by the " +
    `promise. Its SHA-256 is ${digest}.`;
  return [["Public rows", words]];
}

/** Blurred sums can be asked more than one question, and people should know which. */
function releasesInWords({ schema, calibration, wave }) {
  if (calibration.model.releases !== "any") return "one model, once";
  const others = schema.targets.filter((name) => name !== schema.target.name);
  if (wave !== null) {
    const first = others.length ? ` From the first wave’s sums anyone may also predict ${others.join(", ")}.` : "";
    return (
      "the blurred sums of each wave, once, and models computed from them." +
      `${first} Each person is in one wave, whose noise keeps the promise for all of it together.`
    );
  }
  const more = others.length
    ? ` From the same sums anyone may also predict ${others.join(", ")} by the other answers.`
    : "";
  return (
    "the blurred sums of one final collection, once, and any number of models computed from them." +
    `${more} The promise covers all of it together.`
  );
}

/** What is promised against whoever collects: one database, or two that share each submission. */
function againstDatabases(agreement, mu) {
  const { databases } = agreement;
  const { epsilon, delta } = promiseOf(agreement);
  const { local } = agreement.calibration;
  const alone = `at most ε = ${number(local.epsilon, 4)} at δ = ${number(local.delta, 3)}.`;
  if (!isShared(agreement)) {
    return [["One submission, seen by the database", `${alone} ${localInWords(mu).words}`]];
  }
  return [
    ["Collected by", databases.map(({ name, url }) => `${name} (${url})`).join(" and ")],
    [
      "Promise against either of them",
      `ε = ${number(epsilon)}, δ = ${number(delta)}, as for the model. ${conditionInWords(agreement)}`,
    ],
    [
      "One submission, if both put their shares together",
      `${alone} ${localInWords(mu, "Together they").words}`,
    ],
  ];
}

function describeColumn(column) {
  if (column.kind === "categorical") return `${column.name} (${column.levels.join(", ")})`;
  if (column.kind === "binary") return `${column.name} (yes or no)`;
  return `${column.name} (${number(column.lower)} to ${number(column.upper)})`;
}

/** The certified bound on the excess loss, which holds with probability 0.9; null where none is. */
export function certifiedRisk({ calibration, objective }) {
  if (objective === null || objective.l1 > 0 || objective.l2 > 0) return null;
  return calibration.excess_risk;
}

/**
 * What a reader may expect of the finished model. Of `input`, how much larger its typical error may
 * be than that of the best one: a mean of ½(y − ŷ)² that is larger by r makes the root of the mean
 * square larger by √(2r) at most, in units of half the target's range.
 */
export function errorInWords(agreement) {
  const { schema, objective, wave } = agreement;
  if (wave !== null) {
    return "The model is made from all waves together, and published with standard errors where they are known.";
  }
  if (objective === null) {
    return (
      "Standard errors, intervals and the share of the spread that the model explains are published " +
      "with it, the privacy noise included."
    );
  }
  const risk = certifiedRisk(agreement);
  if (objective.l1 > 0 || objective.l2 > 0) {
    return "No bound on the error is certified, because the agreement adds a penalty (l1, l2).";
  }
  if (risk === null) return "No bound on the error is certified.";
  const likely = "with a probability of 90 %, once the quorum is reached";
  if (isLabel(schema.target)) {
    return `The model’s average loss exceeds that of the best one by at most ${number(risk, 3)}, ${likely}.`;
  }
  const { lower, upper, name } = schema.target;
  const bound = (Math.sqrt(2 * risk) * (upper - lower)) / 2;
  if (bound >= upper - lower) {
    return "At this quorum the certified bound says nothing: the error may be as large as the whole range.";
  }
  return (
    `Over its contributors the model’s typical error in ${name} exceeds that of the best one by ` +
    `at most ${number(bound, 3)}, ${likely}. That is a worst case.`
  );
}

/** What the noise of a later wave does, of which no single average tells. */
const LATER_NOISE =
  "In a later wave the noise is sized for how unusual an answer is, and for how far off the last model " +
  "was, instead of for everything that could be answered. So it drowns far less of what is to be learned.";

/** How blurred the averages over a quorum are, from which the model is made. */
export function noiseInWords(agreement) {
  const { calibration, schema, weights } = agreement;
  const quorum = quorumOf(agreement);
  if (calibration.mechanism === "moment" && weights === null) return LATER_NOISE;
  const people = `At the quorum of ${number(quorum)} people, the noise`;
  const more = "Twice the quorum halves it.";
  if (calibration.mechanism === "input") {
    const noise = number(calibration.sigma_b / quorum, 2);
    return `${people} on averages that lie between −1 and 1 has a deviation of at least ${noise}. ${more}`;
  }
  const { target } = schema;
  // σ/(√2·c·b) on Σv of the target, in its own units: `blurfit.theory.joint.entry_noise`
  const each = weights[INTERCEPT] * weights[target.name] * Math.SQRT2;
  const onMean = calibration.sigma / each / quorum;
  const half = target.kind === "categorical" ? 1 : isLabel(target) ? 0.5 : width(target) / 2;
  const isShare = target.kind === "categorical" || isLabel(target);
  const deviation = isShare
    ? `${number(100 * half * onMean, 2)} percentage points on the share of ${targetInWords(schema)}`
    : `${number(half * onMean, 2)} on the average of ${target.name}`;
  return `${people} has a deviation of ${deviation}. ${more}`;
}

const width = ({ lower, upper }) => upper - lower;

export function number(value, digits = 6) {
  if (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e12)) {
    const [mantissa, exponent] = value.toExponential(Math.min(digits, 4) - 1).split("e");
    const power = String(Number(exponent)).replace(
      /./g,
      (c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)],
    );
    const short = String(Number(mantissa));
    return short === "1" ? `10${power}` : `${short}·10${power}`;
  }
  return new Intl.NumberFormat("en", { maximumSignificantDigits: digits }).format(value);
}

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
  return new Intl.NumberFormat("en", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  }).format(digits ? value : rounded);
}

/** A p-value, of which nobody needs more than three digits. */
export function probability(p) {
  return p < 0.001 ? "< 0.001" : p.toFixed(3);
}
