import {
  auditableLse,
  auditableOutput,
  decodeQuantity,
  gradientQuantities,
  type ByGradient,
  type KernelOutputs,
} from '../../src/audit/index.js';
import { problemShape, type Problem, type Tensor } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import {
  KernelAbsent,
  KernelFault,
  kernelGradients,
  kernelOutputs,
  sharedGradients,
  UnsupportedProblem,
  type AttentionKernel,
  type GradientRun,
  type KernelResults,
  type KernelRun,
  type RunConditions,
} from '../laws/index.js';
import { posedFor } from '../problems/index.js';
import type { ResolvedPromises } from './promises.js';

function describeError(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** @throws KernelFault for anything but an output of the problem */
function readRun(
  problem: Problem,
  outputs: KernelOutputs,
  needsLse: boolean,
): Omit<KernelRun, 'configuration'> {
  const shape = problemShape(problem);
  if (needsLse && outputs.lse === null)
    throw new KernelFault('the kernel gave no LSE, though it promises one');
  try {
    const out = auditableOutput(outputs.out, shape);
    const lse = outputs.lse === null ? null : auditableLse(outputs.lse, shape);
    return { problem, shape, outputs, out, lse };
  } catch (error) {
    if (error instanceof RequestError) throw new KernelFault(error.message);
    throw error;
  }
}

/** @throws KernelFault where the kernel throws, or gives no tensors */
async function askKernel<T>(
  kernel: AttentionKernel,
  problem: Problem,
  { features }: ResolvedPromises,
  read: (given: KernelResults) => T,
  conditions?: RunConditions,
): Promise<T> {
  try {
    return read(await kernel(posedFor(problem, features), conditions));
  } catch (error) {
    const known = [UnsupportedProblem, KernelFault, KernelAbsent];
    if (known.some((one) => error instanceof one)) throw error;
    throw new KernelFault(`the kernel threw: ${describeError(error)}`);
  }
}

/**
 * Runs a kernel, and reads its outputs.
 * @throws KernelFault where it throws, or its result is no output of the problem
 * @throws UnsupportedProblem
 */
export async function runKernel(
  kernel: AttentionKernel,
  problem: Problem,
  promises: ResolvedPromises,
  configuration: string | null,
  conditions?: RunConditions,
): Promise<KernelRun> {
  const outputs = await askKernel(kernel, problem, promises, kernelOutputs, conditions);
  return { configuration, ...readRun(problem, outputs, promises.lse) };
}

/** The gradients, decoded. @throws KernelFault for one that does not fit the problem, or of another format */
function decodedGradients(problem: Problem, tensors: ByGradient<Tensor>): ByGradient<Float64Array> {
  const shape = problemShape(problem);
  const { dq } = tensors;
  const entries = gradientQuantities.map((quantity) => {
    const tensor = tensors[quantity.name];
    if (tensor.format !== dq.format)
      throw new KernelFault(
        `the kernel gave dQ in ${dq.format} and ${quantity.prose} in ${tensor.format}; gradients have one format`,
      );
    try {
      return [quantity.name, decodeQuantity(quantity, tensor, shape).values] as const;
    } catch (error) {
      if (error instanceof RequestError) throw new KernelFault(error.message);
      throw error;
    }
  });
  return Object.fromEntries(entries) as unknown as ByGradient<Float64Array>;
}

/**
 * Runs a kernel for gradients, likewise.
 * @throws KernelFault as `runKernel`, and where a gradient is missing or does not fit the problem
 */
export async function runGradients(
  kernel: AttentionKernel,
  problem: Problem,
  conditions: RunConditions & { readonly dout: Tensor },
  promises: ResolvedPromises,
): Promise<GradientRun> {
  const { outputs, tensors, shared } = await askKernel(
    kernel,
    problem,
    promises,
    (given) => ({
      outputs: kernelOutputs(given),
      tensors: kernelGradients(given),
      shared: sharedGradients(problem, given),
    }),
    conditions,
  );
  const gradients = decodedGradients(problem, tensors);
  const { dout } = conditions;
  return {
    configuration: null,
    ...readRun(problem, outputs, promises.lse),
    dout,
    tensors,
    shared,
    gradients,
  };
}
