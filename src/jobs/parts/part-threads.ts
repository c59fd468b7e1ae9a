import type {
  BoundPartAnswer,
  BoundPartRequest,
  BoundSettings,
  PartAnswer,
  PartRequest,
  PartSettings,
} from '../../audit/index.js';
import type { Problem } from '../../problem/index.js';
import type { SharedProblem } from './part-source.js';
import type { Shared } from './shared-values.js';
import { startThreadPool, type ThreadPool } from './thread-pool.js';

/** What every thread of an audit is given. */
export interface PartThreadData {
  readonly source: SharedProblem;
  readonly settings: PartSettings;
  /** Whether the bounds are wanted as they are made. */
  readonly withBounds: boolean;
}

/** Starts threads that measure the parts of an audit. */
export function startPartThreads(
  threads: number,
  data: PartThreadData,
): ThreadPool<PartRequest, PartAnswer> {
  return startThreadPool(threads, 'measureRequest', data);
}

/** What every thread is given that bounds a problem. */
export interface BoundThreadData {
  readonly problem: Shared<Problem>;
  readonly settings: BoundSettings;
}

/** Starts threads that bound the parts of a problem. */
export function startBoundThreads(
  threads: number,
  data: BoundThreadData,
): ThreadPool<BoundPartRequest, BoundPartAnswer> {
  return startThreadPool(threads, 'boundRequest', data);
}
