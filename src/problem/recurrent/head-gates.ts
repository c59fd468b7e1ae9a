import { decodeTensor, type Tensor } from '../../formats/index.js';
import { RequestError } from '../../request-error.js';
import { recurrentFamilies, type RecurrentFamily, type RecurrentLaw } from './families.js';
import { checkShape } from './made-gates.js';
import type { RecurrentProblem } from './recurrent-problem.js';

/**
 * A problem whose gates are one for each head, [value heads], as kernels have them under the name `g_gamma`: retention, whose decay these are then, is simple-gla with gates that
 * all tokens share, and simple-gla and gated-delta have these gates.
 * @throws RequestError for another shape, gates beside it, and a family that does not decay by head
 */
export function withHeadGates(problem: RecurrentProblem, headGates: Tensor): RecurrentProblem {
  const { decay }: RecurrentLaw = recurrentFamilies[problem.family];
  const { g, gateInputs, v, family } = problem;
  if (family === 'mamba2' || (decay !== 'by-head' && decay !== 'fixed-by-head'))
    throw new RequestError(`${family} has no g_gamma; leave it out, or name another family`);
  if (g ?? gateInputs)
    throw new RequestError(`there are g_gamma and ${g ? 'g' : 'A_log'}; give one`);
  const [batch, tokens, heads] = v.shape;
  checkShape('g_gamma', headGates, [heads]);
  const values = decodeTensor(headGates);
  const data = Float64Array.from({ length: batch * tokens * heads }, (_, i) => values[i % heads]);
  const other: RecurrentFamily = family === 'retention' ? 'simple-gla' : family;
  return { ...problem, family: other, g: { format: 'fp64', shape: [batch, tokens, heads], data } };
}
