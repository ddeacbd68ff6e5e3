// What pages say about waves, in one place.

import { t } from "./language.js";
import { number } from "./numerals.js";
import { isOpenToAnyone, peopleOf, quorumOf } from "./words.js";

/** “Wave 2 of 3”. */
const whichWave = ({ wave }, plan) =>
  t("wave.which", { place: wave.number, all: plan.waves.length });

/** What was checked of a wave, beside the noise. */
export function checkedInWords({ wave }, plan) {
  const which = whichWave({ wave }, plan);
  if (wave.number === 1) return t("wave.first", { which });
  const last = wave.number - 1;
  const name = last === 1 ? "wave.before" : last === 2 ? "wave.beforeTwo" : "wave.befores";
  return t("wave.later", { which, before: t(name, { last }) });
}

/** One line about each wave: how far it is, and what it taught. */
export function waveInWords({ number: place, state, count, quorum }, taught, target) {
  const values = { count: number(count ?? 0), quorum: number(quorum) };
  const people = t(state === "planned" ? "wave.people" : "wave.counted", values);
  const line = t("wave.line", { place, state: t(`wave.${state}`), people });
  return taught ? `${line} ${taughtInWords(taught.belief, target)}` : line;
}

/** What is known after a wave, as far as one number can say it. */
function taughtInWords({ task, isLine, coefficients, mean, scale, countBound }, target) {
  if (!isLine) return t("taught.curve");
  const average = coefficients[0] + mean.reduce((sum, one, i) => sum + one * coefficients[i + 1], 0);
  const share = Math.min(Math.max((average + 1) / 2, 0), 1);
  if (task === "label") return t("taught.label", { percent: number(100 * share, 2) });
  if (task === "count") return t("taught.count", { average: number(share * countBound, 2) });
  const half = (target.upper - target.lower) / 2;
  return t("taught.number", {
    average: number(target.lower + 2 * share * half, 2),
    off: number(scale * half, 2),
  });
}

/** “In 3 waves, of 12, 18 and 30 people.” */
export function wavesOfModel(waves) {
  const counts = waves.map(({ count }) => number(count));
  const last = counts.at(-1);
  return t("waves.model", { all: waves.length, counts: counts.slice(0, -1).join(", "), last });
}

/** Why nobody is asked a second time. */
export const ONCE = {
  title: t("once.title"),
  text: t("once.text"),
  receipt: t("once.receipt"),
};

/** By which lot somebody is in a wave, and how many of its people may collude. */
export function lotInWords(agreement) {
  const [people, honest] = [peopleOf(agreement), quorumOf(agreement)];
  const percent = Math.floor((100 * (people - honest)) / people);
  const lot = t(isOpenToAnyone(agreement) ? "lot.anyone" : "lot.invited");
  return `${lot} ${t("lot.margin", { people: number(people), honest: number(honest), percent })}`;
}

/** [title, text] for whoever comes before or after their wave. */
export function otherGroup({ number: now, people }, group, isOpen) {
  const values = { group, now, all: people.length };
  if (group < now) return [t("group.over.title"), t("group.over.text", values)];
  const again = t(isOpen ? "group.later.device" : "group.later.link");
  return [t("group.later.title"), `${t("group.later.text", values)} ${again}`];
}

/** A submission that came too late, and has left the device. */
export const LATE = { title: t("late.title"), text: t("late.text") };

export const HELD = t("waves.held");
export const ENDED = t("waves.ended");
