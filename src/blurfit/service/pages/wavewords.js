// What pages say about waves, in one place.

import { number } from "./words.js";

const STATES = {
  planned: "to come",
  collecting: "collecting now",
  released: "done",
  dropped: "ended below its quorum, never published",
};

/** “Wave 2 of 3”. */
export const whichWave = ({ wave }, plan) => `Wave ${wave.number} of ${plan.waves.length}`;

/** What was checked of a wave, beside the noise. */
export function checkedInWords({ wave }, plan) {
  if (wave.number === 1)
    return `${whichWave({ wave }, plan)}: it is the plan’s own, and nobody is asked twice.`;
  const last = wave.number - 1;
  const before = last === 1 ? "wave 1" : last === 2 ? "waves 1 and 2" : `waves 1 to ${last}`;
  return (
    `${whichWave({ wave }, plan)}. How your answers become numbers follows from what ${before} published: ` +
    "that was computed again on this device. The noise would keep the promise even if it did not."
  );
}

/** One line about each wave: how far it is, and what it taught. */
export function waveInWords({ number: place, state, count, quorum }, taught, target) {
  const people = state === "planned" ? `${number(quorum)} people` : `${number(count)} of ${number(quorum)} people`;
  const found = taught ? ` ${taughtInWords(taught.belief, target)}` : "";
  return `Wave ${place}, ${STATES[state]}: ${people}.${found}`;
}

/** What is known after a wave, as far as one number can say it. */
export function taughtInWords({ task, isLine, coefficients, mean, scale, countBound }, target) {
  if (!isLine) return "It taught the curve from which the next wave starts.";
  const average = coefficients[0] + mean.reduce((sum, one, i) => sum + one * coefficients[i + 1], 0);
  const share = Math.min(Math.max((average + 1) / 2, 0), 1);
  if (task === "label") return `About ${number(100 * share, 2)} % say yes, as far as its noise lets one see.`;
  if (task === "count") return `About ${number(share * countBound, 2)} on average, as far as its noise lets one see.`;
  const half = (target.upper - target.lower) / 2;
  return (
    `About ${number(target.lower + 2 * share * half, 2)} on average; the first model is off by ` +
    `about ${number(scale * half, 2)}.`
  );
}

/** “In 3 waves, of 12, 18 and 30 people.” */
export function wavesOfModel(waves) {
  const counts = waves.map(({ count }) => number(count));
  return `They were asked in ${waves.length} waves, of ${counts.slice(0, -1).join(", ")} and ${counts.at(-1)} people.`;
}

/** Why nobody is asked a second time. */
export const ONCE = {
  title: "You have taken part already.",
  text:
    "People are asked in waves, each person once. This browser has sent its blurred numbers in an earlier " +
    "wave, and a second blurred copy would tell more about you than was promised.",
  receipt: "See your receipt",
};

/** A wave that closed between the first question and “Send”. */
export const MOVED = {
  title: "The next wave has begun.",
  text:
    "The wave that you answered for has closed meanwhile. Nothing had left this device, so your answers " +
    "were blurred anew for the wave that collects now. Look at it, then send it.",
};

/** A submission that came too late, and has left the device. */
export const LATE = {
  title: "Your wave closed before your numbers arrived.",
  text:
    "They are not counted, and nothing was kept. They will not be blurred again for the next wave: two " +
    "blurred copies together would tell more about you than was promised. Thank you all the same.",
};

export const HELD = "The plan is held: this wave goes on collecting, and no wave is published for now.";
export const ENDED = "All waves are over, and nothing more is collected.";
