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
export { parsePtx } from './parse-ptx.js';
export { lineOfSite, siteAt, type SourceLine, sourceLines } from './source-lines.js';
