import type { Tensor } from '../formats/index.js';
import { RequestError } from '../request-error.js';
import { checkFeatureElements, checkFeatureSizes } from './check-features.js';
import type { Problem, ProblemShape } from './problem.js';
import { checkRotaryElements, checkRotarySizes } from './rotary.js';

function rank4(name: string, tensor: Tensor): readonly [number, number, number, number] {
  const { shape } = tensor;
  const dims = shape.length === 3 ? [1, ...shape] : shape;
  if (dims.length !== 4)
    throw new RequestError(
      `${name} has shape [${shape.join(', ')}]; give it rank 3 [heads, seqlen, dim] or rank 4 [batch, heads, seqlen, dim]`,
    );
  return [dims[0], dims[1], dims[2], dims[3]];
}

/**
 * The sizes of a problem, checked against one another.
 * @throws RequestError when the ranks, batches, lengths or head counts do not fit together, when scale, window
 * or softcap is out of range, or when a feature does not fit.
 */
export function problemShape(problem: Problem): ProblemShape {
  const [batch, heads, queries, qkDim] = rank4('q', problem.q);
  const [kBatch, kvHeads, keys, kDim] = rank4('k', problem.k);
  const [vBatch, vHeads, vKeys, vDim] = rank4('v', problem.v);
  if (kBatch !== batch || vBatch !== batch)
    throw new RequestError(
      `q, k and v have batch ${batch}, ${kBatch} and ${vBatch}; make them equal`,
    );
  if (kDim !== qkDim)
    throw new RequestError(`q has dim ${qkDim} but k has dim ${kDim}; make them equal`);
  if (vHeads !== kvHeads)
    throw new RequestError(`k has ${kvHeads} heads but v has ${vHeads}; make them equal`);
  if (vKeys !== keys)
    throw new RequestError(`k has ${keys} keys but v has ${vKeys}; make them equal`);
  if (heads > 0 && (kvHeads === 0 || heads % kvHeads !== 0))
    throw new RequestError(
      `q has ${heads} heads, k has ${kvHeads}; the first must be a multiple of the second`,
    );
  if (!Number.isFinite(problem.scale))
    throw new RequestError(`scale is ${problem.scale}; give a finite number`);
  if (problem.softcap !== null && !(problem.softcap > 0 && Number.isFinite(problem.softcap)))
    throw new RequestError(`softcap is ${problem.softcap}; give a positive finite number, or none`);
  for (const [side, reach] of Object.entries(problem.window ?? {}))
    if (!Number.isSafeInteger(reach) || reach < -1)
      throw new RequestError(
        `window ${side} is ${reach}; give a whole number of keys, or -1 for no limit`,
      );
  const groupSize = kvHeads === 0 ? 1 : heads / kvHeads;
  const shape = { batch, heads, kvHeads, groupSize, queries, keys, qkDim, vDim };
  checkFeatureSizes(problem, shape);
  checkRotarySizes(problem, shape);
  return shape;
}

/**
 * The sizes of a problem as `problemShape`, with every element of its features' tensors checked: for once, where a
 * problem comes in.
 * @throws RequestError as `problemShape`, and for elements that mean nothing
 */
export function checkProblem(problem: Problem): ProblemShape {
  const shape = problemShape(problem);
  checkFeatureElements(problem, shape);
  checkRotaryElements(problem);
  return shape;
}
