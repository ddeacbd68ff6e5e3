// Plans of several waves, which pages call groups: where a plan is, that the wave that collects
// follows from what earlier ones published, who is in which, and what people are told of it.

import { bytesOf, keep, recall } from "./bytes.js";
import { BEYOND, canonical, demand, demandThis, exactly, fingerprintOf, finite, sha256 } from "./checks.js";
import { widthOf } from "./forms.js";
import { logDelta } from "./gaussian.js";
import { DISCRETE_SHARE } from "./grid.js";
import { number, t } from "./language.js";
import { ask, askText, h } from "./page.js";
import { measured } from "./texts.js";
import { verify } from "./verify.js";
import { countOf, isOpenToAnyone, peopleOf, quorumOf } from "./words.js";

/** Why somebody is not asked now, as [title, text]: the lot has put them into another wave. Null if it
 * is their turn. */
export async function notNow({ wave, admission }, invitation) {
  const isOpen = admission === "anyone";
  const group = isOpen ? coin(wave) : await groupOf(wave, invitation.split(",")[0]);
  return group === wave.number ? null : otherGroup(wave, group, isOpen);
}

/** {plan, status, taught} of a wave, checked to follow; `taught` are the maps so far. */
export async function courseOf(agreement) {
  const address = `/collections/${agreement.wave.plan}`;
  const [plan, status] = await Promise.all([ask(`${address}/document`), ask(address)]);
  const before = status.waves.slice(0, agreement.wave.number - 1);
  const texts = await Promise.all(
    before.map(({ fingerprint }) => askText(`/collections/${fingerprint}/moments`)),
  );
  return { plan, status, taught: await follows(plan, texts, agreement) };
}

/** The wave that collects now; null if all are over. */
export async function waveAfter({ wave }) {
  const { waves } = await ask(`/collections/${wave.plan}`);
  return waves.find(({ state }) => state === "collecting")?.fingerprint ?? null;
}

export function waveList(agreement, { plan, status, taught }) {
  return h("div.waves",
    h("p", h("strong", progressInWords(status)), ` ${checkedInWords(agreement)}`),
    h("ol",
      status.waves.map((one, i) => h("li", { class: one.state }, waveInWords(one, taught[i], plan))),
    ),
    h("p.hint", lotInWords(agreement)),
  );
}

// ---- That a wave follows from its plan and from what was published before it: mirrors
// `blurfit.model.course.follows`. The plan and each release are read from the very bytes whose
// SHA-256 the agreement names. What the plan states of a wave, its agreement states too; its noise is
// enough (`verify.js`), and hardly more than that. The map is taken as it is announced: that the noise
// suffices does not depend on it.

const FIELDS = [
  "format", "version", "rule", "schema", "task", "waves", "epsilon", "delta", "quorum", "colluders",
  "neighbours", "local_epsilon", "local_delta", "databases", "weights", "calibration", "step",
  "fingerprint",
];
const LATER = ["admission", "database_noise", "diaries", "signing_keys"]; // left out by default

/** Refuse (throw NotCertified) unless the agreement is the plan's wave after these releases.
 * `texts` are the releases' own, in their order. Returns the map that followed each of them. */
export async function follows(plan, texts, agreement) {
  await verifyPlan(plan, agreement.wave);
  const marks = await Promise.all(texts.map((one) => sha256(bytesOf(one))));
  const releases = texts.map((text) => JSON.parse(text));
  await Promise.all(releases.map(verifyRelease));
  const waves = [...releases.map((release) => release.agreement), agreement];
  for (const [place, { wave }] of waves.entries()) {
    const [named, before] = [wave.follows, marks.slice(0, place)];
    demand(canonical(named) === canonical(before), "releases that it follows", named);
    verifyTerms(plan, waves[place], place);
  }
  return waves.slice(1).map(({ wave }) => wave.map);
}

