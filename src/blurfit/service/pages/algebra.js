// Small dense matrices, as lists of rows: what learning from a wave needs, and no more.

export const zeros = (rows, columns = rows) =>
  Array.from({ length: rows }, () => new Array(columns).fill(0));
export const diagonal = (values) =>
  values.map((value, i) => values.map((_, j) => (i === j ? value : 0)));
export const diagonalOf = (matrix) => matrix.map((row, i) => row[i]);
export const transpose = (matrix) => matrix[0].map((_, j) => matrix.map((row) => row[j]));
export const outer = (a, b) => a.map((x) => b.map((y) => x * y));
export const dot = (a, b) => a.reduce((sum, one, i) => sum + one * b[i], 0);
export const total = (values) => values.reduce((sum, one) => sum + one, 0);
export const mean = (values) => total(values) / values.length;
export const apply = (matrix, vector) => matrix.map((row) => dot(row, vector));

/** Entry by entry, from any number of matrices. */
export const entries = (f, ...matrices) =>
  matrices[0].map((row, i) => row.map((_, j) => f(...matrices.map((one) => one[i][j]))));
export const add = (...matrices) => entries((...all) => total(all), ...matrices);
export const minus = (a, b) => entries((x, y) => x - y, a, b);
export const scaled = (by, matrix) => entries((x) => by * x, matrix);
export const even = (matrix) => entries((x, y) => (x + y) / 2, matrix, transpose(matrix));

/** The product of any number of matrices. */
export function times(...matrices) {
  return matrices.reduce((a, b) => {
    const columns = transpose(b);
    return a.map((row) => columns.map((column) => dot(row, column)));
  });
}

/** {inverse, logDeterminant} by Gauss and Jordan, with the largest pivot of each column. */
export function inverted(matrix) {
  const size = matrix.length;
  const rows = matrix.map((row, i) => [...row, ...row.map((_, j) => (i === j ? 1 : 0))]);
  let logDeterminant = 0;
  for (let place = 0; place < size; place++) {
    let best = place;
    for (let i = place + 1; i < size; i++) {
      if (Math.abs(rows[i][place]) > Math.abs(rows[best][place])) best = i;
    }
    [rows[place], rows[best]] = [rows[best], rows[place]];
    const pivot = rows[place][place];
    logDeterminant += Math.log(Math.abs(pivot));
    rows[place] = rows[place].map((one) => one / pivot);
    for (let i = 0; i < size; i++) {
      const by = rows[i][place];
      if (i === place || by === 0) continue;
      rows[i] = rows[i].map((one, j) => one - by * rows[place][j]);
    }
  }
  return { inverse: rows.map((row) => row.slice(size)), logDeterminant };
}

export const inverse = (matrix) => inverted(matrix).inverse;

/** L, lower triangular, with LLᵀ the matrix, which is positive definite. */
export function cholesky(matrix) {
  const lower = zeros(matrix.length);
  matrix.forEach((row, i) => {
    for (let j = 0; j <= i; j++) {
      const rest = row[j] - dot(lower[i].slice(0, j), lower[j].slice(0, j));
      lower[i][j] = i === j ? Math.sqrt(rest) : rest / lower[j][j];
    }
  });
  return lower;
}

/** {values, vectors}: eigenvalues, and eigenvectors as columns, by Jacobi's rotations. */
export function eigen(matrix) {
  const size = matrix.length;
  const a = matrix.map((row) => [...row]);
  const vectors = diagonal(new Array(size).fill(1));
  for (let sweep = 0; sweep < 60; sweep++) {
    const off = total(a.flatMap((row, i) => row.map((one, j) => (i === j ? 0 : one * one))));
    if (off <= 1e-34 * total(diagonalOf(a).map((one) => one * one))) break;
    for (let p = 0; p < size; p++) {
      for (let q = p + 1; q < size; q++) rotate(a, vectors, p, q);
    }
  }
  return { values: diagonalOf(a), vectors };
}

function rotate(a, vectors, p, q) {
  if (a[p][q] === 0) return;
  const theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
  const t = (theta < 0 ? -1 : 1) / (Math.abs(theta) + Math.hypot(theta, 1));
  const c = 1 / Math.hypot(t, 1);
  const s = t * c;
  const mix = (row) => {
    [row[p], row[q]] = [c * row[p] - s * row[q], s * row[p] + c * row[q]];
  };
  a.forEach(mix);
  [a[p], a[q]] = [
    a[p].map((one, i) => c * one - s * a[q][i]),
    a[p].map((one, i) => s * one + c * a[q][i]),
  ];
  vectors.forEach(mix);
}
