export {
  createCompiler,
  type Compiler,
  type CompilerStatistics,
  runLaneByLane,
} from './compiler.js';
