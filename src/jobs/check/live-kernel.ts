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
import type { LiveKernel } from '../../io/live/index.js';
import type { AttentionKernel, ResolvedPromises } from '../../../properties/index.js';
import { poseOutput, quantities, type Problem } from '../../problem/index.js';
import { describeReportedProblem, reportedProblem } from '../../report/json/index.js';
import { RequestError } from '../../request-error.js';
import {
  type ExecutionFailure,
  type KernelUnderTest,
  ordinaryProblem,
} from './kernel-under-test.js';
import { isModel } from '../audit/index.js';
import { describeFirstFailure, firstFailure, liveSubject, outputsOf } from './live-answers.js';

/** The outputs to request from a kernel for the gradients of a problem. */
function allOutputs({ bias, sink }: Problem): readonly string[] {
  const has = { dbias: bias !== undefined, dsink: sink !== undefined };
  const shared = sharedQuantities.filter(({ name }) => has[name]);
  return [...quantities, ...gradientQuantities, ...shared].map(({ name }) => name);
}

function kernelOf(
  { live, command, subject = liveSubject }: LiveKernelRequest,
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
    return outputsOf(answer, { command, subject });
  };
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
  const { live, command, subject = liveSubject, as, settings, splits } = request;
  const judged = arithmeticOf(request);
  const whyNotRunning = async (promises: ResolvedPromises): Promise<ExecutionFailure | null> => {
    judged?.check(promises);
    const problem = ordinaryProblem(promises, promises.formats[0]);
    const failure = await firstFailure(() => live.run(problem), command);
    if (failure === null) return null;
    const asked = describeReportedProblem(reportedProblem(problem));
    return { reason: describeFirstFailure(subject, failure, asked), problem };
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
