import type { LaneInstruction } from '../../instructions/index.js';
import { i64x2 } from '../../../isa/webassembly/index.js';
import { conversionEmitters } from './conversion.js';
import type { Emit } from '../../../isa/vectors/index.js';
import { type Emitter, onEachVector } from './emitter.js';
import { float64Emitters } from './float64.js';
import { integerConversionEmitters } from './integer-conversion.js';
import { wideLaneEmitters } from './lanes-of-64-bits.js';

/** Every instruction that is written in SIMD, except `cvta`. */
export const emitters: readonly Emitter[] = [
  ...wideLaneEmitters,
  ...integerConversionEmitters,
  ...float64Emitters,
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

/** The code of an instruction on four lanes; null where there is none. */
export function findEmit(instruction: LaneInstruction): Emit | null {
  const { name, sources, destinations, emit } = instruction;
  if (emit !== null) return emit;
  if (name.startsWith('cvta.')) return addressEmitter(instruction).emit;
  const form = `${name} ${sources.length} `;
  return (byKey.get(form + destinations.join(',')) ?? byKey.get(form))?.emit ?? null;
}
