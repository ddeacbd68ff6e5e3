// TurboSHAKE128 (RFC 9861), as a stream of as many bytes as are read: what the proofs' random
// numbers come from. The state is 25 lanes of 64 bits, the low word of each before the high.

const RATE = 168;
const ROUNDS = [
  [0x8000808b, 0x00000000], [0x0000008b, 0x80000000], [0x00008089, 0x80000000],
  [0x00008003, 0x80000000], [0x00008002, 0x80000000], [0x00000080, 0x80000000],
  [0x0000800a, 0x00000000], [0x8000000a, 0x80000000], [0x80008081, 0x80000000],
  [0x00008080, 0x80000000], [0x80000001, 0x00000000], [0x80008008, 0x80000000],
];
// where each lane goes, and how far it is turned on its way
const PLACES = [10, 7, 11, 17, 18, 3, 5, 16, 8, 21, 24, 4, 15, 23, 19, 13, 12, 2, 20, 14, 22, 9, 6, 1];
const TURNS = [1, 3, 6, 10, 15, 21, 28, 36, 45, 55, 2, 14, 27, 41, 56, 8, 25, 43, 62, 18, 39, 61, 20, 44];

/** A function that gives the next so many bytes of what a message and its domain expand to. */
export function stream(message, domain) {
  const state = new Uint32Array(50);
  const bytes = new Uint8Array(state.buffer); // little-endian, as every browser's machine is
  let at = 0;
  const absorb = (byte) => {
    bytes[at++] ^= byte;
    if (at === RATE) {
      permute(state);
      at = 0;
    }
  };
  for (const byte of message) absorb(byte);
  bytes[at] ^= domain;
  bytes[RATE - 1] ^= 0x80;
  permute(state);
  at = 0;
  return (count) => {
    const found = new Uint8Array(count);
    for (let filled = 0; filled < count; ) {
      if (at === RATE) {
        permute(state);
        at = 0;
      }
      const some = Math.min(RATE - at, count - filled);
      found.set(bytes.subarray(at, at + some), filled);
      at += some;
      filled += some;
    }
    return found;
  };
}

const column = new Uint32Array(10);
const row = new Uint32Array(10);

/** Keccak-p[1600, 12]. */
function permute(state) {
  for (const [low, high] of ROUNDS) {
    for (let x = 0; x < 10; x++) {
      column[x] = state[x] ^ state[x + 10] ^ state[x + 20] ^ state[x + 30] ^ state[x + 40];
    }
    for (let x = 0; x < 10; x += 2) {
      const before = (x + 8) % 10;
      const after = (x + 2) % 10;
      const one = column[before] ^ ((column[after] << 1) | (column[after + 1] >>> 31));
      const other = column[before + 1] ^ ((column[after + 1] << 1) | (column[after] >>> 31));
      for (let y = x; y < 50; y += 10) {
        state[y] ^= one;
        state[y + 1] ^= other;
      }
    }
    let lowWord = state[2];
    let highWord = state[3];
    for (let i = 0; i < 24; i++) {
      const place = 2 * PLACES[i];
      const by = TURNS[i] % 32; // never 0
      const turned = (lowWord << by) | (highWord >>> (32 - by));
      const other = (highWord << by) | (lowWord >>> (32 - by));
      lowWord = state[place];
      highWord = state[place + 1];
      state[place] = TURNS[i] < 32 ? turned : other;
      state[place + 1] = TURNS[i] < 32 ? other : turned;
    }
    for (let y = 0; y < 50; y += 10) {
      for (let x = 0; x < 10; x++) row[x] = state[y + x];
      for (let x = 0; x < 10; x++) state[y + x] ^= ~row[(x + 2) % 10] & row[(x + 4) % 10];
    }
    state[0] ^= low;
    state[1] ^= high;
  }
}
