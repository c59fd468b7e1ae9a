import { instructionLengths, type TensorCoreArithmetic } from '../../../src/hardware/index.js';
import type { ScoreChange } from '../score-change.js';
import type { Exp2Unit, OutFormat } from '../units.js';

/** How queries and keys are cut. */
export interface BackwardTiling {
  /** Queries of a block: what one chain of products adds to dK and dV. */
  readonly queries: number;
  /** Keys of a block: the length of a chain of dQ, and what is added to dQ at a time. */
  readonly keys: number;
}

/** Of D, the products of O and dO: threads that each sum some columns, then sums over pairs of threads. */
export interface ProductSumLaw {
  /** Columns that a thread has next to one another. */
  readonly run: number;
  /** Columns that all threads of a row have at a time, by the head dimension of V; a thread has its runs in each. */
  readonly width: (vDim: number) => number;
  /** What a thread sums first: its runs one after another, or the first column of each, then the second. */
  readonly within: 'run-by-run' | 'column-by-column';
  /** Which threads' sums meet first: neighbours, or those that lie farthest apart. */
  readonly across: 'nearest-first' | 'farthest-first';
}

/** P = 2^(s·c − LSE·log2 e). */
interface WeightLaw {
  /** c, an fp32 number. */
  readonly scale: number;
  /** Whether the exponent is rounded once; otherwise s·c is rounded before the sum. */
  readonly isFused: boolean;
  readonly unit: Exp2Unit;
}

/**
 * Where dQ is summed. `shared`: in the pass over blocks of keys that gives dK and dV, a tile for every pair of blocks, added in
 * fp32 memory. `own`: in a pass of its own, one chain of products over all keys, of a dS that is scaled before it is rounded.
 */
export type QueryPass = 'shared' | 'own';

/** In which order what is summed in memory is added. `any`: as it happens, which a model runs as `ascending`. */
export type SumOrder = 'ascending' | 'descending' | 'any';

/**
 * How dK and dV of the query heads of a group become one. Added in fp32 memory, in some order; `chain`: they are no sums in memory, but
 * chains of products that go on from head to head; `rounded`: each head's are rounded, and added in fp32 afterwards, in ascending order.
 */
export type GroupOrder = Exclude<SumOrder, 'descending'> | 'chain' | 'rounded';

/**
 * What makes a kernel's backward that kernel: everything that decides the bits of dQ, dK and dV. The plain and the
 * WebAssembly backward work on recipes.
 *
 * All have in common: P is computed again from the stored LSE; a pass over blocks of keys, in each over blocks of
 * queries, in one order for all; dK and dV of a block of keys summed over the queries by the tensor cores; dQ a tile for every pair
 * of blocks, added in fp32 memory, unless it has a pass of its own; dS rounded before the scale is applied, which gradients are
 * multiplied by at the end.
 */
export interface BackwardRecipe {
  /** The kernel's name, for messages. */
  readonly kernel: string;
  /** Of Q, K, V, O, dO, P, dS and the gradients. */
  readonly format: OutFormat;
  /** Of all five matrix products. */
  readonly tensorCore: TensorCoreArithmetic;
  readonly tiling: BackwardTiling;
  /** Of the blocks of queries that a block of keys meets: the chains of dK and dV. */
  readonly chainOrder: 'ascending' | 'descending';
  readonly productSum: ProductSumLaw;
  /** What is done to a score before its exponent; null for nothing: the scale is in the exponents. */
  readonly scoreChange: ScoreChange | null;
  readonly weight: WeightLaw;
  /** What dQ and dK are multiplied by before they are rounded, an fp32 number. */
  readonly softmaxScale: number;
  readonly queryPass: QueryPass;
  /** Of the tiles of dQ, by blocks of keys. */
  readonly queryOrder: SumOrder;
  /**
   * Sums of dQ in memory that blocks of keys add their tiles to in turn, and that are added at the end in ascending order; 1: there is
   * one sum of dQ. Not with a pass of its own.
   */
  readonly queryBuffers: number;
  /** Counts only where a group has several query heads. */
  readonly groupOrder: GroupOrder;
  /** Whether dK of such a group is multiplied by the scale as a sum, or that of each head before it is added. */
  readonly groupScale: 'sum' | 'each';
}

/** A head dimension filled up to whole instructions of the tensor cores. */
export function filledBackwardDim(
  { tensorCore, format }: BackwardRecipe,
  dimension: number,
): number {
  const length = Math.max(...instructionLengths(tensorCore.instruction, format));
  return length * Math.ceil(dimension / length);
}

/** What dK is multiplied by, fp32 numbers: that of a query head before it is added to its group's, and the group's. */
export function keyFactors(
  { softmaxScale, groupScale }: Pick<BackwardRecipe, 'softmaxScale' | 'groupScale'>,
  groupSize: number,
): { readonly each: number; readonly sum: number } {
  return groupScale === 'each' && groupSize > 1
    ? { each: softmaxScale, sum: 1 }
    : { each: 1, sum: softmaxScale };
}
