import { addFloat32, fusedMultiplyAddFloat32, multiplyFloat32 } from '../../../src/arith/index.js';
import type { ProductSumLaw } from './recipe.js';

/** log2 e as an fp32 number. */
export const log2OfE = Math.fround(Math.LOG2E);

/**
 * D = Σ O·dO of one row, fp32, as its threads sum it: each from 0 over its columns, the first of every run before
 * the second, one fused multiply-add a column; then the threads in pairs 1, 2, 4 … apart.
 *
 * @param out the row of O, and `dout` that of dO, as numbers
 */
export function rowProductSum(
  { run, width }: ProductSumLaw,
  out: Float64Array,
  dout: Float64Array,
): number {
  const stride = width(out.length);
  let sums = Array.from({ length: stride / run }, (_, thread) => {
    let sum = 0;
    for (let j = thread * run; j < (thread + 1) * run; j++)
      for (let column = j; column < out.length; column += stride)
        sum = fusedMultiplyAddFloat32(out[column], dout[column], sum);
    return sum;
  });
  while (sums.length > 1)
    sums = Array.from({ length: sums.length / 2 }, (_, pair) =>
      addFloat32(sums[2 * pair], sums[2 * pair + 1]),
    );
  return sums[0];
}

/** LSE·log2 e of a row, fp32; 0 where the LSE is −∞, a row without keys. */
export function base2LogSumExp(lse: number): number {
  return lse === -Infinity ? 0 : multiplyFloat32(lse, log2OfE);
}
