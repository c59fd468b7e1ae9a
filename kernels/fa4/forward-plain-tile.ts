import {
  addFloat32,
  fusedMultiplyAddFloat32,
  multiplyFloat32,
  subtractFloat32,
} from '../../src/arith/index.js';
import { decode, encode, formats } from '../../src/formats/index.js';
import {
  conversions,
  exp2ApproxFtz,
  lg2ApproxFtz,
  rcpApproxFtz,
  tensorCoreProduct,
  type TensorCoreArithmetic,
} from '../../src/hardware/index.js';
import { exp2Polynomial } from './exp2.js';
import { fragmentColumns, usesPolynomial } from './exp2-tuning.js';
import { seesAKey } from './forward-blocks.js';
import { fa4TensorCore, type Fa4Configuration } from './forward-configuration.js';
import { naturalLogOf2, warpRows } from './forward-constants.js';
import { blockMmas, type ForwardTile } from './forward-tile.js';

const { fp32 } = formats;

/** A function of fp32 bit patterns as one of numbers. */
function onNumbers(instruction: (bits: number) => number): (x: number) => number {
  return (x) => decode(fp32, instruction(encode(fp32, x)));
}

const exp2 = onNumbers(exp2ApproxFtz);
const log2 = onNumbers(lg2ApproxFtz);
const reciprocal = onNumbers(rcpApproxFtz);

/** PTX's max: a NaN loses. */
function maximum(a: number, b: number): number {
  if (Number.isNaN(a)) return b;
  return b > a ? b : a;
}

/** A matrix of bit patterns with rows of `columns`, with zeros to the right and below. */
function padded(
  source: Uint16Array,
  columns: number,
  size: { readonly rows: number; readonly columns: number },
): Uint16Array {
  const target = new Uint16Array(size.rows * size.columns);
  for (let row = 0; row * columns < source.length; row++)
    target.set(source.subarray(row * columns, (row + 1) * columns), row * size.columns);
  return target;
}

function transposed(source: Uint16Array, rows: number, columns: number): Uint16Array {
  return Uint16Array.from(
    { length: rows * columns },
    (_, i) => source[(i % rows) * columns + Math.floor(i / rows)]!,
  );
}

function noCounts() {
  return {
    ...{ rowRescales: 0, rowRescalesSkipped: 0, warpRescales: 0, warpRescalesSkipped: 0 },
    ...{ polynomialLanes: 0, hardwareLanes: 0, mmas: 0 },
  };
}

/**
 * FlashAttention-4's forward on one tile, instruction by instruction: the definition, for reading and
 * for checking, of what `createForwardTile` computes much faster. The order of operations
 * is that of flash_attn/cute/flash_fwd_sm100.py and softmax.py of Dao-AILab/flash-attention; every
 * operation is fp32, rounds to nearest even and keeps subnormals, except where an instruction of the
 * special function unit flushes them.
 *
 * @param scale softmax scale times log2 e, an fp32 number
 */
