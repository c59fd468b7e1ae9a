export type { ClusterLaunch, RunOptions } from './create-machine.js';
export {
  explore,
  type Exploration,
  type ExploredRun,
  type ExploreOptions,
  type Outcome,
  type RunUnder,
} from './explore.js';
export { runCluster, startCluster, type ClusterRun, type RunningCluster } from './run-cluster.js';
export {
  inOrderScheduler,
  recordingScheduler,
  timedScheduler,
  type Scheduler,
} from './scheduler.js';
export {
  adversarialSchedulers,
  delayingScheduler,
  randomOrder,
  randomScheduler,
} from './searching-schedulers.js';
