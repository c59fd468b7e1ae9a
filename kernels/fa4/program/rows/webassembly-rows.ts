import { conversions } from '../../../../src/hardware/index.js';
import { lazily } from '../../../../src/reuse.js';
import { roundingConversions, warpRows } from '../../../online-softmax/units.js';
import type { TileSetting } from '../../recipe.js';
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
} from './row-arithmetic.js';
import { factorColumns, RowMemory } from './row-memory.js';

const infinity = 0x7f800000;
/** The NaN that the GPU's fp32 arithmetic gives. */
const canonicalNan = 0x7fffffff;
const one = 0x3f800000;
const minusZero = 0x80000000;
const magnitudeMask = 0x7fffffff;

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

/** The softmax of the rows of a block by the module. */
class RowSoftmax {
  readonly #memory: RowMemory;
  readonly #blockKeys: number;
  readonly #rescaleThreshold: number;
  readonly #fragment: FragmentRegisters;

  constructor(memory: RowMemory, { configuration }: TileSetting, fragment: FragmentRegisters) {
    this.#memory = memory;
    this.#blockKeys = configuration.blockKeys;
    this.#rescaleThreshold = configuration.rescaleThreshold;
    this.#fragment = fragment;
  }

  run(registers: SoftmaxRegisters, columns: VisibleColumns | null, isFirst: boolean): void {
    const { kernels, tile, scores, weights, maxima, sums, alphas } = this.#memory;
    gatherRows(registers.scores, this.#fragment.scores, scores);
    this.#placeVisible(columns);
    maxima.set(registers.maxima);
    sums.set(registers.sums);
    kernels.softmaxStep(tile, warpRows, isFirst, false);
    // Few blocks have a maximum of 0, and the module has overwritten its scores.
    const rowScores = lazily(() => {
      const rows = new Uint32Array(warpRows * this.#blockKeys);
      gatherRows(registers.scores, this.#fragment.scores, rows);
      return rows;
    });
    for (let row = 0; row < warpRows; row++) {
      const bits = maxima[row];
      const seen = (): boolean => this.#seesZero(rowScores(), row);
      registers.maxima[row] =
        (bits & magnitudeMask) === 0
          ? this.#signedZero(row, registers.maxima[row], isFirst, seen)
          : bits;
    }
    copyWithCanonicalNans(sums, registers.sums);
    copyWithCanonicalNans(alphas, registers.alphas);
    scatterRows(weights, this.#fragment.weights, registers.weights);
  }

  #placeVisible(columns: VisibleColumns | null): void {
    const { visible } = this.#memory;
    for (let row = 0; row < warpRows; row++) {
      visible[2 * row] = columns?.begin?.[row] ?? 0;
      visible[2 * row + 1] = columns === null ? this.#blockKeys : columns.end[row];
    }
  }

  /**
   * A maximum of 0 with the sign that PTX's max gives it, which takes +0 to be above −0. Comparing
   * as numbers keeps the zero that came first.
   *
   * @param before the maximum in use before the block
   * @param seen whether the row sees a score of +0
   */
  #signedZero(row: number, before: number, isFirst: boolean, seen: () => boolean): number {
    if (!isFirst) {
      const isKept = this.#rescaleThreshold > 0 && this.#memory.alphas[row] === one;
      if (before === 0 || (isKept && before === minusZero)) return before;
    }
    return seen() ? 0 : minusZero;
  }

  /** Whether a row sees a score with the bits of +0. */
  #seesZero(rowScores: Uint32Array, row: number): boolean {
    const blockKeys = this.#blockKeys;
    const { visible } = this.#memory;
    const limit = (column: number): number =>
      row * blockKeys + Math.min(Math.max(column, 0), blockKeys);
    return rowScores.subarray(limit(visible[2 * row]), limit(visible[2 * row + 1])).includes(0);
  }
}

/** The end of rows by the module: the factors of O, and the LSEs. */
function createRowEnd({ kernels, tile, maxima, sums, factors, lse }: RowMemory): {
  readonly normalisers: (rowSums: Uint32Array) => Uint32Array<ArrayBuffer>;
  readonly logSumExp: (rowMaxima: Uint32Array, rowSums: Uint32Array) => Uint32Array<ArrayBuffer>;
} {
  return {
    normalisers: (rowSums) => {
      sums.set(rowSums);
      // 1 times a factor is the factor.
      factors.fill(one);
      kernels.normalise(tile, warpRows, factorColumns);
      const rows = new Uint32Array(warpRows);
      copyWithCanonicalNans(
        rows.map((_, row) => factors[row * factorColumns]),
        rows,
      );
      return rows;
    },
    logSumExp: (rowMaxima, rowSums) => {
      maxima.set(rowMaxima);
      sums.set(rowSums);
      // No columns of output: the module then computes the LSE alone.
      kernels.normalise(tile, warpRows, 0);
      return lse.slice();
    },
  };
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
  const fragment = fragmentRegisters(setting, parts);
  const counts = rowCounts(setting);
  const toOut = conversions[roundingConversions[setting.configuration.outFormat]];
  const memory = new RowMemory(setting);
  const softmax = new RowSoftmax(memory, setting, fragment);
  const end = createRowEnd(memory);
  return {
    softmax: (registers, columns, isFirst) => {
      checkSoftmaxRegisters(registers, columns, setting);
      softmax.run(registers, columns, isFirst);
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
      return { factors: end.normalisers(rowSums), issues: counts.normalisers };
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
      return { lse: end.logSumExp(rowMaxima, rowSums), issues: counts.logSumExp };
    },
  };
}