export function createPlainForwardTile(
  configuration: Fa4Configuration,
  format: 'bf16' | 'fp16',
  { qkDim, vDim }: { readonly qkDim: number; readonly vDim: number },
  scale: number,
): ForwardTile {
  const { exp2: pattern, rescaleThreshold, maxOffset, lseFused, blockKeys } = configuration;
  const arithmetic: TensorCoreArithmetic = fa4TensorCore(configuration.architecture, format);
  const { productsPerSum } = arithmetic;
  const inner = productsPerSum * Math.ceil(qkDim / productsPerSum);
  const toInput = conversions[format === 'bf16' ? 'cvt.rn.bf16x2.f32' : 'cvt.rn.f16x2.f32'];
  const isPolynomial = Array.from({ length: blockKeys }, (_, j) =>
    usesPolynomial(
      pattern,
      Math.floor(j / fragmentColumns),
      j % fragmentColumns,
      blockKeys / fragmentColumns,
    ),
  );

  let rows = 0;
  let isFirst = true;
  let hasSeenKeys = false;
  let queries: Uint16Array = new Uint16Array();
  let max: number[] = [];
  let sum: number[] = [];
  let out: Uint32Array = new Uint32Array();
  let rescales = new Int32Array();
  let counters = noCounts();

  /** The weights of one row, fp32, and the factor α on what was summed before. */
  function softmaxStep(row: number, scores: readonly number[]): { p: number[]; alpha: number } {
    const before = max[row]!;
    const now = scores.reduce(maximum, isFirst ? -Infinity : before);
    let safe = now === -Infinity ? 0 : now;
    let alpha = 0;
    max[row] = now;
    if (!isFirst) {
      const lag = multiplyFloat32(subtractFloat32(before, safe), scale);
      alpha = exp2(lag);
      if (rescaleThreshold > 0 && lag >= -rescaleThreshold) {
        if (alpha < 1 && hasSeenKeys) counters.rowRescalesSkipped++;
        max[row] = before;
        safe = before;
        alpha = 1;
      } else if (alpha < 1 && hasSeenKeys) {
        counters.rowRescales++;
        rescales[row]!++;
      }
    }
    const bias = subtractFloat32(maxOffset, multiplyFloat32(safe, scale));
    const p = scores.map((s, j) => {
      const x = fusedMultiplyAddFloat32(s, scale, bias);
      return isPolynomial[j] ? exp2Polynomial(x, pattern.degree) : exp2(x);
    });
    return { p, alpha };
  }

  /** Four packed accumulators over pairs of weights, then a tree; the first begins with l·α. */
  function rowSum(start: number, p: readonly number[]): number {
    const lanes = p.slice(0, 8);
    lanes[0] = addFloat32(start, p[0]!);
    lanes[1] = addFloat32(0, p[1]!);
    for (let j = 8; j < p.length; j++) lanes[j % 8] = addFloat32(lanes[j % 8]!, p[j]!);
    const pairs = [0, 1].map((lane) =>
      addFloat32(
        addFloat32(lanes[lane]!, lanes[2 + lane]!),
        addFloat32(lanes[4 + lane]!, lanes[6 + lane]!),
      ),
    );
    return addFloat32(pairs[0]!, pairs[1]!);
  }

  /** Multiplies the output of every warp that has a row with α < 1. */
  function rescaleOutput(alphas: readonly number[]): void {
    for (let first = 0; first < rows; first += warpRows) {
      const warp = alphas.slice(first, first + warpRows);
      if (!warp.some((alpha) => alpha < 1)) {
        if (hasSeenKeys) counters.warpRescalesSkipped++;
        continue;
      }
      if (hasSeenKeys) counters.warpRescales++;
      for (let i = first * vDim; i < (first + warp.length) * vDim; i++)
        out[i] = encode(
          fp32,
          multiplyFloat32(decode(fp32, out[i]!), alphas[Math.floor(i / vDim)]!),
        );
    }
  }

  return {
    begin: (source, count) => {
      rows = count;
      isFirst = true;
      hasSeenKeys = false;
      queries = padded(source, qkDim, { rows, columns: inner });
      max = Array.from({ length: rows }, () => -Infinity);
      sum = Array.from({ length: rows }, () => 0);
      out = new Uint32Array(rows * vDim);
      rescales = new Int32Array(rows);
      counters = noCounts();
    },
    block: (block, keys, values) => {
      const scoreBits = tensorCoreProduct(arithmetic, {
        ...{ m: rows, n: blockKeys, k: inner, aFormat: format, bFormat: format, a: queries },
        bTransposed: padded(keys, qkDim, { rows: blockKeys, columns: inner }),
        c: new Uint32Array(rows * blockKeys),
      });
      const weights = new Uint16Array(rows * blockKeys);
      const alphas = block.visible.map(({ begin, end }, row) => {
        const scores = Array.from({ length: blockKeys }, (_, j) =>
          j >= begin && j < end ? decode(fp32, scoreBits[row * blockKeys + j]!) : -Infinity,
        );
        const { p, alpha } = softmaxStep(row, scores);
        p.forEach((x, j) => (weights[row * blockKeys + j] = toInput.evaluate(encode(fp32, x))));
        sum[row] = rowSum(multiplyFloat32(sum[row]!, alpha), p);
        return alpha;
      });
      const polynomials = isPolynomial.filter(Boolean).length;
      counters.polynomialLanes += rows * polynomials;
      counters.hardwareLanes += rows * (blockKeys - polynomials);
      counters.mmas += blockMmas(inner, blockKeys, vDim, productsPerSum);
      if (!isFirst) rescaleOutput(alphas);
      out = tensorCoreProduct(arithmetic, {
        ...{ m: rows, n: vDim, k: blockKeys, aFormat: format, bFormat: format, a: weights },
        bTransposed: transposed(
          padded(values, vDim, { rows: blockKeys, columns: vDim }),
          blockKeys,
          vDim,
        ),
        c: isFirst ? new Uint32Array(rows * vDim) : out,
      });
      isFirst = false;
      hasSeenKeys ||= seesAKey(block);
    },
    finish: () => {
      const isEmpty = sum.map((l) => l === 0 || Number.isNaN(l));
      const factors = sum.map((l, row) => reciprocal(isEmpty[row] ? 1 : l));
      // As bits, since a NaN has them too.
      const lse = Uint32Array.from(sum, (l, row) => {
        if (isEmpty[row]) return encode(fp32, -Infinity);
        const logarithm = subtractFloat32(log2(l), maxOffset);
        const total = lseFused
          ? fusedMultiplyAddFloat32(max[row]!, scale, logarithm)
          : addFloat32(multiplyFloat32(max[row]!, scale), logarithm);
        return encode(fp32, multiplyFloat32(total, naturalLogOf2));
      });
      const rounded = Uint16Array.from(out, (bits, i) => {
        const product = multiplyFloat32(decode(fp32, bits), factors[Math.floor(i / vDim)]!);
        return toInput.evaluate(encode(fp32, product));
      });
      return { out: rounded, lse: new Float32Array(lse.buffer), rescales, counters };
    },
  };
}
