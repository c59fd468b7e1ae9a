import type { AttentionReference } from '../../../oracles/index.js';
import type { FormatName } from '../../formats/index.js';
import type { Problem } from '../../problem/index.js';
import type { KernelBound } from '../bounds/index.js';
import type { ElementTest } from '../element-test.js';
import type { LseTest } from '../lse-test.js';
import type { SpreadTest } from '../spread-test.js';
import type { StructureResult } from '../structure.js';

/** A failed output with what the audit knows about it. */
export interface DiagnosisInput {
  readonly problem: Problem;
  readonly reference: AttentionReference;
  /** Decoded, [batch, heads, queries, vDim]. */
  readonly out: Float64Array;
  readonly outputFormat: FormatName;
  /** Decoded, [batch, heads, queries], or null when none was given. */
  readonly lse: Float64Array | null;
  readonly bound: KernelBound;
  readonly elements: ElementTest;
  readonly spread: SpreadTest;
  readonly structure: readonly StructureResult[];
  readonly lseTest: LseTest | null;
}