async function verifyPlan(plan, wave) {
  exactly(plan, FIELDS, "plan", LATER);
  const own = await fingerprintOf(plan);
  demandThis(own, plan.fingerprint, wave.plan);
  demand(plan.format === "blurfit-plan", "format of the plan", plan.format);
  const rule = `${plan.version}, ${plan.rule}`;
  demand(rule === "1, 1", "version and rule of the plan", rule);
  const isFine = Array.isArray(plan.waves) && wave.number <= plan.waves.length;
  demand(isFine, "number of the wave", wave.number);
}

async function verifyRelease(release) {
  const { agreement, count, deviation, sums } = release;
  await verify(agreement, release.fingerprint);
  const quorum = peopleOf(agreement);
  demand(Number.isSafeInteger(count) && count >= quorum, "people in a wave", count);
  demand(finite(deviation) && deviation > 0, "deviation", deviation);
  const width = widthOf(agreement);
  const isFine = Array.isArray(sums) && sums.length === width && finite(...sums);
  demand(isFine, "sums of a wave", sums?.length);
}

/** The promise, the quorum, the questions and the databases are the plan's own: mirrors
 * `Plan.require`, which says why that is enough. */
function verifyTerms(plan, agreement, place) {
  const { wave, calibration } = agreement;
  for (const name of [...LATER, "schema", "databases"]) {
    const isSame = canonical(agreement[name] ?? null) === canonical(plan[name] ?? null);
    demand(isSame, name, LATER.includes(name) ? agreement[name] : "others");
  }
  demand(!agreement.proofs, "proofs", agreement.proofs);
  demand(wave.plan === plan.fingerprint, "plan", wave.plan);
  const { kind, quorum, honest } = plan.waves[place];
  const given = wave.map?.kind ?? "joint";
  const sent = ["logistic", "poisson"].includes(given) ? "newton" : given;
  demand(sent === kind, "what the wave sends", sent);
  const people = plan.waves.map((one) => one.quorum);
  demand(canonical(wave.people) === canonical(people), "people of each wave", wave.people);
  demand(calibration.quorum === honest, "honest people", calibration.quorum);
  const most = quorum * (1 - plan.colluders) * (1 + 1e-12);
  demand(honest <= most, "honest people", honest);
  const { epsilon, delta, neighbours } = calibration.model;
  demand(epsilon === plan.epsilon, "epsilon", epsilon);
  const kept = plan.delta * (1 - DISCRETE_SHARE);
  demand(delta === kept, "delta", delta);
  demand(neighbours === plan.neighbours, "neighbours", neighbours);
  verifyLocal(plan, calibration);
  if (place === 0) {
    for (const name of ["weights", "calibration", "step"]) {
      demand(canonical(agreement[name]) === canonical(plan[name]), `${name} of the first wave`, "others");
    }
  }
}

/** What one submission keeps is what was asked for; and hardly more noise than all of it needs. */
function verifyLocal(plan, { model, mu, local }) {
  const { local_epsilon: asked, local_delta: stated } = plan;
  const expected = stated === null && asked === null ? plan.delta : stated;
  demand(local.delta === expected, "local.delta", local.delta);
  const wouldBreak = (one, epsilon, delta) =>
    logDelta(one * (1 + 4 * BEYOND), epsilon) > Math.log(delta);
  let isLeast = wouldBreak(mu, model.epsilon, model.delta);
  if (asked !== null) {
    demand(local.epsilon <= asked, "local.epsilon", local.epsilon);
    isLeast ||= wouldBreak(local.mu, asked, local.delta);
  }
  demand(isLeast, "noise", mu);
}

// ---- Which wave of a plan somebody is in: mirrors `blurfit.agreement.mechanisms`. The lot of an invitation is a
// hash of it and of the plan, so that nobody can choose it and everybody can check it. Where anyone
// may take part this device tosses a coin, and remembers how it fell.

const BITS = 64n;
const keyOf = (plan) => `blurfit:group:${plan}`;

export async function groupOf({ plan, people }, invitation) {
  const hash = await sha256(bytesOf(invitation));
  const lot = await sha256(bytesOf(`blurfit lot ${plan} ${hash}`));
  return placeOf(BigInt(`0x${lot.slice(0, 16)}`) * total(people), people);
}

