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

/**
 * Finds out of an instruction's definition which bytes of its results are bytes of its operands: it is evaluated on several
 * operands with random bytes, and a byte counts as moved where it equals that of an operand each time. A byte that is not moved is
 * taken for one with a chance of 2^−64.
 *
 * @param fixed the values of operands that do not vary; null for those that do
 */
export function findByteMoves(
  { sources, destinations, evaluate }: LaneInstruction,
  fixed: readonly (LaneValue | null)[],
): ByteMap {
  const random = drawnBytes();
  const tried = Array.from({ length: probes }, () => {
    const bytes = sources.map((width, i) =>
      fixed[i] === null ? Array.from({ length: registerBytes(width) }, () => random.next().value) : [],
    );
    const operands = bytes.map((drawn, i) => fixed[i] ?? laneValue(drawn));
    const result = evaluate(...operands);
    const results = typeof result === 'object' ? result : [result];
    return { bytes, results };
  });
  const origins = sources.flatMap((width, source) =>
    fixed[source] === null
      ? Array.from({ length: registerBytes(width) }, (_, byte) => ({ source, byte }))
      : [],
  );
  return destinations.map((width, d) =>
    Int16Array.from({ length: registerBytes(width) }, (_, byte) => {
      const got = tried.map(({ results }) => byteOf(results[d], byte));
      const origin = origins.find((one) =>
        tried.every(({ bytes }, i) => bytes[one.source][one.byte] === got[i]),
      );
      if (origin !== undefined) return 16 * origin.source + origin.byte;
      // Extended by a sign, a byte says nothing that the number itself does not say.
      const isExtension = got.every((one) => one === 0 || one === 0xff);
      return isExtension || new Set(got).size === 1 ? fromNowhere : isChanged;
    }),
  );
}
