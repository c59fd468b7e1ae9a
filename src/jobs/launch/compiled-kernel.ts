import { type KernelOutputs, outputGradient } from '../../audit/index.js';
import type { LiveFailure, LiveKernel } from '../../io/live/index.js';
import { RequestError } from '../../request-error.js';
import { KernelFault, UnsupportedProblem } from '../../../properties/index.js';
import type { MachineStatements } from './launch-findings.js';
import { launchTensor } from './launch-tensors.js';
import { type LaunchTemplate, openTemplate } from './open-launch.js';
import { type ProblemRun, runOnProblem } from './template/run-on-problem.js';
import { takesTensor } from './tensors-beside.js';

/** @throws KernelFault for an illegal act in a run, or one that keeps it from its end */
function rejectFaults({ faults }: MachineStatements): void {
  const [first, ...others] = faults;
  if (first === undefined) return;
  throw new KernelFault(others.length === 0 ? first : `${first} (and ${others.length} more)`);
}

/** The outputs of a run in which the machine found nothing wrong. */
function judgedOutputs({ outputs, machine }: ProblemRun, path: string): KernelOutputs {
  const { lse = null, ...others } = outputs;
  if (!Object.hasOwn(outputs, 'out'))
    throw new RequestError(
      `${path}: no output is given as "out"; write {"name": "O", "as": "out", "format": "bf16"}`,
    );
  rejectFaults(machine);
  return { ...others, out: outputs.out, lse };
}

/** The failure to report for an error; null for one that ends the whole request. */
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
 * A compiled kernel that answers as a live one does: a launch file that is a template is run on one problem after the
 * other, with the launches that follow it; from the first that takes `dout` on, they run only if gradients are asked
 * for. Races are detected, and a run with a race is no answer.
 *
 * @throws RequestError for files that cannot be read; its `run` throws one where the first problem cannot be launched
 */
export async function startCompiledKernel(path: string): Promise<LiveKernel<KernelOutputs>> {
  const template = await openTemplate({ path });
  let hasRun = false;
  return {
    folder: '',
    run: async (problem, asked) => {
      try {
        const dout = asked?.tensors?.[outputGradient.name];
        const isGiven = dout !== undefined && 'format' in dout;
        const beside = isGiven ? [launchTensor(outputGradient.name, dout)] : [];
        // Where no gradient is asked for, there is no dO, and nothing that needs it is run.
        const isRun = (one: LaunchTemplate) => isGiven || !takesTensor(one, outputGradient.name);
        const run = runOnProblem(template, problem, beside, isRun);
        const outputs = judgedOutputs(run, path);
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
