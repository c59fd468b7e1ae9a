export { addCounts } from './instruction-counts.js';
export {
  createSoftmaxRegisters,
  weightWords,
  type FragmentRegisters,
  type RowArithmetic,
  type SoftmaxIssues,
  type SoftmaxRegisters,
  type VisibleColumns,
} from './row-arithmetic.js';
export { createWebAssemblyRows } from './webassembly-rows.js';
