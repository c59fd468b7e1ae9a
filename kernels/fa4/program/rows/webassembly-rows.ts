import { conversions } from '../../../../src/hardware/index.js';
import { createAllocator, lazily } from '../../../../src/reuse.js';
import { roundingConversions, warpRows } from '../../../online-softmax/units.js';
import {
  forwardRecipe,
  forwardTile,
} from '../../../online-softmax/webassembly/forward.generated.js';
import {
  forwardRecipeOf,
  instantiateForward,
  parameterTableBytes,
} from '../../../online-softmax/webassembly/module.js';
import { fa4Recipe, type TileSetting } from '../../recipe.js';
import { rowCounts } from './instruction-counts.js';
import {
  checkRegisters,
  checkSoftmaxRegisters,
  fragmentRegisters,
  type FragmentRegisters,
  gatherRows,
  pairedColumns,
  type RowArithmetic,
  scatterRows,
  type SoftmaxRegisters,
  type VisibleColumns,
  weightWords,
} from './row-arithmetic.js';

const infinity = 0x7f800000;
/** The NaN that the GPU's fp32 arithmetic gives. */
const canonicalNan = 0x7fffffff;
const one = 0x3f800000;
const minusZero = 0x80000000;
const magnitudeMask = 0x7fffffff;
/** Columns of the smallest piece that `normalise` takes. */
const factorColumns = 4;

/** Copies fp32 bits and replaces every NaN by the GPU's: WebAssembly does not define which NaN it returns. */
function copyWithCanonicalNans(source: Uint32Array, target: Uint32Array): void {
  for (let i = 0; i < source.length; i++) {
    const bits = source[i];
    target[i] = (bits & magnitudeMask) > infinity ? canonicalNan : bits;
  }
}

function floatsOf({ buffer, byteOffset, length }: Uint32Array): Float32Array {
  return new Float32Array(buffer, byteOffset, length);
}

/** `products`[i] = `numbers`[i] · the factor of its lane, fp32 bits, rounded once; may be in place. */
function multiplyRows(numbers: Uint32Array, factors: Uint32Array, products: Uint32Array): void {
  const columns = numbers.length / warpRows;
  const [from, by, to] = [floatsOf(numbers), floatsOf(factors), floatsOf(products)];
  for (let lane = 0, i = 0; lane < warpRows; lane++) {
    const factor = by[lane];
    for (const end = i + columns; i < end; i++) {
      // The fp64 product of two fp32 numbers is exact, and storing it rounds.
      const product = from[i] * factor;
      if (product === product) to[i] = product;
      else products[i] = canonicalNan;
    }
  }
}

/**
 * The rows' arithmetic by the WebAssembly of the forward: an instance with the memory of one warp, some
 * hundred kilobytes, which holds nothing between calls, so that one serves any number of warps.
 *
 * @param parts division of scores and weights into registers; default one part each
 * @throws RequestError for parts that do not make up a row
 */
