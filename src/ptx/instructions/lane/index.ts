export { findLaneInstruction, laneInstructions, type OperandForm } from './table.js';
