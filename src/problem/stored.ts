import type { Tensor } from '../formats/index.js';
import type { BooleanTensor, IntegerTensor, ProblemFeatures } from './features.js';

/** A tensor of a problem as files and kernels have it: numbers, integers or truths. */
export type StoredTensor = Tensor | IntegerTensor | BooleanTensor;

/** Stored tensors, by their names in a problem file. */
export type StoredTensors = Readonly<Record<string, StoredTensor>>;

/** How sequences lie in a tensor of queries, or of keys and values. */
export interface StoredRows {
  /**
   * `packed`: one sequence behind the other, [slots, heads, dim]; `padded`: each with as many slots,
   * [batch, heads, slots, dim] or [batch, slots, heads, dim]; `paged`: in pages, [pages, slots, heads, dim] or
   * [pages, heads, slots, dim].
   */
  readonly form: 'packed' | 'padded' | 'paged';
  /** Sequences that are padded, pages, or 1. */
  readonly groups: number;
  /** Slots of each group: room for a sequence, the page size, or all that there are. */
  readonly slotsPerGroup: number;
  /** Whether heads come before slots. */
  readonly headsFirst: boolean;
  /** For each row of the canonical tensor the slot that holds it, counted over [groups, slots per group]. */
  readonly slots: Int32Array;
}

/** One sequence behind the other. */
export interface PackedForm {
  readonly kind: 'packed';
  /** Unused slots behind each sequence; default 0. */
  readonly gap?: number;
  /** Unused slots behind them all; default 0. */
  readonly spare?: number;
}

/** Each sequence with as many slots. */
export interface PaddedForm {
  readonly kind: 'padded';
  /** Unused slots behind the longest sequence; default 0. */
  readonly spare?: number;
  /** Unused slots before each sequence, of keys only; default none. */
  readonly left?: readonly number[];
  /** Whether heads come before slots; default true. */
  readonly headsFirst?: boolean;
}

/** Keys in pages. */
export interface PagedForm {
  readonly kind: 'paged';
  readonly pageSize: number;
  /** Pages that no sequence uses; default 0. */
  readonly spare?: number;
  /** Where each of so many pages lies, first those of the first sequence, last the spare ones; default in order. */
  readonly arrange?: (pages: number) => readonly number[];
  /** Whether full pages of equal bits are kept once; default false. */
  readonly shared?: boolean;
  /** Whether heads come before slots, FlashInfer's HND; default false, its NHD. */
  readonly headsFirst?: boolean;
  /** Whether one tensor, `kv_cache`, holds keys and values; default false. */
  readonly joined?: boolean;
  /** Whether pages are listed one sequence behind the other, as FlashInfer lists them; default a `block_table`. */
  readonly listed?: boolean;
}

/** In which form a problem is posed. */
export interface StoredForm {
  readonly queries: PackedForm | PaddedForm;
  readonly keys: PackedForm | PaddedForm | PagedForm;
}

/**
 * How a problem with packed sequences was posed: what a kernel is given, and how its outputs are read. The
 * problem itself has the rows that count, gathered; unused slots are here alone. `storedOf` reads it.
 */
export interface StoredProblem {
  /** Outputs lie as queries do. */
  readonly queries: StoredRows;
  readonly keys: StoredRows;
  /** All tensors as posed, unused slots too; null where they were not kept. */
  readonly tensors: StoredTensors | null;
  /** The form, where `storeProblem` made it: in it a changed problem is posed again. */
  readonly form?: StoredForm;
  /** What was posed so: see `storedOf`. */
  readonly of: ProblemFeatures & { readonly q: Tensor; readonly k: Tensor; readonly v: Tensor };
}

/** How many slots there are in a tensor of such rows. */
export function slotCount({ groups, slotsPerGroup }: StoredRows): number {
  return groups * slotsPerGroup;
}

/** The shape of a tensor of such rows. */
export function storedShape(rows: StoredRows, heads: number, dim: number): readonly number[] {
  const { form, groups, slotsPerGroup, headsFirst } = rows;
  if (form === 'packed') return [slotsPerGroup, heads, dim];
  return headsFirst ? [groups, heads, slotsPerGroup, dim] : [groups, slotsPerGroup, heads, dim];
}

/** Where the element [slot, head, 0] of a tensor of such rows is. */
export function storedAt(
  { slotsPerGroup, headsFirst }: StoredRows,
  heads: number,
  dim: number,
): (slot: number, head: number) => number {
  if (!headsFirst) return (slot, head) => (slot * heads + head) * dim;
  return (slot, head) => {
    const group = Math.floor(slot / slotsPerGroup);
    return ((group * heads + head) * slotsPerGroup + (slot - group * slotsPerGroup)) * dim;
  };
}
