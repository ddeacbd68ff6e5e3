// QR codes (ISO/IEC 18004) of links: bytes, error correction M, versions 1 to 20. An invitation must
// not leave the page before it is given out, so its picture is made here.

const CORRECTION = [10, 16, 26, 18, 24, 16, 18, 22, 22, 26, 30, 22, 22, 24, 24, 28, 28, 26, 26, 26];
const BLOCKS = [1, 1, 1, 2, 2, 4, 4, 4, 5, 5, 5, 8, 9, 9, 10, 10, 11, 13, 14, 16];
const MASKS = [
  (x, y) => (x + y) % 2,
  (_x, y) => y % 2,
  (x) => x % 3,
  (x, y) => (x + y) % 3,
  (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2,
  (x, y) => ((x * y) % 2) + ((x * y) % 3),
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2,
  (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2,
];

/** A picture of a code, as text: one path, and the quiet zone of four modules around it. */
export function qrCode(text) {
  const { matrix } = qrMatrix(text);
  const dots = matrix.flatMap((row, y) => row.flatMap((dark, x) => (dark ? [`M${x} ${y}h1v1h-1z`] : [])));
  const size = matrix.length + 8;
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="-4 -4 ${size} ${size}">` +
    `<path fill="#fff" d="M-4-4h${size}v${size}h-${size}z"/><path d="${dots.join("")}"/></svg>`
  );
}

/** {matrix, version, mask}: rows of dark modules; the mask of least penalty, unless one is given. */
export function qrMatrix(text, given = null) {
  const bytes = [...new TextEncoder().encode(text)];
  const version = versionFor(bytes.length);
  const words = interleaved(dataWords(bytes, version), version);
  const base = patterns(version);
  place(base, words);
  const candidates = given === null ? MASKS.map((_, i) => i) : [given];
  const found = candidates.map((mask) => ({ mask, matrix: masked(base, version, mask) }));
  const penalties = found.map(({ matrix }) => penalty(matrix));
  const { mask, matrix } = found[penalties.indexOf(Math.min(...penalties))];
  return { matrix, version, mask };
}

// ---- data

/** How many words of 8 bits a version holds, corrections included. */
function capacity(version) {
  let modules = (16 * version + 128) * version + 64;
  if (version >= 2) {
    const align = Math.floor(version / 7) + 2;
    modules -= (25 * align - 10) * align - 55;
    if (version >= 7) modules -= 36;
  }
  return Math.floor(modules / 8);
}

const dataCapacity = (version) => capacity(version) - CORRECTION[version - 1] * BLOCKS[version - 1];

function versionFor(length) {
  for (let version = 1; version <= BLOCKS.length; version++) {
    const head = version < 10 ? 2 : 3; // four bits of mode, and 8 or 16 of length
    if (length + head <= dataCapacity(version)) return version;
  }
  throw new RangeError(`Expected at most 660 bytes for a QR code, and got ${length}.`);
}

function dataWords(bytes, version) {
  const bits = [];
  const push = (value, count) => {
    for (let i = count - 1; i >= 0; i--) bits.push((value >>> i) & 1);
  };
  push(4, 4); // bytes
  push(bytes.length, version < 10 ? 8 : 16);
  for (const byte of bytes) push(byte, 8);
  const room = 8 * dataCapacity(version);
  push(0, Math.min(4, room - bits.length));
  push(0, (8 - (bits.length % 8)) % 8);
  for (let pad = 0xec; bits.length < room; pad ^= 0xec ^ 0x11) push(pad, 8);
  return Array.from({ length: room / 8 }, (_, i) => Number.parseInt(bits.slice(8 * i, 8 * i + 8).join(""), 2));
}

/** Blocks with their corrections, word by word from each in turn. */
function interleaved(data, version) {
  const [blocks, correction] = [BLOCKS[version - 1], CORRECTION[version - 1]];
  const short = Math.floor(data.length / blocks);
  const long = data.length % blocks;
  let at = 0;
  const parts = Array.from({ length: blocks }, (_, i) => {
    const words = data.slice(at, (at += short + (i >= blocks - long ? 1 : 0)));
    return { words, check: remainder(words, generator(correction)) };
  });
  const turn = (name, length) =>
    Array.from({ length }, (_, i) => parts.map((part) => part[name][i])).flat();
  return [...turn("words", short + 1), ...turn("check", correction)].filter((one) => one !== undefined);
}

/** x·y in GF(2⁸) modulo 0x11D. */
function times(x, y) {
  let z = 0;
  for (let i = 7; i >= 0; i--) {
    z = (z << 1) ^ ((z >>> 7) * 0x11d);
    z ^= ((y >>> i) & 1) * x;
  }
  return z;
}

function generator(degree) {
  const found = new Array(degree).fill(0);
  found[degree - 1] = 1;
  let root = 1;
  for (let i = 0; i < degree; i++) {
    for (let j = 0; j < degree; j++) {
      found[j] = times(found[j], root) ^ (found[j + 1] ?? 0);
    }
    root = times(root, 2);
  }
  return found;
}

function remainder(words, divisor) {
  const found = new Array(divisor.length).fill(0);
  for (const word of words) {
    const factor = word ^ found.shift();
    found.push(0);
    divisor.forEach((one, i) => (found[i] ^= times(one, factor)));
  }
  return found;
}

// ---- the picture

/** Rows of modules: true, false, or null where data will stand. */
function patterns(version) {
  const size = 17 + 4 * version;
  const rows = Array.from({ length: size }, () => new Array(size).fill(null));
  const set = (x, y, dark) => {
    if (x >= 0 && y >= 0 && x < size && y < size) rows[y][x] = dark;
  };
  for (let i = 0; i < size; i++) {
    set(6, i, i % 2 === 0);
    set(i, 6, i % 2 === 0);
  }
  for (const [cx, cy] of [[3, 3], [size - 4, 3], [3, size - 4]]) {
    square(4, (dx, dy, far) => set(cx + dx, cy + dy, far !== 2 && far !== 4));
  }
  const centres = alignments(version);
  centres.forEach((cx, i) =>
    centres.forEach((cy, j) => {
      const last = centres.length - 1;
      const isFinder = (i === 0 && j === 0) || (i === 0 && j === last) || (i === last && j === 0);
      if (!isFinder) square(2, (dx, dy, far) => set(cx + dx, cy + dy, far !== 1));
    }),
  );
  writeFormat(rows, 0); // reserves its place
  if (version >= 7) writeVersion(rows, version);
  return rows;
}

function square(reach, paint) {
  for (let dy = -reach; dy <= reach; dy++) {
    for (let dx = -reach; dx <= reach; dx++) paint(dx, dy, Math.max(Math.abs(dx), Math.abs(dy)));
  }
}

function alignments(version) {
  if (version === 1) return [];
  const count = Math.floor(version / 7) + 2;
  const step = Math.ceil((version * 4 + 4) / (count * 2 - 2)) * 2;
  const rest = Array.from({ length: count - 1 }, (_, i) => 10 + 4 * version - i * step);
  return [6, ...rest.reverse()];
}

function writeFormat(rows, mask) {
  let rest = mask; // correction M is 00
  for (let i = 0; i < 10; i++) rest = (rest << 1) ^ ((rest >>> 9) * 0x537);
  const bits = ((mask << 10) | rest) ^ 0x5412;
  const bit = (i) => ((bits >>> i) & 1) === 1;
  const size = rows.length;
  for (let i = 0; i <= 5; i++) rows[i][8] = bit(i);
  rows[7][8] = bit(6);
  rows[8][8] = bit(7);
  rows[8][7] = bit(8);
  for (let i = 9; i < 15; i++) rows[8][14 - i] = bit(i);
  for (let i = 0; i < 8; i++) rows[8][size - 1 - i] = bit(i);
  for (let i = 8; i < 15; i++) rows[size - 15 + i][8] = bit(i);
  rows[size - 8][8] = true;
}

function writeVersion(rows, version) {
  let rest = version;
  for (let i = 0; i < 12; i++) rest = (rest << 1) ^ ((rest >>> 11) * 0x1f25);
  const bits = (version << 12) | rest;
  for (let i = 0; i < 18; i++) {
    const dark = ((bits >>> i) & 1) === 1;
    const [far, near] = [rows.length - 11 + (i % 3), Math.floor(i / 3)];
    rows[near][far] = dark;
    rows[far][near] = dark;
  }
}

/** Words upwards and downwards through pairs of columns, from the right; as 0 and 1, not booleans,
 * so that masks know them from patterns. */
function place(rows, words) {
  const size = rows.length;
  let at = 0;
  for (let right = size - 1; right >= 1; right -= 2) {
    if (right === 6) right = 5;
    const isUp = ((right + 1) & 2) === 0;
    for (let i = 0; i < size; i++) {
      const y = isUp ? size - 1 - i : i;
      for (const x of [right, right - 1]) {
        if (rows[y][x] === null) {
          rows[y][x] = at < 8 * words.length ? (words[at >>> 3] >>> (7 - (at & 7))) & 1 : 0;
          at++;
        }
      }
    }
  }
}

function masked(base, version, mask) {
  const rows = base.map((row, y) =>
    row.map((one, x) => (typeof one === "boolean" ? one : (one === 1) !== (MASKS[mask](x, y) === 0))),
  );
  writeFormat(rows, mask);
  if (version >= 7) writeVersion(rows, version);
  return rows;
}

/** Runs, blocks, what looks like a finder, and how uneven dark and light are. */
function penalty(rows) {
  const size = rows.length;
  const columns = rows[0].map((_, x) => rows.map((row) => row[x]));
  let found = 0;
  for (const line of [...rows, ...columns]) {
    const text = line.map((dark) => (dark ? "1" : "0")).join("");
    for (const run of text.match(/0+|1+/g)) if (run.length >= 5) found += run.length - 2;
    for (const look of ["10111010000", "00001011101"]) {
      for (let at = text.indexOf(look); at >= 0; at = text.indexOf(look, at + 1)) found += 40;
    }
  }
  for (let y = 0; y < size - 1; y++) {
    for (let x = 0; x < size - 1; x++) {
      const one = rows[y][x];
      if (one === rows[y][x + 1] && one === rows[y + 1][x] && one === rows[y + 1][x + 1]) found += 3;
    }
  }
  const dark = rows.flat().filter(Boolean).length / size ** 2;
  return found + 10 * Math.floor(Math.abs(dark - 0.5) * 20);
}
