import type { Problem, ProblemShape } from '../../src/problem/index.js';

/** A kernel's form of causal and window masks: `local` is any window that is no causal mask. */
export interface Fa3Mask {
  readonly kind: 'none' | 'causal' | 'local';
  /** Keys on each side of a query's diagonal. */
  readonly left: number;
  readonly right: number;
}

/**
 * The kernel's masks of a problem: a mask that hides no key counts as `none`. Source: mha_fwd and set_params_fprop in
 * hopper/flash_api.cpp.
 */
export function fa3Mask(
  { causal, window }: Pick<Problem, 'causal' | 'window'>,
  { queries, keys }: Pick<ProblemShape, 'queries' | 'keys'>,
): Fa3Mask {
  const limited = (limit: number, last: number) => (limit >= last ? -1 : limit);
  const left = limited(window?.left ?? -1, keys - 1);
  const given = limited(window?.right ?? -1, queries - 1);
  const isCausal = causal && (queries > 1 || left >= 0 || given >= 0);
  const right = isCausal ? 0 : given;
  const ends = { left: left < 0 ? keys - 1 : left, right: right < 0 ? queries - 1 : right };
  if (left < 0 && right <= 0) return { kind: right === 0 ? 'causal' : 'none', ...ends };
  return { kind: 'local', ...ends };
}
