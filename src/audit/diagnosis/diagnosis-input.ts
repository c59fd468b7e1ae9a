import type { AttentionReference } from '../../../oracles/index.js';
import type { Problem } from '../../problem/index.js';
import type { KernelBound } from '../bounds/index.js';
import type { JudgedOutputs } from '../judge-quantity.js';

/** A failed output with what the audit knows about it. */
export interface DiagnosisInput {
  readonly problem: Problem;
  readonly reference: AttentionReference;
  readonly outputs: JudgedOutputs;
  readonly bound: KernelBound;
}
