import type { GroupData, GroupRequest, MeasuredGroup } from '../../audit/index.js';
import { shareInputs } from './part-source.js';
import { share, unshare, type Shared } from './shared-values.js';
import { startThreadPool, type ThreadPool } from './thread-pool.js';

/** What every thread is given that measures groups of gradients. */
export interface GroupThreadData {
  readonly problem: ReturnType<typeof shareInputs>;
  readonly rest: Shared<Omit<GroupData, 'problem'>>;
}

/** Copies what groups are measured from to memory that threads share. */
export function shareGroups({ problem, ...rest }: GroupData): GroupThreadData {
  return { problem: shareInputs(problem), rest: share(rest) };
}

/** What was shared. */
export function unshareGroups({ problem, rest }: GroupThreadData): GroupData {
  return { problem: unshare(problem), ...unshare(rest) };
}

/** Starts threads that measure groups of gradients. */
export function startGroupThreads(
  threads: number,
  data: GroupThreadData,
): ThreadPool<GroupRequest, MeasuredGroup> {
  return startThreadPool(threads, 'measureGroup', data);
}
