// A vector of whole numbers as digits, and a proof that it is short: mirrors
// `blurfit.proofs.flp` and the prover of `blurfit.proofs.flp`, whose theorems it rests upon.
//
//   v_j ∈ [−4ᵈ/2, 4ᵈ/2)  for all j        and        Σ_j w_j·v_j² ≤ T

import { MODULUS, add, elements, inverseTransform, less, mul, powers, put, transform } from "./field64.js";

const DEGREE = 4;
const MOST_WIRES = 76;
const MOST_DIGITS = 15;

/** {weights, digits, ceiling}, whole numbers of any size but for the digits, with all that follows. */
export function shortVector(weights, digits, ceiling) {
  const length = weights.length;
  const half = 1n << BigInt(2 * digits - 1);
  const normDigits = Math.ceil(ceiling.toString(2).length / 2);
  const inputs = length * digits + normDigits;
  const pairs = (calls) => Math.ceil(inputs / calls) + Math.ceil(length / calls);
  let calls = 0;
  for (let some = 3; some < 4 * inputs; some = 2 * some + 1) {
    if (2 * pairs(some) > MOST_WIRES) continue;
    if (!calls || 2 * pairs(some) + DEGREE * some < 2 * pairs(calls) + DEGREE * calls) calls = some;
  }
  return {
    weights,
    digits,
    ceiling,
    length,
    half,
    normDigits,
    inputs,
    calls,
    arity: 2 * pairs(calls),
    proofLength: 2 * pairs(calls) + DEGREE * calls + 1,
    largest: weights.reduce((sum, one) => sum + one, 0n) * half * half,
  };
}

/** Whether what it says of whole numbers holds in the field: nothing can wrap around. */
export function provesSomething({ digits, ceiling, largest }) {
  const fits = ceiling > 0n && ceiling < MODULUS && largest < MODULUS && ceiling % 3n === 0n;
  return digits > 0 && digits <= MOST_DIGITS && fits;
}

/** log₂ of how likely one proof of what is not so is believed, at most. */
export function errorOf({ inputs, calls }) {
  const order = calls + 1;
  return Math.log2((inputs + 1) / 2 ** 64 + (DEGREE * order) / (2 ** 64 - 2 ** 32 - order)) + 1e-9;
}

/** The digits of a vector, and of its norm; one that is not short is refused. */
export function encode({ weights, digits, ceiling, length, half, normDigits, inputs }, vector) {
  const norm = vector.reduce((sum, v, j) => sum + weights[j] * v * v, 0n);
  if (vector.length !== length || vector.some((v) => v < -half || v >= half) || norm > ceiling) {
    throw new RangeError("The noise is longer than honest noise ever is. Clear the form and answer again.");
  }
  const found = elements(inputs);
  vector.forEach((v, j) => {
    for (let place = 0, rest = Number(v + half); place < digits; place++, rest >>>= 2) {
      found[2 * (digits * j + place)] = rest & 3;
    }
  });
  const most = 4n ** BigInt(normDigits - 1) - 1n;
  const last = (ceiling - most) / 3n; // the weight of the last digit
  const high = norm > most ? (norm - most + last - 1n) / last : 0n;
  const start = digits * length;
  let rest = norm - high * last;
  for (let place = 0; place < normDigits - 1; place++, rest >>= 2n) {
    found[2 * (start + place)] = Number(rest & 3n);
  }
  found[2 * (inputs - 1)] = Number(high);
  return found;
}

/** The proof for inputs, with the prover's and the joint randomness: seeds of the wires, and the
 * coefficients of the gadget polynomial. */
export function prove(circuit, inputs, random, joint) {
  const { calls, arity, proofLength, digits, length, weights, half } = circuit;
  const order = calls + 1;
  const points = DEGREE * order;
  const chunk = Math.ceil(circuit.inputs / calls);
  const numbers = numbersOf(inputs, length, digits, half);
  const scale = powers(joint, 1 + chunk * calls);
  const weighted = elements(length);
  weights.forEach((weight, j) => {
    put(weighted, j, weight);
    mul(weighted, j, weighted, j, numbers, j);
  });
  const gadget = elements(points);
  const [scaled, plain, term] = [elements(points), elements(points), elements(2)];
  for (let wire = 0; wire < arity; wire += 2) {
    scaled.fill(0);
    plain.fill(0);
    copy(scaled, 0, random, wire);
    copy(plain, 0, random, wire + 1);
    const isDigit = wire < 2 * chunk;
    const width = isDigit ? chunk : arity / 2 - chunk;
    const first = wire / 2 - (isDigit ? 0 : chunk);
    for (let call = 1, i = first; call <= calls && i < (isDigit ? circuit.inputs : length); call++) {
      if (isDigit) mul(scaled, call, inputs, i, scale, i + 1);
      else copy(scaled, call, weighted, i);
      copy(plain, call, isDigit ? inputs : numbers, i);
      i += width;
    }
    for (const values of [scaled, plain]) {
      inverseTransform(values.subarray(0, 2 * order));
      transform(values);
    }
    for (let k = 0; k < points; k++) {
      mul(term, 0, scaled, k, plain, k); // y·x of numbers
      if (isDigit) {
        copy(term, 0, scaled, k);
        for (const digit of [1, 2, 3]) {
          less(term, 1, plain, k, digit);
          mul(term, 0, term, 0, term, 1); // y·(x − 1)·(x − 2)·(x − 3)
        }
      }
      add(gadget, k, gadget, k, term, 0);
    }
  }
  inverseTransform(gadget);
  const proof = elements(proofLength);
  proof.set(random);
  proof.set(gadget.subarray(0, 2 * (proofLength - arity)), 2 * arity);
  return proof;
}

/** The numbers of a vector from its digits. */
function numbersOf(inputs, length, digits, half) {
  const found = elements(length);
  for (let j = 0; j < length; j++) {
    let number = -half;
    for (let place = 0; place < digits; place++) {
      number += BigInt(inputs[2 * (digits * j + place)]) << BigInt(2 * place);
    }
    put(found, j, number);
  }
  return found;
}

function copy(out, o, a, i) {
  out[2 * o] = a[2 * i];
  out[2 * o + 1] = a[2 * i + 1];
}
