import { problemShape, type Problem } from '../../src/problem/index.js';
import type { Law } from '../suite/law.js';
import { arrangedViolation } from './arranged-violation.js';
import { requirePromised } from './promised-problem.js';
import { arrangeProblem } from './transform-problem.js';

/** A problem and the same with its masks put otherwise. */
interface SameMasks {
  readonly problem: Problem;
  readonly transformed: Problem;
  readonly words: string;
}

/** A causal mask, within the problem's window if it has one, and the window that ends at the diagonal. */
function causalAsWindow(problem: Problem): SameMasks {
  const left = problem.window?.left ?? -1;
  return {
    problem: { ...problem, causal: true },
    transformed: { ...problem, causal: false, window: { left, right: 0 } },
    words: `with window [${left}, 0] in place of the causal mask`,
  };
}

/** The last query, which a causal mask lets see every key, with the mask and without. */
function causalOfOneQuery(problem: Problem): SameMasks {
  const { queries } = problemShape(problem);
  const last = { ...arrangeProblem(problem, { queries: [queries - 1] }), window: null };
  return {
    problem: { ...last, causal: false },
    transformed: { ...last, causal: true },
    words: 'with a causal mask, of which the last query alone knows nothing',
  };
}

/**
 * No window, and the narrowest that hides nothing: the last query sees the first key, and the first
 * query the last.
 */
function widestWindow(problem: Problem): SameMasks {
  const { queries, keys } = problemShape(problem);
  const window = { left: Math.max(keys, 1) - 1, right: Math.max(queries, 1) - 1 };
  return {
    problem: { ...problem, window: null },
    transformed: { ...problem, window },
    words: `with window [${window.left}, ${window.right}], which hides nothing`,
  };
}

const forms = [causalAsWindow, causalOfOneQuery, widestWindow] as const;

/** The masks of a problem said in two ways; choice: which two. */
export const causalIsWindow: Law = {
  statement:
    'A causal mask is window [−1, 0], hides nothing from the last query alone, and a window as wide as the sequences is none',
  reason:
    'Masks that hide the same keys are the same problem, whatever code paths, tunings or blocks a kernel chooses for them.',
  strengths: ['bits', 'bound'],
  usual: 'bound',
  choices: forms.length,
  notFor: ({ causal, window }) => (causal || window ? null : 'masks are not promised'),
  violation: async ({ problem, choice }, tools) => {
    const masked = forms[choice](problem);
    const { promises } = tools;
    requirePromised(masked.problem, promises);
    requirePromised(masked.transformed, promises);
    return arrangedViolation(masked, tools);
  },
};
