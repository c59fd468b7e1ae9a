import { type Problem, problemShape } from '../../problem/index.js';
import type { Variables } from './expression.js';

/**
 * The numbers of a problem by their names in expressions of a template: `batch`, `heads`, `kvHeads`, `sq`, `sk`, `d`, `dv`,
 * `scale`, `causal` (1 or 0), `softcap` (0 for none), `windowLeft` and `windowRight` (-1 for no limit).
 *
 * @throws RequestError for a problem whose tensors do not fit together
 */
export function problemVariables(problem: Problem): Variables {
  const { batch, heads, kvHeads, queries, keys, qkDim, vDim } = problemShape(problem);
  const { scale, causal, softcap, window } = problem;
  return {
    batch,
    heads,
    kvHeads,
    sq: queries,
    sk: keys,
    d: qkDim,
    dv: vDim,
    scale,
    causal: causal ? 1 : 0,
    softcap: softcap ?? 0,
    windowLeft: window?.left ?? -1,
    windowRight: window?.right ?? -1,
  };
}
