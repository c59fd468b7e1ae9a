import type { RoundingMode } from '../../formats/index.js';

/** PTX's rounding modifiers. */
export const roundings: Readonly<Record<string, RoundingMode>> = {
  rn: 'nearest-even',
  rz: 'toward-zero',
  rm: 'down',
  rp: 'up',
};

/** The rounding modifiers as a row's alternatives. */
export const roundingModifiers = ['.rn', '.rz', '.rm', '.rp'] as const;

/** `.sat`: cut to [0, 1]; NaN and −0 give +0. */
export function saturated(value: number): number {
  return value > 0 ? Math.min(value, 1) : 0;
}

/** `.relu`: negative numbers, and −0, become +0; NaN stays. */
export function positive(value: number): number {
  return value <= 0 ? 0 : value;
}
