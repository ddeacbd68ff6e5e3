// The only source of noise: the exact discrete Gaussian on whole steps, from the operating
// system's randomness (Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential
// Privacy", 2020). Everything is in whole numbers of any size, so no rounding can tell what was
// blurred. There is no seed, on purpose.

const pool = new Uint32Array(4096);
let used = pool.length;

/** 32 random bits. Each is used once, and forgotten. */
function word() {
  if (used === pool.length) {
    crypto.getRandomValues(pool);
    used = 0;
  }
  const drawn = pool[used];
  pool[used++] = 0;
  return drawn;
}

/** A whole number k with probability ∝ exp(−k²/(2s²)), s = a/b (their Algorithm 3). */
export function discreteGaussian(a, b) {
  const t = a / b + 1n;
  const [centre, unit, denominator] = [a * a, t * b * b, 2n * (a * b * t) ** 2n];
  for (;;) {
    const k = discreteLaplace(t);
    const distance = (k < 0n ? -k : k) * unit - centre;
    if (happens(distance * distance, denominator)) return k;
  }
}

/** The number as a fraction of whole numbers, exactly. */
export function fractionOf(number) {
  if (!(number > 0) || !Number.isFinite(number)) {
    throw new RangeError(`Expected a positive number, and got ${number}.`);
  }
  let denominator = 1n;
  while (!Number.isInteger(number)) {
    number *= 2;
    denominator *= 2n;
  }
  return [BigInt(number), denominator];
}

/** A whole number from 0 to 2^bits − 1, each as likely as the others. */
export function uniformBits(bits) {
  let drawn = 0n;
  for (let left = bits; left > 0; left -= 32) {
    const taken = Math.min(left, 32);
    drawn = (drawn << BigInt(taken)) | (BigInt(word()) >> BigInt(32 - taken));
  }
  return drawn;
}

/** A submission's name: 128 random bits, which say nothing of anyone. */
export const newIdentifier = () => crypto.getRandomValues(new Uint8Array(16));

/** The seed of a mask, from which whoever has it can make the mask: 256 random bits, used once; or
 * several of them, one behind the other, for a proof. */
export const newSeed = (count = 1) => crypto.getRandomValues(new Uint8Array(32 * count));

/** k with probability ∝ exp(−|k|/t) (Algorithm 2): |k| = rest + t·quotient, then a sign. */
function discreteLaplace(t) {
  for (;;) {
    const rest = below(t);
    if (!happensBelowOne(rest, t)) continue;
    let quotient = 0n;
    while (happensBelowOne(1n, 1n)) quotient += 1n;
    const size = rest + t * quotient;
    const isNegative = word() & 1;
    if (!isNegative) return size;
    if (size) return -size; // zero must not be counted twice
  }
}

/** True with probability exp(−a/b) (Algorithm 1): ⌊a/b⌋ times exp(−1), then the rest. */
function happens(a, b) {
  for (let whole = a / b; whole > 0n; whole -= 1n) {
    if (!happensBelowOne(1n, 1n)) return false;
  }
  return happensBelowOne(a % b, b);
}

/** True with probability exp(−x), x = a/b ≤ 1: the first of the trials x, x/2, x/3, … to fail is
 * an odd one. */
function happensBelowOne(a, b) {
  let isOdd = true;
  for (let k = b; chance(a, k); k += b) isOdd = !isOdd;
  return isOdd;
}

/** True with probability a/b, exactly: random bits are compared with the digits of a/b, 32 at a
 * time, as far as it takes to tell. */
function chance(a, b) {
  for (;;) {
    a <<= 32n;
    const digits = a / b;
    const drawn = BigInt(word());
    if (drawn !== digits) return drawn < digits;
    a -= digits * b;
    if (!a) return false;
  }
}

/** 0, …, n − 1, each as likely as the others: what does not fit is drawn again. */
function below(n) {
  const bits = (n - 1n).toString(2).length;
  for (;;) {
    const drawn = uniformBits(bits);
    if (drawn < n) return drawn;
  }
}
