// Who signed what, and what proves that something is one's own: mirrors `blurfit.messages.signing`
// and `blurfit.messages.submissions`. Ed25519 by the browser itself; one that has none cannot check.

import { bytesOf, fromHexadecimal, hexadecimal, joined } from "./bytes.js";
import { canonical, demand, isDigest, sha256 } from "./checks.js";

/** {secret, identifier}: a secret of 256 random bits, and the identifier that follows from it. */
export async function newName() {
  const secret = crypto.getRandomValues(new Uint8Array(32));
  const own = await hashed(bytesOf("blurfit secret\n"), secret, new Uint8Array(8));
  const identifier = (await hashed(bytesOf("blurfit identifier\n"), own)).slice(0, 16);
  return { secret: hexadecimal(secret), identifier };
}

/** What withdraws the one submission of a receipt. */
export async function ownSecret(secret) {
  const own = await hashed(bytesOf("blurfit secret\n"), fromHexadecimal(secret), new Uint8Array(8));
  return hexadecimal(own);
}

/** Whether these bytes are signed by this key: true, false, or null where the browser cannot tell. */
export async function isSigned(message, key, signature) {
  let imported;
  try {
    imported = await crypto.subtle.importKey("raw", fromHexadecimal(key), "Ed25519", false, ["verify"]);
  } catch { return null; }
  if (!/^[0-9a-f]{128}$/.test(signature ?? "")) return false;
  return crypto.subtle.verify("Ed25519", imported, fromHexadecimal(signature), message);
}

/** What is signed about one submission; `place` is 0 for the only database, else 1 or 2. */
export async function aboutSubmission(deed, fingerprint, place, identifier) {
  return joined(
    bytesOf(`blurfit ${deed}\n`),
    fromHexadecimal(fingerprint),
    [place, 0, 0, 0, 0, 0, 0, 0, 1],
    await hashed(fromHexadecimal(identifier)),
  );
}

/** Who signed a published file: [{name, key, isSigned}] for each key that its agreement names. */
export async function signersOf(document) {
  const { signatures = [], ...rest } = document;
  const message = bytesOf(`blurfit release\n${canonical(rest)}`);
  const { signing_keys: keys = [], databases } = document.agreement;
  return Promise.all(
    keys.map(async (key, place) => {
      const own = signatures.find((one) => one.key === key)?.signature;
      return { name: databases[place]?.name ?? null, key, isSigned: await isSigned(message, key, own) };
    }),
  );
}

/** Whether something that follows from a release, such as a table, is signed with a key of the agreement;
 * null where it names none, or the browser cannot tell. */
export async function isOwn({ signatures = [], ...rest }, { signing_keys: keys = [] }) {
  if (!keys.length) return null;
  const one = signatures.find(({ key }) => keys.includes(key));
  return isSigned(bytesOf(`blurfit release\n${canonical(rest)}`), one?.key ?? keys[0], one?.signature);
}

/** Refuse (throw NotCertified) keys that are none, or are not one for each database. */
export function verifyKeys({ signing_keys: keys, databases }) {
  if (keys === undefined) return;
  const wanted = Math.max(1, databases.length);
  const isFine =
    Array.isArray(keys) && keys.length === wanted && new Set(keys).size === wanted && keys.every(isDigest);
  demand(isFine, "signing_keys", JSON.stringify(keys));
}

const hashed = async (...parts) => fromHexadecimal(await sha256(joined(...parts)));

