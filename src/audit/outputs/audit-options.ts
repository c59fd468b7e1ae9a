import type { AttentionReference, WorkingMemories } from '../../../oracles/index.js';
import type { PremiseDeclaration } from '../../../kernels/index.js';
import type { Quantity } from '../../problem/index.js';
import type { KernelArithmetic } from '../bounds/index.js';
import type { ElementBounds, RowsBoundVisitor } from '../element-bounds.js';
import type { GivenOutputs } from '../kernel-outputs.js';
import type { Thinning } from '../parts/thinning.js';
import type { RowStatistics } from '../row-statistics.js';

/** All data that an output is judged by, element by element and row by row. Arrays are not to be changed. */
export interface JudgedElements {
  readonly reference: AttentionReference;
  readonly outputs: GivenOutputs;
  /** Bounds for the arithmetic in use; `total` is the error that an element is allowed. */
  readonly bounds: ElementBounds;
  readonly rows: RowStatistics;
}

/** Options of an audit; without any, it judges by what any correct kernel may do. */
export interface AuditOptions {
  /** The kernel's arithmetic, where it is known; default: that of any correct kernel. */
  readonly arithmetic?: KernelArithmetic;
  /**
   * Declarations of the kernel about its arithmetic; default none, so that the bounds are those of any
   * correct kernel. Beside `arithmetic` they tell the statistical tests what to expect.
   */
  readonly premises?: PremiseDeclaration | undefined;
  /** The problem's exact attention, where it is known already (to `auditAccuracy` or better). */
  readonly reference?: AttentionReference;
  /** Called once with the exact values, before any bounds are. */
  readonly onReference?: (reference: AttentionReference) => void;
  /** Called with the bounds of one part of the rows after the other, of the arithmetic in use. */
  readonly onBounds?: RowsBoundVisitor;
  /**
   * The bounds of this very problem, arithmetic, premises and output format, where an audit of another
   * output has them already (see `onElements`); `onBounds` is not called then.
   */
  readonly bounds?: ElementBounds;
  /** Called once with every element and row, before the verdict is reached. */
  readonly onElements?: (judged: JudgedElements) => void;
  /** The quantities to judge among those that the kernel gives; default: all of them. */
  readonly quantities?: readonly Quantity[];
  /** Probability that the statistical tests fail a correct kernel; default 1e-9 per audit. */
  readonly falseAlarmRate?: number;
  /** Whether a failure's cause is looked for, which takes some audits' time; default true. */
  readonly diagnose?: boolean;
  /**
   * Whether only the judge chooses the premises, so that a failure is not told others that it would pass by: for
   * candidates that read the verdict; default false.
   */
  readonly strictPremises?: boolean;
  /** The rows of a sample that the statistics are made of; null, the default, for all, as they are with `onElements`. */
  readonly thinning?: Thinning | null;
  /** Multiply-adds that are measured at once; default: those of about a second. Larger problems are divided. */
  readonly partEffort?: number;
  /**
   * Memories that the loops work in, where several audits are made one after the other; default: memories of this audit's own.
   */
  readonly memories?: WorkingMemories | undefined;
  /** Called with the stage's name and the share of it that is done. */
  readonly progress?: (stage: string, done: number) => void;
}
