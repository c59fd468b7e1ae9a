export {
  exploreLaunch,
  exploredSchedule,
  holdsOf,
  runExplored,
  type Exploration,
} from './explore-launch.js';
export { type Holds } from './explore-orders.js';
