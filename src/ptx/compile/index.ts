export { createCompiler, type Compiler, runLaneByLane } from './compiler.js';
