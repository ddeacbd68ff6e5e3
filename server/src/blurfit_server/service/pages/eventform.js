// Exits from observation: (α·T·xxᵀ, β·d·xxᵀ, w·a(T, d) ⊗ (c, x)). Mirrors `blurfit.theory.hazards`,
// whose proofs it rests upon, operation by operation, so that both round alike.

import { NUDGE, sumOf, unknownPairs } from "./forms.js";
import { columnsFor, questionsOf } from "./schema.js";
import { demand, finite } from "./checks.js";

const [OF_TIME, MOST_BANDS, APART] = [0.95, 48, 0.5]; // apart: of two tables in a picture
const OF_EVENT = Math.sqrt(1 - OF_TIME * OF_TIME);
const [TIME, BAND, KNOT, AT_EDGE] = [0.28, 0.315, 0.16, 1e-9];

/** Refuse a target whose time is not asked for as it must be, and terms that do not go with it. */
export function verifyExits(agreement) {
  const { schema, wave, diaries, proofs } = agreement;
  const { target, features } = schema;
  const { name, time, horizon, bands } = target;
  const isRange = finite(horizon) && horizon > 0 && Number.isInteger(bands) && bands >= 2;
  demand(isRange && bands <= MOST_BANDS, `bands of “${name}”`, bands);
  const [asked, ...others] = features.filter((one) => one.name === time);
  const isBound = asked?.kind === "numeric" && asked.lower === 0 && asked.upper === horizon;
  const isAsked = isBound && asked.outside === "refuse" && !asked.optional && others.length === 0;
  demand(isAsked, `time of “${name}”`, time);
  const derived = features.flatMap(({ of = [] }) => [of].flat());
  demand(!derived.includes(time) && !derived.includes(name), "derived columns", time);
  demand(schema.targets.length === 1, "targets", schema.targets);
  const isAlone = wave === null && !diaries && !proofs;
  const isPlain = !("groups" in agreement) && !("weighting" in agreement);
  demand(isAlone && isPlain, "terms with a time to an event", "others");
}

/** The form of a time to an event; `columns` are those of the features, the target's last. */
export function eventForm(agreement, { constant, columns }) {
  const { schema, weights } = agreement;
  const { time, name, bands } = schema.target;
  const names = questionsOf(schema).flatMap(columnsFor);
  const own = columns.slice(0, -1);
  const kept = own.map((column) => names.indexOf(column.name));
  const pairs = unknownPairs(own);
  const [weight, height] = [weights[name], own.length + APART];
  const codes = Array.from({ length: 2 * bands + 5 }, (_, row) => row + 2 * height);
  const sent = [
    ...pairs,
    ...pairs.map(([row, column]) => [row + height, column]),
    ...codes.flatMap((row) => [0, ...own].map((_, column) => [row, column])),
  ];
  const beside = pairs.map(([row, column]) => (row === column ? 1 : 2));
  const counts = [...beside, ...beside, ...Array(codes.length * (own.length + 1)).fill(1)];
  const questions = schema.features.filter((one) => one.name !== time);
  const radius = Math.sqrt(sumOf(questions.map((one) => weights[one.name] ** 2)));
  const [apart, alone] = reaches(bands, constant, radius, weight);
  return {
    constant,
    columns: own,
    sent,
    counts,
    size: Math.ceil(Math.sqrt(sumOf(counts))),
    reach: (neighbours) => (neighbours === "replace" ? apart : alone),
    products: (values) => {
      const x = kept.map((place, i) => values[place] * own[i].weight);
      const at = Math.min(Math.max((values[names.indexOf(time)] + 1) / 2, 0), 1);
      const event = values[names.indexOf(name)] > 0 ? 1 : 0;
      const products = pairs.map(([row, column]) => x[row] * x[column]);
      const z = [constant, ...x];
      const coded = codeOf(at, event, bands).flatMap((entry) => z.map((one) => weight * entry * one));
      const scaled = [OF_TIME * at, OF_EVENT * event].flatMap((by) => products.map((one) => by * one));
      return [...scaled, ...coded];
    },
  };
}

const dot = (one, other) => one.reduce((sum, entry, i) => sum + entry * other[i], 0);

/** a(T, d): numbers that are at least 0, of the time, the event, hats and bands. */
function codeOf(time, event, bands) {
  const knot = KNOT / bands;
  const happened = 1 - TIME - BAND - knot;
  const [hats, events] = [Array(bands + 1).fill(0), Array(bands).fill(0)];
  const edge = Math.floor(time * bands + 0.5);
  const at = Math.abs(time * bands - edge) < AT_EDGE ? edge : time * bands;
  const band = Math.max(Math.ceil(at) - 1, 0); // an event at an edge belongs to the band that ends
  hats[band] = 1 - (at - band);
  hats[band + 1] = at - band;
  events[band] = event;
  return [
    Math.sqrt(TIME) * time,
    Math.sqrt(TIME) * (1 - time),
    Math.sqrt(happened) * event,
    Math.sqrt(happened + BAND) * (1 - event),
    ...hats.map((one) => Math.sqrt(knot) * one),
    ...events.map((one) => Math.sqrt(BAND) * one),
  ];
}

/** Δ of `replace` and of `zero-out`: the largest over pairs of extreme points. */
function reaches(bands, constant, radius, weight) {
  const points = [];
  for (let knot = 0; knot <= bands; knot++) {
    const time = knot / bands;
    points.push({ u: [OF_TIME * time, 0], a: codeOf(time, 0, bands) });
    for (const band of new Set([Math.max(knot - 1, 0), Math.min(knot, bands - 1)])) {
      const a = codeOf(time, 1, bands).map((one, place) => (place < bands + 5 ? one : 0));
      a[bands + 5 + band] = Math.sqrt(BAND); // an event at a knot is of either band
      points.push({ u: [OF_TIME * time, OF_EVENT], a });
    }
  }
  const [w2, r2] = [weight ** 2, radius ** 2];
  let [apart, alone] = [0, 0];
  for (const one of points) {
    const [U, g] = [dot(one.u, one.u), dot(one.a, one.a)];
    alone = Math.max(alone, r2 * r2 * U + w2 * (constant ** 2 + r2) * g);
    for (const other of points) {
      const [both, product] = [dot(one.u, other.u), dot(one.a, other.a)];
      const squares = U + dot(other.u, other.u);
      const norms = g + dot(other.a, other.a);
      const isInside = w2 * product <= 2 * r2 * both;
      const top = both > 0 ? (w2 * product) ** 2 / (2 * both) : 0;
      const more = isInside ? top : 2 * r2 * (w2 * product - r2 * both);
      const between = w2 * constant ** 2 * (norms - 2 * product);
      apart = Math.max(apart, r2 * r2 * squares + w2 * r2 * norms + between + more);
    }
  }
  return [Math.sqrt(apart) * NUDGE, Math.sqrt(alone) * NUDGE];
}
