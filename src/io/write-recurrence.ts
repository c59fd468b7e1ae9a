import {
  recurrentScale,
  recurrentQuantities,
  recurrentQuantityNames,
  recurrentTensorName,
  type RecurrentGradientInputs,
  type RecurrentProblem,
  type RecurrentResults,
  type StoredTensor,
  type Tensor,
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
  const { family, normalisation, gateBase, mamba2 } = problem;
  const scale = recurrentScale(problem);
  return {
    family,
    scale: Object.is(scale, -0) ? '-0' : String(scale),
    normalisation: normalisation === undefined ? 'none' : String(normalisation.epsilon),
    layout: 'bthd',
    ...(gateBase && { gate_base: String(gateBase) }),
    ...(mamba2 && {
      dt_softplus: String(mamba2.dtSoftplus),
      dt_limit: mamba2.dtLimit.join(','),
    }),
  };
}

/**
 * The tensors of a problem, gates and write strengths as it gives them, and of what its gradients begin with: by the names of its family,
 * and as its files have them by default. Ends of packed sequences are none of them.
 */
export function recurrentInputs(
  problem: RecurrentProblem,
  gradients: RecurrentGradientInputs | undefined,
): readonly (readonly [name: string, tensor: Tensor])[] {
  const { family, q, k, v, g, beta, gateInputs, strengthLogits, initialState, mamba2 } = problem;
  const stored = (state: Tensor | undefined) => state && asFamilyStores(state, 'states', family);
  const tensors = {
    q,
    k,
    v,
    g,
    beta,
    ...(mamba2 && { dt: mamba2.dt, A: mamba2.a, D: mamba2.d, z: mamba2.z, dt_bias: mamba2.dtBias }),
    ...(gateInputs && { A_log: gateInputs.aLog, a: gateInputs.a, dt_bias: gateInputs.dtBias }),
    ...(strengthLogits && { b: strengthLogits }),
    initial_state: stored(initialState),
    dout: gradients?.dout,
    dfinal_state: stored(gradients?.dfinalState),
  };
  return Object.entries(tensors).flatMap(([name, tensor]) =>
    tensor === undefined ? [] : [[recurrentTensorName(family, name), tensor] as const],
  );
}

/** A kernel's results as files of the family have them. */
function resultsOf({ problem: { family }, results = {} }: WrittenRecurrence) {
  return recurrentQuantityNames.flatMap((name) => {
    const tensor = results[name];
    if (tensor === undefined) return [];
    const { of } = recurrentQuantities[name];
    return [[recurrentTensorName(family, name), asFamilyStores(tensor, of, family)] as const];
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
  const { problem, gradients } = written;
  const { cuSeqlens } = problem;
  const ends: StoredTensor | undefined = cuSeqlens && {
    shape: [cuSeqlens.length],
    data: Int32Array.from(cuSeqlens),
  };
  const tensors: Readonly<Record<string, StoredTensor>> = {
    ...Object.fromEntries(recurrentInputs(problem, gradients)),
    ...(ends && { cu_seqlens: ends }),
    ...Object.fromEntries(resultsOf(written)),
  };
  await writeSafetensors(path, tensors, { ...recurrenceMetadata(problem), ...metadata }, options);
}
