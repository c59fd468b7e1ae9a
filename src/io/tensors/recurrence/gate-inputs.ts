import type { Tensor } from '../../../formats/index.js';
import {
  recurrentFamilies,
  type RecurrentFamily,
  type RecurrentLaw,
  type RecurrentProblem,
} from '../../../problem/index.js';
import { RequestError } from '../../../request-error.js';
import { printable } from '../messages.js';
import type { TensorFile } from '../tensor-file.js';

/** The names of what gates and write strengths are made of. */
export const gateInputNames = ['A_log', 'a', 'dt_bias', 'b', 'g_gamma'] as const;

/** A tensor with its axes from `from` on split or joined to others of as many elements; as it is where they have other numbers. */
function reshaped(tensor: Tensor, from: number, axes: readonly number[]): Tensor {
  const product = (sizes: readonly number[]) => sizes.reduce((a, b) => a * b, 1);
  const { shape } = tensor;
  if (product(shape.slice(from)) !== product(axes)) return tensor;
  return { ...tensor, shape: [...shape.slice(0, from), ...axes] };
}

/**
 * What gates and write strengths are made of, where a file of a family that has them has it: `A_log`, `a` and perhaps `dt_bias`, and `b`. Key dimensions
 * may lie flat beside the heads, as models hold them.
 *
 * @param tokens reads a tensor that has tokens
 * @param sizes value heads and key dimension
 * @throws RequestError for an A_log without an a
 */
export async function readGateInputs(
  file: TensorFile,
  family: RecurrentFamily,
  tokens: (name: string) => Promise<Tensor>,
  { valueHeads, keyDim }: { readonly valueHeads: number; readonly keyDim: number },
): Promise<Pick<RecurrentProblem, 'gateInputs' | 'strengthLogits'>> {
  const { entries } = file;
  const { decay, write }: RecurrentLaw = recurrentFamilies[family];
  const isByKey = decay === 'by-key-dimension';
  const axes = isByKey ? [valueHeads, keyDim] : [valueHeads];
  const strengthLogits =
    write === 'delta' && entries.has('b') ? { strengthLogits: await tokens('b') } : {};
  if (!(isByKey || decay === 'by-head') || family === 'mamba2' || !entries.has('A_log'))
    return strengthLogits;
  if (!entries.has('a'))
    throw new RequestError(
      `${printable(file.path)}: A_log needs a tensor "a", of which gates are made; add it`,
    );
  const gateInputs = {
    aLog: reshaped(await file.read('A_log'), 0, [valueHeads]),
    a: reshaped(await tokens('a'), 2, axes),
    ...(entries.has('dt_bias') && { dtBias: reshaped(await file.read('dt_bias'), 0, axes) }),
  };
  return { gateInputs, ...strengthLogits };
}
