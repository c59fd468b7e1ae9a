import type {
  AttentionKernel,
  KernelPromises,
  ResolvedPromises,
} from '../../../properties/index.js';
import type { Problem } from '../../problem/index.js';
import type { ReportedKernel } from '../../report/json/index.js';

/** Why a kernel cannot be run at all. */
export interface ExecutionFailure {
  /** In a sentence without its full stop. */
  readonly reason: string;
  /** What it was asked. */
  readonly problem: Problem;
}

/** A kernel as `flashproof check` tries it, emulated or live. */
export interface KernelUnderTest {
  readonly kernel: AttentionKernel;
  /** What it promises of itself. */
  readonly promises: KernelPromises;
  readonly reported: ReportedKernel;
  /**
   * Tries it on an ordinary problem before anything else: null when it gives an answer, right or wrong.
   * @throws RequestError for a command that there is not, and for settings that fit no problem
   */
  readonly whyNotRunning: (promises: ResolvedPromises) => Promise<ExecutionFailure | null>;
  /** Ends what was started for it. */
  readonly close: () => Promise<void>;
}
