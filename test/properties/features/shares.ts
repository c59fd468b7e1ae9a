import { expect } from 'vitest';

/** Whole numbers from 0 on. */
export const upTo = (count: number) => Array.from({ length: count }, (_, i) => i);
export const seeds = upTo(300);

/** Shares of each of some things. */
export function shares(things: readonly unknown[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const thing of things)
    counts.set(String(thing), (counts.get(String(thing)) ?? 0) + 1 / things.length);
  return counts;
}

export function expectShare(things: readonly unknown[], thing: unknown, wanted: number) {
  const share = shares(things).get(String(thing)) ?? 0;
  expect(Math.abs(share - wanted), `${String(thing)}: ${share}`).toBeLessThan(0.11);
}
