import type { LaneValue, RegisterWidth } from '../../isa/index.js';

/** Bytes of a value of a register; none of a predicate. */
export function registerBytes(width: RegisterWidth): number {
  return width === 'pred' ? 0 : width / 8;
}

/** Bytes that look random, the same in every run (xorshift32). */
export function* drawnBytes(): Generator<number, never> {
  let state = 0x9e3779b9;
  for (;;) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    yield (state >>> 11) & 0xff;
  }
}

/** The value that a lane takes from bytes, the lowest first: a number up to 32 bits. */
export function laneValue(bytes: readonly number[]): LaneValue {
  let value = 0n;
  for (let i = bytes.length - 1; i >= 0; i--) value = (value << 8n) | BigInt(bytes[i]);
  return bytes.length > 4 ? value : Number(value);
}
