import type { RecurrentRounding } from './arithmetic.js';

/** The decays of a chunk; rows have one element by head, or one for each key dimension. */
export interface ChunkDecays {
  /** Elements of a row: 0 where nothing decays. */
  readonly count: number;
  /** Each token's own decay, unrounded: e^(G_s − G_(s−1)) of the rounded sums G. */
  readonly steps: Float64Array;
  /** E_s: from the state before the chunk to token s. */
  readonly fromStart: Float64Array;
  /** From token s to the end of the chunk. */
  readonly toEnd: Float64Array;
  /** By head: from token j to token s, at s · tokens + j for j ≤ s. */
  readonly within: Float64Array;
}

/** Decays of chunks of up to `most` tokens; where nothing decays they are 1 and no rounding meets them. */
export function chunkDecays(most: number, gateCount: number): ChunkDecays {
  const rows = () => new Float64Array(most * Math.max(gateCount, 1)).fill(1);
  return {
    count: gateCount,
    steps: rows(),
    fromStart: rows(),
    toEnd: rows(),
    within: gateCount > 1 ? new Float64Array(0) : new Float64Array(most * most).fill(1),
  };
}

/**
 * Turns the gates of a chunk into the decays of its tokens, by way of rounded sums. A gate of −∞ forgets all before it, so that sums
 * begin again behind it.
 */
function setSteps(
  { count, steps }: ChunkDecays,
  gates: Float64Array,
  tokens: number,
  rounding: RecurrentRounding,
): void {
  const sums = steps.subarray(0, tokens * count);
  for (let i = 0; i < sums.length; i++) {
    const before = i < count ? 0 : sums[i - count];
    sums[i] = before === -Infinity ? gates[i] : before + gates[i];
  }
  rounding.value('gates', sums, 0, sums.length);
  for (let i = sums.length - 1; i >= 0; i--) {
    const before = i < count ? 0 : sums[i - count];
    sums[i] = Math.exp(before === -Infinity ? sums[i] : sums[i] - before);
  }
}

/** Sets the decays of a chunk of so many tokens from its gates. */
export function setChunkDecays(
  decays: ChunkDecays,
  gates: Float64Array,
  tokens: number,
  rounding: RecurrentRounding,
): void {
  const { count } = decays;
  if (count === 0) return;
  setSteps(decays, gates, tokens, rounding);
  accumulateDecays(decays, tokens, rounding);
}

/** Sets the products of a chunk's decays from those of its tokens. */
export function accumulateDecays(
  { count, steps, fromStart, toEnd, within }: ChunkDecays,
  tokens: number,
  rounding: RecurrentRounding,
): void {
  const size = tokens * count;
  for (let i = 0; i < size; i++)
    fromStart[i] = i < count ? steps[i] : fromStart[i - count] * steps[i];
  toEnd.fill(1, size - count, size);
  for (let i = size - count - 1; i >= 0; i--) toEnd[i] = toEnd[i + count] * steps[i + count];
  rounding.value('decay', fromStart, 0, size);
  rounding.value('decay', toEnd, 0, size);
  if (count > 1) return;
  for (let s = 0; s < tokens; s++) {
    const row = s * tokens;
    for (let j = 0; j < s; j++) within[row + j] = within[row - tokens + j] * steps[s];
    within[row + s] = 1;
  }
  for (let s = 1; s < tokens; s++) rounding.value('decay', within, s * tokens, s * tokens + s);
}

/** The decays of a token by key dimension, from its gates; they stay as they are where there are none. */
export function setTokenDecay(
  decay: Float64Array,
  gates: Float64Array,
  [first, count]: readonly [number, number],
  rounding: RecurrentRounding,
): void {
  if (count === 0) return;
  decay.set(gates.subarray(first, first + count));
  rounding.value('gates', decay, 0, count);
  const { exponential = Math.exp } = rounding;
  for (let i = 0; i < count; i++) decay[i] = exponential(decay[i]);
  rounding.value('decay', decay, 0, count);
  if (count === 1) decay.fill(decay[0]);
}
