// Exact Gaussian privacy: δ(ε) of a μ-GDP release, never rounded down.
//
//   δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) = φ(a)·(m(a) − m(a + μ)),   a = ε/μ − μ/2,
//
// with Mills' ratio m(x) = Φ(−x)/φ(x). Where the two m nearly agree, their difference is the
// integral of g = −m' = 1 − x·m(x) > 0 instead, which only adds positive numbers. Every result is
// raised by more than the arithmetic can have lost (SAFETY), so a check "δ is at most …" that
// passes here holds.

const SAFETY = 1 + 1e-11;
const LOG_ROOT_2PI = Math.log(2 * Math.PI) / 2;
const ROOT_HALF_PI = Math.sqrt(Math.PI / 2);
const [FRACTION_FROM, FRACTION_TERMS] = [2, 120]; // where Laplace's continued fraction gives all digits

/** ln of an upper bound on δ(ε). */
export function logDelta(mu, epsilon) {
  if (!(mu > 0 && epsilon >= 0)) throw new RangeError(`Expected mu > 0, epsilon >= 0: ${mu}, ${epsilon}.`);
  const a = epsilon / mu - mu / 2;
  if (a < 0) {
    const surely = 1 - upperTail(-a); // Φ(−a)
    const possibly = Math.exp(logDensity(a)) * mills(a + mu);
    if (possibly <= surely / 2) return Math.log((surely - possibly) * SAFETY);
  }
  const first = mills(a);
  let difference = first - mills(a + mu);
  if (difference < first / 2) {
    // g falls as x grows, and is smooth: panels no longer than 1 leave no visible error
    const panels = Math.max(1, Math.ceil(Math.min(mu, 40)));
    difference = 0;
    for (let i = 0; i < panels; i++) {
      difference += integrate(millsSlope, a + (mu * i) / panels, a + (mu * (i + 1)) / panels, 24);
    }
  }
  return logDensity(a) + Math.log(difference * SAFETY);
}

/** Φ(−x): the probability that a standard normal exceeds x. */
export function upperTail(x) {
  if (x < 0) return 1 - upperTail(-x);
  return Math.exp(logDensity(x)) * mills(x);
}

/** ln Φ(−x) for x ≥ 0, also where Φ(−x) underflows. */
export const logUpperTail = (x) => x < 0 ? Math.log(upperTail(x)) : logDensity(x) + Math.log(mills(x));

const logDensity = (x) => (-x * x) / 2 - LOG_ROOT_2PI;

/** m(x) = Φ(−x)/φ(x). Below 2 it is √(π/2)e^{x²/2} − Σ x^{2k+1}/(1·3···(2k+1)). */
export function mills(x) {
  if (x >= FRACTION_FROM) return 1 / (x + fraction(x));
  let term = x;
  let sum = x;
  for (let k = 1; Math.abs(term) > 1e-18 * Math.abs(sum); k++) {
    term *= (x * x) / (2 * k + 1);
    sum += term;
  }
  return ROOT_HALF_PI * Math.exp((x * x) / 2) - sum;
}

function millsSlope(x) {
  if (x < FRACTION_FROM) return 1 - x * mills(x);
  const k = fraction(x);
  return k / (x + k);
}

/** k = 1/(x + 2/(x + 3/(x + …))), so that m = 1/(x + k). */
function fraction(x) {
  let k = 0;
  for (let term = FRACTION_TERMS; term > 0; term--) k = term / (x + k);
  return k;
}

// ---- Gauss–Legendre quadrature on [0, 1]: nodes by Newton's method, to the last digits.

const known = new Map();

export function gaussLegendre(count) {
  if (!known.has(count)) known.set(count, unitRule(count));
  return known.get(count);
}

/** ∫ f over [from, to]. */
export function integrate(f, from, to, count) {
  const { nodes, weights } = gaussLegendre(count);
  let sum = 0;
  for (let i = 0; i < count; i++) sum += weights[i] * f(from + (to - from) * nodes[i]);
  return (to - from) * sum;
}

function unitRule(count) {
  const nodes = [];
  const weights = [];
  for (let i = 0; i < count; i++) {
    let x = -Math.cos((Math.PI * (i + 0.75)) / (count + 0.5));
    let slope = 0;
    for (let step = 0; step < 8; step++) {
      let before = 1;
      let value = x;
      for (let k = 2; k <= count; k++) {
        [before, value] = [value, ((2 * k - 1) * x * value - (k - 1) * before) / k];
      }
      slope = (count * (x * value - before)) / (x * x - 1);
      x -= value / slope;
    }
    nodes.push((1 + x) / 2);
    weights.push(1 / ((1 - x * x) * slope * slope));
  }
  return { nodes, weights };
}
