import { allocateStorage, type FormatName, formats, type Tensor } from '../../formats/index.js';
import type { KernelOutputs } from '../../audit/index.js';
import type { LiveFailure, LiveKernel } from '../../live/index.js';
import { findingWeight } from '../../machine/index.js';
import {
  type Problem,
  problemFeatures,
  problemShape,
  quantities,
  type QuantityName,
  quantityShape,
} from '../../problem/index.js';
import {
  bindLaunch,
  evaluate,
  type LaunchTensor,
  problemVariables,
} from '../../ptx/launch/index.js';
import { type LaunchRun, runLaunch } from '../../ptx/run/index.js';
import { RequestError } from '../../request-error.js';
import { UnsupportedProblem, KernelFault } from '../../../properties/index.js';
import { type LaunchTemplate, openTemplate } from './open-launch.js';

/** A tensor of the problem, or one for the kernel to write, in memory. */
interface PlacedTensor {
  readonly name: string;
  readonly tensor: Tensor;
}

/** The bytes behind a tensor's elements. */
function bytesOf({ data }: Tensor): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}

function launchTensor({ name, tensor }: PlacedTensor): LaunchTensor {
  const { format, shape } = tensor;
  return {
    name,
    dtype: format,
    elementBits: formats[format].storageBits,
    shape,
    bytes: bytesOf(tensor),
  };
}

/** What an output has where nothing else is said: the format of Q, and the LSE's. */
function defaultFormat(quantity: QuantityName, problem: Problem): FormatName {
  return quantity === 'out' ? problem.q.format : 'fp32';
}

/** @throws UnsupportedProblem for a problem that the template does not take */
function rejectUnsupported({ file }: LaunchTemplate, problem: Problem): void {
  const [feature] = problemFeatures(problem);
  const { q, k, v } = problem;
  if (feature !== undefined)
    throw new UnsupportedProblem(`a launch file has no word for ${feature} of a problem`);
  if ([q, k, v].some(({ scales, format }) => scales !== undefined || format === 'e2m1'))
    throw new UnsupportedProblem('a launch file has no word for scaled or packed elements');
  if (file.formats !== null && ![q, k, v].every(({ format }) => file.formats?.includes(format)))
    throw new UnsupportedProblem(`it takes ${file.formats.join(', ')}`);
  const variables = problemVariables(problem);
  for (const requirement of file.requires)
    if (evaluate(requirement, variables) === 0)
      throw new UnsupportedProblem(`it requires ${requirement}`);
}

/** Tensors that the kernel is to write, in which every byte is set: what stays so is NaN. */
function outputTensors({ file }: LaunchTemplate, problem: Problem): readonly PlacedTensor[] {
  const shape = problemShape(problem);
  return file.outputs.flatMap(({ name, as, format }) => {
    const quantity = quantities.find((one) => one.name === as);
    if (quantity === undefined) return [];
    const dims = quantityShape(quantity, shape);
    const named = (format ?? defaultFormat(quantity.name, problem)) as FormatName;
    if (!Object.hasOwn(formats, named)) return [];
    const elements = dims.reduce((all, one) => all * one, 1);
    const tensor = { format: named, shape: dims, data: allocateStorage(formats[named], elements) };
    bytesOf(tensor).fill(0xff);
    return [{ name, tensor }];
  });
}

/** @throws KernelFault for what is illegal in a run, or keeps it from its end */
function rejectFindings({ findings, isComplete }: LaunchRun): void {
  const illegal = findings.filter(({ kind }) => findingWeight(kind) !== 'hint');
  const [first] = illegal;
  const more = illegal.length > 1 ? ` (and ${illegal.length - 1} more findings)` : '';
  if (first !== undefined)
    throw new KernelFault(`has a finding, ${first.kind}: ${first.message}${more}`);
  if (!isComplete) throw new KernelFault('does not come to its end');
}

/**
 * Runs a compiled kernel on a problem, as its template says: Q, K and V are the tensors `q`, `k` and `v`, [batch, heads, seqlen,
 * dim] in row-major order, and each output that is given `as` a quantity is one of that quantity's shape.
 *
 * @throws UnsupportedProblem for a problem that the template declines
 * @throws KernelFault where the run has findings
 * @throws RequestError for a launch that does not fit, and for instructions that are not supported
 */
export function runOnProblem(template: LaunchTemplate, problem: Problem): KernelOutputs {
  rejectUnsupported(template, problem);
  const { file, module, path, ptxPath } = template;
  const outputs = outputTensors(template, problem);
  const { q, k, v } = problem;
  const placed = [
    ...Object.entries({ q, k, v }).map(([name, tensor]) => ({ name, tensor })),
    ...outputs,
  ];
  const launch = bindLaunch(file, {
    module,
    tensors: new Map(placed.map((one) => [one.name, launchTensor(one)])),
    variables: problemVariables(problem),
    fileName: path,
  });
  const run = runLaunch(module, launch, { file: ptxPath, races: false });
  rejectFindings(run);
  const results = new Map<string, Tensor>();
  for (const { name, tensor } of outputs) {
    bytesOf(tensor).set(run.tensors.get(name) ?? []);
    const quantity = file.outputs.find((output) => output.name === name)?.as;
    results.set(quantity ?? name, tensor);
  }
  const out = results.get('out');
  if (out === undefined)
    throw new RequestError(
      `${path}: no output is given as "out"; write {"name": "O", "as": "out", "format": "bf16"}`,
    );
  return { ...Object.fromEntries(results), out, lse: results.get('lse') ?? null };
}

/** What a failure is to those who ask, and what they are told; null for what ends the whole request. */
function answerTo(error: unknown, hasRun: boolean): LiveFailure | null {
  if (error instanceof UnsupportedProblem)
    return { ok: false, cause: 'unsupported', reason: `declines the problem: ${error.message}` };
  if (error instanceof KernelFault) return { ok: false, cause: 'error', reason: error.message };
  // A template whose numbers fit other problems does not take this one.
  if (error instanceof RequestError && hasRun)
    return { ok: false, cause: 'unsupported', reason: `declines the problem: ${error.message}` };
  return null;
}

/**
 * A compiled kernel that answers as a live one does: a launch file that is a template is run on one problem after the other.
 *
 * @throws RequestError for files that cannot be read; its `run` throws one where the first problem cannot be launched
 */
export async function startCompiledKernel(path: string): Promise<LiveKernel<KernelOutputs>> {
  const template = await openTemplate({ path });
  let hasRun = false;
  return {
    folder: '',
    run: async (problem) => {
      try {
        const outputs = runOnProblem(template, problem);
        hasRun = true;
        return { ok: true, outputs };
      } catch (error) {
        const answer = answerTo(error, hasRun);
        if (answer === null) throw error;
        return answer;
      }
    },
    close: async () => undefined,
  };
}
