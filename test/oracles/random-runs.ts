function wholeNumber(name: string, fallback: number): number {
  const text = process.env[name];
  if (text === undefined) return fallback;
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0)
    throw new Error(`${name} is ${JSON.stringify(text)}; give a whole number`);
  return value;
}

/** Seed of the random oracle tests: ORACLE_SEED, else another one each time. */
export const oracleSeed = wholeNumber('ORACLE_SEED', Date.now() % 2 ** 31);

/** Problems in the main cross-check: ORACLE_RUNS, else 1000. Other tests scale with it. */
export const oracleRuns = wholeNumber('ORACLE_RUNS', 1000);

/** `count` runs at the usual ORACLE_RUNS, in proportion otherwise. */
export function scaledRuns(count: number): number {
  return Math.ceil((count * oracleRuns) / 1000);
}
