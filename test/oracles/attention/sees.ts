import type { Problem } from '../../../src/problem/index.js';

/** Whether a query sees a key by causal and window masks, word for word as their law has it. */
export function sees(
  { causal, window }: Pick<Problem, 'causal' | 'window'>,
  {
    query,
    queries,
    keys,
  }: { readonly query: number; readonly queries: number; readonly keys: number },
  key: number,
): boolean {
  // Both masks are aligned to the bottom right: the last query sits on the last key.
  const offset = key - (query + keys - queries);
  if (causal && offset > 0) return false;
  if (window === null) return true;
  const { left, right } = window;
  if (left !== -1 && offset < -left) return false;
  if (right !== -1 && offset > right) return false;
  return true;
}
