import type { AttentionReference } from '../../oracles/index.js';
import type { Problem } from '../problem/index.js';
import type { KernelBound } from './bounds/index.js';
import type { GivenOutputs } from './kernel-outputs.js';
import type { Premises } from './premises.js';

/** What the structure tests judge, and how strictly. */
export interface StructureInput {
  readonly problem: Problem;
  readonly reference: AttentionReference;
  readonly outputs: GivenOutputs;
  readonly bound: KernelBound;
  readonly premises: Premises;
  readonly falseAlarmRate: number;
}
