import type { LaneInstruction } from '../../instructions/index.js';
import { comparisonEmitters } from './comparison.js';
import { conversionEmitters } from './conversion.js';
import type { Emitter } from './emitter.js';
import { float32Emitters } from './float32.js';
import { integerEmitters } from './integer.js';
import { logicEmitters } from './logic.js';
import { shiftEmitters } from './shift.js';
import { specialFunctionEmitters } from './special-functions.js';

/** Every instruction that is written in SIMD. */
export const emitters: readonly Emitter[] = [
  ...integerEmitters,
  ...logicEmitters,
  ...shiftEmitters,
  ...comparisonEmitters,
  ...float32Emitters,
  ...specialFunctionEmitters,
  ...conversionEmitters,
];

function key(name: string, sources: number): string {
  return `${name} ${sources}`;
}

const byKey: ReadonlyMap<string, Emitter> = new Map(
  emitters.map((emitter) => [key(emitter.name, emitter.sources), emitter]),
);

/** The emitter of an instruction; null where there is none. */
export function findEmitter({ name, sources }: LaneInstruction): Emitter | null {
  return byKey.get(key(name, sources.length)) ?? null;
}
