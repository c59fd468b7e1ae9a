/** `text` of the environment variable `name` as a whole number. @throws Error if it is anything else */
function wholeNumber(name: string, text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isSafeInteger(value) || value < 0)
    throw new Error(`${name} is ${JSON.stringify(text)}; give a whole number`);
  return value;
}

/** The whole number that the environment gives as `name`, else `fallback`. @throws Error for any other text */
export function fromEnvironment(name: string, fallback: number): number {
  const text = process.env[name];
  return text === undefined ? fallback : wholeNumber(name, text);
}

/**
 * Seed of everything that the tests draw, and of every fast-check property that names none of its own:
 * TEST_SEED, which a run without one chooses and prints (test/setup/build-once.ts).
 */
export const testSeed = fromEnvironment('TEST_SEED', 0);

/** How many times the default samples a run tries: TEST_EFFORT, else 1. */
const effort = fromEnvironment('TEST_EFFORT', 1);

/** How often to try what a default run tries `count` times. */
export function scaled(count: number): number {
  return count * effort;
}

/** A number below `bound` that depends on nothing but `state`, an integer below 2^32 (splitmix32). */
function drawBelow(bound: number, state: number): number {
  let mixed = (state + 0x9e3779b9) | 0;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
  return ((mixed ^ (mixed >>> 15)) >>> 0) % bound;
}

/**
 * `count` of `list` in its order, drawn by TEST_SEED, so that runs with other seeds reach all of it;
 * TEST_EFFORT times as many where it is given.
 */
export function sampled<T>(list: readonly T[], count: number): T[] {
  const wanted = Math.min(list.length, scaled(count));
  const order = list.map((_, index) => index);
  for (let index = 0; index < wanted; index++) {
    const other =
      index + drawBelow(order.length - index, (testSeed ^ Math.imul(index, 0x9e3779b1)) >>> 0);
    [order[index], order[other]] = [order[other] ?? 0, order[index] ?? 0];
  }
  const drawn = new Set(order.slice(0, wanted));
  return list.filter((_, index) => drawn.has(index));
}
