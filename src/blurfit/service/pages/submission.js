// What is sent, as bytes: mirrors `blurfit.messages.submissions`.

import { hexadecimal } from "./canonical.js";

export const MEDIA_TYPE = "application/vnd.blurfit.submission";
const MARK = [0x89, 0x42, 0x4c, 0x55, 0x52, 0x0a]; // "\x89BLUR\n"
const VERSION = 1;
const CODES = { input: 1, moment: 2 };
const HEAD = 64;

/** Room for so many numbers of 8 bytes, behind what every message begins with. */
export function head(code, identifier, fingerprint, [k, d]) {
  const bytes = new Uint8Array(HEAD + 8 * (k + d));
  const view = new DataView(bytes.buffer);
  bytes.set([...MARK, VERSION, code]);
  bytes.set(identifier, 8);
  bytes.set(fingerprint, 24);
  view.setUint32(56, k, true);
  view.setUint32(60, d, true);
  return bytes;
}

export function toBytes(fingerprint, mechanism, { identifier, quadratic, linear }) {
  const sizes = [quadratic.length, linear.length];
  const bytes = head(CODES[mechanism], identifier, fromHexadecimal(fingerprint), sizes);
  const view = new DataView(bytes.buffer);
  [...quadratic, ...linear].forEach((number, i) => {
    if (!Number.isFinite(number))
      throw new RangeError(`Expected finite numbers, and got ${number}.`);
    view.setFloat64(HEAD + 8 * i, number, true);
  });
  return bytes;
}

export function identifierOf(bytes) {
  return hexadecimal(bytes.subarray(8, 24));
}

export function fromHexadecimal(text) {
  return Uint8Array.from(text.match(/../g), (pair) => Number.parseInt(pair, 16));
}
