import {
  anyGradientPremises,
  auditGradients,
  judgeOutputs,
  measureGradients,
  premiseHint,
  type Diagnosis,
  type GradientPremises,
} from '../../src/audit/index.js';
import { RequestError } from '../../src/request-error.js';
import {
  isGradientRun,
  KernelFault,
  laws,
  NotApplicable,
  UnsupportedProblem,
  type AttentionKernel,
  type FollowedOutputs,
  type GradientRun,
  type KernelRun,
  type LawCase,
  type LawId,
  type LawTools,
} from '../laws/index.js';
import { type ResolvedPromises, promisesOf } from './promises.js';
import { runGradients, runKernel } from './run-kernel.js';

/** The cause that a diagnosis of outputs or of gradients names. */
export type FoundCause = Pick<Diagnosis, 'id' | 'sentence' | 'equivalents' | 'place' | 'fitting'>;

/** The result of a law on one case. */
export type CaseResult =
  | {
      readonly status: 'held';
      /** Every run of the kernel that the law asked for, in order; one at least. */
      readonly runs: readonly KernelRun[];
    }
  /** The kernel does not take the problem, or the one that the law made from it. */
  | { readonly status: 'unsupported'; readonly reason: string }
  /** The law says nothing about the problem. */
  | { readonly status: 'inapplicable'; readonly reason: string }
  | {
      readonly status: 'violated';
      /** The violation, in a sentence without its full stop. */
      readonly statement: string;
      /** Its cause by an audit; null where that finds none, or it was not asked for. */
      readonly diagnosis: FoundCause | null;
      /** Names of the causes that an audit's rows bear out, whether it names one or not. */
      readonly fitting: readonly string[];
      /**
       * The premise under which an audit would let it pass, in the audit's own words; null for none, or
       * if it was not asked for.
       */
      readonly hint: string | null;
      /** The fault of a kernel that did not compute, in a clause; null if it computed. */
      readonly fault: string | null;
      /** Every run of the kernel that the law asked for, in order. */
      readonly runs: readonly KernelRun[];
      /** Whether it took too long to be tried again and again; see `KernelFault`. */
      readonly isSlow: boolean;
    };

/** The arithmetic of a kernel's gradients of a run's problem, as promised. */
function gradientPremises(
  { problem, tensors }: GradientRun,
  promises: ResolvedPromises,
): GradientPremises {
  const { format } = tensors.dq;
  return promises.gradientPremises(problem, format) ?? anyGradientPremises(problem, format);
}

/** The result of an audit. @throws KernelFault where a tensor does not fit the problem */
function faultless<T>(audit: () => T): T {
  try {
    return audit();
  } catch (error) {
    if (error instanceof RequestError) throw new KernelFault(error.message);
    throw error;
  }
}

function required<T>(promise: T | null): T {
  if (promise === null) throw new TypeError('a law asks for what is not promised');
  return promise;
}

/**
 * Tries a law on one case.
 * @param diagnose whether to find the cause of a violation by an audit of the law's runs, even if the
 * law itself asks for none; it takes as long as several audits
 */
export async function runCase(
  id: LawId,
  lawCase: LawCase,
  kernel: AttentionKernel,
  promises: ResolvedPromises,
  { diagnose }: { readonly diagnose: boolean },
): Promise<CaseResult> {
  const strength = promises.laws[id];
  if (strength === 'none') return { status: 'unsupported', reason: 'the law is not promised' };
  const runs: KernelRun[] = [];
  let [diagnosis, hint]: [FoundCause | null, string | null] = [null, null];
  let fitting: readonly string[] = [];
  const note = ({ diagnosis: found }: { readonly diagnosis: FoundCause | null }): void => {
    if (fitting.length === 0) fitting = found?.fitting ?? [];
    if (found !== null && found.id !== 'unexplained') diagnosis = found;
  };
  const recorded = async <Run extends KernelRun>(ran: Promise<Run>): Promise<Run> => {
    const run = await ran;
    runs.push(run);
    return run;
  };
  const tools: LawTools = {
    promises: promisesOf(laws[id], promises),
    strength,
    run: (problem, conditions) => recorded(runKernel(kernel, problem, promises, null, conditions)),
    runSplits: (problem, splits) =>
      recorded(
        runKernel(
          (posed) => required(promises.splits).kernel(posed, splits),
          problem,
          promises,
          null,
        ),
      ),
    merge: (problem, parts) =>
      recorded(runKernel(() => required(promises.merge)(parts), problem, promises, null)),
    follow: async (problem) => {
      const followed: FollowedOutputs[] = [];
      const kernelFollowed: AttentionKernel = async (posed) => {
        followed.push(await required(promises.follow)(posed));
        return followed[0].outputs;
      };
      const run = await recorded(runKernel(kernelFollowed, problem, promises, null));
      return { run, meaning: followed[0] };
    },
    runConfiguration: (name, problem) =>
      recorded(runKernel(promises.configurations[name].kernel, problem, promises, name)),
    judge: ({ problem, outputs, configuration }, reference) => {
      const of = configuration === null ? promises : promises.configurations[configuration];
      const arithmetic = of.arithmetic?.(problem) ?? null;
      const judgement = judgeOutputs(problem, outputs, {
        diagnose,
        premises: promises.premises(problem),
        strictPremises: promises.strictPremises,
        ...(reference === undefined ? {} : { reference }),
        ...(arithmetic === null ? {} : { arithmetic }),
      });
      const { premise } = judgement.verdict;
      note(judgement.verdict);
      if (premise !== null) hint ??= premiseHint(premise);
      return judgement;
    },
    runGradients: (problem, dout, conditions) =>
      recorded(runGradients(kernel, problem, { ...conditions, dout }, promises)),
    judgeGradients: (run) => {
      const { out, lse } = run.outputs;
      const tensors = { ...run.tensors, ...run.shared, dout: run.dout, out, lse };
      const audit = faultless(() =>
        auditGradients(run.problem, tensors, {
          diagnose,
          premises: gradientPremises(run, promises),
        }),
      );
      note(audit.verdict);
      return audit;
    },
    measureGradients: (run) =>
      measureGradients(run.problem, run.dout, {
        premises: gradientPremises(run, promises),
        given: { out: null, lse: null },
      }),
  };
  try {
    const statement = await laws[id].violation(lawCase, tools);
    if (statement !== null) {
      // Laws that compare runs ask for no audit.
      for (const run of [...runs])
        if (diagnose && diagnosis === null)
          if (isGradientRun(run)) tools.judgeGradients(run);
          else tools.judge(run);
      const found = { statement, diagnosis, fitting, hint, runs };
      return { status: 'violated', ...found, fault: null, isSlow: false };
    }
    if (runs.length === 0) return { status: 'inapplicable', reason: 'the kernel is not asked' };
    return { status: 'held', runs };
  } catch (error) {
    if (error instanceof NotApplicable) return { status: 'inapplicable', reason: error.message };
    if (error instanceof UnsupportedProblem)
      return { status: 'unsupported', reason: error.message };
    if (error instanceof KernelFault)
      return {
        status: 'violated',
        statement: error.message,
        fault: error.message,
        diagnosis: null,
        fitting: [],
        hint: null,
        runs,
        isSlow: error.isSlow,
      };
    throw error;
  }
}
