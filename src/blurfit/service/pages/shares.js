// Two shares of a blurred record, each of which alone is noise: mirrors `blurfit.contributor.blur`
// and `blurfit.messages.shares`.
//
//   first database:  v + mask mod 2⁶⁴     second database:  the mask's 32-byte seed
//
// v are the blurred numbers in whole steps; the mask is the key stream of AES-256 in counter mode.
// Where the agreement asks for proofs, shares are longer, and made by `proving.js`.

import { newSeed } from "./noise.js";
import { seal } from "./seal.js";
import { HEAD, head } from "./submission.js";

const CODES = { masked: 3, seed: 4 };

/** The mask of a seed: so many whole numbers below 2⁶⁴. */
export async function maskOf(seed, width) {
  const key = await crypto.subtle.importKey("raw", seed, "AES-CTR", false, ["encrypt"]);
  const counter = new Uint8Array(16);
  const nothing = new Uint8Array(8 * width);
  const stream = await crypto.subtle.encrypt(
    { name: "AES-CTR", counter, length: 128 },
    key,
    nothing,
  );
  const view = new DataView(stream);
  return Array.from({ length: width }, (_, i) => view.getBigUint64(8 * i, true));
}

/** The two messages for what `perturb` gave, in the order of the agreement's databases. */
export async function share(agreement, fingerprint, sent) {
  const step = agreement.grid.quadratic;
  const messages = agreement.proofs
    ? await proved(agreement, fingerprint, sent)
    : await shareWith(step, fingerprint, sent, newSeed());
  const sealed = messages.map((message, i) => {
    const { key } = agreement.databases[i];
    return key === undefined ? message : seal(message, key, fingerprint, i + 1);
  });
  return Promise.all(sealed);
}

/** Shares with a proof; `random` is there for tests alone. */
export async function proved(agreement, fingerprint, { identifier, numbers }, random = null) {
  const { provedShares } = await import("./proving.js");
  const steps = numbers.map((number) => whole(number / agreement.grid.quadratic));
  const drawn = random ?? newSeed(4);
  const both = provedShares(agreement, fingerprint, { identifier, steps }, drawn);
  return ["masked", "seed"].map((part, i) => {
    const bytes = head(CODES[part], identifier, fingerprint, both[i].length / 8);
    bytes.set(both[i], HEAD);
    return bytes;
  });
}

export async function shareWith(step, fingerprint, { identifier, numbers }, seed) {
  const mask = await maskOf(seed, numbers.length);
  const masked = numbers.map((number, i) => BigInt.asUintN(64, whole(number / step) + mask[i]),
  );
  const view = new DataView(seed.buffer, seed.byteOffset, seed.length);
  const words = [0, 8, 16, 24].map((place) => view.getBigUint64(place, true));
  return [
    message("masked", fingerprint, identifier, masked),
    message("seed", fingerprint, identifier, words),
  ];
}

function message(part, fingerprint, identifier, words) {
  const bytes = head(CODES[part], identifier, fingerprint, words.length);
  const view = new DataView(bytes.buffer);
  words.forEach((word, i) => view.setBigUint64(HEAD + 8 * i, word, true));
  return bytes;
}

function whole(steps) {
  if (!Number.isSafeInteger(steps)) throw new RangeError(`Expected whole steps, and got ${steps}.`);
  return BigInt(steps);
}
