// AssemblyScript: P and dS of a block of keys and a block of queries. What they are is written in
// ../../element-steps.ts and ../../plain-key-block.ts, whose bits these equal. Matrices are [keys × queries]. The
// matrix products are those of src/simd/assembly/tensor-core.ts, on the same memory.

import { promoteHigh } from '../../../../../src/simd/assembly/halves';
import { exp2Approx, exp2Ftz4 } from '../../../../../src/simd/assembly/special-functions';
import { fusedMultiplyAdd4 } from '../../../webassembly/assembly/fused-multiply-add';
import { convert8 } from '../../../webassembly/assembly/row-steps';

export {
  packRows,
  packColumns,
  packTransposedColumns,
} from '../../../../../src/simd/assembly/tensor-core-operands';
export { multiplyAccumulate } from '../../../../../src/simd/assembly/tensor-core';

/** Four of s·c − l, rounded once, but for results below 2^-126, of which every 2^x is 1. */
// @inline
function exponents4(s: v128, scale: v128, lses: v128): v128 {
  const addends = f32x4.neg(lses);
  const low = f64x2.promote_low_f32x4(addends);
  return fusedMultiplyAdd4(s, scale, addends, low, promoteHigh(addends), false);
}

/** The arrays of a block of keys and a block of queries, a multiple of 8, and the recipe of P. */
@unmanaged
export class PairBlock {
  keys: i32;
  queries: i32;
  // [keys × queries] fp32: scores, dP and what dS may be multiplied by.
  scores: usize;
  derivatives: usize;
  slopes: usize;
  // [keys × queries] bit patterns of P and dS.
  weights: usize;
  products: usize;
  /**
   * Arrays of a word a query, one behind the other: LSE·log2 e and D in fp32, and from which key on and up to
   * which it sees keys, i32.
   */
  rows: usize;
  /** Of the exponent. */
  scale: f32;
  fusesExponent: bool;
  /** Whether the exponential flushes subnormals; its tables. */
  flushes: bool;
  segments: usize;
  squares: usize;
  shift: i32;
  /** Of P and dS, as `convert4` takes it. */
  format: usize;
}

/** P and dS as bit patterns of 16 bits, from scores and dP; dS is multiplied by the slopes where it `isSloped`. */
export function elementSteps(block: PairBlock, isSloped: bool): void {
  const scores = block.scores;
  const derivatives = block.derivatives;
  const slopes = block.slopes;
  const weights = block.weights;
  const products = block.products;
  const keys = block.keys;
  const queries = block.queries;
  const rows = block.rows;
  const scale = f64x2.splat(<f64>block.scale);
  const segments = block.segments;
  const squares = block.squares;
  const shift = <i64>block.shift;
  const format = block.format;
  const isFused = block.fusesExponent;
  const flushes = block.flushes;
  const factors = f32x4.splat(block.scale);
  const stride = (<usize>queries) << 2;
  const minusInfinity = f32x4.splat(-Infinity);
  for (let key = 0; key < keys; key++) {
    const at = i32x4.splat(key);
    const offset = <usize>key * stride;
    for (let i: usize = 0; i < stride; i += 32) {
      let low = minusInfinity;
      let high = minusInfinity;
      let lowProduct = minusInfinity;
      let highProduct = minusInfinity;
      for (let half: usize = 0; half < 32; half += 16) {
        const row = rows + i + half;
        const place = offset + i + half;
        const isSeen = v128.and(
          i32x4.le_s(v128.load(row + 2 * stride), at),
          i32x4.lt_s(at, v128.load(row + 3 * stride)),
        );
        const score = v128.bitselect(v128.load(scores + place), minusInfinity, isSeen);
        const exponents = isFused
          ? exponents4(score, scale, v128.load(row))
          : f32x4.sub(f32x4.mul(score, factors), v128.load(row));
        let weight = exponents;
        if (flushes) weight = exp2Ftz4(exponents, segments, squares, shift);
        else {
          // The score's place is free once it has been read.
          v128.store(scores + place, exponents);
          exp2Approx(scores + place, scores + place, 4, segments, squares, <i32>shift);
          weight = v128.load(scores + place);
        }
        let product = f32x4.mul(
          weight,
          f32x4.sub(v128.load(derivatives + place), v128.load(row + stride)),
        );
        if (isSloped) product = f32x4.mul(product, v128.load(slopes + place));
        if (half) {
          high = weight;
          highProduct = product;
        } else {
          low = weight;
          lowProduct = product;
        }
      }
      const target = (offset + i) >> 1;
      v128.store(weights + target, convert8(low, high, format));
      v128.store(products + target, convert8(lowProduct, highProduct, format));
    }
  }
}
