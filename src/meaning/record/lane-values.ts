import type { LaneValue, RegisterWidth } from '../../isa/index.js';
import type { LaneOperation } from '../../ptx/program/index.js';
import type { ProbedOperand } from '../rules/index.js';
import { placeInSlot, type RegisterFile, valueBytes } from '../trace/index.js';

/** The value of a source in a lane, as the definition takes it. */
export function laneValueOf(
  file: RegisterFile,
  source: LaneOperation['sources'][number],
  width: RegisterWidth,
  registers: number,
  lane: number,
): LaneValue {
  if (!('offset' in source)) return constantOf(source.bits, width);
  const bits = width === 'pred' ? 1 : width;
  const word = (byte: number): number => {
    const { first, stride } = placeInSlot(source, byte);
    return file.words[(registers + first + stride * lane) >>> 2];
  };
  if (width === 'pred') return word(0) === 0 ? 0 : 1;
  if (bits <= 32) return bits === 32 ? word(0) : word(0) & (2 ** bits - 1);
  const count = Math.min(bits, valueBytes(source) * 8) / 32;
  let value = 0n;
  for (let i = count - 1; i >= 0; i--) value = (value << 32n) | BigInt(word(4 * i));
  return value;
}

function constantOf(constant: bigint, width: RegisterWidth): LaneValue {
  const bits = width === 'pred' ? 1 : width;
  return bits <= 32 ? Number(BigInt.asUintN(bits, constant)) : BigInt.asUintN(bits, constant);
}

/** The operands of an operation with all bytes of registers varying, which hold for whatever is in them. */
export function staticOperands({ instruction, sources }: LaneOperation): readonly ProbedOperand[] {
  return sources.map((source, i) => {
    const width = instruction.sources[i];
    if (!('offset' in source)) return { value: constantOf(source.bits, width), varying: 0 };
    const bytes = width === 'pred' ? 0 : width / 8;
    return { value: bytes > 4 ? 0n : 0, varying: 2 ** bytes - 1 };
  });
}