/** This device’s own: tossed once, among the wave that collects and those after it. */
export function coin({ plan, number, people }) {
  const before = Number(recall("localStorage", keyOf(plan)));
  if (before > 0) return before;
  const left = people.map((one, i) => (i < number - 1 ? 0 : one));
  const found = placeOf(drawn() * total(left), left);
  keep("localStorage", keyOf(plan), String(found)); // else it is tossed at every visit
  return found;
}

/** How many of `count` invitations are for each wave, from wave `first` on: in proportion, with a
 * random offset so that a single one is fair. */
export function shares({ people }, count, first) {
  const left = people.map((one, i) => BigInt(i < first - 1 ? 0 : one));
  const all = left.reduce((sum, one) => sum + one, 0n);
  const offset = (drawn() * all) >> BITS;
  let [end, before] = [0n, 0n];
  return left.map((one) => {
    end += one;
    const upTo = (BigInt(count) * end + offset) / all;
    const found = Number(upTo - before);
    before = upTo;
    return found;
  });
}

const total = (people) => BigInt(people.reduce((sum, one) => sum + one, 0));

const drawn = () => crypto.getRandomValues(new BigUint64Array(1))[0];

function placeOf(scaled, people) {
  let end = 0n;
  for (const [i, one] of people.entries()) {
    end += BigInt(one);
    if (scaled < end << BITS) return i + 1;
  }
  return people.length;
}

// ---- what pages say about groups

/** “2 of 3 groups are done.” */
export function progressInWords({ waves }) {
  const done = waves.filter(({ state }) => state === "released").length;
  return t("groups.done", { done, all: waves.length });
}

function checkedInWords({ wave }) {
  const values = { place: wave.number, all: wave.people.length };
  return t(wave.number === 1 ? "group.first" : "group.further", values);
}

/** One line about each group: how far it is, and what it taught, as the next one's map says. */
export function waveInWords({ number: place, state, count, quorum }, map, plan) {
  const values = { count: countOf({ count: count ?? 0, state }), quorum: number(quorum) };
  const people = t(state === "planned" ? "group.people" : "group.counted", values);
  const line = t("group.line", { place, state: t(`group.${state}`), people });
  return map ? `${line} ${taughtInWords(map, plan)}` : line;
}

/** What is known after a group, as far as one number can say it. */
function taughtInWords({ kind, intercept, coefficients, mean, scale }, { task, schema: { target } }) {
  if (kind !== "residual") return t("taught.curve");
  const average = intercept + mean.reduce((sum, one, i) => sum + one * coefficients[i], 0);
  const share = Math.min(Math.max((average + 1) / 2, 0), 1);
  if (task === "label") return t("taught.label", { percent: number(100 * share, 2) });
  if (task === "count") return t("taught.count", { average: measured(target, share * target.upper, 2) });
  const half = (target.upper - target.lower) / 2;
  const middle = measured(target, target.lower + 2 * share * half, 2);
  return t("taught.number", { average: middle, off: measured(target, scale * half, 2) });
}

/** “They were asked in 3 groups, of 12, 18 and 30 people.” */
export function wavesOfModel(waves) {
  const counts = waves.map(({ count }) => number(count));
  return t("groups.model", { all: waves.length, last: counts.pop(), counts: counts.join(", ") });
}

/** By which lot somebody is in a group, and how many of its people may collude. */
function lotInWords(agreement) {
  const [people, honest] = [peopleOf(agreement), quorumOf(agreement)];
  const percent = Math.floor((100 * (people - honest)) / people);
  const lot = t(isOpenToAnyone(agreement) ? "lot.anyone" : "lot.invited");
  return `${lot} ${t("lot.margin", { people: number(people), honest: number(honest), percent })}`;
}

/** [title, text] for whoever comes before or after their group. */
export function otherGroup({ number: now, people }, group, isOpen) {
  const values = { group, now, all: people.length };
  if (group < now) return [t("group.over"), t("group.over.how", values)];
  const again = t(isOpen ? "group.later.device" : "group.later.link");
  return [t("group.later"), `${t("group.later.how", values)} ${again}`];
}
