// Shares encrypted to the database that they are for: HPKE (RFC 9180), base mode,
// DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM. Mirrors `blurfit.messages.shares`.

const KEM = [75, 69, 77, 0x00, 0x20]; // "KEM", X25519
const SUITE = [72, 80, 75, 69, 0x00, 0x20, 0x00, 0x01, 0x00, 0x01]; // "HPKE", and the three
const NOTHING = new Uint8Array(0);
const text = (words) => new TextEncoder().encode(words);

/** `place` is 1 for the first database and 2 for the second; `key` its public key in hexadecimal. */
export async function seal(message, key, fingerprint, place) {
  const to = fromHex(key);
  const ephemeral = await crypto.subtle.generateKey({ name: "X25519" }, true, ["deriveBits"]);
  const theirs = await crypto.subtle.importKey("raw", to, { name: "X25519" }, false, []);
  const shared = { name: "X25519", public: theirs };
  const dh = new Uint8Array(await crypto.subtle.deriveBits(shared, ephemeral.privateKey, 256));
  const enc = new Uint8Array(await crypto.subtle.exportKey("raw", ephemeral.publicKey));
  const prk = await extract(KEM, NOTHING, "eae_prk", dh);
  const secret = await expand(KEM, prk, "shared_secret", joined(enc, to), 32);
  const info = joined(text("blurfit share\n"), fromHex(fingerprint), [place]);
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
  hmac(salt.length ? salt : new Uint8Array(32), joined(text("HPKE-v1"), suite, text(label), ikm));

/** At most 32 bytes, so that one block of HKDF is enough. */
async function expand(suite, prk, label, info, length) {
  const whole = joined([0, length], text("HPKE-v1"), suite, text(label), info, [1]);
  return (await hmac(prk, whole)).slice(0, length);
}

async function hmac(key, data) {
  const how = { name: "HMAC", hash: "SHA-256" };
  const imported = await crypto.subtle.importKey("raw", key, how, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, data));
}

function joined(...parts) {
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

function fromHex(digits) {
  return Uint8Array.from(digits.match(/../g), (two) => parseInt(two, 16));
}
