// Two shares of a blurred record, each of which alone is noise: mirrors `blurfit.contributor.share`
// and `blurfit.messages.masks`.
//
//   first database:  v + mask mod 2⁶⁴     second database:  the mask's 32-byte seed
//
// v are the blurred numbers in whole steps; the mask is the key stream of AES-256 in counter mode.

import { newSeed } from "./noise.js";
import { fromHexadecimal, head } from "./submission.js";

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
  return shareWith(agreement.grid, fingerprint, sent, newSeed());
}

export async function shareWith(grid, fingerprint, { identifier, quadratic, linear }, seed) {
  const steps = [
    ...quadratic.map((number) => whole(number / grid.quadratic)),
    ...linear.map((number) => whole(number / grid.linear)),
  ];
  const mask = await maskOf(seed, steps.length);
  const masked = steps.map((step, i) => BigInt.asUintN(64, step + mask[i]));
  const view = new DataView(seed.buffer, seed.byteOffset, seed.length);
  const words = [0, 8, 16, 24].map((place) => view.getBigUint64(place, true));
  const sizes = [quadratic.length, linear.length];
  return [
    message("masked", fingerprint, identifier, sizes, masked),
    message("seed", fingerprint, identifier, [words.length, 0], words),
  ];
}

function message(part, fingerprint, identifier, sizes, words) {
  const bytes = head(CODES[part], identifier, fromHexadecimal(fingerprint), sizes);
  const view = new DataView(bytes.buffer);
  words.forEach((word, i) => view.setBigUint64(bytes.length - 8 * (words.length - i), word, true));
  return bytes;
}

function whole(steps) {
  if (!Number.isSafeInteger(steps)) throw new RangeError(`Expected whole steps, and got ${steps}.`);
  return BigInt(steps);
}