export function createWebAssemblyRows(
  setting: TileSetting,
  parts: Partial<FragmentRegisters> = {},
): RowArithmetic {
  const { configuration, format } = setting;
  const { blockKeys, rescaleThreshold, outFormat } = configuration;
  const fragment = fragmentRegisters(setting, parts);
  const counts = rowCounts(setting);
  const toOut = conversions[roundingConversions[outFormat]];
  const words = weightWords(configuration, format);
  const kernels = instantiateForward();
  const rowWords = blockKeys + words + factorColumns + 16;
  const allocator = createAllocator(kernels.memory, 4 * warpRows * rowWords + parameterTableBytes);
  const { buffer } = kernels.memory;

  /** Words of memory, `columns` for each row. */
  function place(columns: number): { readonly address: number; readonly bits: Uint32Array } {
    const address = allocator.allocate(4 * warpRows * columns);
    return { address, bits: new Uint32Array(buffer, address, warpRows * columns) };
  }
  const scores = place(blockKeys);
  const weights = place(words);
  const visibleAt = place(2);
  const visible = new Int32Array(buffer, visibleAt.address, 2 * warpRows);
  const [maxima, sums, alphas, rescales, lse] = [place(1), place(1), place(1), place(1), place(1)];
  const factors = place(factorColumns);
  const recipe = forwardRecipeOf(allocator, fa4Recipe(setting, 1), allocator.allocate(16));
  const tile = allocator.struct(forwardTile).write({
    recipe: allocator.struct(forwardRecipe).write(recipe),
    keys: blockKeys,
    scores: scores.address,
    weights: weights.address,
    visible: visibleAt.address,
    maxima: maxima.address,
    sums: sums.address,
    alphas: alphas.address,
    lse: lse.address,
    rescales: rescales.address,
    out: factors.address,
    // Nothing is rounded here.
    result: 0,
  });

  function placeVisible(columns: VisibleColumns | null): void {
    for (let row = 0; row < warpRows; row++) {
      visible[2 * row] = columns?.begin?.[row] ?? 0;
      visible[2 * row + 1] = columns === null ? blockKeys : columns.end[row];
    }
  }

  /**
   * A maximum of 0 with the sign that PTX's max gives it, which takes +0 to be above −0. Comparing
   * as numbers keeps the zero that came first.
   *
   * @param before the maximum in use before the block
   * @param seen whether the row sees a score of +0
   */
  function signedZero(row: number, before: number, isFirst: boolean, seen: () => boolean): number {
    if (!isFirst) {
      const isKept = rescaleThreshold > 0 && alphas.bits[row] === one;
      if (before === 0 || (isKept && before === minusZero)) return before;
    }
    return seen() ? 0 : minusZero;
  }

  /** Whether a row sees a score with the bits of +0. */
  function seesZero(rowScores: Uint32Array, row: number): boolean {
    const limit = (column: number): number =>
      row * blockKeys + Math.min(Math.max(column, 0), blockKeys);
    return rowScores.subarray(limit(visible[2 * row]), limit(visible[2 * row + 1])).includes(0);
  }

  function softmax(
    registers: SoftmaxRegisters,
    columns: VisibleColumns | null,
    isFirst: boolean,
  ): void {
    gatherRows(registers.scores, fragment.scores, scores.bits);
    placeVisible(columns);
    maxima.bits.set(registers.maxima);
    sums.bits.set(registers.sums);
    kernels.softmaxStep(tile, warpRows, isFirst, false);
    // Few blocks have a maximum of 0, and the module has overwritten its scores.
    const rowScores = lazily(() => {
      const rows = new Uint32Array(warpRows * blockKeys);
      gatherRows(registers.scores, fragment.scores, rows);
      return rows;
    });
    for (let row = 0; row < warpRows; row++) {
      const bits = maxima.bits[row];
      registers.maxima[row] =
        (bits & magnitudeMask) === 0
          ? signedZero(row, registers.maxima[row], isFirst, () => seesZero(rowScores(), row))
          : bits;
    }
    copyWithCanonicalNans(sums.bits, registers.sums);
    copyWithCanonicalNans(alphas.bits, registers.alphas);
    scatterRows(weights.bits, fragment.weights, registers.weights);
  }

  return {
    softmax: (registers, columns, isFirst) => {
      checkSoftmaxRegisters(registers, columns, setting);
      softmax(registers, columns, isFirst);
      const mask = columns === null ? 'none' : columns.begin === null ? 'end' : 'begin and end';
      return counts.softmax(mask, isFirst);
    },
    needsRescale: (rowAlphas) => {
      checkRegisters('alphas', rowAlphas, warpRows);
      const numbers = floatsOf(rowAlphas);
      const ballot = numbers.reduce((bits, alpha, lane) => bits | (Number(alpha < 1) << lane), 0);
      return { ballot: ballot >>> 0, issues: counts.needsRescale };
    },
    rescale: (out, rowAlphas) => {
      const columns = pairedColumns('out', out);
      checkRegisters('alphas', rowAlphas, warpRows);
      multiplyRows(out, rowAlphas, out);
      return counts.rescale(columns);
    },
    normalisers: (rowSums) => {
      checkRegisters('sums', rowSums, warpRows);
      sums.bits.set(rowSums);
      // 1 times a factor is the factor.
      factors.bits.fill(one);
      kernels.normalise(tile, warpRows, factorColumns);
      const rows = new Uint32Array(warpRows);
      copyWithCanonicalNans(
        rows.map((_, row) => factors.bits[row * factorColumns]),
        rows,
      );
      return { factors: rows, issues: counts.normalisers };
    },
    normalise: (out, rowFactors, packed) => {
      const columns = pairedColumns('out', out);
      checkRegisters('factors', rowFactors, warpRows);
      checkRegisters('words', packed, out.length / 2);
      const rounded = new Uint32Array(out.length);
      multiplyRows(out, rowFactors, rounded);
      toOut.evaluateArray(rounded, rounded);
      for (let i = 0; i < packed.length; i++)
        packed[i] = rounded[2 * i] | (rounded[2 * i + 1] << 16);
      return counts.normalise(columns);
    },
    logSumExp: (rowMaxima, rowSums) => {
      checkRegisters('maxima', rowMaxima, warpRows);
      checkRegisters('sums', rowSums, warpRows);
      maxima.bits.set(rowMaxima);
      sums.bits.set(rowSums);
      // No columns of output: the module then computes the LSE alone.
      kernels.normalise(tile, warpRows, 0);
      return { lse: lse.bits.slice(), issues: counts.logSumExp };
    },
  };
}
