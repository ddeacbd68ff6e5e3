// That a wave follows from its plan and from what was published before it: mirrors
// `blurfit.model.course.follows`. The plan and each release are read from the very bytes whose
// SHA-256 the agreement names. What the plan states of a wave, its agreement states too; its noise is
// enough (`verify.js`), and hardly more than that. The map is taken as it is announced: that the noise
// suffices does not depend on it.

import { canonical, fingerprintOf, sha256 } from "./canonical.js";
import { BEYOND, NotCertified, demand, exactly, finite } from "./checks.js";
import { widthOf } from "./forms.js";
import { logDelta } from "./gaussian.js";
import { DISCRETE_SHARE } from "./grid.js";
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
  "weights",
  "calibration",
  "grid",
  "fingerprint",
];
const LATER = ["admission", "database_noise", "diaries", "public_rows", "signing_keys"]; // by default left out

/** Refuse (throw NotCertified) unless the agreement is the plan's wave after these releases.
 * `texts` are the releases' own, in their order. Returns the map that followed each of them. */
export async function follows(plan, texts, agreement) {
  await verifyPlan(plan, agreement.wave);
  const marks = await Promise.all(texts.map((one) => sha256(new TextEncoder().encode(one))));
  const releases = texts.map((text) => JSON.parse(text));
  await Promise.all(releases.map(verifyRelease));
  const waves = [...releases.map((release) => release.agreement), agreement];
  for (const [place, { wave }] of waves.entries()) {
    const [named, before] = [wave.follows, marks.slice(0, place)];
    demand(canonical(named) === canonical(before), "releases that it follows", named, before);
    verifyTerms(plan, waves[place], place);
  }
  return waves.slice(1).map(({ wave }) => wave.map);
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

/** The promise, the quorum, the questions and the databases are the plan's own: mirrors
 * `Plan.require`, which says why that is enough. */
function verifyTerms(plan, agreement, place) {
  const { wave, schema, calibration, databases } = agreement;
  for (const name of LATER) {
    const isSame = canonical(agreement[name] ?? null) === canonical(plan[name] ?? null);
    demand(isSame, name, agreement[name], plan[name]);
  }
  demand(!agreement.sends && !agreement.proofs, "sends or proofs", "others", "none in waves");
  demand(wave.plan === plan.fingerprint, "plan", wave.plan, plan.fingerprint);
  demand(canonical(schema) === canonical(plan.schema), "schema", "another", "the plan’s");
  demand(canonical(databases) === canonical(plan.databases), "databases", "others", "the plan’s");
  const { kind, quorum, honest } = plan.waves[place];
  const given = wave.map?.kind ?? "joint";
  const sent = ["logistic", "poisson"].includes(given) ? "newton" : given;
  demand(sent === kind, "what the wave sends", sent, kind);
  const people = plan.waves.map((one) => one.quorum);
  demand(canonical(wave.people) === canonical(people), "people of each wave", wave.people, people);
  demand(calibration.quorum === honest, "honest people", calibration.quorum, honest);
  const most = quorum * (1 - plan.colluders) * (1 + 1e-12);
  demand(honest <= most, "honest people", honest, `at most ${most}, as others may collude`);
  const { epsilon, delta, neighbours } = calibration.model;
  demand(epsilon === plan.epsilon, "epsilon", epsilon, plan.epsilon);
  const kept = plan.delta * (1 - DISCRETE_SHARE);
  demand(delta === kept, "delta", delta, kept);
  demand(neighbours === plan.neighbours, "neighbours", neighbours, plan.neighbours);
  verifyLocal(plan, calibration);
  if (place === 0) {
    for (const name of ["weights", "calibration", "grid"]) {
      const isSame = canonical(agreement[name]) === canonical(plan[name]);
      demand(isSame, `${name} of the first wave`, "others", "the plan’s");
    }
  }
}

/** What one submission keeps is what was asked for; and hardly more noise than all of it needs. */
function verifyLocal(plan, { model, mu, local }) {
  const { local_epsilon: asked, local_delta: stated } = plan;
  const expected = stated === null && asked === null ? plan.delta : stated;
  demand(local.delta === expected, "local.delta", local.delta, expected);
  const wouldBreak = (one, epsilon, delta) =>
    logDelta(one * (1 + 4 * BEYOND), epsilon) > Math.log(delta);
  let isLeast = wouldBreak(mu, model.epsilon, model.delta);
  if (asked !== null) {
    demand(local.epsilon <= asked, "local.epsilon", local.epsilon, `at most ${asked}`);
    isLeast ||= wouldBreak(local.mu, asked, local.delta);
  }
  demand(isLeast, "noise", mu, "no more than the promise needs");
}
