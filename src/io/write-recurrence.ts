import {
  recurrentScale,
  recurrentQuantities,
  recurrentQuantityNames,
  recurrentTensorName,
  type RecurrentGradientInputs,
  type RecurrentProblem,
  type RecurrentResults,
  type StoredTensor,
} from '../problem/index.js';
import type { WriteOptions } from './atomic-write.js';
import { asFamilyStores } from './tensors/index.js';
import { writeSafetensors } from './write-safetensors.js';

/** A problem of linear attention to write, with what its gradients begin with and a kernel's results for it. */
interface WrittenRecurrence {
  readonly problem: RecurrentProblem;
  readonly gradients?: RecurrentGradientInputs | undefined;
  readonly results?: RecurrentResults | undefined;
}

/** The settings of a problem of linear attention as a tensor file notes them, so that `readRecurrence` reads them back. */
function recurrenceMetadata(problem: RecurrentProblem): Record<string, string> {
  const { family, normalisation, mamba2 } = problem;
  const scale = recurrentScale(problem);
  return {
    family,
    scale: Object.is(scale, -0) ? '-0' : String(scale),
    normalisation: normalisation === undefined ? 'none' : String(normalisation.epsilon),
    layout: 'bthd',
    ...(mamba2 && {
      dt_softplus: String(mamba2.dtSoftplus),
      dt_limit: mamba2.dtLimit.join(','),
    }),
  };
}

/** The tensors of a problem and of what its gradients begin with, by the names of the other families. */
function inputsOf({
  problem,
  gradients,
}: WrittenRecurrence): Readonly<Record<string, StoredTensor | undefined>> {
  const { family, q, k, v, g, beta, initialState, cuSeqlens, mamba2 } = problem;
  return {
    q,
    k,
    v,
    g,
    beta,
    ...(mamba2 && {
      dt: mamba2.dt,
      A: mamba2.a,
      D: mamba2.d,
      z: mamba2.z,
      dt_bias: mamba2.dtBias,
    }),
    initial_state: initialState && asFamilyStores(initialState, 'states', family),
    cu_seqlens: cuSeqlens && { shape: [cuSeqlens.length], data: Int32Array.from(cuSeqlens) },
    dout: gradients?.dout,
    dfinal_state: gradients?.dfinalState && asFamilyStores(gradients.dfinalState, 'states', family),
  };
}

/** A kernel's results as files of the family have them. */
function resultsOf({
  problem,
  results = {},
}: WrittenRecurrence): readonly (readonly [string, StoredTensor | undefined])[] {
  return recurrentQuantityNames.map((name) => {
    const tensor = results[name];
    const { of } = recurrentQuantities[name];
    return [name, tensor && asFamilyStores(tensor, of, problem.family)];
  });
}

/**
 * Writes a problem of linear attention as a safetensors file that `readRecurrence` reads back the same: tensors as
 * [batch, tokens, heads, …] by the family's names, its settings in the metadata.
 * @throws RequestError when it cannot be written
 */
export async function writeRecurrence(
  path: string,
  written: WrittenRecurrence,
  metadata: Readonly<Record<string, string>> = {},
  options: WriteOptions = {},
): Promise<void> {
  const { problem } = written;
  const given = [...Object.entries(inputsOf(written)), ...resultsOf(written)].flatMap(
    ([name, tensor]) =>
      tensor === undefined ? [] : [[recurrentTensorName(problem.family, name), tensor] as const],
  );
  await writeSafetensors(
    path,
    Object.fromEntries(given),
    { ...recurrenceMetadata(problem), ...metadata },
    options,
  );
}
