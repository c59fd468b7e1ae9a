export { findLaneInstruction, type OperandForm } from './table.js';
