import type { LaneInstruction, LaneValue } from '../../isa/index.js';
import { drawnBytes, laneValue, registerBytes } from './drawn-bits.js';

/** Origin of a result's byte that comes from no operand that varies, and of one that is no byte of an operand. */
export const [fromNowhere, isChanged] = [-1, -2] as const;

/** For each destination, the origin of each byte: 16 · source + its byte there, or one of the above. */
export type ByteMap = readonly Int16Array[];

const probes = 8;

function byteOf(value: LaneValue, byte: number): number {
  return typeof value === 'bigint'
    ? Number((value >> BigInt(8 * byte)) & 0xffn)
    : Math.floor(value / 2 ** (8 * byte)) & 0xff;
}

/** An operand that is probed: its bytes that do not vary, zeros where they do, and which do (bit i for byte i). */
export interface ProbedOperand {
  readonly value: LaneValue;
  readonly varying: number;
}

/** An operand with other bytes where they vary. */
function withBytes({ value, varying }: ProbedOperand, drawn: readonly number[]): LaneValue {
  if (varying === 0) return value;
  return laneValue(drawn.map((byte, i) => (isIn(varying, i) ? byte : byteOf(value, i))));
}

function isIn(mask: number, byte: number): boolean {
  return ((mask >>> byte) & 1) === 1;
}

/**
 * Finds out of an instruction's definition which bytes of its results are bytes of its operands: it is evaluated on several
 * operands with random bytes, and a byte counts as moved where it equals that of an operand each time. A byte that is not moved is
 * taken for one with a chance of 2^−64.
 */
export function findByteMoves(
  { sources, destinations, evaluate }: LaneInstruction,
  operands: readonly ProbedOperand[],
): ByteMap {
  const random = drawnBytes();
  const tried = Array.from({ length: probes }, () => {
    const bytes = sources.map((width) =>
      Array.from({ length: registerBytes(width) }, () => random.next().value),
    );
    const result = evaluate(...operands.map((operand, i) => withBytes(operand, bytes[i])));
    const results = typeof result === 'object' ? result : [result];
    return { bytes, results };
  });
  const origins = sources.flatMap((width, source) =>
    Array.from({ length: registerBytes(width) }, (_, byte) => ({ source, byte })).filter(
      ({ byte }) => isIn(operands[source].varying, byte),
    ),
  );
  const resultBytes = (d: number, byte: number) =>
    tried.map(({ results }) => byteOf(results[d], byte));
  return destinations.map((width, d) => {
    const all = Array.from({ length: registerBytes(width) }, (_, byte) => resultBytes(d, byte));
    const found = all.map((got) =>
      origins.find((one) => tried.every(({ bytes }, i) => bytes[one.source][one.byte] === got[i])),
    );
    const isAnyMoved = found.some((origin) => origin !== undefined);
    return Int16Array.from(all, (got, byte) => {
      const origin = found[byte];
      if (origin !== undefined) return 16 * origin.source + origin.byte;
      // Beside a number that is moved, its sign extended says nothing that the number itself does not say.
      const isExtension = isAnyMoved && got.every((one) => one === 0 || one === 0xff);
      return isExtension || new Set(got).size === 1 ? fromNowhere : isChanged;
    });
  });
}
