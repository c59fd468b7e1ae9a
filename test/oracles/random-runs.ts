import { fromEnvironment } from '../setup/effort.js';

/** Problems in the main cross-check: ORACLE_RUNS, else 1000. Other tests scale with it. */
export const oracleRuns = fromEnvironment('ORACLE_RUNS', 1000);

/** `count` runs at the usual ORACLE_RUNS, in proportion otherwise. */
export function scaledRuns(count: number): number {
  return Math.ceil((count * oracleRuns) / 1000);
}
