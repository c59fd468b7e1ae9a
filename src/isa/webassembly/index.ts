export {
  createFunctionBody,
  local,
  popInto,
  replaceWhere,
  writeIf,
  type Expression,
  type FunctionBody,
  type Subroutine,
  type Surroundings,
  type Table,
} from './function-body.js';
export { createLibrary, moduleBytes, type Library, type ModuleFunction } from './module.js';
export * from './vectors.js';
