import type { LaneInstruction } from '../../instructions/index.js';
import { conversionEmitters } from './conversion.js';
import type { Emit } from '../../../isa/vectors/index.js';
import type { Emitter } from './emitter.js';
import { float64Emitters } from './float64.js';
import { wideLaneEmitters } from './lanes-of-64-bits.js';

/** The conversions that are written in SIMD, and no rows yet. */
export const emitters: readonly Emitter[] = [
  ...wideLaneEmitters,
  ...float64Emitters,
  ...conversionEmitters,
];

function keyOf({ name, sources, destinations }: Emitter): string {
  return `${name} ${sources} ${destinations?.join(',') ?? ''}`;
}

const byKey: ReadonlyMap<string, Emitter> = new Map(
  emitters.map((emitter) => [keyOf(emitter), emitter]),
);

/** The code of an instruction on four lanes; null where there is none. */
export function findEmit(instruction: LaneInstruction): Emit | null {
  const { name, sources, destinations, emit } = instruction;
  if (emit !== null) return emit;
  const form = `${name} ${sources.length} `;
  return (byKey.get(form + destinations.join(',')) ?? byKey.get(form))?.emit ?? null;
}
