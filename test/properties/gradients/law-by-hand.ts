import {
  laws,
  resolvePromises,
  type GradientRun,
  type KernelPromises,
  type LawId,
  type LawStrength,
  type LawTools,
} from '../../../properties/index.js';
import { NotApplicable } from '../../../properties/laws/law.js';
import type { Tensor } from '../../../src/formats/index.js';
import { problemShape, type Problem } from '../../../src/problem/index.js';
import { pseudorandom } from '../../setup/problems.js';
import { definedGradients, type Asked, type Gradients } from './defined-backward.js';
import { shapesOf } from './drawn-case.js';

/** A run of gradients by definition, and the bounds that are made up for it. */
export interface KnownRun extends Asked {
  readonly values: Gradients;
  readonly bounds: Gradients;
}

const names = ['dq', 'dk', 'dv'] as const;

const ofEach = <T>(make: (name: keyof Gradients) => T) =>
  Object.fromEntries(names.map((name) => [name, make(name)])) as Record<keyof Gradients, T>;

/** Bounds that are all different, of a few thousandths, for the gradients of a run of so many. */
function madeUpBounds(values: Gradients, run: number): Gradients {
  const random = pseudorandom(7919 + run);
  return ofEach((name) => values[name].map(() => 2 ** -8 * (1.5 + random())));
}

/** How a law of gradients is tried. */
export interface HandTrial {
  readonly choice?: number;
  readonly strength?: LawStrength;
  readonly promises?: KernelPromises;
  /** What of a run's gradients, or of the bounds that the law is told, is changed, in place. */
  readonly change?: (run: KnownRun, index: number) => void;
}

/** What a law of gradients says, and the runs that it asked for; inapplicable where it says nothing of the problem. */
export interface HandResult {
  readonly statement: string | null;
  readonly inapplicable: boolean;
  readonly runs: readonly KnownRun[];
}

/**
 * A law of gradients by itself: the kernel that it asks is the definition, and the bounds that it is told are numbers made up
 * for each element, so that a limit takes no audit.
 */
export async function tryByHand(
  id: LawId,
  { problem, dout }: Asked,
  { choice = 0, strength = 'bound', promises = {}, change = () => undefined }: HandTrial = {},
): Promise<HandResult> {
  const runs: KnownRun[] = [];
  const run = (posed: Problem, given: Tensor): GradientRun => {
    const values = definedGradients(posed, given);
    const known = {
      problem: posed,
      dout: given,
      values,
      bounds: madeUpBounds(values, runs.length),
    };
    change(known, runs.length);
    runs.push(known);
    const shape = problemShape(posed);
    const shapes = shapesOf(shape);
    const tensors = ofEach((name): Tensor => ({
      format: 'fp64',
      shape: shapes[name],
      data: values[name],
    }));
    const none = new Float64Array();
    const out: Tensor = { format: 'fp64', shape: shapes.dout, data: none };
    return {
      configuration: null,
      problem: posed,
      shape,
      outputs: { out, lse: null },
      out: none,
      lse: null,
      dout: given,
      tensors,
      shared: {},
      gradients: values,
    };
  };
  const refuse = () => {
    throw new Error('the law asks for more than gradients');
  };
  const tools: LawTools = {
    promises: resolvePromises({
      formats: ['fp32'],
      features: ['packed'],
      gradients: true,
      ...promises,
    }),
    strength,
    runGradients: (posed, given) => Promise.resolve(run(posed, given)),
    measureGradients: (asked) => {
      const { bounds } = runs.find(({ values }) => values === asked.gradients)!;
      return {
        gradients: ofEach((name) => ({ bound: { total: bounds[name] } })),
      } as unknown as ReturnType<LawTools['measureGradients']>;
    },
    run: refuse,
    runSplits: refuse,
    merge: refuse,
    follow: refuse,
    runConfiguration: refuse,
    judge: refuse,
    judgeGradients: refuse,
  };
  try {
    const statement = await laws[id].violation({ problem, dout, choice }, tools);
    return { statement, inapplicable: false, runs };
  } catch (error) {
    if (!(error instanceof NotApplicable)) throw error;
    return { statement: null, inapplicable: true, runs };
  }
}
