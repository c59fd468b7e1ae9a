import type { Window } from '../../src/problem/index.js';
import { simplerFeatures } from './features/feature-shrinker.js';
import { tensorNames, tensorShape, type PlainProblem, type TensorName } from './plain-problem.js';
import type { ResolvedConstraints } from './problem-constraints.js';
import { smallerShapes } from './shape-shrinker.js';
import {
  simplerElements,
  simplerRows,
  simplerTensors,
  valueComplexity,
  type SimplerValues,
} from './value-shrinker.js';

/** The new problem with the default scale of its dimension, if the scale was the default one before. */
function withDefaultScale(before: PlainProblem, after: PlainProblem): PlainProblem {
  const isDefault = before.scale === 1 / Math.sqrt(before.sizes.qkDim);
  return isDefault ? { ...after, scale: 1 / Math.sqrt(after.sizes.qkDim) } : after;
}

function* simplerWindows(window: Window, allowNone: boolean): Generator<Window | null> {
  const { left, right } = window;
  if (allowNone) yield null;
  if (left >= 0 && right >= 0) {
    yield { left, right: -1 };
    yield { left: -1, right };
  }
  if (left > 0) yield { left: Math.floor(left / 2), right };
  if (right > 0) yield { left, right: Math.floor(right / 2) };
}

function* simplerMasks(
  plain: PlainProblem,
  constraints: ResolvedConstraints,
): Generator<PlainProblem> {
  const { causal, window, softcap } = plain;
  if (causal && constraints.causal !== true) yield { ...plain, causal: false };
  if (window !== null)
    for (const simpler of simplerWindows(window, constraints.window !== true))
      yield { ...plain, window: simpler };
  if (softcap === null) return;
  if (constraints.softcap !== true) yield { ...plain, softcap: null };
  if (softcap !== 1) yield { ...plain, softcap: 1 };
}

/** The plainest scale of the kinds allowed, nearest to the one there is. */
function* simplerScales(
  plain: PlainProblem,
  constraints: ResolvedConstraints,
): Generator<PlainProblem> {
  const { scale, sizes } = plain;
  const { scales } = constraints;
  const usual = 1 / Math.sqrt(sizes.qkDim);
  const candidates = [
    ...(scales.includes('default') ? [usual] : []),
    ...(scales.includes('odd') ? [1] : []),
    ...(scales.includes('negative') && scale < 0 ? [-1, -usual] : []),
  ];
  const rank = (x: number) => (x === usual ? 0 : valueComplexity(x) + 1);
  for (const candidate of candidates)
    if (rank(candidate) < rank(scale)) yield { ...plain, scale: candidate };
}

/** A simpler problem, and the place where the search continues if it is taken. */
interface SimplerProblem {
  readonly plain: PlainProblem;
  readonly resume: SearchPlace;
}

/** A place in the search for simpler problems. */
export interface SearchPlace {
  readonly pass: number;
  readonly position: number;
}

/** The start of the search for simpler problems. */
export const searchStart: SearchPlace = { pass: 0, position: 0 };

interface Candidate {
  readonly plain: PlainProblem;
  readonly position: number;
}

interface Pass {
  /** Whether bolder passes are tried again after a success; else this pass continues from there. */
  readonly restarts: boolean;
  readonly candidates: (
    plain: PlainProblem,
    constraints: ResolvedConstraints,
    from: number,
  ) => Generator<Candidate>;
}

/** A pass whose every success starts the search again. */
function restarting(
  simpler: (plain: PlainProblem, constraints: ResolvedConstraints) => Generator<PlainProblem>,
): Pass {
  return {
    restarts: true,
    *candidates(plain, constraints) {
      for (const candidate of simpler(plain, constraints)) yield { plain: candidate, position: 0 };
    },
  };
}

function overValues(
  name: TensorName,
  restarts: boolean,
  simpler: (plain: PlainProblem, from: number) => Generator<SimplerValues>,
): Pass {
  return {
    restarts,
    *candidates(plain, _constraints, from) {
      for (const { values, position } of simpler(plain, from))
        yield { plain: { ...plain, values: { ...plain.values, [name]: values } }, position };
    },
  };
}

/** A pass over the gradient of the output, of problems that have one. */
function overDout(
  restarts: boolean,
  simpler: (values: Float64Array, dim: number, from: number) => Generator<SimplerValues>,
): Pass {
  return {
    restarts,
    *candidates(plain, _constraints, from) {
      const { dout, sizes } = plain;
      if (dout === undefined) return;
      for (const { values, position } of simpler(dout.values, sizes.vDim, from))
        yield { plain: { ...plain, dout: { ...dout, values } }, position };
    },
  };
}

function* smaller(plain: PlainProblem, constraints: ResolvedConstraints): Generator<PlainProblem> {
  for (const part of smallerShapes(plain, constraints)) yield withDefaultScale(plain, part);
}

/** Boldest first: shapes, then settings, then values, from whole tensors to single elements. */
const passes: readonly Pass[] = [
  restarting(smaller),
  restarting(simplerMasks),
  restarting(simplerFeatures),
  restarting(simplerScales),
  ...tensorNames.map((name) =>
    overValues(name, true, ({ values }) => simplerTensors(values[name])),
  ),
  overDout(true, simplerTensors),
  ...tensorNames.map((name) =>
    overValues(name, false, ({ values, sizes }, from) =>
      simplerRows(values[name], tensorShape(name, sizes)[3], from),
    ),
  ),
  overDout(false, simplerRows),
  ...tensorNames.map((name) =>
    overValues(name, false, ({ values }, from) => simplerElements(values[name], from)),
  ),
  overDout(false, (values, _, from) => simplerElements(values, from)),
];

/**
 * Simpler problems than the given one that still meet the constraints' sizes and masks, boldest
 * first: smaller, without masks, with plainer numbers. Each is simpler by one of these measures and no
 * less simple by the others, so that taking one after the other comes to an end.
 * @param from the place where the search that found the given problem continues; it then tries everything once
 */
export function* simplerProblems(
  plain: PlainProblem,
  constraints: ResolvedConstraints,
  from: SearchPlace = searchStart,
): Generator<SimplerProblem> {
  for (let offset = 0; offset < passes.length; offset++) {
    const pass = (from.pass + offset) % passes.length;
    const { restarts, candidates } = passes[pass];
    for (const candidate of candidates(plain, constraints, offset === 0 ? from.position : 0)) {
      const { position } = candidate;
      yield { plain: candidate.plain, resume: restarts ? searchStart : { pass, position } };
    }
  }
}
