// Canonical JSON (RFC 8785) and the fingerprint of an agreement.
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
  if (!globalThis.crypto?.subtle) {
    throw new Error(
      "This page came over an unprotected connection, so nobody can tell who wrote it. " +
        "Open it by an address that begins with https://.",
    );
  }
  return hexadecimal(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));
}

/** SHA-256 of the canonical JSON of an agreement, without its own fingerprint. */
export async function fingerprintOf(agreement) {
  const { fingerprint: _own, ...contract } = agreement;
  return sha256(new TextEncoder().encode(canonical(contract)));
}

export function hexadecimal(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
