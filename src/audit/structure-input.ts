import type { AttentionReference } from '../../oracles/index.js';
import type { FormatName } from '../formats/index.js';
import type { Problem } from '../problem/index.js';
import type { KernelBound } from './bounds/index.js';
import type { Premises } from './premises.js';

/** What the structure tests judge, and how strictly. */
export interface StructureInput {
  readonly problem: Problem;
  readonly reference: AttentionReference;
  /** [batch, heads, queries, v dim], decoded. */
  readonly out: Float64Array;
  readonly outputFormat: FormatName;
  /** [batch, heads, queries], decoded, with the format that it was stored in; null for none. */
  readonly lse: { readonly values: Float64Array; readonly format: FormatName } | null;
  readonly bound: KernelBound;
  readonly premises: Premises;
  readonly falseAlarmRate: number;
}
