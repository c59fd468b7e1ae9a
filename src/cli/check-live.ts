import { sep } from 'node:path';
import { findKernelModel } from '../../kernels/index.js';
import {
  judgedArithmetic,
  modelPremises,
  type KernelArithmetic,
  type KernelOutputs,
} from '../audit/index.js';
import type { TensorFile } from '../io/index.js';
import { startLiveKernel, type LiveFailure, type LiveKernel } from '../live/index.js';
import {
  KernelFault,
  UnsupportedProblem,
  type AttentionKernel,
  type ResolvedPromises,
} from '../../properties/index.js';
import type { Problem } from '../problem/index.js';
import { describeReportedProblem, reportedProblem } from '../report/json/index.js';
import { RequestError } from '../request-error.js';
import type { CheckCommandOptions } from './check/options.js';
import type { ExecutionFailure, KernelUnderTest } from './check-kernel-under-test.js';
import { ordinaryProblem } from './check-ordinary-problem.js';
import { isModel } from './declared-arithmetic.js';
import { kernelSettings } from './options/kernel-settings.js';
import { parsePositive } from './options/parse-values.js';

/** How often a command is started that ends before its first answer. */
const mostStarts = 3;

/** After these the command is there, whatever it makes of the problem. */
const answers: readonly LiveFailure['cause'][] = ['error', 'unsupported', 'output'];

/** What a user may do about a process that does not work at all. */
const mends: Readonly<Partial<Record<LiveFailure['cause'], string>>> = {
  timeout: '; --timeout <seconds> gives it longer',
  protocol: '; its stdout is for answers only, all else belongs on stderr',
  ended: ` before its first answer, ${mostStarts} times in a row`,
};

async function readOutputs(file: TensorFile): Promise<KernelOutputs> {
  const out = await file.read('out');
  const lse = file.entries.has('lse') ? await file.read('lse') : null;
  return { out, lse };
}

/** A live kernel whose failures do not name its folder: that is another each time, and soon gone. */
function withoutFolder(live: LiveKernel<KernelOutputs>): LiveKernel<KernelOutputs> {
  return {
    ...live,
    run: async (problem) => {
      const answer = await live.run(problem);
      return answer.ok
        ? answer
        : { ...answer, reason: answer.reason.replaceAll(`${live.folder}${sep}`, '') };
    },
  };
}

function kernelOf(live: LiveKernel<KernelOutputs>): AttentionKernel {
  return async (problem) => {
    const answer = await live.run(problem);
    if (answer.ok) return answer.outputs;
    const statement = `the kernel's process ${answer.reason}`;
    if (answer.cause === 'unsupported') throw new UnsupportedProblem(statement);
    throw new KernelFault(statement, { isSlow: answer.cause === 'timeout' });
  };
}

/** Asks until there is an answer, or enough of asking. */
async function firstFailure(
  live: LiveKernel<KernelOutputs>,
  problem: Problem,
  command: string,
): Promise<LiveFailure | null> {
  for (let start = 1; ; start++) {
    const answer = await live.run(problem);
    if (answer.ok || answers.includes(answer.cause)) return null;
    if (answer.cause === 'not-started')
      throw new RequestError(
        `--exec is ${JSON.stringify(command)}, which cannot be run: its shell ${answer.reason}; check the command and the path`,
      );
    if (answer.cause !== 'ended' || start === mostStarts) return answer;
  }
}

/**
 * How a command computes, by the model of --as; null where nothing is known.
 * @throws RequestError for a name of --as that is neither a model nor a preset
 */
function arithmeticOf({ as, set }: CheckCommandOptions) {
  if (as === undefined || !isModel(as)) return null;
  const model = findKernelModel(as).name;
  const settings = kernelSettings(set);
  return {
    premises: modelPremises(model, settings),
    arithmetic: (problem: Problem): KernelArithmetic | null => {
      try {
        return judgedArithmetic(model, problem, settings);
      } catch (error) {
        // The model does not take the problem, whereas the command may.
        if (error instanceof RequestError) return null;
        throw error;
      }
    },
    /** @throws RequestError for settings that the model refuses in every format */
    check: (promises: ResolvedPromises): void => {
      let refusal: unknown;
      for (const format of promises.formats)
        try {
          judgedArithmetic(model, ordinaryProblem(promises, format), settings);
          return;
        } catch (error) {
          refusal ??= error;
        }
      throw refusal;
    },
  };
}

/**
 * The live kernel of --exec.
 * @throws RequestError for options that do not parse
 */
export async function liveKernel(
  command: string,
  options: CheckCommandOptions,
): Promise<KernelUnderTest> {
  const judged = arithmeticOf(options);
  const timeout = parsePositive(options.timeout, '--timeout');
  const live = withoutFolder(await startLiveKernel(command, timeout, readOutputs));
  const whyNotRunning = async (promises: ResolvedPromises): Promise<ExecutionFailure | null> => {
    judged?.check(promises);
    const problem = ordinaryProblem(promises, promises.formats[0]);
    const failure = await firstFailure(live, problem, command);
    if (failure === null) return null;
    const asked = describeReportedProblem(reportedProblem(problem));
    const reason = `the kernel's process ${failure.reason}${mends[failure.cause] ?? ''} (asked for ${asked})`;
    return { reason, problem };
  };
  return {
    kernel: kernelOf(live),
    promises: judged === null ? {} : { arithmetic: judged.arithmetic, premises: judged.premises },
    reported: {
      command,
      model: null,
      settings: Object.fromEntries(kernelSettings(options.set)),
      judgedAs: options.as ?? null,
    },
    whyNotRunning,
    close: live.close,
  };
}
