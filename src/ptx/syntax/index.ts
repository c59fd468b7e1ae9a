export type {
  Initialiser,
  Operand,
  PtxFunction,
  PtxInstruction,
  PtxModule,
  ScalarType,
  Statement,
  VariableDeclaration,
} from './module.js';
export { parsePtx } from './parse-ptx.js';
export { lineOfSite, siteAt, type SourceLine, sourceLines } from './source-lines.js';
