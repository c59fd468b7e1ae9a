import {
  anyGradientPremises,
  judgedGradients,
  measureGradients,
  usualFalseAlarmRate,
  type JudgedGradientName,
} from '../../../src/audit/index.js';
import { gradientFindings } from '../../../src/audit/gradients/gradient-findings.js';
import { reachGradientVerdict } from '../gradients/definitions/made-judgements.js';
import {
  judgeGradients,
  type JudgedGradient,
} from '../../../src/audit/gradients/judge-gradient.js';
import {
  measureMeanErrors,
  measureWeightErrors,
} from '../../../src/audit/gradients/structure/mean-errors.js';
import { decodeTensor } from '../../../src/formats/index.js';
import { lazily } from '../../../src/reuse.js';
import { rowElements, type Problem, type Tensor } from '../../../src/problem/index.js';
import { filledProblem, tensor } from '../../setup/problems.js';
import { bellShaped } from '../gradients/gradient-case.js';
import type { GradientStatisticName, SpoiledGradient } from './gradient-faults.js';

/** All that a gradient is judged by, measured once. Gradients are in fp64, so that errors are as they are made. */
function measured(problem: Problem, dout: Tensor, shared: 'fp64' | null = null) {
  const premises = anyGradientPremises(problem, 'fp64');
  const measure = measureGradients(problem, dout, {
    premises,
    given: { out: null, lse: null },
    shared: { dbias: shared, dsink: shared },
  });
  const values = decodeTensor(dout);
  return {
    problem,
    measured: measure,
    together: {
      dk: measureMeanErrors(problem, values, measure, premises),
      dv: measureWeightErrors(problem, values, measure),
    },
    falseAlarmRate: usualFalseAlarmRate,
  };
}

/** A problem with a bias and sinks. */
function withShared(queries: number) {
  const random = bellShaped(11);
  const [batch, heads, keys, dim] = [2, 2, 12, 8] as const;
  const problem = {
    ...filledProblem({ batch, heads, queries, keys, dim }, random),
    bias: tensor('bf16', [heads, queries, keys], random),
    sink: { logits: tensor('fp32', [heads], random), inLse: true },
  };
  return measured(problem, tensor('bf16', [batch, heads, queries, dim], random), 'fp64');
}

/** Problems of two heads or batch entries, and two tiles of what is looked at. */
export const gradientCases = {
  /** Of numbers that are about normal. */
  plain: lazily(() => {
    const random = bellShaped(7);
    const frame = { batch: 2, queries: 160, keys: 192, dim: 8 };
    const problem = filledProblem(frame, random);
    return measured(problem, tensor('bf16', [2, 1, 160, 8], random));
  }),
  /** Of values that all dO see alike: dP is far larger than what roundings of O move D by. */
  aligned: lazily(() => {
    const random = bellShaped(7);
    const frame = { batch: 2, queries: 16, keys: 256, dim: 8 };
    const sign = (row: number) => Math.sign(Math.sin(row * row + 1));
    const problem = filledProblem(frame, {
      q: () => random() / 64,
      k: random,
      v: (i) => sign(Math.floor(i / 8)) * (1 + random() / 8),
    });
    return measured(
      problem,
      tensor('bf16', [2, 1, 16, 8], () => 1 + random() / 8),
    );
  }),
  shared: lazily(() => withShared(192)),
  /** Sums of few terms, whose worst case is next to what is expected. */
  few: lazily(() => withShared(1)),
} as const;

/** The name of a problem whose gradients are spoiled. */
export type GradientCaseName = keyof typeof gradientCases;

/** A gradient of a problem, to be spoiled. */
export function spoiledGradient(of: GradientCaseName, name: JudgedGradientName): SpoiledGradient {
  const { problem, measured } = gradientCases[of]();
  const { exact, bound, shape } = measured.gradients[name]!;
  const quantity = judgedGradients.find((one) => one.name === name)!;
  return {
    exact: exact.values,
    bound,
    columns: rowElements(quantity, shape),
    rowsOfHead: shape[quantity.axes[2]],
    tensor: decodeTensor(name === 'dq' ? problem.q : name === 'dk' ? problem.k : problem.v),
  };
}

/** How much of their limits a gradient's statistics use. */
function usesOf({ elements, spread, structure }: JudgedGradient) {
  // What is beyond its bound is no matter of the spread.
  const isSpread = spread.outside > elements.outside || elements.outside === 0;
  return new Map<GradientStatisticName, number>([
    ['non-finite', elements.nonFinite === 0 ? 0 : Infinity],
    ['bound', elements.worstRatio],
    ['spread', isSpread ? spread.worstRatio : 0],
    ...spread.results.map(
      ({ scope, measured, limit }) => [`rms ${scope}`, measured / limit] as const,
    ),
    ...structure.map(
      ({ test, scope, statistic, threshold }) =>
        [`${test} ${scope}` as GradientStatisticName, Math.abs(statistic) / threshold] as const,
    ),
  ]);
}

/** Gradients of a problem, judged as a kernel's. */
export function gradientsJudged(
  of: GradientCaseName,
  values: Readonly<Partial<Record<JudgedGradientName, Float64Array>>>,
): readonly JudgedGradient[] {
  const given = judgedGradients.flatMap((quantity) => {
    const ofGradient = values[quantity.name];
    return ofGradient === undefined
      ? []
      : [{ quantity, format: 'fp64', values: ofGradient } as const];
  });
  return judgeGradients(given, gradientCases[of]());
}

/**
 * What an audit says of a gradient with errors, of dK beside an exact dQ: how much of their limits its statistics use, and
 * the verdict.
 */
export function judgeSpoiled(of: GradientCaseName, name: JudgedGradientName, errors: Float64Array) {
  const { gradients } = gradientCases[of]().measured;
  const spoiled = gradients[name]!.exact.values.map((x, i) => x + errors[i]);
  const judged = gradientsJudged(of, {
    ...(name === 'dk' && { dq: gradients.dq.exact.values }),
    [name]: spoiled,
  });
  const findings = gradientFindings(judged, 'any correct kernel');
  const verdict = reachGradientVerdict(judged, findings, [], null);
  return { uses: usesOf(judged.at(-1)!), verdict };
}
