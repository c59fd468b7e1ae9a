import {
  auditableLse,
  auditableOutput,
  judgeOutputs,
  type Diagnosis,
  type KernelOutputs,
} from '../../src/audit/index.js';
import { problemShape, type Problem } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import {
  KernelFault,
  kernelOutputs,
  laws,
  NotApplicable,
  UnsupportedProblem,
  type AttentionKernel,
  type KernelRun,
  type LawCase,
  type LawId,
  type LawTools,
  type RunConditions,
} from '../laws/index.js';
import { posedFor } from '../problems/index.js';
import type { ResolvedPromises } from './promises.js';

/** What became of a law on one case. */
export type CaseResult =
  | {
      readonly status: 'held';
      /** Every run of the kernel that the law asked for, in order; one at least. */
      readonly runs: readonly KernelRun[];
    }
  /** The kernel does not take the problem, or what the law made of it. */
  | { readonly status: 'unsupported'; readonly reason: string }
  /** The law says nothing of the problem. */
  | { readonly status: 'inapplicable'; readonly reason: string }
  | {
      readonly status: 'violated';
      /** What is wrong, in a sentence without its full stop. */
      readonly statement: string;
      /** Its cause by an audit; null where that finds none, or it was not asked for. */
      readonly diagnosis: Diagnosis | null;
      /** What the kernel did in place of computing, in a clause; null where it computed. */
      readonly fault: string | null;
      /** Every run of the kernel that the law asked for, in order. */
      readonly runs: readonly KernelRun[];
      /** Whether it took too long to be tried again and again; see `KernelFault`. */
      readonly isSlow: boolean;
    };

function describeError(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** @throws KernelFault for what is no output of the problem */
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

async function runKernel(
  kernel: AttentionKernel,
  problem: Problem,
  { lse, features }: ResolvedPromises,
  configuration: string | null,
  conditions?: RunConditions,
): Promise<KernelRun> {
  let outputs: KernelOutputs;
  try {
    outputs = kernelOutputs(await kernel(posedFor(problem, features), conditions));
  } catch (error) {
    if (error instanceof UnsupportedProblem || error instanceof KernelFault) throw error;
    throw new KernelFault(`the kernel threw: ${describeError(error)}`);
  }
  return { configuration, ...readRun(problem, outputs, lse) };
}

function required<T>(promise: T | null): T {
  if (promise === null) throw new TypeError('a law asks for what is not promised');
  return promise;
}

/**
 * Tries a law on one case.
 * @param diagnose whether the cause of a violation is looked for by an audit of the law's runs, also
 * where the law itself asks for none; it takes some audits' time
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
  let diagnosis: Diagnosis | null = null;
  const recorded = async (ran: Promise<KernelRun>): Promise<KernelRun> => {
    const run = await ran;
    runs.push(run);
    return run;
  };
  const tools: LawTools = {
    promises,
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
    runConfiguration: (name, problem) =>
      recorded(runKernel(promises.configurations[name].kernel, problem, promises, name)),
    judge: ({ problem, outputs, configuration }, reference) => {
      const of = configuration === null ? promises : promises.configurations[configuration];
      const arithmetic = of.arithmetic?.(problem) ?? null;
      const judgement = judgeOutputs(problem, outputs, {
        diagnose,
        premises: promises.premises(problem),
        ...(reference === undefined ? {} : { reference }),
        ...(arithmetic === null ? {} : { arithmetic }),
      });
      const found = judgement.verdict.diagnosis;
      if (found !== null && found.id !== 'unexplained') diagnosis = found;
      return judgement;
    },
  };
  try {
    const statement = await laws[id].violation(lawCase, tools);
    if (statement !== null) {
      // Laws that compare runs ask for no audit.
      for (const run of [...runs]) if (diagnose && diagnosis === null) tools.judge(run);
      return { status: 'violated', statement, diagnosis, fault: null, runs, isSlow: false };
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
        runs,
        isSlow: error.isSlow,
      };
    throw error;
  }
}
