export type {
  Guard,
  Initialiser,
  Operand,
  Place,
  PtxFunction,
  PtxInstruction,
  PtxModule,
  ScalarType,
  StateSpace,
  Statement,
  VariableDeclaration,
} from './module.js';
