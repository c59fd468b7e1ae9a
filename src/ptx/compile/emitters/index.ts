import type { LaneInstruction } from '../../instructions/index.js';
import { i64x2 } from '../webassembly/vectors.js';
import { bitCountEmitters } from './bit-count.js';
import { carryEmitters } from './carry.js';
import { comparisonEmitters } from './comparison.js';
import { conversionEmitters } from './conversion.js';
import { type Emitter, onEachVector } from './emitter.js';
import { float32Emitters } from './float32.js';
import { float64Emitters } from './float64.js';
import { halfEmitters } from './half-arithmetic.js';
import { integerDivisionEmitters } from './integer-division.js';
import { directedEmitters } from './directed-rounding.js';
import { divisionEmitters } from './division.js';
import { integerConversionEmitters } from './integer-conversion.js';
import { integerEmitters } from './integer.js';
import { wideLaneEmitters } from './lanes-of-64-bits.js';
import { logicEmitters } from './logic.js';
import { moveEmitters } from './move.js';
import { permutationEmitters } from './permutation.js';
import { shiftEmitters } from './shift.js';
import { sineEmitters } from './mufu/sine.js';
import { specialFunctionEmitters } from './mufu/special-functions.js';
import { unflushedEmitters } from './mufu/unflushed.js';

/** Every instruction that is written in SIMD, except `cvta`. */
export const emitters: readonly Emitter[] = [
  ...integerEmitters,
  ...integerDivisionEmitters,
  ...wideLaneEmitters,
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

/**
 * The emitter of `cvta`, which adds the base of a window of the generic addresses, known to the row, or subtracts it.
 */
function addressEmitter({ name, evaluate }: LaneInstruction): Emitter {
  const base = i64x2.splat(BigInt(evaluate(0n) as bigint));
  return onEachVector(name, 1, (_, a) => i64x2.add(a, base));
}

/** The emitter of an instruction; null where there is none. */
export function findEmitter(instruction: LaneInstruction): Emitter | null {
  const { name, sources, destinations } = instruction;
  if (name.startsWith('cvta.')) return addressEmitter(instruction);
  const form = `${name} ${sources.length} `;
  return byKey.get(form + destinations.join(',')) ?? byKey.get(form) ?? null;
}
