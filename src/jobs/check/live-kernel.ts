import { findModelAmong, kernelModels, type KernelModel } from '../../../kernels/index.js';
import {
  gradientQuantities,
  judgedArithmetic,
  modelPremises,
  outputGradient,
  sharedQuantities,
  type KernelArithmetic,
  type KernelOutputs,
} from '../../audit/index.js';
import { notStarted, type LiveFailure, type LiveKernel } from '../../io/live/index.js';
import {
  KernelAbsent,
  KernelFault,
  UnsupportedProblem,
  type AttentionKernel,
  type ResolvedPromises,
} from '../../../properties/index.js';
import { poseOutput, quantities, type Problem } from '../../problem/index.js';
import { describeReportedProblem, reportedProblem } from '../../report/json/index.js';
import { RequestError } from '../../request-error.js';
import {
  type ExecutionFailure,
  type KernelUnderTest,
  ordinaryProblem,
} from './kernel-under-test.js';
import { isModel } from '../audit/index.js';

/** Default name of a live kernel. */
const process = "the kernel's process";

/** The most starts of a command that ends before its first answer. */
const mostStarts = 3;

/** Causes that prove that the command runs, whatever it makes of the problem. */
const answers: readonly LiveFailure['cause'][] = ['error', 'unsupported', 'output'];

/** Advice to the user about a process that does not work at all. */
const mends: Readonly<Partial<Record<LiveFailure['cause'], string>>> = {
  timeout: '; --timeout <seconds> gives it longer',
  protocol: '; its stdout is for answers only, all else belongs on stderr',
  ended: ` before its first answer, ${mostStarts} times in a row`,
};

/** The outputs to request from a kernel for the gradients of a problem. */
function allOutputs({ bias, sink }: Problem): readonly string[] {
  const has = { dbias: bias !== undefined, dsink: sink !== undefined };
  const shared = sharedQuantities.filter(({ name }) => has[name]);
  return [...quantities, ...gradientQuantities, ...shared].map(({ name }) => name);
}

function kernelOf(
  { live, command, subject = process }: LiveKernelRequest,
  splits?: number,
): AttentionKernel {
  return async (problem, { dout } = {}) => {
    const answer = await live.run(
      problem,
      dout === undefined
        ? { splits }
        : {
            tensors: { dout: poseOutput(problem, outputGradient, dout) },
            wants: allOutputs(problem),
          },
    );
    if (answer.ok) return answer.outputs;
    const statement = `${subject} ${answer.reason}`;
    if (answer.cause === 'not-started') throw new KernelAbsent(notStarted(command, answer));
    if (answer.cause === 'unsupported') throw new UnsupportedProblem(statement);
    throw new KernelFault(statement, { isSlow: answer.cause === 'timeout' });
  };
}

/** The failure to answer a first request, which is repeated a few times; null once there is an answer. */
async function firstFailure(
  live: LiveKernel<KernelOutputs>,
  problem: Problem,
  command: string,
): Promise<LiveFailure | null> {
  for (let start = 1; ; start++) {
    const answer = await live.run(problem);
    if (answer.ok || answers.includes(answer.cause)) return null;
    if (answer.cause === 'not-started') throw new KernelAbsent(notStarted(command, answer));
    if (answer.cause !== 'ended' || start === mostStarts) return answer;
  }
}

/** A live kernel to try. */
export interface LiveKernelRequest {
  readonly live: LiveKernel<KernelOutputs>;
  /** The command that started it. */
  readonly command: string;
  /** Its name in sentences; default: the kernel's process. */
  readonly subject?: string | undefined;
  /** The kernel model whose arithmetic, or the preset whose premises it is judged by. */
  readonly as?: string | undefined;
  /** The settings of that model as text, by key. */
  readonly settings: ReadonlyMap<string, string>;
  /** The available kernel models; default: the library's. */
  readonly models?: readonly KernelModel[] | undefined;
  /** Numbers of splits that it takes, as `splits` of its requests; default none. */
  readonly splits?: readonly number[] | undefined;
}

/**
 * The arithmetic of a command, by a model; null if nothing is known.
 * @throws RequestError for a name that is neither a model's nor a preset's
 */
function arithmeticOf({ as, settings, models = kernelModels }: LiveKernelRequest) {
  if (as === undefined || !isModel(as, models)) return null;
  const model = findModelAmong(models, as);
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
 * A live kernel to try; closing the result closes it.
 * @throws RequestError for a name that is neither a model's nor a preset's
 */
export function liveKernel(request: LiveKernelRequest): KernelUnderTest {
  const { live, command, subject = process, as, settings, splits } = request;
  const judged = arithmeticOf(request);
  const whyNotRunning = async (promises: ResolvedPromises): Promise<ExecutionFailure | null> => {
    judged?.check(promises);
    const problem = ordinaryProblem(promises, promises.formats[0]);
    const failure = await firstFailure(live, problem, command);
    if (failure === null) return null;
    const asked = describeReportedProblem(reportedProblem(problem));
    const reason = `${subject} ${failure.reason}${mends[failure.cause] ?? ''} (asked for ${asked})`;
    return { reason, problem };
  };
  return {
    kernel: kernelOf(request),
    promises: {
      ...(judged === null ? {} : { arithmetic: judged.arithmetic, premises: judged.premises }),
      ...(splits === undefined
        ? {}
        : {
            splits: {
              counts: splits,
              kernel: (problem, count) => kernelOf(request, count)(problem),
            },
          }),
    },
    reported: {
      command,
      model: null,
      settings: Object.fromEntries(settings),
      judgedAs: as ?? null,
    },
    elsewhere: null,
    whyNotRunning,
    close: live.close,
  };
}
