export type { EditName } from './edits.js';
export type { Move } from './moves.js';
export {
  findMachineMutant,
  machineMutants,
  mutate,
  redundantMutants,
  type MachineMutant,
  type RedundantMutant,
} from './mutants.js';
export { countedLoadSites, isaFenceSites, synchronisingSites } from './edits.js';
