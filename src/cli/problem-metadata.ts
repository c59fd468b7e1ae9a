import type { Problem } from '../problem/index.js';

/**
 * The settings of a problem as a tensor file notes them, so that `readProblem` gives the same numbers
 * back: scale, causal, window, softcap.
 */
export function problemMetadata({ scale, causal, window, softcap }: Problem): {
  readonly [setting: string]: string;
} {
  return {
    scale: Object.is(scale, -0) ? '-0' : String(scale),
    causal: String(causal),
    window: window === null ? 'none' : `${window.left},${window.right}`,
    softcap: softcap === null ? 'none' : String(softcap),
  };
}
