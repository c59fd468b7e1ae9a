import type {
  PosedRecurrence,
  RecurrentKernel,
  RecurrentPromises,
  ResolvedRecurrentPromises,
} from '../../../../properties/index.js';
import type { ReportedKernel } from '../../../report/json/check/index.js';
import type { LibraryModel } from '../kernel-under-test.js';

/** The reason that a kernel of linear attention cannot be run at all. */
export interface RecurrentExecutionFailure {
  /** In a sentence without its full stop. */
  readonly reason: string;
  /** The problem that it was given. */
  readonly posed: PosedRecurrence;
}

/** A kernel of linear attention as `flashproof check` tries it, emulated or live. */
export interface RecurrenceUnderTest {
  readonly kernel: RecurrentKernel;
  /** The kernel's own promises. */
  readonly promises: RecurrentPromises;
  readonly reported: ReportedKernel;
  /** The model from which another thread can create the same kernel; null if it cannot. */
  readonly elsewhere: LibraryModel | null;
  /**
   * Tries it on an ordinary problem before anything else: null when it gives an answer, right or wrong.
   * @throws RequestError for an unknown command
   */
  readonly whyNotRunning: (
    promises: ResolvedRecurrentPromises,
  ) => Promise<RecurrentExecutionFailure | null>;
  /** Ends everything that was started for it. */
  readonly close: () => Promise<void>;
}
