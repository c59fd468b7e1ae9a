import { levelRegimes } from './level-regimes.js';
import { magnitudeRegimes } from './magnitude-regimes.js';
import { maximaRegimes } from './maxima-regimes.js';
import { normalRegimes } from './normal-regimes.js';
import type { Regime } from './regime.js';
import { slopeRegimes } from './slope-regimes.js';
import { stepRegimes } from './step-regimes.js';
import { valueSumRegimes } from './value-sum-regimes.js';

const table = {
  ...normalRegimes,
  ...slopeRegimes,
  ...stepRegimes,
  ...maximaRegimes,
  ...levelRegimes,
  ...magnitudeRegimes,
  ...valueSumRegimes,
} satisfies Record<string, Regime>;

/** The name of a regime. */
export type RegimeName = keyof typeof table;

/** Every regime by its name. */
export const regimes: Readonly<Record<RegimeName, Regime>> = table;

/** Every regime's name. */
export const regimeNames = Object.keys(table) as RegimeName[];
