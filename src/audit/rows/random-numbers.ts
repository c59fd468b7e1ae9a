/** Draws whole numbers, each below the limit that it is given equally probable. */
export type DrawBelow = (limit: number) => number;

/**
 * Random 32-bit words from a seed and a stream, the same on every machine: Steele and Vigna's splitmix32, whose
 * output is equidistributed; streams begin at hashes of their numbers.
 */
export function randomWords(seed: number, stream: number): () => number {
  let state = Math.imul(seed | 0, 0x9e3779b9) ^ Math.imul(stream + 1, 0x85ebca6b);
  const next = () => {
    state = (state + 0x9e3779b9) | 0;
    let z = state ^ (state >>> 16);
    z = Math.imul(z, 0x21f0aaad);
    z ^= z >>> 15;
    z = Math.imul(z, 0x735a2d97);
    return (z ^ (z >>> 15)) >>> 0;
  };
  for (let i = 0; i < 4; i++) state ^= next();
  return next;
}

/** Whole numbers below a limit, from a seed and the number of a stream of its own. */
export function drawsOf(seed: number, stream: number): DrawBelow {
  const next = randomWords(seed, stream);
  return (limit) => {
    // Words of the last, incomplete round would favour small numbers.
    const most = 2 ** 32 - (2 ** 32 % limit);
    let word = next();
    while (word >= most) word = next();
    return word % limit;
  };
}

/** `count` of some different numbers, each set of them equally probable, in no particular order (Fisher and Yates). */
export function drawSome(from: readonly number[], count: number, draw: DrawBelow): number[] {
  const pool = [...from];
  const taken = Math.min(count, pool.length);
  for (let i = 0; i < taken; i++) {
    const at = i + draw(pool.length - i);
    [pool[i], pool[at]] = [pool[at], pool[i]];
  }
  return pool.slice(0, taken);
}
