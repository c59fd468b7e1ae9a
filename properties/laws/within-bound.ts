import { attentionOracle, type AttentionReference } from '../../oracles/index.js';
import {
  anyKernelArithmetic,
  auditAccuracy,
  elementBounds,
  type Judgement,
  type KernelArithmetic,
  KernelBound,
  outputRounding,
  type Premises,
  resolvePremises,
} from '../../src/audit/index.js';
import type { FormatName } from '../../src/formats/index.js';
import type { ProblemPromises } from './kernel-under-test.js';
import { type KernelRun, type Law, NotApplicable } from './law.js';
import type { Problem } from '../../src/problem/index.js';

/** Premises of any correct kernel on a run's problem, in numbers, with those that the kernel promises. */
export function admittedPremises(
  { problem, outputs }: Pick<KernelRun, 'problem' | 'outputs'>,
  { premises }: Pick<ProblemPromises, 'premises'>,
): Premises {
  return resolvePremises(problem, outputs.out.format, premises(problem));
}

/** The arithmetic of any correct kernel on a run's problem, as coarse as the kernel promises to be. */
export function admittedArithmetic(
  run: Pick<KernelRun, 'problem' | 'outputs'>,
  promises: Pick<ProblemPromises, 'premises'>,
): KernelArithmetic {
  const premises = admittedPremises(run, promises);
  return anyKernelArithmetic(run.problem, run.outputs.out.format, premises);
}

/** The most that a run of any correct kernel may differ from exact attention; ∞ where nothing is known. */
export interface RunBounds {
  /** [batch, heads, queries, vDim] */
  readonly out: Float64Array;
  /** [batch, heads, queries], natural logarithm. */
  readonly lse: Float64Array;
}

/**
 * The most that storing in a format moves a number that is known to within `error`: half an ulp, or a
 * whole one where it is not rounded to nearest; ∞ for NaN.
 */
export function storingError(
  format: FormatName,
  value: number,
  error: number,
  rounding: KernelArithmetic['outputRounding'] = 'nearest',
): number {
  if (Number.isNaN(value) || Number.isNaN(error)) return Infinity;
  return outputRounding(format, value, error, rounding);
}

/**
 * The bounds of a run, including the rounding of the stored results and the reference's own radii.
 * @param reference the exact attention of the run's problem
 */
export function runBounds(
  { problem, outputs }: Pick<KernelRun, 'problem' | 'outputs'>,
  reference: AttentionReference,
  promises: Pick<ProblemPromises, 'premises'>,
): RunBounds {
  const { format } = outputs.out;
  const arithmetic = admittedArithmetic({ problem, outputs }, promises);
  const premises = new KernelBound(
    problem,
    reference,
    format,
    admittedPremises({ problem, outputs }, promises),
  );
  const {
    quantities: {
      out: { total },
      lse,
    },
  } = elementBounds(problem, reference, arithmetic, premises);
  const stored = outputs.lse?.format ?? null;
  return {
    out: total,
    lse: lse.total.map((bound, row) =>
      stored === null
        ? bound
        : bound + storingError(stored, reference.quantities.lse.values[row], bound),
    ),
  };
}

/** Exact attention of a problem, each value with a radius as small as audits ask for. */
export function exactAttention(problem: Problem): AttentionReference {
  return attentionOracle(problem, { accuracy: auditAccuracy(problem.q.format) });
}

/**
 * The first finding of an audit, in a sentence without its full stop; null for none.
 * @throws NotApplicable when nothing was held against a bound
 */
export function judgedViolation({
  verdict,
}: {
  readonly verdict: Pick<Judgement['verdict'], 'judged'> & {
    readonly findings: readonly { readonly statement: string }[];
  };
}): string | null {
  const found = verdict.findings[0]?.statement ?? null;
  if (found === null && !verdict.judged) throw new NotApplicable('no element has a bound');
  return found;
}

/**
 * The first finding of the worst-case tests of an audit, in a sentence without its full stop; null for
 * none. For problems whose values are so alike that roundings are no longer independent, which is the
 * premise of the other tests.
 * @throws NotApplicable when nothing was held against a bound
 */
export function worstCaseViolation({ verdict }: Pick<Judgement, 'verdict'>): string | null {
  const found = verdict.findings.find(({ isWorstCase }) => isWorstCase);
  if (found === undefined && !verdict.judged) throw new NotApplicable('no element has a bound');
  return found?.statement ?? null;
}

/** O and LSE against the oracle: see `judgeOutputs`. */
export const withinBound: Law = {
  statement: 'O and LSE are as near to exact attention as rounding lets them be',
  reason:
    'Every operation of a correct kernel errs by a rounding at most, and what these add up to at an element, over a row, a tile and a head, is bounded.',
  strengths: ['bound'],
  usual: 'bound',
  choices: 1,
  violation: async ({ problem }, { run, judge }) => judgedViolation(judge(await run(problem))),
};

/**
 * Every configuration that is promised beside the kernel's own, O and LSE against the oracle as in
 * `withinBound`, by the bounds of that configuration. Choices go round them, up to 60.
 */
export const configurations: Law = {
  statement: 'O and LSE stay within rounding in every configuration',
  reason:
    'Thresholds, tile sizes, tunings and splits are a matter of speed; what is right in one of them only is a bug that another machine will show.',
  strengths: ['bound'],
  usual: 'bound',
  choices: 60,
  notFor: (promises) =>
    Object.keys(promises.configurations).length === 0
      ? 'no configurations beside its own are promised'
      : null,
  violation: async ({ problem, choice }, { runConfiguration, judge, promises }) => {
    const names = Object.keys(promises.configurations);
    if (names.length === 0) throw new NotApplicable('there is no other configuration');
    const name = names[choice % names.length];
    const judged = judgedViolation(judge(await runConfiguration(name, problem)));
    return judged && `with ${name}, ${judged}`;
  },
};
