// Checks of a contract that name what they check, and refuse what does not hold.

export class NotCertified extends Error {}

export function demand(holds, name, stated, expected) {
  if (!holds) {
    throw new NotCertified(
      `The agreement states ${name} = ${stated}, and it should be ${expected}. ` +
        "Do not take part; nothing has left this device.",
    );
  }
}

/** These fields, no fewer and no more; those of `optional` may be there too. */
export function exactly(thing, names, what, optional = []) {
  const isObject = thing !== null && typeof thing === "object" && !Array.isArray(thing);
  const fields = isObject ? Object.keys(thing) : [];
  const there = fields.filter((name) => !optional.includes(name)).sort();
  const found = isObject ? fields.sort().join(", ") : typeof thing;
  const fits = isObject && there.join(", ") === [...names].sort().join(", ");
  demand(fits, `the fields of ${what}`, found, names.join(", "));
}

export function positive(holder, ...names) {
  for (const name of names) {
    demand(finite(holder[name]) && holder[name] > 0, name, holder[name], "a positive number");
  }
}

export function finite(...numbers) {
  return numbers.every((number) => Number.isFinite(number));
}

export function atLeast(name, stated, needed) {
  demand(stated >= needed, name, stated, `at least ${needed}, which records reach`);
}

/** How much further than necessary a stated number may lie on its safe side: as in
 * `blurfit.theory.guarantees`, whose docstring says why an honest agreement is never refused. */
export const BEYOND = 2 ** -24;

/** No less than what follows from the noise, and hardly more. */
export function isAbove(name, stated, follows) {
  const most = follows + BEYOND * Math.abs(follows);
  const isFine = finite(stated) && stated >= follows && stated <= most;
  demand(isFine, name, stated, `at least ${follows}, which follows from the noise, and hardly more`);
}

/** No more than what follows from the noise, and hardly less. */
export function isBelow(name, stated, follows) {
  const least = follows - BEYOND * Math.abs(follows);
  const isFine = finite(stated) && stated <= follows && stated >= least;
  demand(isFine, name, stated, `at most ${follows}, which follows from the noise, and hardly less`);
}

/** A SHA-256 in hexadecimal digits. */
export function isDigest(text) {
  return typeof text === "string" && /^[0-9a-f]{64}$/.test(text);
}

/** What hides or reorders what is read, breaks a line, or cannot be written down in UTF-8. */
export const HARMFUL = /[\0-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\p{Surrogate}]/u;

/** A word without any of that. */
export function isWord(text) {
  return typeof text === "string" && text !== "" && !HARMFUL.test(text);
}
