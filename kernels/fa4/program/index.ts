export type { ProgramContext } from './context.js';
export * from './mutants/index.js';
export { warpName, warpRoles } from './context.js';
export type { ProgramOptions, ProgramPlan, RingDepths } from './plan.js';
export {
  prepareFa4Program,
  type PreparedProgram,
  type ProgramChange,
  type ProgramClusterRun,
  type ProgramRunOptions,
} from './run-program.js';
export {
  exponentialSplit,
  rescaleTraffic,
  type ExponentialSplit,
  type RescaleTraffic,
} from './traffic.js';
export { workTiles, type WorkTile } from './tiles.js';
