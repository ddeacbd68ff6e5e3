// That a wave follows from its plan and from what was published before it: mirrors
// `blurfit.model.course.follows`. The plan and each release are read from the very bytes whose
// SHA-256 the agreement names; the promise, the quorum and the databases must be the plan's; and
// the map is computed again from the releases. Its numbers must agree to one unit of their 24 bits,
// as machines may round differently; that the noise suffices does not depend on them.

import { canonical, fingerprintOf, sha256 } from "./canonical.js";
import { NotCertified, agree, demand, exactly, finite } from "./checks.js";
import { widthOf } from "./forms.js";
import { logDelta } from "./gaussian.js";
import { DISCRETE_SHARE } from "./grid.js";
import { firstBelief, nextMap, rounded } from "./learn.js";
import { learnWave } from "./step.js";
import { verify } from "./verify.js";
import { peopleOf } from "./words.js";

const FIELDS = [
  "format",
  "version",
  "rule",
  "schema",
  "task",
  "waves",
  "epsilon",
  "delta",
  "quorum",
  "colluders",
  "neighbours",
  "local_epsilon",
  "local_delta",
  "databases",
  "constant",
  "weights",
  "fingerprint",
];
const LATER = ["admission", "database_noise", "signing_keys"]; // left out where they have their default
const UNIT = 2 ** -23; // of a number in 24 bits, as a share of it
const SLACK = 1e-9; // of the largest number beside it, for one that is a difference of others

/** Refuse (throw NotCertified) unless the agreement is the plan's wave after these releases.
 * `texts` are the releases' own, in their order. Returns [{count, belief}] of each release. */
export async function follows(plan, texts, agreement) {
  await verifyPlan(plan, agreement.wave);
  const marks = await Promise.all(texts.map((one) => sha256(new TextEncoder().encode(one))));
  const named = agreement.wave.follows;
  demand(canonical(named) === canonical(marks), "releases that it follows", named, marks);
  const taught = [];
  for (const [place, text] of texts.entries()) {
    const release = JSON.parse(text);
    await verifyRelease(release);
    const { wave } = release.agreement;
    const before = marks.slice(0, place);
    demand(canonical(wave.follows) === canonical(before), "waves before it", wave.follows, before);
    verifyTerms(plan, release.agreement, place);
    verifyMap(plan, release.agreement, taught);
    const belief =
      place === 0 ? firstBelief(plan, release) : learnWave(taught.at(-1).belief, release);
    taught.push({ count: release.count, belief });
  }
  verifyTerms(plan, agreement, texts.length);
  verifyMap(plan, agreement, taught);
  return taught;
}

async function verifyPlan(plan, wave) {
  exactly(plan, FIELDS, "plan", LATER);
  const own = await fingerprintOf(plan);
  if (own !== wave.plan || plan.fingerprint !== own) {
    throw new NotCertified(
      `The agreement belongs to the plan ${wave.plan}, but the service sent ${own}. ` +
        "It was changed on its way. Nothing has left this device.",
    );
  }
  demand(plan.format === "blurfit-plan", "format of the plan", plan.format, "blurfit-plan");
  const rule = `${plan.version}, ${plan.rule}`;
  demand(rule === "1, 1", "version and rule of the plan", rule, "1, 1");
  const isFine = Array.isArray(plan.waves) && wave.number <= plan.waves.length;
  demand(isFine, "number of the wave", wave.number, `at most ${plan.waves?.length}`);
}

async function verifyRelease(release) {
  const { agreement, count, deviation, sums } = release;
  await verify(agreement, release.fingerprint);
  const quorum = peopleOf(agreement);
  demand(Number.isSafeInteger(count) && count >= quorum, "people in a wave", count, `≥ ${quorum}`);
  demand(finite(deviation) && deviation > 0, "deviation", deviation, "a positive number");
  const width = widthOf(agreement);
  const isFine = Array.isArray(sums) && sums.length === width && finite(...sums);
  demand(isFine, "sums of a wave", sums?.length, `${width} numbers`);
}

/** The promise, the quorum, the questions and the databases are the plan's own. */
function verifyTerms(plan, agreement, place) {
  const { wave, schema, calibration, databases } = agreement;
  for (const name of LATER) {
    const isSame = canonical(agreement[name] ?? null) === canonical(plan[name] ?? null);
    demand(isSame, name, agreement[name], plan[name]);
  }
  demand(wave.plan === plan.fingerprint, "plan", wave.plan, plan.fingerprint);
  demand(canonical(schema) === canonical(plan.schema), "schema", "another", "the plan’s");
  demand(canonical(databases) === canonical(plan.databases), "databases", "others", "the plan’s");
  const { kind, quorum, honest } = plan.waves[place];
  const people = plan.waves.map((one) => one.quorum);
  demand(canonical(wave.people) === canonical(people), "people of each wave", wave.people, people);
  demand(calibration.quorum === honest, "honest people", calibration.quorum, honest);
  const most = quorum * (1 - plan.colluders) * (1 + 1e-12);
  demand(honest <= most, "honest people", honest, `at most ${most}, as others may collude`);
  const { epsilon, delta, neighbours } = calibration.model;
  agree("epsilon", epsilon, plan.epsilon);
  agree("delta", delta, plan.delta * (1 - DISCRETE_SHARE));
  demand(neighbours === plan.neighbours, "neighbours", neighbours, plan.neighbours);
  if (plan.local_epsilon !== null) {
    const { local } = calibration;
    const isKept = local.epsilon <= plan.local_epsilon * (1 + 1e-8);
    demand(isKept, "local.epsilon", local.epsilon, `at most ${plan.local_epsilon}`);
    agree("local.delta", local.delta, plan.local_delta);
  }
  const given = wave.map?.kind ?? "joint";
  const sent = ["logistic", "poisson"].includes(given) ? "newton" : given;
  demand(sent === kind, "what the wave sends", sent, kind);
}

/** The announced map is what the releases say. */
function verifyMap(plan, { wave }, taught) {
  if (wave.number === 1) return;
  const { kind, quorum } = plan.waves[wave.number - 1];
  const mu = muOf(plan.epsilon, plan.delta * (1 - DISCRETE_SHARE));
  const expected = nextMap(taught.at(-1).belief, kind, quorum, mu);
  for (const [name, value] of Object.entries(wave.map)) {
    const isSame =
      typeof value === "string" ? value === expected[name] : isAlike(value, expected[name]);
    const isShort = ["kind", "bound", "weights", "balance", "score_bound", "constant"];
    const hasBits = isShort.includes(name) || [value].flat(2).every((one) => rounded(one) === one);
    if (!isSame || !hasBits) {
      throw new NotCertified(
        `The map of this wave does not follow from the published releases: its “${name}” is ` +
          "another. Whoever announced it chose it by other means. Nothing has left this device.",
      );
    }
  }
}

function isAlike(stated, follows) {
  const [a, b] = [stated, follows].map((one) => [one].flat(2));
  const largest = Math.max(...b.map(Math.abs));
  const isClose = (one, i) =>
    Math.abs(one - b[i]) <= UNIT * Math.max(Math.abs(one), Math.abs(b[i])) + SLACK * largest;
  return a.length === b.length && a.every(isClose);
}

/** The μ at which δ(ε) is just δ. */
function muOf(epsilon, delta) {
  let [low, high] = [0, 1];
  while (logDelta(high, epsilon) < Math.log(delta)) high *= 2;
  for (let i = 0; i < 60; i++) {
    const middle = (low + high) / 2;
    if (logDelta(middle, epsilon) <= Math.log(delta)) low = middle;
    else high = middle;
  }
  return low;
}
