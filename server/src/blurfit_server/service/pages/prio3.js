// Shares of a short vector with proofs for two databases: mirrors `blurfit.proofs.prio3`, in the bytes
// of the draft on VDAFs.

import { joined } from "./bytes.js";
import {
  add, elements, inverseTransform, isCanonical, less, MODULUS, mul, powers, put, sub, transform,
} from "./field64.js";
import { t } from "./language.js";
import { stream } from "./turboshake.js";

const SEED = 32;
const [LEADER, HELPER] = [0, 1];
const [MEASUREMENT, PROOF, JOINT, PROVE, , JOINT_SEED, PART] = [1, 2, 3, 4, 5, 6, 7]; // usages

/** {circuit, proofs, algorithm, context}; `random` are four seeds: the helper's, its blind, the
 * leader's blind and the prover's. Gives the bytes of the leader's share and of the helper's. */
export function shard(prio3, vector, nonce, random) {
  const { circuit, proofs } = prio3;
  const [seed, helperBlind, leaderBlind, proverSeed] = [0, 1, 2, 3].map((place) =>
    random.subarray(SEED * place, SEED * (place + 1)),
  );
  const inputs = encode(circuit, vector);
  const mask = elementsOf(prio3, MEASUREMENT, seed, [HELPER], circuit.inputs);
  const leader = difference(inputs, mask);
  const parts = [
    seedOf(prio3, PART, leaderBlind, [LEADER, ...nonce, ...bytesOf(leader)]),
    seedOf(prio3, PART, helperBlind, [HELPER, ...nonce, ...bytesOf(mask)]),
  ];
  const both = [...parts[LEADER], ...parts[HELPER]];
  const jointSeed = seedOf(prio3, JOINT_SEED, new Uint8Array(SEED), both);
  const joint = elementsOf(prio3, JOINT, jointSeed, [proofs], proofs);
  const drawn = elementsOf(prio3, PROVE, proverSeed, [proofs], proofs * circuit.arity);
  const proved = elements(proofs * circuit.proofLength);
  for (let number = 0; number < proofs; number++) {
    const own = drawn.subarray(2 * circuit.arity * number, 2 * circuit.arity * (number + 1));
    const proof = prove(circuit, inputs, own, joint.subarray(2 * number, 2 * number + 2));
    proved.set(proof, 2 * circuit.proofLength * number);
  }
  const other = elementsOf(prio3, PROOF, seed, [proofs, HELPER], proofs * circuit.proofLength);
  return [
    joined(bytesOf(leader), bytesOf(difference(proved, other)), leaderBlind, parts[HELPER]),
    joined(seed, helperBlind, parts[LEADER]),
  ];
}

function streamOf({ algorithm, context }, usage, seed, binder) {
  const tag = [12, 0, ...bigEndian(algorithm, 4), ...bigEndian(usage, 2), ...context];
  return stream([tag.length & 255, tag.length >> 8, ...tag, seed.length, ...seed, ...binder], 1);
}

const seedOf = (prio3, usage, seed, binder) => streamOf(prio3, usage, seed, binder)(SEED);

/** So many elements; what is none, one in 2³², is passed over. */
function elementsOf(prio3, usage, seed, binder, count) {
  const read = streamOf(prio3, usage, seed, binder);
  const found = elements(count);
  for (let filled = 0; filled < count; ) {
    const words = new Uint32Array(read(8 * (count - filled)).buffer);
    for (let i = 0; i < words.length; i += 2) {
      if (isCanonical(words[i], words[i + 1])) found.set(words.subarray(i, i + 2), 2 * filled++);
    }
  }
  return found;
}

function difference(one, other) {
  const found = new Uint32Array(one.length);
  for (let i = 0; i < one.length / 2; i++) sub(found, i, one, i, other, i);
  return found;
}

const bytesOf = (words) => new Uint8Array(words.buffer, words.byteOffset, words.byteLength);

const bigEndian = (value, count) =>
  Array.from({ length: count }, (_, i) => (value / 256 ** (count - 1 - i)) & 255);

// ---- A vector of whole numbers as digits, and a proof that it is short: mirrors `blurfit.proofs.prio3`,
// whose theorems it rests upon.
//
//   v_j ∈ [−4ᵈ/2, 4ᵈ/2)  for all j        and        Σ_j w_j·v_j² ≤ T

const [DEGREE, MOST_WIRES, MOST_DIGITS] = [4, 76, 15];

/** {weights, digits, ceiling}, whole numbers of any size but for the digits, with all that follows. */
export function shortVector(weights, digits, ceiling) {
  const [length, half] = [weights.length, 1n << BigInt(2 * digits - 1)];
  const normDigits = Math.ceil(ceiling.toString(2).length / 2);
  const inputs = length * digits + normDigits;
  const pairs = (calls) => Math.ceil(inputs / calls) + Math.ceil(length / calls);
  let calls = 0;
  for (let some = 3; some < 4 * inputs; some = 2 * some + 1) {
    if (2 * pairs(some) > MOST_WIRES) continue;
    if (!calls || 2 * pairs(some) + DEGREE * some < 2 * pairs(calls) + DEGREE * calls) calls = some;
  }
  return {
    ...{ weights, digits, ceiling, length, half, normDigits, inputs, calls },
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
    throw new RangeError(t("refused.long"));
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
  const [order, chunk] = [calls + 1, Math.ceil(circuit.inputs / calls)];
  const points = DEGREE * order;
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
