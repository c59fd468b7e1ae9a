import type { LaneInstruction } from '../../instructions/index.js';
import { bitCountEmitters } from './bit-count.js';
import { carryEmitters } from './carry.js';
import { comparisonEmitters } from './comparison.js';
import { conversionEmitters } from './conversion.js';
import type { Emitter } from './emitter.js';
import { float32Emitters } from './float32.js';
import { float64Emitters } from './float64.js';
import { halfEmitters } from './half-arithmetic.js';
import { integerDivisionEmitters } from './integer-division.js';
import { directedEmitters } from './directed-rounding.js';
import { divisionEmitters } from './division.js';
import { integerConversionEmitters } from './integer-conversion.js';
import { integerEmitters } from './integer.js';
import { logicEmitters } from './logic.js';
import { moveEmitters } from './move.js';
import { permutationEmitters } from './permutation.js';
import { shiftEmitters } from './shift.js';
import { sineEmitters } from './mufu/sine.js';
import { specialFunctionEmitters } from './mufu/special-functions.js';
import { unflushedEmitters } from './mufu/unflushed.js';

/** Every instruction that is written in SIMD. */
export const emitters: readonly Emitter[] = [
  ...integerEmitters,
  ...integerDivisionEmitters,
  ...carryEmitters,
  ...bitCountEmitters,
  ...logicEmitters,
  ...moveEmitters,
  ...permutationEmitters,
  ...integerConversionEmitters,
  ...divisionEmitters,
  ...shiftEmitters,
  ...comparisonEmitters,
  ...float32Emitters,
  ...directedEmitters,
  ...float64Emitters,
  ...halfEmitters,
  ...specialFunctionEmitters,
  ...unflushedEmitters,
  ...sineEmitters,
  ...conversionEmitters,
];

function keyOf({ name, sources, destinations }: Emitter): string {
  return `${name} ${sources} ${destinations?.join(',') ?? ''}`;
}

const byKey: ReadonlyMap<string, Emitter> = new Map(
  emitters.map((emitter) => [keyOf(emitter), emitter]),
);

/** The emitter of an instruction; null where there is none. */
export function findEmitter({ name, sources, destinations }: LaneInstruction): Emitter | null {
  const form = `${name} ${sources.length} `;
  return byKey.get(form + destinations.join(',')) ?? byKey.get(form) ?? null;
}
