import type { Regime } from './regime.js';
import { everyRow } from './score-rows.js';
import { drawnValues, fill, keyLength, queryLength, valueLength } from './tensor-values.js';

/** Negative scores: how far below zero they are drawn, how they spread, and where the law begins; nats. */
const below = { nearest: 64, farthest: 380, deviation: 1.5, law: -40 };

/** Whole scores: entries of up to so many channels, up to a magnitude, and the largest score. */
const whole = { channels: 16, entry: 2, largestScore: 1024 };

/** Regimes of what numbers the scores are. */
export const levelRegimes = {
  'negative-scores': {
    description: 'every score of every row about 50 to 400 nats below zero, a few nats apart',
    provokes: 'a running maximum that starts at 0, or is 0 after a masked block',
    sizes: () => ({ queries: { min: 1 }, keys: { min: 1 } }),
    scales: ['default'],
    draw: ({ sizes, random }) => {
      const { qkDim } = sizes;
      const nats = random.integer(below.nearest, below.farthest);
      // The first channel has the level, the others the spread; alone, it has both.
      const level = Math.sqrt(nats * Math.sqrt(qkDim));
      const noise = Math.sqrt((below.deviation * Math.sqrt(qkDim)) / Math.sqrt(qkDim - 1 || 1));
      const spread = qkDim === 1 ? 1 / 16 : 0;
      const entry = () => noise * random.normal();
      return {
        q: fill(queryLength(sizes), (i) => (i % qkDim === 0 ? level : entry())),
        k: fill(keyLength(sizes), (i) =>
          i % qkDim === 0 ? -level * (1 + spread * random.uniform()) : entry(),
        ),
        v: fill(valueLength(sizes), random.normal),
      };
    },
    holds: (plain) =>
      everyRow(plain, (raw, scale) => raw.every((x) => x < 0 && x * scale <= below.law)),
  },
  'integer-scores': {
    description: 'whole scores before a scale of ln 2, which times log2 e is 1 in fp32',
    provokes: 'exact powers of two: range reduction at whole numbers, where nothing is rounded',
    sizes: () => ({ queries: { min: 1 }, keys: { min: 1 } }),
    scales: ['odd'],
    draw: ({ sizes, random }) => {
      const { qkDim } = sizes;
      const first = random.integer(0, Math.max(qkDim - whole.channels, 0));
      const entry = (i: number) => {
        const channel = (i % qkDim) - first;
        const isUsed = channel >= 0 && channel < whole.channels;
        return isUsed ? random.integer(-whole.entry, whole.entry) : 0;
      };
      return { ...drawnValues(sizes, entry, entry, random.normal), scale: Math.LN2 };
    },
    holds: (plain) =>
      Math.fround(plain.scale * Math.LOG2E) === 1 &&
      everyRow(plain, (raw) =>
        raw.every((x) => Number.isInteger(x) && Math.abs(x) <= whole.largestScore),
      ),
  },
} satisfies Record<string, Regime>;
