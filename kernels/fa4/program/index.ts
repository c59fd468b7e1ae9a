export * from './mutants/index.js';
export type { ProgramOptions, ProgramPlan, RingDepths } from './plan.js';
export {
  prepareFa4Program,
  type PreparedProgram,
  type ProgramChange,
  type ProgramRunOptions,
} from './run-program.js';
export { warpName, warpRoles, type ProgramContext } from './setup.js';
export { exponentialSplit, rescaleTraffic } from './rows/instruction-counts.js';
export { workTiles, type WorkTile } from './tiles.js';
