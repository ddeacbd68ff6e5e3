// Which wave of a plan somebody is in: mirrors `blurfit.agreement.waves`. The lot of an invitation is a
// hash of it and of the plan, so that nobody can choose it and everybody can check it. Where anyone
// may take part this device tosses a coin, and remembers how it fell.

import { sha256 } from "./canonical.js";

const BITS = 64n;
const keyOf = (plan) => `blurfit:group:${plan}`;
const bytesOf = (text) => new TextEncoder().encode(text);

/** The number of the wave that an invitation is for. */
export async function groupOf({ plan, people }, invitation) {
  const hash = await sha256(bytesOf(invitation));
  const lot = await sha256(bytesOf(`blurfit lot ${plan} ${hash}`));
  return placeOf(BigInt(`0x${lot.slice(0, 16)}`) * total(people), people);
}

/** This device’s own: tossed once, among the wave that collects and those after it. */
export function coin({ plan, number, people }) {
  try {
    const before = Number(localStorage.getItem(keyOf(plan)));
    if (before > 0) return before;
  } catch {
    // without storage it is tossed at every visit
  }
  const left = people.map((one, i) => (i < number - 1 ? 0 : one));
  const found = placeOf(drawn() * total(left), left);
  try {
    localStorage.setItem(keyOf(plan), String(found));
  } catch {
    // as above
  }
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
