import type { Problem } from '../problem/index.js';
import type { Premises } from './premises.js';

/** The most that a softcap's tanh may change a score, which is a function of the score; 0 without one. */
export function tanhError({ softcap }: Problem, { tanh, elementwise }: Premises): number {
  return softcap === null ? 0 : (tanh + 4 * elementwise) * softcap;
}
