import type { InstructionCounts } from '../../../../src/machine/index.js';
import { type Fa4Configuration, type Fa4Format, fa4Formats } from '../../configuration.js';
import { warpRows } from '../../../online-softmax/units.js';
import { RequestError } from '../../../../src/request-error.js';
import type { TileSetting } from '../../recipe.js';

/**
 * The registers of a warp's tcgen05.ld of the scores and tcgen05.st of P. The kernel moves a block in
 * several instructions, each of this many registers of a lane; together they hold
 * [part][lane][register].
 */
export interface FragmentRegisters {
  /** fp32 scores of a lane in one part; divides the block's columns. */
  readonly scores: number;
  /** Words of P of a lane in one part; divides those of a row. */
  readonly weights: number;
}

/**
 * A softmax warp's values for its 32 rows, one row in each lane; everything is bit patterns, and every
 * NaN is 0x7fffffff, as the GPU's arithmetic produces it.
 */
export interface SoftmaxRegisters {
  /** [32] fp32: the running maxima in use. */
  readonly maxima: Uint32Array<ArrayBuffer>;
  /** [32] fp32: the running sums of the exponentials. */
  readonly sums: Uint32Array<ArrayBuffer>;
  /** [32] fp32: the block's factors of the earlier sums. */
  readonly alphas: Uint32Array<ArrayBuffer>;
  /** fp32 scores of a block, [part][lane][register], as tcgen05.ld writes them. */
  readonly scores: Uint32Array<ArrayBuffer>;
  /**
   * The block's P, [part][lane][register], as tcgen05.st reads it: two 16-bit or four 8-bit weights in
   * a word, the leftmost column in the lowest bits.
   */
  readonly weights: Uint32Array<ArrayBuffer>;
}

/**
 * The columns of a block that each of the 32 rows sees: begin ≤ j < end. Limits may lie outside the
 * block, as the kernel computes them.
 */
export interface VisibleColumns {
  /** Null where the mask has no lower limit, and the kernel no instructions for one. */
  readonly begin: Int32Array | null;
  readonly end: Int32Array;
}

/** Instructions that a softmax step issues, in the kernel's order; between its parts the warp signals others. */
export interface SoftmaxIssues {
  /** The mask, the maxima and α, before α goes to the correction warps. */
  readonly maximum: InstructionCounts;
  /** Scaling, exponentials and their conversion, before P is stored. */
  readonly weights: InstructionCounts;
  /** The row sums, after P is stored. */
  readonly rowSum: InstructionCounts;
}

/**
 * The arithmetic of FlashAttention-4's softmax, correction and epilogue warps on the registers of one warp, lane by lane: fp32, rounded to
 * nearest even, subnormals kept, except where an instruction's name says otherwise. For all inputs the bits are those of the forward.
 *
 * Only arithmetic is counted: not the moves that pair registers for a packed instruction or join two conversions to fp8 in one word, nor the
 * instructions that load and store. Every method throws a RequestError for registers of other sizes. Source: flash_attn/cute/softmax.py,
 * utils.py, mask.py and flash_fwd_sm100.py of Dao-AILab/flash-attention.
 */
export interface RowArithmetic {
  /**
   * The softmax of one block: computes the weights and α from the scores, and updates maxima and
   * sums.
   *
   * @param visible null for a block that the kernel does not mask
   * @param isFirst whether the block is the first of its tile; maxima and sums are not read then
   */
  softmax(
    registers: SoftmaxRegisters,
    visible: VisibleColumns | null,
    isFirst: boolean,
  ): SoftmaxIssues;
  /**
   * The lanes with α < 1, as the vote of the correction warp gives them, bit l for lane l: where any is
   * set, the warp rescales all its rows.
   */
  needsRescale(alphas: Uint32Array): {
    readonly ballot: number;
    readonly issues: InstructionCounts;
  };
  /** O·α in place: `out` is [32][columns] fp32 bits, an even number of columns. */
  rescale(out: Uint32Array, alphas: Uint32Array): InstructionCounts;
  /**
   * Factors of O at the end, fp32 bits: rcp.approx.ftz of the sum, or of 1 where the sum is 0 or NaN,
   * times the descale of V.
   */
  normalisers(sums: Uint32Array): {
    readonly factors: Uint32Array<ArrayBuffer>;
    readonly issues: InstructionCounts;
  };
  /**
   * O times the factors, rounded to the output's format: `out` is [32][columns] fp32 bits, an even
   * number of columns, and stays as it is; `words` gets [32][columns / 2], the left column of a pair in
   * the low half.
   */
  normalise(out: Uint32Array, factors: Uint32Array, words: Uint32Array): InstructionCounts;
  /** The LSE of the rows, natural logarithm, fp32 bits; −∞ where the sum is 0 or NaN. */
  logSumExp(
    maxima: Uint32Array,
    sums: Uint32Array,
  ): { readonly lse: Uint32Array<ArrayBuffer>; readonly issues: InstructionCounts };
}

