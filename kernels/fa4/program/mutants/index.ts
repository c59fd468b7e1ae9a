export type { EditName } from './edits.js';
export type { Move } from './moves.js';
export type { MachineMutant } from './mutant.js';
export { findMachineMutant, machineMutants } from './mutants.js';
export { mutate } from './mutate.js';
export { redundantMutants, type RedundantMutant } from './redundant-mutants.js';
export { countedLoadSites, isaFenceSites, synchronisingSites } from './synchronisation-sites.js';
