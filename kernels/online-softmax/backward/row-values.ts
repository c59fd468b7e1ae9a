import { addFloat32, fusedMultiplyAddFloat32, multiplyFloat32 } from '../../../src/arith/index.js';
import type { ProductSumLaw } from './recipe.js';

/** log2 e as an fp32 number. */
export const log2OfE = Math.fround(Math.LOG2E);

/**
 * D = Σ O·dO of one row, fp32, in the order of its threads: each sums from 0 over its columns, one fused multiply-add a column; then
 * the threads in pairs 1, 2, 4 … apart, or half of them, a quarter, … apart. The start from 0 changes no first product but −0.
 *
 * @param out the row of O, and `dout` that of dO, as numbers
 */
export function rowProductSum(
  { run, width, within, across }: ProductSumLaw,
  out: Float64Array,
  dout: Float64Array,
): number {
  const stride = width(out.length);
  const runs = Math.ceil(out.length / stride);
  const columns = Array.from({ length: run * runs }, (_, i) =>
    within === 'run-by-run'
      ? Math.floor(i / run) * stride + (i % run)
      : (i % runs) * stride + Math.floor(i / runs),
  );
  let sums = Array.from({ length: stride / run }, (_, thread) =>
    columns
      .map((column) => thread * run + column)
      .filter((column) => column < out.length)
      .reduce((sum, column) => fusedMultiplyAddFloat32(out[column], dout[column], sum), 0),
  );
  while (sums.length > 1) {
    const half = sums.length / 2;
    sums = Array.from({ length: half }, (_, i) =>
      across === 'nearest-first'
        ? addFloat32(sums[2 * i], sums[2 * i + 1])
        : addFloat32(sums[i], sums[i + half]),
    );
  }
  return sums[0];
}

/** LSE·log2 e of a row, fp32; 0 where the LSE is −∞, a row without keys. */
export function base2LogSumExp(lse: number): number {
  return lse === -Infinity ? 0 : multiplyFloat32(lse, log2OfE);
}
