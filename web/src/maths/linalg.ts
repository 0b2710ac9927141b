// Small dense linear algebra: matrices are row by row in Float64Array.

/** Lower Cholesky factor of a symmetric matrix (q × q), or null where it is not positive definite. */
export function cholesky(a: Float64Array, q: number): Float64Array | null {
  const l = new Float64Array(q * q);
  let largest = 0;
  for (let k = 0; k < q; k++) largest = Math.max(largest, a[k * q + k]!);
  for (let i = 0; i < q; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = a[i * q + j]!;
      for (let k = 0; k < j; k++) sum -= l[i * q + k]! * l[j * q + k]!;
      if (i === j) {
        if (!(sum > 1e-13 * largest)) return null;
        l[i * q + i] = Math.sqrt(sum);
      } else l[i * q + j] = sum / l[j * q + j]!;
    }
  }
  return l;
}

/** Solves L Lᵀ x = b in place. */
export function solveCholesky(l: Float64Array, q: number, b: Float64Array): Float64Array {
  for (let i = 0; i < q; i++) {
    let sum = b[i]!;
    for (let k = 0; k < i; k++) sum -= l[i * q + k]! * b[k]!;
    b[i] = sum / l[i * q + i]!;
  }
  for (let i = q - 1; i >= 0; i--) {
    let sum = b[i]!;
    for (let k = i + 1; k < q; k++) sum -= l[k * q + i]! * b[k]!;
    b[i] = sum / l[i * q + i]!;
  }
  return b;
}

export interface Eigen {
  values: Float64Array;
  /** Eigenvectors in the columns (q × q). */
  vectors: Float64Array;
}

/** Eigenvalues in descending order and vectors of a symmetric matrix, by Jacobi's rotations. */
export function symmetricEigen(matrix: Float64Array, q: number): Eigen {
  const a = Float64Array.from(matrix);
  const v = new Float64Array(q * q);
  for (let k = 0; k < q; k++) v[k * q + k] = 1;
  for (let sweep = 0; sweep < 60; sweep++) {
    let off = 0;
    let all = 0;
    for (let i = 0; i < q; i++) for (let j = 0; j < q; j++) (i === j ? (all += a[i * q + j]! ** 2) : (off += a[i * q + j]! ** 2));
    if (off <= 1e-30 * all || off === 0) break;
    for (let i = 0; i < q - 1; i++) for (let j = i + 1; j < q; j++) rotate(a, v, q, i, j);
  }
  const order = Array.from({ length: q }, (_, k) => k).sort((x, y) => a[y * q + y]! - a[x * q + x]!);
  const values = Float64Array.from(order, (k) => a[k * q + k]!);
  const vectors = new Float64Array(q * q);
  order.forEach((from, to) => {
    for (let i = 0; i < q; i++) vectors[i * q + to] = v[i * q + from]!;
  });
  return { values, vectors };
}

function rotate(a: Float64Array, v: Float64Array, q: number, i: number, j: number): void {
  const aij = a[i * q + j]!;
  if (aij === 0) return;
  const theta = (a[j * q + j]! - a[i * q + i]!) / (2 * aij);
  const t = Math.sign(theta || 1) / (Math.abs(theta) + Math.hypot(1, theta));
  const c = 1 / Math.hypot(1, t);
  const s = t * c;
  for (let k = 0; k < q; k++) {
    const x = a[k * q + i]!;
    const y = a[k * q + j]!;
    a[k * q + i] = c * x - s * y;
    a[k * q + j] = s * x + c * y;
  }
  for (let k = 0; k < q; k++) {
    const x = a[i * q + k]!;
    const y = a[j * q + k]!;
    a[i * q + k] = c * x - s * y;
    a[j * q + k] = s * x + c * y;
  }
  for (let k = 0; k < q; k++) {
    const x = v[k * q + i]!;
    const y = v[k * q + j]!;
    v[k * q + i] = c * x - s * y;
    v[k * q + j] = s * x + c * y;
  }
}

/** The product of A (m × k) and B (k × n). */
export function product(a: Float64Array, b: Float64Array, m: number, k: number, n: number): Float64Array {
  const out = new Float64Array(m * n);
  for (let i = 0; i < m; i++)
    for (let l = 0; l < k; l++) {
      const x = a[i * k + l]!;
      if (x !== 0) for (let j = 0; j < n; j++) out[i * n + j]! += x * b[l * n + j]!;
    }
  return out;
}

export function transpose(a: Float64Array, m: number, n: number): Float64Array {
  const out = new Float64Array(m * n);
  for (let i = 0; i < m; i++) for (let j = 0; j < n; j++) out[j * m + i] = a[i * n + j]!;
  return out;
}

export function identity(q: number): Float64Array {
  const out = new Float64Array(q * q);
  for (let k = 0; k < q; k++) out[k * q + k] = 1;
  return out;
}

/** V diag(f(λ)) Vᵀ of an eigendecomposition. */
export function spectral({ values, vectors }: Eigen, q: number, f: (value: number) => number): Float64Array {
  const out = new Float64Array(q * q);
  for (let k = 0; k < q; k++) {
    const weight = f(values[k]!);
    if (weight === 0) continue;
    for (let i = 0; i < q; i++)
      for (let j = 0; j < q; j++) out[i * q + j]! += weight * vectors[i * q + k]! * vectors[j * q + k]!;
  }
  return out;
}
