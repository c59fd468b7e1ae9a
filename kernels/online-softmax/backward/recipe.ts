import { instructionLengths, type TensorCoreArithmetic } from '../../../src/hardware/index.js';
import type { ScoreChange } from '../score-change.js';
import type { Exp2Unit, OutFormat } from '../units.js';

/** Block sizes of queries and keys. */
export interface BackwardTiling {
  /** Queries of a block: one chain of products adds a block to dK and dV. */
  readonly queries: number;
  /** Keys of a block: the length of a chain of dQ, and the keys whose tile is added to dQ at a time. */
  readonly keys: number;
}

/**
 * Order of the sum D of the products of O and dO: threads that each sum some columns, then sums over pairs
 * of threads.
 */
export interface ProductSumLaw {
  /** Columns that a thread has next to one another. */
  readonly run: number;
  /** Columns that all threads of a row have at a time, by the head dimension of V; a thread has its runs in each. */
  readonly width: (vDim: number) => number;
  /** Order of a thread's sum: its runs one after another, or the first column of each, then the second. */
  readonly within: 'run-by-run' | 'column-by-column';
  /** Order in which threads' sums are added: neighbours first, or those that lie farthest apart. */
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
 * The pass that sums dQ. `shared`: in the pass over blocks of keys that gives dK and dV, a tile for every pair of blocks, added
 * in fp32 memory. `own`: in a pass of its own, one chain of products over all keys, of a dS that is scaled before it is
 * rounded.
 */
type QueryPass = 'shared' | 'own';

/** Order of additions to sums in memory. `any`: as it happens, which a model runs as `ascending`. */
type SumOrder = 'ascending' | 'descending' | 'any';

/**
 * The sum of dK and dV of a group's query heads. Added in fp32 memory, in some order; `chain`: they are no sums in memory, but chains of
 * products that go on from head to head; `rounded`: each head's are rounded, and added in fp32 afterwards, in ascending order.
 */
type GroupOrder = Exclude<SumOrder, 'descending'> | 'chain' | 'rounded';

/**
 * A kernel's backward as data: everything that decides the bits of dQ, dK and dV. The plain and the WebAssembly backward work on
 * recipes.
 *
 * Common to all: P is computed again from the stored LSE; a pass over blocks of keys, in each over blocks of queries, in one order
 * for all; dK and dV of a block of keys summed over the queries by the tensor cores; dQ a tile for every pair of blocks, added in
 * fp32 memory, unless it has a pass of its own; dS rounded before the scale is applied, which gradients are multiplied by at the
 * end.
 */
export interface BackwardRecipe {
  /** The kernel's name, for messages. */
  readonly kernel: string;
  /** Format of Q, K, V, O, dO, P, dS and the gradients. */
  readonly format: OutFormat;
  /** Arithmetic of all five matrix products. */
  readonly tensorCore: TensorCoreArithmetic;
  readonly tiling: BackwardTiling;
  /** Order of the blocks of queries that a block of keys meets: the chains of dK and dV. */
  readonly chainOrder: 'ascending' | 'descending';
  readonly productSum: ProductSumLaw;
  /** Change of a score before its exponent; null for none: the scale is in the exponents. */
  readonly scoreChange: ScoreChange | null;
  readonly weight: WeightLaw;
  /** Factor of dQ and dK before they are rounded, an fp32 number. */
  readonly softmaxScale: number;
  readonly queryPass: QueryPass;
  /** Order of the tiles of dQ, by blocks of keys. */
  readonly queryOrder: SumOrder;
  /**
   * Sums of dQ in memory that blocks of keys add their tiles to in turn, and that are added at the end in ascending order; 1: there is
   * one sum of dQ. Not with a pass of its own.
   */
  readonly queryBuffers: number;
  /** Used only where a group has several query heads. */
  readonly groupOrder: GroupOrder;
  /** Whether dK of such a group is multiplied by the scale as a sum, or each head's dK before it is added. */
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

/** Factors of dK, fp32 numbers: that of a query head's before it is added to its group's, and the group's. */
export function keyFactors(
  { softmaxScale, groupScale }: Pick<BackwardRecipe, 'softmaxScale' | 'groupScale'>,
  groupSize: number,
): { readonly each: number; readonly sum: number } {
  return groupScale === 'each' && groupSize > 1
    ? { each: softmaxScale, sum: 1 }
    : { each: 1, sum: softmaxScale };
}
