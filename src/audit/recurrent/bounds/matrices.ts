/** Products of small row-major fp64 matrices, and norms of their rows and columns. */

/** The sizes of a product: rows and columns of the result, and how many terms each of its elements sums. */
export interface ProductSize {
  readonly rows: number;
  readonly inner: number;
  readonly columns: number;
}

/** out += a b, of a [rows, inner] and b [inner, columns]; `isTransposed`: of aᵀ, a of [inner, rows]. Four terms are added at a time. */
export function addProduct(
  out: Float64Array,
  a: Float64Array,
  b: Float64Array,
  { rows, inner, columns }: ProductSize,
  isTransposed = false,
): void {
  const whole = inner - (inner % 4);
  const [rowStep, step] = isTransposed ? [1, rows] : [inner, 1];
  for (let i = 0; i < rows; i++) {
    const row = i * columns;
    let at = i * rowStep;
    let first = 0;
    for (let l = 0; l < whole; l += 4) {
      const [a0, a1, a2, a3] = [a[at], a[at + step], a[at + 2 * step], a[at + 3 * step]];
      at += 4 * step;
      const second = first + columns;
      const third = second + columns;
      const fourth = third + columns;
      // Rows of triangles end in zeros.
      if (a0 !== 0 || a1 !== 0 || a2 !== 0 || a3 !== 0)
        for (let c = 0; c < columns; c++)
          out[row + c] +=
            a0 * b[first + c] + a1 * b[second + c] + (a2 * b[third + c] + a3 * b[fourth + c]);
      first = fourth + columns;
    }
    for (let l = whole; l < inner; l++) {
      const factor = a[at];
      at += step;
      if (factor !== 0) for (let c = 0; c < columns; c++) out[row + c] += factor * b[first + c];
      first += columns;
    }
  }
}

/** out = a bᵀ, of a [rows, inner] and b [columns, inner]. */
export function productWithTransposed(
  out: Float64Array,
  a: Float64Array,
  b: Float64Array,
  { rows, inner, columns }: ProductSize,
): void {
  for (let i = 0; i < rows; i++)
    for (let j = 0; j < columns; j++) {
      let [s0, s1] = [0, 0];
      const [x, y] = [i * inner, j * inner];
      const whole = inner - (inner % 2);
      for (let l = 0; l < whole; l += 2) {
        s0 += a[x + l] * b[y + l];
        s1 += a[x + l + 1] * b[y + l + 1];
      }
      if (whole < inner) s0 += a[x + whole] * b[y + whole];
      out[i * columns + j] = s0 + s1;
    }
}

/** to = |from|, from the first element on. */
export function setMagnitudes(to: Float64Array, from: Float64Array, size: number): void {
  for (let i = 0; i < size; i++) to[i] = Math.abs(from[i]);
}

/** to = the Euclidean norms of rows of `dim` elements. */
export function setRowNorms(
  to: Float64Array,
  rows: Float64Array,
  dim: number,
  count: number,
): void {
  for (let r = 0; r < count; r++) {
    let sum = 0;
    for (let i = r * dim; i < (r + 1) * dim; i++) sum += rows[i] * rows[i];
    to[r] = Math.sqrt(sum);
  }
}

/** to = the Euclidean norms of the columns of a matrix with as many columns as `to` has elements. */
export function setColumnNorms(to: Float64Array, matrix: Float64Array): void {
  const columns = to.length;
  to.fill(0);
  for (let at = 0; at < matrix.length; at += columns)
    for (let c = 0; c < columns; c++) to[c] += matrix[at + c] * matrix[at + c];
  for (let c = 0; c < columns; c++) to[c] = Math.sqrt(to[c]);
}
