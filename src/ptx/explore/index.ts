export {
  exploreLaunch,
  exploredSchedule,
  holdsOf,
  runExplored,
  type Exploration,
  type ExploredOutcome,
} from './explore-launch.js';
export { exploreOrders, runHolds, type Holds } from './explore-orders.js';
