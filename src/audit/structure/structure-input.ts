import type { AttentionReference } from '../../../oracles/index.js';
import type { Problem } from '../../problem/index.js';
import type { KernelBound } from '../bounds/index.js';
import type { GivenOutputs } from '../kernel-outputs.js';
import type { Premises } from '../premises/premises.js';

/** What the structure tests judge, and how strictly. */
export interface StructureInput {
  readonly problem: Problem;
  readonly reference: AttentionReference;
  readonly outputs: GivenOutputs;
  readonly bound: KernelBound;
  readonly premises: Premises;
  readonly falseAlarmRate: number;
}

/** The most that a softcap's tanh may change a score, which is a function of the score; 0 without one. */
export function tanhError({ softcap }: Problem, { tanh, elementwise }: Premises): number {
  return softcap === null ? 0 : (tanh + 4 * elementwise) * softcap;
}
