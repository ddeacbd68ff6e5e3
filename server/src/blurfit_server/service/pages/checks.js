// Checks of a contract that name what they check, and refuse what does not hold.

import { bytesOf, hexadecimal } from "./bytes.js";
import { t } from "./language.js";

export class NotCertified extends Error {}

export function demand(holds, name, stated) {
  if (!holds) throw new NotCertified(t("refused.states", { name, stated }));
}

/** Whether a document is the one that is named: `own` is its fingerprint as computed here. */
export function demandThis(own, stated, expected) {
  if (own !== expected || stated !== own) throw new NotCertified(t("refused.other", { own, expected }));
}

/** These fields, no fewer and no more; those of `optional` may be there too. */
export function exactly(thing, names, what, optional = []) {
  const isObject = thing !== null && typeof thing === "object" && !Array.isArray(thing);
  const fields = isObject ? Object.keys(thing) : [];
  const there = fields.filter((name) => !optional.includes(name)).sort();
  const found = isObject ? fields.sort().join(", ") : typeof thing;
  const fits = isObject && there.join(", ") === [...names].sort().join(", ");
  demand(fits, `the fields of ${what}`, found);
}

export const finite = (...numbers) => numbers.every((number) => Number.isFinite(number));

/** How much further than necessary a stated number may lie on its safe side: as in
 * `blurfit.theory.moments`, whose docstring says why an honest agreement is never refused. */
export const BEYOND = 2 ** -24;

/** No less than what follows from the noise, and hardly more. */
export function isAbove(name, stated, follows) {
  const most = follows + BEYOND * Math.abs(follows);
  demand(finite(stated) && stated >= follows && stated <= most, name, stated);
}

export const isDigest = (text) => typeof text === "string" && /^[0-9a-f]{64}$/.test(text);

/** Of whom something is asked: an earlier question, how its answer compares, and with what; as in
 * `blurfit.schema.columns`. */
export const COMPARED = /^(.+?) ?(<=|>=|!=|=|<|>) ?(.+)$/u;

/** What hides or reorders what is read, breaks a line, or cannot be written down in UTF-8. */
export const HARMFUL = /[\0-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\p{Surrogate}]/u;

/** A word without any of that. */
export const isWord = (text) => typeof text === "string" && text !== "" && !HARMFUL.test(text);

// ---- Canonical JSON (RFC 8785) and the fingerprint of an agreement.
//
// JavaScript writes numbers and orders text as the standard asks (it was made from JavaScript), so
// little is left to do. The fingerprint is computed from the very values that the page uses, not
// from the text that came: what is checked is what is used.

export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value !== null && typeof value === "object") {
    const fields = Object.keys(value)
      .sort() // by UTF-16 code units, as RFC 8785 has it
      .map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`);
    return `{${fields.join(",")}}`;
  }
  if (typeof value === "number" && !Number.isFinite(value)) {
    throw new RangeError(`Expected a finite number, and got ${value}.`);
  }
  return JSON.stringify(value);
}

export async function sha256(bytes) {
  if (!globalThis.crypto?.subtle) throw new Error(t("unprotected"));
  return hexadecimal(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));
}

/** SHA-256 of the canonical JSON of an agreement, without its own fingerprint. */
export async function fingerprintOf(agreement) {
  const { fingerprint: _own, ...contract } = agreement;
  return sha256(bytesOf(canonical(contract)));
}
