import { UnsupportedProblem } from '../../../../properties/index.js';
import type { TensorFile } from '../../../io/index.js';
import type { RecurrentProblem } from '../../../problem/index.js';
import type { LaunchTensor } from '../../../ptx/launch/index.js';
import { RequestError } from '../../../request-error.js';
import type { ObtainedRecurrence, OpenRecurrence, RecurrentSource } from '../../audit/index.js';
import { readLaunchTensor } from '../../launch/launch-tensors.js';
import { chainOutputs, openTemplate, type LaunchTemplate } from '../../launch/open-launch.js';
import { quantityOf, runOnRecurrence } from '../../launch/template/run-on-recurrence.js';
import { tensorsBeside } from '../../launch/tensors-beside.js';
import { madeSources } from '../made-source.js';

/** @throws RequestError for a template that gives nothing of the problem's family */
function rejectNothing(template: LaunchTemplate, problem: RecurrentProblem): void {
  const given = chainOutputs(template).flatMap(({ as }) => (as === null ? [] : [as]));
  if (given.some((as) => quantityOf(as, problem) !== undefined)) return;
  throw new RequestError(
    `${template.path}: no output is given as "out" or "final_state"; write {"name": "o", "as": "out", "format": "bf16"}`,
  );
}

/** The ends of packed sequences that are noted in the file and are no tensor of it, as kernels take them. */
function endsOf({ cuSeqlens }: RecurrentProblem): LaunchTensor[] {
  if (cuSeqlens === undefined) return [];
  const bytes = new Uint8Array(Int32Array.from(cuSeqlens).buffer);
  return [{ name: 'cu_seqlens', dtype: 'I32', elementBits: 32, shape: [cuSeqlens.length], bytes }];
}

/** Tensors of the problem's file that a template names, as they are. */
async function readBeside(
  template: LaunchTemplate,
  { file, problem }: { readonly file: TensorFile; readonly problem: RecurrentProblem },
): Promise<readonly LaunchTensor[]> {
  const entries = [...tensorsBeside(template)].flatMap((name) => file.entries.get(name) ?? []);
  const read = await Promise.all(entries.map((entry) => readLaunchTensor(file, entry)));
  return [...endsOf(problem), ...read];
}

/**
 * Runs a compiled kernel on a problem of linear attention, on the machine; or tells that it declines such problems.
 * @throws RequestError for a launch that does not fit, and for instructions that are not supported
 */
async function execute(
  template: LaunchTemplate,
  { file, problem, gradientInputs }: OpenRecurrence,
): ReturnType<RecurrentSource['run']> {
  rejectNothing(template, problem);
  const beside = await readBeside(template, { file, problem });
  try {
    const { results, machine } = runOnRecurrence(template, { problem, gradientInputs, beside });
    const obtained: ObtainedRecurrence = {
      results,
      machine,
      declared: null,
      sources: madeSources(results),
    };
    return obtained;
  } catch (error) {
    if (!(error instanceof UnsupportedProblem)) throw error;
    const reason = `the compiled kernel of ${template.path} declines the problem: ${error.message}`;
    return { failure: { reason, isDeclined: true } };
  }
}

/**
 * Opens a compiled kernel of linear attention, run on the machine by a launch file that is a template.
 * @throws RequestError for files that cannot be read
 */
export async function openCompiledRecurrence(path: string): Promise<{
  readonly takes: Iterable<string>;
  readonly run: RecurrentSource['run'];
}> {
  const template = await openTemplate({ path });
  return { takes: tensorsBeside(template), run: (open) => execute(template, open) };
}
