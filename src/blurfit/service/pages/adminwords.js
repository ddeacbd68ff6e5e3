// What the administration page says, in one place: what is wrong with a field, which terms make
// little sense, and what to expect.

import { number } from "./language.js";
import { titleOf } from "./texts.js";

// ---- what is wrong, beside its field

export const MISSING = {
  name: "Give it a short name.",
  same: "Another question has this name.",
  number: "Enter a number.",
  bounds: "The highest must be above the lowest.",
  above: "This must lie between the lowest and the highest.",
  levels: "Give at least two different choices, separated by commas.",
  epsilon: "Enter a number above 0, such as 1.",
  delta: "Enter a number between 0 and 1, such as 0.000001.",
  quorum: "Enter a whole number of people, such as 2000.",
  colluders: "Enter a share of the people from 0 to 50 %, such as 10.",
  localDelta: "A promise about one submission needs its δ too, such as 0.000001.",
  off: "Enter a number above 0, or leave it empty.",
  database: "Say who runs it.",
  address: "Its whole address, as browsers write it, without a path or a slash at the end.",
  different: "The two databases must differ in name and address.",
};

// ---- terms that make little sense

/** Warnings about a proposal and what may be expected of it: [words]. */
export function warningsOf({ epsilon, delta, quorum }, expected) {
  const found = [];
  if (epsilon > 10) {
    found.push(
      `ε = ${number(epsilon)} promises very little: somebody who suspects an answer could become almost sure. Usual values are 0.1 to 2.`,
    );
  } else if (epsilon > 3) {
    found.push(`ε = ${number(epsilon)} is a weak promise. Usual values are 0.1 to 2.`);
  }
  if (epsilon < 0.01) {
    found.push(`ε = ${number(epsilon)} takes so much noise that only very many people give a model.`);
  }
  if (delta * quorum > 0.1) {
    found.push(
      `δ = ${number(delta)} is large for ${number(quorum)} people: at a δ of 1 / people, one of them might be given away. Choose at most ${number(0.1 / quorum, 1)}.`,
    );
  }
  if (quorum < 20) {
    found.push(
      `With a quorum of ${number(quorum)} each person’s part of the sums is large, and one dishonest person changes much. Choose at least 100.`,
    );
  }
  if (expected && expected.off > 0.45 * expected.spread) {
    found.push(
      "With so few people, or so strong a promise, the model would say next to nothing beyond the average.",
    );
  }
  return found;
}

// ---- what to expect

const percent = (share) => `${number(100 * share, 2)} percentage points`;

/** “± 4,800 in income”, or “± 3.1 percentage points”. */
function amount(value, target) {
  return target.kind === "numeric" && !("above" in target)
    ? `± ${number(value, 2)} in ${titleOf(target)}`
    : `± ${percent(value)}`;
}

export const ASSUMED =
  "An estimate for typical people: numbers spread over most of their range, yes is as frequent as no, and the " +
  "questions explain three tenths of what is to be predicted. “blurfit forecast” simulates people like yours.";

/** [words] about how far off predictions will be. */
export function expectedInWords({ count, off, without_privacy: without, people, epsilon }, target, wish) {
  const found = [
    `With ${number(count)} people expect predictions to be off by about ${amount(off, target)} from the best ` +
      `ones; without privacy it would be ${amount(without, target)}.`,
  ];
  if (wish === null) return found;
  if (people === null && epsilon === null) {
    found.push(`No number of people and no ε gives ${amount(wish, target)}.`);
    return found;
  }
  if (people !== null) {
    found.push(`For ${amount(wish, target)} you need about ${number(roundUp(people), 2)} people at this ε.`);
  }
  if (epsilon !== null) {
    found.push(`Or ε = ${number(epsilon, 2)} with ${number(count)} people.`);
  } else {
    found.push(`With ${number(count)} people no ε gives that: too few were asked, even without noise.`);
  }
  return found;
}

