import type { MemoryModelName } from '../../../../src/machine/index.js';
import type { RingDepths } from '../plan.js';
import type { EditName } from './edits.js';
import type { Move } from './moves.js';

/** One mistake in how the program's warps wait for one another. */
export interface MachineMutant {
  /** As `remove: K/V empty: load waits`; no two have the same. */
  readonly id: string;
  /** The instructions that the mistake is about. */
  readonly site: string;
  readonly kind: EditName | Move['direction'] | 'ring';
  readonly description: string;
  /** Where the mistake was made. */
  readonly source?: string;
  /** Whether it changes anything in a pair of CTAs only. */
  readonly needsPair: boolean;
  /** The memory model in which it is one; the program then has the fences that the PTX ISA asks for. */
  readonly model: MemoryModelName;
  readonly change:
    | { readonly edit: EditName }
    | { readonly move: Move }
    | { readonly ring: { readonly party: keyof RingDepths; readonly more: 1 | -1 } };
}
