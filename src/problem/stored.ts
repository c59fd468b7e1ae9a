import type { Tensor } from '../formats/index.js';
import type { BooleanTensor, IntegerTensor, ProblemFeatures } from './features.js';

/** A tensor of a problem in files and for kernels: numbers, integers or truths. */
export type StoredTensor = Tensor | IntegerTensor | BooleanTensor;

/** Stored tensors, by their names in a problem file. */
export type StoredTensors = Readonly<Record<string, StoredTensor>>;

/** The layout of sequences in a tensor of queries, or of keys and values. */
export interface StoredRows {
  /**
   * `packed`: one sequence behind the other, [slots, heads, dim]; `padded`: each with as many slots,
   * [batch, heads, slots, dim] or [batch, slots, heads, dim]; `paged`: in pages, [pages, slots, heads, dim] or
   * [pages, heads, slots, dim].
   */
  readonly form: 'packed' | 'padded' | 'paged';
  /** Number of padded sequences or pages, or 1. */
  readonly groups: number;
  /** Slots of each group: the room of a sequence, the page size, or all slots. */
  readonly slotsPerGroup: number;
  /** Whether heads come before slots. */
  readonly headsFirst: boolean;
  /** The slot of each row of the canonical tensor, counted over [groups, slots per group]. */
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
  /** The place of each of that many pages, first those of the first sequence, last the spare ones; default in order. */
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

/** The form in which a problem is posed. */
export interface StoredForm {
  readonly queries: PackedForm | PaddedForm;
  readonly keys: PackedForm | PaddedForm | PagedForm;
}

/**
 * The form in which a problem with packed sequences was posed: the tensors to give to a kernel, and the
 * layout of its outputs. The problem itself has the used rows, gathered; unused slots exist only here.
 * `storedOf` reads it.
 */
export interface StoredProblem {
  /** The rows of queries, which are those of outputs too. */
  readonly queries: StoredRows;
  readonly keys: StoredRows;
  /** All tensors as posed, unused slots too; null if they were not kept. */
  readonly tensors: StoredTensors | null;
  /** The form, if `storeProblem` made it: a changed problem is posed in it again. */
  readonly form?: StoredForm;
  /** The members that were posed: see `storedOf`. */
  readonly of: ProblemFeatures & { readonly q: Tensor; readonly k: Tensor; readonly v: Tensor };
}

/** Number of slots in a tensor of such rows. */
export function slotCount({ groups, slotsPerGroup }: StoredRows): number {
  return groups * slotsPerGroup;
}

/** The shape of a tensor of such rows. */
export function storedShape(rows: StoredRows, heads: number, dim: number): readonly number[] {
  const { form, groups, slotsPerGroup, headsFirst } = rows;
  if (form === 'packed') return [slotsPerGroup, heads, dim];
  return headsFirst ? [groups, heads, slotsPerGroup, dim] : [groups, slotsPerGroup, heads, dim];
}

/** The index of element [slot, head, 0] in a tensor of such rows. */
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
