import {
  createTensorCoreTile,
  type MatrixProduct,
  type TensorCoreArithmetic,
  type TensorCoreTile,
} from '../../../src/hardware/index.js';

/** A copy of patterns [rows][from] as [rows][to], zeros where it is wider. */
function widen(
  target: Uint8Array | Uint16Array | Uint32Array,
  source: ArrayLike<number>,
  from: number,
  to: number,
): void {
  target.fill(0);
  for (let i = 0; i < source.length; i++)
    target[Math.floor(i / from) * to + (i % from)] = source[i];
}

/**
 * `tensorCoreProduct` for operands of one format, in WebAssembly: the same bits, much faster. It keeps
 * the memory of the shapes it has met; make one for each problem.
 *
 * @returns a function that throws a RequestError for what tiles do not compute
 */
export function createTileProduct(): (
  arithmetic: TensorCoreArithmetic,
  product: MatrixProduct,
) => Uint32Array {
  const tiles = new Map<string, TensorCoreTile>();
  return (arithmetic, { m, n, k, aFormat, bFormat, a, bTransposed, c }) => {
    const columns = 8 * Math.ceil(n / 8);
    const key = [m, n, k, aFormat].join();
    let tile = tiles.get(key);
    if (tile === undefined) {
      tile = createTensorCoreTile(arithmetic, { rows: m, columns, inner: k, aFormat, bFormat });
      tiles.set(key, tile);
    }
    widen(tile.a, a, k, k);
    widen(tile.b, bTransposed, k, k);
    widen(tile.cBits, c, n, columns);
    tile.packA();
    tile.packTransposedB();
    tile.multiplyAccumulate();
    const result = new Uint32Array(m * n);
    for (let row = 0; row < m; row++)
      result.set(tile.cBits.subarray(row * columns, row * columns + n), row * n);
    return result;
  };
}
