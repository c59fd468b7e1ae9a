/** Random choices that depend on a seed and an index only, so that each file can be made again. */
export interface Random {
  /** A whole number from 0 to `limit` − 1; 0 when the limit is below 1. */
  readonly below: (limit: number) => number;
  readonly chance: (probability: number) => boolean;
  readonly pick: <T>(choices: readonly T[]) => T;
}

/** The finalizer of MurmurHash3: every bit of the result depends on every bit of the input. */
function mix(value: number): number {
  let bits = value | 0;
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return bits ^ (bits >>> 16);
}

/** The choices for one index of a campaign: xorshift32 from a mix of both numbers. */
export function seededRandom(seed: number, index: number): Random {
  let state = mix(mix(seed) + Math.imul(index, 0x9e3779b1)) || 1;
  const next = (): number => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
  const below = (limit: number): number => (limit < 1 ? 0 : Math.floor(next() * limit));
  return {
    below,
    chance: (probability) => next() < probability,
    pick: (choices) => choices[below(choices.length)],
  };
}
