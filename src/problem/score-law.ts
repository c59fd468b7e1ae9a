import type { Problem } from './problem.js';

/** What is added to the score of a key after the softcap; `head` is counted over [batch, heads]. */
export type ScoreAddend = (head: number, query: number, key: number) => number;

/** What makes the score of a key from the product q·k: the one law that every problem obeys. */
export interface ScoreLaw {
  readonly scale: number;
  /** Scores become cap·tanh(score / cap) after the scale; null for none. */
  readonly softcap: number | null;
  /** Null for none. */
  readonly addend: ScoreAddend | null;
}

/** The score law of a problem. */
export function scoreLaw({ scale, softcap }: Problem): ScoreLaw {
  return { scale, softcap, addend: null };
}

/**
 * The score of a key in plain fp64, every operation rounded: for statistics and searches. Oracles and models
 * of kernels have arithmetic of their own.
 * @param product q·k
 */
export function scoreOf(
  { scale, softcap, addend }: ScoreLaw,
  product: number,
  head: number,
  query: number,
  key: number,
): number {
  const scaled = scale * product;
  const capped = softcap === null ? scaled : softcap * Math.tanh(scaled / softcap);
  return addend === null ? capped : capped + addend(head, query, key);
}
