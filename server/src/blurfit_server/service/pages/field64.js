// The field of 2⁶⁴ − 2³² + 1 elements: mirrors `blurfit.proofs.field`. Elements are kept in a
// Uint32Array, the low word of each before the high, so that its bytes are those that are sent; and
// everything is in numbers below 2⁵³, which is many times as fast as whole numbers of any size.
//
//   2⁶⁴ ≡ 2³² − 1,   2⁹⁶ ≡ −1
//
// An operation takes (out, o, a, i, …): out_o becomes what is made of a_i, ….

export const MODULUS = 2n ** 64n - 2n ** 32n + 1n;
const WORD = 2 ** 32;
const ROOT = power(7n, 2n ** 32n - 1n); // of unity, of order 2³²

export const elements = (count) => new Uint32Array(2 * count);

/** A whole number of any size, positive or negative, as an element. */
export function put(out, o, value) {
  const element = ((value % MODULUS) + MODULUS) % MODULUS;
  out[2 * o] = Number(element & 0xffffffffn);
  out[2 * o + 1] = Number(element >> 32n);
}

export const isCanonical = (low, high) => high < WORD - 1 || low === 0;

export function add(out, o, a, i, b, j) {
  reduce(out, o, a[2 * i] + b[2 * j], a[2 * i + 1] + b[2 * j + 1]);
}

export function sub(out, o, a, i, b, j) {
  reduce(out, o, a[2 * i] - b[2 * j], a[2 * i + 1] - b[2 * j + 1]);
}

/** a_i − b for a whole number b below 2³². */
export function less(out, o, a, i, b) {
  reduce(out, o, a[2 * i] - b, a[2 * i + 1]);
}

/** With x = x₃·2⁹⁶ + x₂·2⁶⁴ + x₁·2³² + x₀: the product is x₀ − x₂ − x₃ + (x₁ + x₂)·2³². */
export function mul(out, o, a, i, b, j) {
  const aLow = a[2 * i];
  const aHigh = a[2 * i + 1];
  const bLow = b[2 * j];
  const bHigh = b[2 * j + 1];
  const x0 = Math.imul(aLow, bLow) >>> 0;
  let x1 = upper(aLow, bLow) + (Math.imul(aLow, bHigh) >>> 0) + (Math.imul(aHigh, bLow) >>> 0);
  let over = Math.floor(x1 / WORD);
  x1 -= over * WORD;
  let x2 = upper(aLow, bHigh) + upper(aHigh, bLow) + (Math.imul(aHigh, bHigh) >>> 0) + over;
  over = Math.floor(x2 / WORD);
  x2 -= over * WORD;
  reduce(out, o, x0 - x2 - (upper(aHigh, bHigh) + over), x1 + x2);
}

/** The upper half of a product of two words. */
function upper(a, b) {
  const a0 = a & 0xffff;
  const a1 = a >>> 16;
  const b0 = b & 0xffff;
  const b1 = b >>> 16;
  const middle = a1 * b0 + ((a0 * b0) >>> 16);
  const other = a0 * b1 + (middle & 0xffff);
  return a1 * b1 + (middle >>> 16) + (other >>> 16);
}

/** low + high·2³², each of them between −2³⁴ and 2³⁴, as the one form of an element. */
function reduce(out, o, low, high) {
  let carry = Math.floor(low / WORD);
  low -= carry * WORD;
  high += carry;
  while (high < 0 || high >= WORD) {
    carry = Math.floor(high / WORD);
    high += carry - carry * WORD;
    low -= carry;
    carry = Math.floor(low / WORD);
    low -= carry * WORD;
    high += carry;
  }
  const isBeyond = !isCanonical(low, high);
  out[2 * o] = isBeyond ? low - 1 : low;
  out[2 * o + 1] = isBeyond ? 0 : high;
}

/** Σ_c values_c·ωᵏᶜ for every k, in place; how many there are is a power of two. */
export function transform(values) {
  butterflies(values, false);
}

/** From a polynomial's values at the roots of unity to its coefficients, in place. */
export function inverseTransform(values) {
  butterflies(values, true);
  const size = values.length / 2;
  const share = elements(1);
  put(share, 0, power(BigInt(size), MODULUS - 2n));
  for (let k = 0; k < size; k++) mul(values, k, values, k, share, 0);
}

const high = elements(1);

function butterflies(values, isInverse) {
  const size = values.length / 2;
  reorder(values, size);
  for (let half = 1; half < size; half *= 2) {
    const factors = twiddles(2 * half, isInverse);
    for (let start = 0; start < size; start += 2 * half) {
      for (let k = 0; k < half; k++) {
        const one = start + k;
        const other = one + half;
        mul(high, 0, values, other, factors, k);
        sub(values, other, values, one, high, 0);
        add(values, one, values, one, high, 0);
      }
    }
  }
}

function reorder(values, size) {
  for (let k = 1, reversed = 0; k < size; k++) {
    let bit = size >> 1;
    for (; reversed & bit; bit >>= 1) reversed ^= bit;
    reversed ^= bit;
    if (k >= reversed) continue;
    for (const word of [0, 1]) {
      const [one, other] = [2 * k + word, 2 * reversed + word];
      [values[one], values[other]] = [values[other], values[one]];
    }
  }
}

const known = new Map();

/** 1, ω, ω², … for the root of unity of an order, or its inverse. */
function twiddles(order, isInverse) {
  const key = isInverse ? -order : order;
  if (!known.has(key)) {
    const steps = 2n ** 32n / BigInt(order);
    const root = elements(1);
    put(root, 0, power(ROOT, isInverse ? 2n ** 32n - steps : steps));
    known.set(key, powers(root, order / 2));
  }
  return known.get(key);
}

/** base⁰ … base^{count−1}. */
export function powers(base, count) {
  const found = elements(count);
  found[0] = 1;
  for (let k = 1; k < count; k++) mul(found, k, found, k - 1, base, 0);
  return found;
}

function power(base, exponent) {
  let [found, square] = [1n, base];
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if (rest & 1n) found = (found * square) % MODULUS;
    square = (square * square) % MODULUS;
  }
  return found;
}
