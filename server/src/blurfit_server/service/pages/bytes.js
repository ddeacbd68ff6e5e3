// Bytes, and what this browser keeps: helpers that several scripts share.

export const bytesOf = (text) => new TextEncoder().encode(text);

export const hexadecimal = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

export const fromHexadecimal = (digits) =>
  Uint8Array.from(digits.match(/../g) ?? [], (two) => Number.parseInt(two, 16));

export function joined(...parts) {
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

// ---- `where` is localStorage or sessionStorage. Some browsers let a page keep nothing: nothing is there.

function attempted(act, otherwise) {
  try {
    return act();
  } catch { return otherwise; }
}

export const recall = (where, key) => attempted(() => globalThis[where].getItem(key), null);
export const keep = (where, key, text) => attempted(() => globalThis[where].setItem(key, text) ?? true, false);
export const erase = (where, key) => attempted(() => globalThis[where].removeItem(key), null);

/** A list that was kept as JSON; empty where there is none. */
export function listIn(where, key) {
  const found = attempted(() => JSON.parse(recall(where, key)), null);
  return Array.isArray(found) ? found : [];
}
