// What is sent, as bytes: mirrors `blurfit.messages.submissions`. Below, the shares of it for two
// databases, and how they are sealed.

import { bytesOf, fromHexadecimal, hexadecimal, joined } from "./bytes.js";
import { newSeed } from "./noise.js";

export const MEDIA_TYPE = "application/vnd.blurfit.submission.v2";
const MARK = [0x89, 0x42, 0x4c, 0x55, 0x52, 0x0a]; // "\x89BLUR\n"
const [VERSION, WHOLE, HEAD] = [1, 1, 64];

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

export const identifierOf = (bytes) => hexadecimal(bytes.subarray(8, 24));

// ---- Two shares of a blurred record, each of which alone is noise: mirrors
// `blurfit.contributor.blur` and `blurfit.messages.submissions`.
//
//   first database:  v + mask mod 2⁶⁴     second database:  the mask's 32-byte seed
//
// v are the blurred numbers in whole steps; the mask is the key stream of AES-256 in counter mode.
// Where the agreement asks for proofs, shares are longer, and made by `proving.js`.

const CODES = { masked: 3, seed: 4 };

/** The mask of a seed: so many whole numbers below 2⁶⁴. */
export async function maskOf(seed, width) {
  const key = await crypto.subtle.importKey("raw", seed, "AES-CTR", false, ["encrypt"]);
  const how = { name: "AES-CTR", counter: new Uint8Array(16), length: 128 };
  const stream = await crypto.subtle.encrypt(how, key, new Uint8Array(8 * width));
  const view = new DataView(stream);
  return Array.from({ length: width }, (_, i) => view.getBigUint64(8 * i, true));
}

/** The two messages for what `perturb` gave, in the order of the agreement's databases. */
export async function share(agreement, fingerprint, sent) {
  const { step } = agreement;
  const messages = agreement.proofs
    ? await proved(agreement, fingerprint, sent)
    : await shareWith(step, fingerprint, sent, newSeed());
  const sealed = (message, { key }, i) => (key === undefined ? message : seal(message, key, fingerprint, i + 1));
  return Promise.all(messages.map((message, i) => sealed(message, agreement.databases[i], i)));
}

/** Shares with a proof; `random` is there for tests alone. */
export async function proved(agreement, fingerprint, { identifier, numbers }, random = null) {
  const { provedShares } = await import("./proving.js");
  const steps = numbers.map((number) => whole(number / agreement.step));
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
  const masked = numbers.map((number, i) => BigInt.asUintN(64, whole(number / step) + mask[i]));
  const view = new DataView(seed.buffer, seed.byteOffset, seed.length);
  const words = [0, 8, 16, 24].map((place) => view.getBigUint64(place, true));
  return Object.entries({ masked, seed: words }).map(([part, all]) => {
    const bytes = head(CODES[part], identifier, fingerprint, all.length);
    const room = new DataView(bytes.buffer);
    all.forEach((word, i) => room.setBigUint64(HEAD + 8 * i, word, true));
    return bytes;
  });
}

function whole(steps) {
  if (!Number.isSafeInteger(steps)) throw new RangeError(`Expected whole steps, and got ${steps}.`);
  return BigInt(steps);
}

// ---- Shares encrypted to the database that they are for: HPKE (RFC 9180), base mode,
// DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM. Mirrors `blurfit.messages.submissions`.

const KEM = [75, 69, 77, 0x00, 0x20]; // "KEM", X25519
const SUITE = [72, 80, 75, 69, 0x00, 0x20, 0x00, 0x01, 0x00, 0x01]; // "HPKE", and the three
const NOTHING = new Uint8Array(0);

/** `place` is 1 for the first database and 2 for the second; `key` its public key in hexadecimal. */
export async function seal(message, key, fingerprint, place) {
  const to = fromHexadecimal(key);
  const ephemeral = await crypto.subtle.generateKey({ name: "X25519" }, true, ["deriveBits"]);
  const theirs = await crypto.subtle.importKey("raw", to, { name: "X25519" }, false, []);
  const shared = { name: "X25519", public: theirs };
  const dh = new Uint8Array(await crypto.subtle.deriveBits(shared, ephemeral.privateKey, 256));
  const enc = new Uint8Array(await crypto.subtle.exportKey("raw", ephemeral.publicKey));
  const prk = await extract(KEM, NOTHING, "eae_prk", dh);
  const secret = await expand(KEM, prk, "shared_secret", joined(enc, to), 32);
  const info = joined(bytesOf("blurfit share\n"), fromHexadecimal(fingerprint), [place]);
  const context = joined(
    [0],
    await extract(SUITE, NOTHING, "psk_id_hash", NOTHING),
    await extract(SUITE, NOTHING, "info_hash", info),
  );
  const schedule = await extract(SUITE, secret, "secret", NOTHING);
  const raw = await expand(SUITE, schedule, "key", context, 16);
  const iv = await expand(SUITE, schedule, "base_nonce", context, 12);
  const aes = await crypto.subtle.importKey("raw", raw, "AES-GCM", false, ["encrypt"]);
  const sealed = await crypto.subtle.encrypt({ name: "AES-GCM", iv }, aes, message);
  return joined(enc, new Uint8Array(sealed));
}

const extract = (suite, salt, label, ikm) =>
  hmac(salt.length ? salt : new Uint8Array(32), joined(bytesOf("HPKE-v1"), suite, bytesOf(label), ikm));

/** At most 32 bytes, so that one block of HKDF is enough. */
async function expand(suite, prk, label, info, length) {
  const whole = joined([0, length], bytesOf("HPKE-v1"), suite, bytesOf(label), info, [1]);
  return (await hmac(prk, whole)).slice(0, length);
}

async function hmac(key, data) {
  const how = { name: "HMAC", hash: "SHA-256" };
  const imported = await crypto.subtle.importKey("raw", key, how, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, data));
}
