export type { ExecutionCounts, InstructionCount } from './execution-counts.js';
export { ptxInstructions } from './instruction-tables.js';
export { runKernel, type KernelLaunch, type KernelOptions, type KernelRun } from './run-kernel.js';
export { runLaunch, type LaunchOptions, type LaunchRun } from './run-launch.js';
