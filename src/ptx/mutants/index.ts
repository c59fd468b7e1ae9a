export {
  createMutantJudge,
  type JudgedMutant,
  type MutantJudge,
  type MutantVerdict,
  mutantVerdicts,
} from './judge-mutants.js';
export { type Mutant, type MutantKind, programMutants } from './mutants.js';
