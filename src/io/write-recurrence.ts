import {
  recurrentShape,
  type RecurrentGradientInputs,
  type RecurrentProblem,
  type RecurrentResults,
  type StoredTensor,
} from '../problem/index.js';
import type { WriteOptions } from './atomic-write.js';
import { writeSafetensors } from './write-safetensors.js';

/** A problem of linear attention to write, with what its gradients begin with and a kernel's results for it. */
interface WrittenRecurrence {
  readonly problem: RecurrentProblem;
  readonly gradients?: RecurrentGradientInputs | undefined;
  readonly results?: RecurrentResults | undefined;
}

/** The settings of a problem of linear attention as a tensor file notes them, so that `readRecurrence` reads them back. */
function recurrenceMetadata(problem: RecurrentProblem): Record<string, string> {
  const { family, normalisation } = problem;
  const scale = problem.scale ?? 1 / Math.sqrt(recurrentShape(problem).keyDim);
  return {
    family,
    scale: Object.is(scale, -0) ? '-0' : String(scale),
    normalisation: normalisation === undefined ? 'none' : String(normalisation.epsilon),
    layout: 'bthd',
  };
}

/**
 * Writes a problem of linear attention as a safetensors file that `readRecurrence` reads back the same: tensors as
 * [batch, tokens, heads, …], its settings in the metadata.
 * @throws RequestError when it cannot be written
 */
export async function writeRecurrence(
  path: string,
  { problem, gradients, results = {} }: WrittenRecurrence,
  metadata: Readonly<Record<string, string>> = {},
  options: WriteOptions = {},
): Promise<void> {
  const { q, k, v, g, beta, initialState, cuSeqlens } = problem;
  const ends: StoredTensor | undefined = cuSeqlens && {
    shape: [cuSeqlens.length],
    data: Int32Array.from(cuSeqlens),
  };
  const tensors: Readonly<Record<string, StoredTensor | undefined>> = {
    q,
    k,
    v,
    g,
    beta,
    initial_state: initialState,
    cu_seqlens: ends,
    dout: gradients?.dout,
    dfinal_state: gradients?.dfinalState,
    ...results,
  };
  const given = Object.entries(tensors).flatMap(([name, tensor]) =>
    tensor === undefined ? [] : [[name, tensor] as const],
  );
  await writeSafetensors(
    path,
    Object.fromEntries(given),
    { ...recurrenceMetadata(problem), ...metadata },
    options,
  );
}
