// Newton's quadratic of a record around an announced model, and how far one person can move its
// sum: mirrors `blurfit.theory.maps`, whose proofs it rests upon.

const NUDGE = 1 + 1e-12;
const FREE_CURVATURE = Math.sqrt((37 + 14 * Math.sqrt(7)) / 3); // τ*, up to which Δ = 2/τ
export const FREE_SQUARES = 4.5; // up to which it is so with the squared slopes as well
const LARGEST_LOG_RATE = 30;

/** (g, h) of ln(1 + e^{−yt}) for a label y = ±1, at any score. */
export function logisticSlopes(score, target) {
  const t = Number.isNaN(score) ? 0 : score;
  const y = target > 0 ? 1 : -1;
  const size = 1 / (1 + Math.exp(y * t));
  return [-y * size, size * (1 - size)];
}

/** (g, h) of e^t − yt for a count, each cut to its bound. */
export function poissonSlopes(score, target, map) {
  const { count_bound: most, curvature_bound: steepest, gradient_bound: largest } = map;
  const rate = Math.exp(within(score, -LARGEST_LOG_RATE, LARGEST_LOG_RATE));
  return [within(rate - within(target, 0, most), -largest, largest), Math.min(rate, steepest)];
}

/** ω of the squared slopes. */
export function robustWeight({ kind, balance, curvature_bound: steepest, gradient_bound: largest }) {
  if (kind === "logistic") return 1 / (Math.SQRT2 * balance);
  return Math.min((0.55 * steepest) / largest ** 2, 0.7 / (balance * largest));
}

/** Between two bounds; what is not a number counts as 0. */
export function within(value, low, high) {
  return Math.min(Math.max(Number.isNaN(value) ? 0 : value, low), high);
}

/** Δ(τ) of logistic loss, whatever the model is: 2/τ up to τ*, the larger of two maxima beyond. */
export function logisticSensitivity(balance, neighbours, robust = false) {
  const square = balance * balance;
  if (neighbours === "zero-out") {
    const squares = robust ? 0.5 : 0;
    const first = 2 * square + 2 * squares;
    const inner = 9 * square ** 2 - 4 * first * (square + 1);
    const sizes = inner >= 0 ? [1, (3 * square - Math.sqrt(inner)) / (2 * first)] : [1];
    const found = sizes.map((a) =>
      Math.hypot(a * (1 - a), a / balance, (Math.sqrt(squares) * a * a) / balance),
    );
    return Math.max(...found) * NUDGE;
  }
  if (balance <= FREE_CURVATURE) return (2 / balance) * NUDGE;
  const kappa = 1 / (2 * square);
  const first = zerosOf([2 * square, -3 * square, square + 1, 1], 0, 1).map((b) =>
    Math.hypot(b * (1 - b), (1 + b) / balance),
  );
  const second = zerosOf([-2, 1, 0, -kappa], Math.sqrt(kappa), 1).map(
    (u) => Math.SQRT2 * (1 - u) * (u + kappa / u),
  );
  return Math.max(...first, ...second) * NUDGE;
}

/** Δ of counts: curvatures in [0, H], gradients in [−G, G], and their squares if they are sent. */
export function poissonSensitivity(map, neighbours) {
  const { curvature_bound: steepest, gradient_bound: largest, balance } = map;
  const ratio = (largest / (balance * steepest)) ** 2;
  const squares = map.robust ? ((robustWeight(map) * largest ** 2) / steepest) ** 2 : 0;
  if (neighbours === "zero-out") return steepest * Math.sqrt(1 + squares + ratio) * NUDGE;
  const first = 2 + 2 * squares;
  const corner = ratio <= first ? first + 2 * ratio + ratio ** 2 / first : 0;
  return steepest * Math.sqrt(Math.max(1 + 4 * ratio, corner)) * NUDGE;
}

/** The ends, and the zeros of ax³ + bx² + cx + d between them: halving, where it is monotone. */
function zerosOf([a, b, c, d], low, high) {
  const at = (x) => ((a * x + b) * x + c) * x + d;
  const inner = b * b - 3 * a * c;
  const turns = inner > 0 ? [-1, 1].map((sign) => (-b + sign * Math.sqrt(inner)) / (3 * a)) : [];
  const ends = [low, ...turns.filter((x) => x > low && x < high).sort((x, y) => x - y), high];
  const zeros = ends.slice(1).flatMap((right, i) => {
    let [from, to] = [ends[i], right];
    if (at(from) > 0 === at(to) > 0) return [];
    for (let step = 0; step < 60; step++) {
      const middle = (from + to) / 2;
      if (at(middle) > 0 === at(from) > 0) from = middle;
      else to = middle;
    }
    return [from];
  });
  return [...ends, ...zeros]; // a point too many does no harm: what is attained there counts too
}
