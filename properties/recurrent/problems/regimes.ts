import { gateRegimes } from './gate-regimes.js';
import { keyRegimes } from './key-regimes.js';
import { recurrentFamilies } from '../../../src/problem/index.js';
import type { RecurrentConstraints } from './constraints.js';
import type { RecurrentRegime } from './regime.js';
import { sizeRegimes } from './size-regimes.js';

/** The regimes of recurrences by name. */
export const recurrentRegimes = {
  typical: {
    description: 'keys of length 1, decays and write strengths from 0 to 1, else normal numbers',
    provokes: 'what shows on any problem',
    holds: () => true,
  },
  ...gateRegimes,
  ...keyRegimes,
  ...sizeRegimes,
} as const satisfies Readonly<Record<string, RecurrentRegime>>;

/** The name of a regime of recurrences. */
export type RecurrentRegimeName = keyof typeof recurrentRegimes;

/** The names of all regimes of recurrences. */
export const recurrentRegimeNames = Object.keys(recurrentRegimes) as RecurrentRegimeName[];

/** A regime by name, with all that it may have. */
export function recurrentRegime(name: RecurrentRegimeName): RecurrentRegime {
  return recurrentRegimes[name];
}

/** The constraints as a regime narrows them; null where they leave no problem. */
export function narrowedTo(
  name: RecurrentRegimeName,
  constraints: RecurrentConstraints,
): RecurrentConstraints | null {
  const { suits = () => true, narrow = (all) => all } = recurrentRegime(name);
  const families = constraints.families.filter((family) =>
    suits(recurrentFamilies[family], family),
  );
  return families.length === 0 ? null : narrow({ ...constraints, families });
}
