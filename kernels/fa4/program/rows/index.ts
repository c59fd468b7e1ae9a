export { addCounts } from './instruction-counts.js';
export {
  createSoftmaxRegisters,
  type FragmentRegisters,
  type RowArithmetic,
  type SoftmaxIssues,
  type SoftmaxRegisters,
} from './row-arithmetic.js';
export { createWebAssemblyRows } from './webassembly-rows.js';