const roundUp = (people) => {
  const power = 10 ** Math.max(0, Math.floor(Math.log10(people)) - 1);
  return Math.ceil(people / power) * power;
};

// ---- waves

const SENDS = {
  joint: "blurred answers as always",
  residual: "how unusual people are, and by how much the first model errs",
  newton: "what the exact curve still needs",
};

export function planInWords({ waves, colluders }) {
  const margin = `The promise holds if at most ${number(100 * colluders)} % of the people of any wave collude.`;
  if (waves.length === 1) return ["One wave is best for these terms.", margin];
  const each = waves.map(
    ({ kind, quorum, honest }, i) =>
      `Wave ${i + 1}: ${number(quorum)} people send ${SENDS[kind]}; at least ${number(honest)} of them must be honest.`,
  );
  return [...each, margin];
}

// ---- what a token allows

const RIGHTS = {
  invite: "make invitations",
  publish: "publish, which closes what is published for good",
  read: "read the list of deeds (GET /audit-log) and exact counts (GET /metrics)",
};

/** Whose token it is, and what it allows, where that is not everything. */
export const bearerInWords = ({ name, rights }) =>
  `This is the token of “${name}”, with which you may ${rights.map((one) => RIGHTS[one]).join(", and ")}.`;

// ---- what buttons do

export const STATES = {
  collecting: "Collecting",
  paused: "Paused",
  closed: "Closed",
  published: "Published",
  held: "Held",
  ended: "Ended",
};

export const PUBLISH = {
  title: "This can be done once",
  whole: (count) =>
    `The model is learned from the ${number(count)} submissions that are there now. The collection closes for ` +
    "good: nobody can contribute any more, and the model can be neither changed nor taken back.",
  first: (count, other) =>
    `Both databases sum their ${number(count)} shares, and the model is learned from the difference. ${other} ` +
    "must have closed its side first. The collection closes for good, and the model can be neither changed nor taken back.",
  sure: "I know that this cannot be undone",
  button: "Publish for good",
};
/** How many each of two databases has, and why closing would be in vain. */
export function sides({ databases, warning }) {
  const each = databases.map(({ name, count }) => `${name} ${count === null ? "does not say how many shares it has" : `has ${number(count)} shares`}`);
  return `${each.join(", ")}. ${warning === null ? "" : `${warning} `}`;
}
export const CONSENT = {
  title: "Close this side for good",
  text: (first) =>
    `No more shares are taken here, and ${first} may have the sum of the masks that are here now: once, over the ` +
    `people whose shares both have. ${first} then publishes the model, which will be shown here too.`,
  sure: "I know that this cannot be undone",
  button: "Close, and let the other publish",
};
export const CLOSE = {
  title: "Close this collection",
  text: "Nobody can contribute any more. Nothing is published yet: that is another button. This cannot be undone.",
  sure: "I know that this cannot be undone",
  button: "Close it",
};
export const END = {
  title: "End the plan now",
  text:
    "The wave that collects is published if it has its quorum, and left out for good if it does not. The " +
    "model is learned from all that is published, and no further wave opens.",
  sure: "I know that this cannot be undone",
  button: "End with the best model so far",
};
export const SUMS =
  "Only products with the target were sent. A model follows beside the public rows that the agreement names: " +
  "“blurfit fit moments.json --public FILE”.";
export const PAUSED =
  "Paused: what is sent now waits on the sender’s device, and is taken when you resume.";
/** What to do where the other of two databases has the next step. */
export const AWAITED = {
  closed: (other) =>
    `${other} publishes for both databases: ask its administrator to do so. As long as nobody does, nothing is ` +
    "published here either.",
  published: (other) => `${other} does not have it yet. Publish again, and it is sent again.`,
  plan: (other) =>
    `The next step is ${other}’s, and is tried again by itself. If this does not change, its ` +
    "service is not running, or the two cannot reach each other: ask its administrator.",
};
export const HAND_OVER =
  "To learn from this collection together with others, close it and run “blurfit export” where its store is: " +
  "its one release then belongs to the file.";
