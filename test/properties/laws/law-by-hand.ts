import * as fc from 'fast-check';
import {
  laws,
  resolvePromises,
  type KernelPromises,
  type KernelRun,
  type LawId,
  type LawStrength,
  type LawTools,
} from '../../../properties/index.js';
import { NotApplicable } from '../../../properties/laws/law.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { definedAttention, type DefinedAttention } from '../../kernels/features/index.js';
import { pseudorandom } from '../../setup/problems.js';
import { drawnCase, type DrawnKinds } from '../gradients/drawn-case.js';

/** A run of attention by definition. */
export type DefinedRun = DefinedAttention & { readonly problem: Problem };

/** How a law is tried. */
export interface HandTrial {
  readonly choice?: number;
  readonly strength?: LawStrength;
  readonly promises?: KernelPromises;
  /** What of a run's results is changed, in place. */
  readonly change?: (run: DefinedRun, index: number) => void;
  /** What the judge finds; default nothing. */
  readonly judge?: (...asked: Parameters<LawTools['judge']>) => string | null;
}

/** What a law says, and the runs that it asked for; inapplicable where it says nothing of the problem. */
export interface HandResult {
  readonly statement: string | null;
  readonly inapplicable: boolean;
  readonly runs: readonly DefinedRun[];
}

/**
 * A law by itself: the kernel that it asks is the definition in fp64, said to be in the format of Q, and its judge is whom
 * the test gives it.
 */
export async function tryByHand(
  id: LawId,
  problem: Problem,
  { choice = 0, strength = 'bits', promises = {}, change, judge }: HandTrial = {},
): Promise<HandResult> {
  const runs: DefinedRun[] = [];
  const run = (posed: Problem): Promise<KernelRun> => {
    const defined = { ...definedAttention(posed), problem: posed };
    change?.(defined, runs.length);
    runs.push(defined);
    const { out, lse } = defined;
    const shape = problemShape(posed);
    const { batch, heads, queries, vDim } = shape;
    const { format } = posed.q;
    // Nobody reads these elements: what a law compares is decoded.
    const outputs = {
      out: { format, shape: [batch, heads, queries, vDim], data: new Float32Array(out) },
      lse: { format: 'fp32', shape: [batch, heads, queries], data: new Float32Array(lse) },
    } as const;
    return Promise.resolve({ configuration: null, problem: posed, shape, outputs, out, lse });
  };
  const refuse = () => {
    throw new Error('the law asks for more than runs');
  };
  const tools: LawTools = {
    promises: resolvePromises({ formats: ['fp32'], lse: true, blockKeys: 2, ...promises }),
    strength,
    run,
    judge: (...asked) => {
      const statement = judge?.(...asked) ?? null;
      const findings = statement === null ? [] : [{ statement, isWorstCase: true }];
      return { verdict: { judged: true, findings } } as unknown as ReturnType<LawTools['judge']>;
    },
    runSplits: refuse,
    merge: refuse,
    follow: refuse,
    runConfiguration: refuse,
    runGradients: refuse,
    judgeGradients: refuse,
    measureGradients: refuse,
  };
  try {
    const statement = await laws[id].violation({ problem, choice }, tools);
    return { statement, inapplicable: false, runs };
  } catch (error) {
    if (!(error instanceof NotApplicable)) throw error;
    return { statement: null, inapplicable: true, runs };
  }
}

/** The kinds of problems that are drawn, beside those of gradients: with a boolean mask of pairs. */
export interface DrawnProblemKinds extends DrawnKinds {
  readonly pairs?: boolean;
}

/** Small problems, as `drawnCase` has them. */
export function drawnProblem({
  pairs = false,
  ...kinds
}: DrawnProblemKinds): fc.Arbitrary<Problem> {
  return fc.tuple(drawnCase(kinds), fc.integer({ min: 1, max: 2 ** 30 })).map(([given, seed]) => {
    const { problem } = given;
    if (!pairs) return problem;
    const { batch, heads, queries, keys } = problemShape(problem);
    const random = pseudorandom(seed);
    const data = Uint8Array.from({ length: batch * heads * queries * keys }, () =>
      random() < 0 ? 0 : 1,
    );
    // A mask that is false everywhere is refused as a mistake.
    data[0] = 1;
    return { ...problem, mask: { shape: [batch, heads, queries, keys], data } };
  });
}
