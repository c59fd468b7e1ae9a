import type { LaneInstruction, LaneValue, RegisterWidth } from '../../isa/index.js';

/** Origin of a result's byte that comes from no operand that varies, and of one that is no byte of an operand. */
export const [fromNowhere, isChanged] = [-1, -2] as const;

/** For each destination, the origin of each byte: 16 · source + its byte there, or one of the above. */
export type ByteMap = readonly Int16Array[];

const probes = 8;

/** Bytes that look random, the same in every run (xorshift32). */
function* drawnBytes(): Generator<number, never> {
  let state = 0x9e3779b9;
  for (;;) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    yield (state >>> 11) & 0xff;
  }
}

function bytesOf(width: RegisterWidth): number {
  return width === 'pred' ? 0 : width / 8;
}

function laneValue(bytes: readonly number[]): LaneValue {
  let value = 0n;
  for (let i = bytes.length - 1; i >= 0; i--) value = (value << 8n) | BigInt(bytes[i]);
  return bytes.length > 4 ? value : Number(value);
}

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
      fixed[i] === null ? Array.from({ length: bytesOf(width) }, () => random.next().value) : [],
    );
    const operands = bytes.map((drawn, i) => fixed[i] ?? laneValue(drawn));
    const result = evaluate(...operands);
    const results = typeof result === 'object' ? result : [result];
    return { bytes, results };
  });
  const origins = sources.flatMap((width, source) =>
    fixed[source] === null
      ? Array.from({ length: bytesOf(width) }, (_, byte) => ({ source, byte }))
      : [],
  );
  return destinations.map((width, d) =>
    Int16Array.from({ length: bytesOf(width) }, (_, byte) => {
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
