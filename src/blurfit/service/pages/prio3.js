// Shares of a short vector with proofs for two databases: mirrors `blurfit.proofs.prio3` and
// `blurfit.proofs.prio3`, in the bytes of the draft on VDAFs.

import { elements, isCanonical, sub } from "./field64.js";
import { encode, prove } from "./short.js";
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

function joined(...parts) {
  const found = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    found.set(part, at);
    at += part.length;
  }
  return found;
}
