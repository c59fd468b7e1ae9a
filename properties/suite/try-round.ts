import { type FormatName, formats, round as roundTo } from '../../src/formats/index.js';
import { problemShape, type ProblemShape } from '../../src/problem/index.js';
import type { AttentionKernel, KernelRun } from '../laws/index.js';
import {
  besideThreshold,
  type RegimeName,
  type SpecialKind,
  specialKinds,
  type Tiling,
} from '../problems/index.js';
import { type Counterexample, findCounterexample } from './find-counterexample.js';
import { productionAspect, specialsOneIn } from './law-cases.js';
import type { PlannedLaw } from './plan-check.js';
import type { ResolvedPromises } from './promises.js';

/** The sizes of a problem that bugs depend on. */
export const triedSizeNames = [
  'batch',
  'heads',
  'groupSize',
  'queries',
  'keys',
  'qkDim',
  'vDim',
] as const satisfies readonly (keyof ProblemShape)[];

/** The largest of each size among the problems that a kernel ran on, not all in one problem. */
export type TriedSizes = Readonly<Record<(typeof triedSizeNames)[number], number>>;

/** The largest of each size of some problems, on top of those known before; null for no problem. */
export function largestSizes(
  shapes: readonly TriedSizes[],
  before: TriedSizes | null = null,
): TriedSizes | null {
  const all = before === null ? shapes : [before, ...shapes];
  if (all.length === 0) return null;
  const entries = triedSizeNames.map((name) => [name, Math.max(...all.map((of) => of[name]))]);
  return Object.fromEntries(entries) as TriedSizes;
}

/** Formats of inputs for which kernels write outputs in the same format; those of 8 bits write 16. */
const ownOutput: readonly FormatName[] = ['bf16', 'fp16'];

/** The format of a run's inputs, if its output has finite numbers beyond this format; else null. */
function widenedFrom({ problem, outputs, out }: KernelRun): FormatName | null {
  const { format } = problem.q;
  if (!ownOutput.includes(format) || outputs.out.format === format) return null;
  const isWider = out.some((x) => Number.isFinite(x) && roundTo(formats[format], x) !== x);
  return isWider ? format : null;
}

/** A problem on which a law fails, as simple as shrinking made it. */
export interface RoundFailure extends Counterexample {
  readonly regime: RegimeName;
  /** The problem's number among those of its law, from 1. */
  readonly round: number;
}

/** The result of a law on the problem of a round. */
export type RoundResult<Failure = RoundFailure> = {
  /** Seconds that it took, with simplifying. */
  readonly seconds: number;
} & (
  | { readonly status: 'unsupported'; readonly reason: string }
  | {
      readonly status: 'tried';
      /** The largest sizes of the problems that the kernel ran on; null where it ran on none. */
      readonly sizes: TriedSizes | null;
      /** Formats of inputs for which the kernel wrote outputs with digits beyond the format. */
      readonly widened: readonly FormatName[];
      readonly failure: Failure | null;
    }
);

/** A law of a check. */
export interface LawOfCheck {
  readonly planned: PlannedLaw;
  readonly promises: ResolvedPromises;
  /** The seed of the check. */
  readonly seed: number;
}

/** A 32-bit hash of numbers and texts: independent seeds. */
function seedFrom(...parts: readonly (number | string)[]): number {
  let hash = 0x811c9dc5;
  for (const character of parts.join('\n'))
    hash = Math.imul(hash ^ character.codePointAt(0)!, 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  return (hash ^ (hash >>> 13)) | 0;
}

/** log2 of the most that the maximum may lag in existing kernels. */
const usualThresholds: readonly number[] = [4, 8, 1, 0];

/** The promised threshold at first, and others once every regime had its turn. */
function tilingOf({ planned, promises }: LawOfCheck, round: number): Tiling {
  const { blockKeys, rescaleThreshold } = promises;
  const nearest = besideThreshold * Math.round(rescaleThreshold / besideThreshold);
  const thresholds = [...new Set([nearest, ...usualThresholds])];
  const turn = Math.floor((round - 1) / planned.regimes.length);
  return { blockKeys, threshold: thresholds[turn % thresholds.length] };
}

/**
 * Tries a law on the problem of a round. The problem follows from the seed, the law and the round alone, so that
 * rounds can be tried in any order, and in several threads or processes.
 * @param round from 1
 * @throws RequestError for promises that leave no problem
 */
export async function tryRound(
  law: LawOfCheck,
  round: number,
  kernel: AttentionKernel,
  shrinkSeconds: number,
): Promise<RoundResult> {
  const { planned, promises } = law;
  const { id } = planned;
  // Each law meets the regimes in an order of its own.
  const regimes = [...planned.regimes].sort(
    (a, b) => seedFrom(law.seed, id, a) - seedFrom(law.seed, id, b),
  );
  const regime = regimes[(round - 1) % regimes.length];
  const specials: readonly SpecialKind[] =
    promises.specialValues && round % specialsOneIn === 0 ? specialKinds : [];
  const start = performance.now();
  const result = await findCounterexample(
    {
      law: id,
      regime,
      specials,
      tiling: tilingOf(law, round),
      seed: seedFrom(law.seed, id, regime, round),
      production: productionAspect(id, round),
    },
    kernel,
    promises,
    shrinkSeconds,
  );
  const seconds = (performance.now() - start) / 1000;
  if (result.status === 'unsupported') return { ...result, seconds };
  const isViolated = result.status === 'violated';
  const shapes = result.runs.map(({ shape }) => shape);
  // The kernel may have failed before it gave anything.
  if (isViolated) shapes.push(problemShape(result.drawn.problem));
  const widened = new Set(result.runs.map(widenedFrom).filter((format) => format !== null));
  return {
    status: 'tried',
    seconds,
    sizes: largestSizes(shapes),
    widened: [...widened],
    failure: isViolated ? { ...result.counterexample, regime, round } : null,
  };
}
