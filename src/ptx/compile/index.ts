export { createCompiler, type Compiler, type CompilerStatistics } from './compiler.js';
export { runLaneByLane } from './lane-by-lane.js';
