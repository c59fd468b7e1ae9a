import type { LaneInstruction } from '../../instructions/index.js';
import { comparisonEmitters } from './comparison.js';
import { conversionEmitters } from './conversion.js';
import type { Emitter } from './emitter.js';
import { float32Emitters } from './float32.js';
import { directedEmitters } from './directed-rounding.js';
import { divisionEmitters } from './division.js';
import { integerConversionEmitters } from './integer-conversion.js';
import { integerEmitters } from './integer.js';
import { logicEmitters } from './logic.js';
import { moveEmitters } from './move.js';
import { permutationEmitters } from './permutation.js';
import { shiftEmitters } from './shift.js';
import { specialFunctionEmitters } from './special-functions.js';

/** Every instruction that is written in SIMD. */
export const emitters: readonly Emitter[] = [
  ...integerEmitters,
  ...logicEmitters,
  ...moveEmitters,
  ...permutationEmitters,
  ...integerConversionEmitters,
  ...divisionEmitters,
  ...shiftEmitters,
  ...comparisonEmitters,
  ...float32Emitters,
  ...directedEmitters,
  ...specialFunctionEmitters,
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
