// Gauss–Legendre quadrature on [0, 1]: nodes by Newton's method, to the last digits.

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