const minusInfinity = 0xff800000;

/** Words of P that a row of a block has. */
export function weightWords({ blockKeys }: Fa4Configuration, format: Fa4Format): number {
  return (blockKeys * fa4Formats[format].bits) / 32;
}

/** The registers of a softmax warp at the beginning of a tile: maxima −∞, all else 0. */
export function createSoftmaxRegisters(
  configuration: Fa4Configuration,
  format: Fa4Format,
): SoftmaxRegisters {
  return {
    maxima: new Uint32Array(warpRows).fill(minusInfinity),
    sums: new Uint32Array(warpRows),
    alphas: new Uint32Array(warpRows),
    scores: new Uint32Array(warpRows * configuration.blockKeys),
    weights: new Uint32Array(warpRows * weightWords(configuration, format)),
  };
}

/** Registers [part][lane][register] as rows [lane][part · register], in `rows`. */
export function gatherRows(parts: Uint32Array, registers: number, rows: Uint32Array): void {
  const columns = rows.length / warpRows;
  if (registers === columns) rows.set(parts);
  else
    for (let from = 0, first = 0; first < columns; first += registers)
      for (let at = first; at < rows.length; at += columns)
        for (let j = 0; j < registers; j++) rows[at + j] = parts[from++];
}

/** Rows [lane][part · register] as registers [part][lane][register], in `parts`. */
export function scatterRows(rows: Uint32Array, registers: number, parts: Uint32Array): void {
  const columns = rows.length / warpRows;
  if (registers === columns) parts.set(rows);
  else
    for (let to = 0, first = 0; first < columns; first += registers)
      for (let at = first; at < rows.length; at += columns)
        for (let j = 0; j < registers; j++) parts[to++] = rows[at + j];
}

/**
 * The parts of scores and weights with their defaults: one each, of all registers.
 * @throws RequestError for parts that do not make up a row
 */
export function fragmentRegisters(
  { configuration, format }: TileSetting,
  { scores, weights }: Partial<FragmentRegisters> = {},
): FragmentRegisters {
  const partOf = (name: string, part: number | undefined, row: number): number => {
    if (part === undefined) return row;
    if (!(Number.isInteger(part) && part >= 1 && row % part === 0))
      throw new RequestError(
        `${part} registers of ${name} in a part; a row has ${row}: give a divisor of it`,
      );
    return part;
  };
  return {
    scores: partOf('scores', scores, configuration.blockKeys),
    weights: partOf('weights', weights, weightWords(configuration, format)),
  };
}

/** @throws RequestError unless the registers hold `length` words */
export function checkRegisters(
  name: string,
  registers: { readonly length: number },
  length: number,
): void {
  if (registers.length !== length)
    throw new RequestError(
      `${registers.length} registers of ${name} for a warp; give ${length}, ${length / warpRows} for each lane`,
    );
}

/** @throws RequestError for registers of a softmax step of other sizes than the block's */
export function checkSoftmaxRegisters(
  registers: SoftmaxRegisters,
  visible: VisibleColumns | null,
  { configuration, format }: TileSetting,
): void {
  checkRegisters('maxima', registers.maxima, warpRows);
  checkRegisters('sums', registers.sums, warpRows);
  checkRegisters('alphas', registers.alphas, warpRows);
  checkRegisters('scores', registers.scores, warpRows * configuration.blockKeys);
  checkRegisters('weights', registers.weights, warpRows * weightWords(configuration, format));
  if (visible === null) return;
  if (visible.begin !== null) checkRegisters('visible.begin', visible.begin, warpRows);
  checkRegisters('visible.end', visible.end, warpRows);
}

/**
 * The columns of [32][columns] registers.
 * @throws RequestError unless they are an even number from 2 on
 */
export function pairedColumns(name: string, { length }: Uint32Array): number {
  const columns = length / warpRows;
  if (!(Number.isInteger(columns) && columns >= 2 && columns % 2 === 0))
    throw new RequestError(
      `${length} registers of ${name} for a warp; give 32 lanes an even number each`,
    );
  return columns;
}
