// Student's t: how far an interval reaches, and how surprising an estimate is.
//
// P(|t| > x) = I_z(ν/2, ½), z = ν/(ν + x²), the regularised incomplete beta function, by its
// continued fraction (Lentz) on the side where that converges.

const TINY = 1e-300;

/** P(|t| > |x|) for ν degrees of freedom. */
export function twoSided(x, freedom) {
  if (!Number.isFinite(x)) return 0;
  const square = x * x;
  const [a, b] = [freedom / 2, 0.5];
  const z = freedom / (freedom + square);
  const rest = square / (freedom + square); // 1 − z, of which nothing is lost for small x
  if (square === 0) return 1;
  const front = Math.exp(a * logShare(square / freedom) + b * Math.log(rest) - logBeta(a));
  if (z < (a + 1) / (a + b + 2)) return (front * fraction(z, a, b)) / a;
  return 1 - (front * fraction(rest, b, a)) / b;
}

/** x with P(|t| ≤ x) = confidence. */
export function reachOf(confidence, freedom) {
  let [low, high] = [0, 1];
  while (twoSided(high, freedom) > 1 - confidence) high *= 2;
  for (let step = 0; step < 100 && high - low > 1e-15 * high; step++) {
    const middle = (low + high) / 2;
    if (twoSided(middle, freedom) > 1 - confidence) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

/** ln(1/(1 + r)). */
const logShare = (ratio) => -Math.log1p(ratio);

/** ln B(a, ½) = ln Γ(a) + ln Γ(½) − ln Γ(a + ½): the difference alone, by its asymptotic series,
 * after steps Γ(a)/Γ(a + ½) = (a + ½)/a·Γ(a + 1)/Γ(a + 3/2) to where that has all digits. */
function logBeta(a) {
  let steps = 0;
  for (; a < 40; a++) steps += Math.log1p(0.5 / a);
  const series = 1 / 8 - (1 / 192 - (1 / 640 - 17 / 14336 / a ** 2) / a ** 2) / a ** 2;
  return steps + Math.log(Math.PI) / 2 - Math.log(a) / 2 + series / a;
}

function fraction(z, a, b) {
  let c = 1;
  let d = 1 / away(1 - ((a + b) * z) / (a + 1));
  let value = d;
  for (let m = 1; m < 1e5; m++) {
    const even = (m * (b - m) * z) / ((a + 2 * m - 1) * (a + 2 * m));
    const odd = (-(a + m) * (a + b + m) * z) / ((a + 2 * m) * (a + 2 * m + 1));
    let change = 1;
    for (const term of [even, odd]) {
      d = 1 / away(1 + term * d);
      c = away(1 + term / c);
      change = c * d;
      value *= change;
    }
    if (Math.abs(change - 1) < 1e-15) break;
  }
  return value;
}

const away = (value) => (Math.abs(value) < TINY ? TINY : value);
