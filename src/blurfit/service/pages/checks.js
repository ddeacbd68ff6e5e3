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
  demand(stated >= needed * (1 - 1e-12), name, stated, `at least ${needed}, which records reach`);
}

/** To nine digits, as in Python. */
export function agree(name, stated, follows) {
  const close = Math.abs(stated - follows) <= 1e-9 * Math.max(Math.abs(stated), Math.abs(follows));
  demand(finite(stated) && close, name, stated, `${follows}, which follows from the noise`);
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
