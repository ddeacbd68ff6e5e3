// The databases of an agreement: none, or two different ones at addresses that nobody can listen to,
// and numbers that can be shared. Mirrors `blurfit.agreement.databases`.

import { demand, exactly, isWord } from "./checks.js";
import { formOf } from "./forms.js";
import { noiseOf } from "./grid.js";

const LARGEST_NAME = 100;

export async function verifyDatabases(agreement) {
  const { databases, calibration, grid, proofs = false, wave } = agreement;
  demand(Array.isArray(databases), "databases", databases, "a list");
  demand(!proofs || databases.length === 2, "proofs", proofs, "left out without two databases");
  demand(!proofs || wave === null, "proofs", proofs, "left out in waves");
  if (databases.length === 0) return;
  const { mechanism } = calibration;
  demand(mechanism === "moment", "mechanism", mechanism, "moment");
  demand(databases.length === 2, "databases", databases.length, "two");
  for (const one of databases) {
    exactly(one, ["name", "url"], "a database", ["key"]);
    const isKey = !("key" in one) || /^[0-9a-f]{64}$/.test(one.key);
    demand(isKey, "key", one.key, "64 hexadecimal digits");
    demand(isName(one.name), "name", one.name, "who runs a database, on one line");
    demand(isOrigin(one.url), "url", one.url, "a protected address without a path");
  }
  const [first, second] = databases;
  const different = first.name !== second.name && first.url !== second.url;
  demand(different, "databases", `${first.name}, ${second.name}`, "different");
  const keys = "key" in first || "key" in second;
  const bothSealed = "key" in first && "key" in second && first.key !== second.key;
  demand(!keys || bothSealed, "keys", `${first.key}, ${second.key}`, "two, or none");
  const [noise, step] = [noiseOf(calibration), grid?.quadratic];
  const least = (noise / Math.SQRT2 / step) * (proofs ? Math.sqrt(calibration.quorum) : 1);
  demand(least >= 2 ** 10, "noise in steps", least, "at least 1024");
  const scale = Math.max(1, ...formOf(agreement).counts.map((count) => count ** -0.5));
  const largest = (scale * (calibration.reach.submission + 40 * noise)) / step + 1;
  demand(largest * 2 ** 32 < 2 ** 63, "largest number in steps", largest, "below 2^31");
  if (proofs) (await import("./proving.js")).provingOf(agreement);
}

/** Printable, in one line, and no longer than people read. */
function isName(name) {
  return (
    isWord(name) &&
    name === name.trim() &&
    !/[\p{C}\p{Zl}\p{Zp}]/u.test(name) &&
    !/\p{Zs}/u.test(name.replaceAll(" ", "")) &&
    [...name].length <= LARGEST_NAME
  );
}

function isOrigin(url) {
  try {
    const { origin, protocol, host, hostname } = new URL(url);
    if (!/^([a-z0-9.-]+|\[[0-9a-f:.]+\])(:[1-9][0-9]{0,4})?$/.test(host)) return false;
    const isHere = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
    return origin === url && (protocol === "https:" || (protocol === "http:" && isHere));
  } catch {
    return false;
  }
}
