// What is sent, as bytes: mirrors `blurfit.messages.submissions` and `blurfit.messages.submissions`.

import { hexadecimal } from "./canonical.js";

export const MEDIA_TYPE = "application/vnd.blurfit.submission.v2";
const MARK = [0x89, 0x42, 0x4c, 0x55, 0x52, 0x0a]; // "\x89BLUR\n"
const VERSION = 1;
const WHOLE = 1;
export const HEAD = 64;

/** Room for so many numbers of 8 bytes, behind what every message begins with. */
export function head(code, identifier, fingerprint, width) {
  const bytes = new Uint8Array(HEAD + 8 * width);
  bytes.set([...MARK, VERSION, code]);
  bytes.set(identifier, 8);
  bytes.set(fromHexadecimal(fingerprint), 24);
  new DataView(bytes.buffer).setBigUint64(56, BigInt(width), true);
  return bytes;
}

export function toBytes(fingerprint, { identifier, numbers }) {
  const bytes = head(WHOLE, identifier, fingerprint, numbers.length);
  const view = new DataView(bytes.buffer);
  numbers.forEach((number, i) => {
    if (!Number.isFinite(number))
      throw new RangeError(`Expected finite numbers, and got ${number}.`);
    view.setFloat64(HEAD + 8 * i, number, true);
  });
  return bytes;
}

export function identifierOf(bytes) {
  return hexadecimal(bytes.subarray(8, 24));
}

function fromHexadecimal(text) {
  return Uint8Array.from(text.match(/../g), (pair) => Number.parseInt(pair, 16));
}
