import {
  problemShape,
  problemMask,
  type Mask,
  type Problem,
  type ProblemShape,
  type Tensor,
} from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import type { Progress } from '../attention/attention.js';
import { checkAccuracy, type Accuracy } from '../attention/row.js';
import { rulesOf } from '../attention/rules.js';
import { solveKeys, type RowToSolve } from './exact-level.js';
import { createGradientEngine } from './gradient-engine.js';
import { keysToSolve, solveHead, type HeadGradients } from './head-level.js';
import { headGroups, type HeadGroup } from './operands.js';
import { applyPoison, poisonedElements, type PoisonedElements } from './special-row.js';
import { biasSums, sharedSums, type GradientContext } from './shared-sums.js';
import { emptySums, finishSums, type Gradient } from './sums.js';

/** The gradients that the oracle computes. */
export const gradientNames = ['dq', 'dk', 'dv', 'dbias', 'dsink'] as const;
/** One of {@link gradientNames}. */
export type GradientName = (typeof gradientNames)[number];

/** The gradients wanted of the oracle, and their accuracy. */
export interface GradientOracleOptions {
  /** Default: 1/1024 ulp of fp32, or 2^-36 of the magnitude. */
  readonly accuracy?: Accuracy;
  /** Default: all gradients of the problem; for a selection of rows dQ alone, since all rows add to the others. */
  readonly wanted?: readonly GradientName[];
  /** The keys, ascending, whose dK and dV are wanted, of a head counted over [batch, kv heads]. Default: all. */
  readonly keys?: (kvHead: number) => readonly number[];
  /** The heads of K whose groups are wanted, counted over [batch, kv heads]; dBias and dSink are of these alone. Default: all. */
  readonly kvHeads?: readonly number[];
  /** The keys that each query sees, in place of the problem's own mask. */
  readonly mask?: Mask;
  readonly progress?: Progress;
}

/** The gradients of one head of K and V, and of the query heads that share it. */
export interface GroupGradients {
  /** Counted over [batch, kv heads]. */
  readonly kvHead: number;
  readonly heads: readonly HeadGradients[];
  /** The keys that dK and dV have rows of, ascending. */
  readonly keys: Int32Array;
  /** [keys, qkDim] and [keys, vDim]; null if not wanted. */
  readonly dk: Gradient | null;
  readonly dv: Gradient | null;
}

/** The gradients that heads of many groups add to. */
export interface SharedGradients {
  /** dBias, in the shape of the bias; null if not wanted. */
  readonly dbias: Gradient | null;
  /** [heads], summed over the batch; null if not wanted. */
  readonly dsink: Gradient | null;
}

const defaultAccuracy: Accuracy = {
  outputFormat: 'fp32',
  ulpFraction: 2 ** -10,
  magnitudeFraction: 2 ** -36,
};

/**
 * The names of the wanted gradients.
 * @throws RequestError for one that the problem does not have
 */
function wantedOf(problem: Problem, wanted: readonly GradientName[] | undefined) {
  const has: Readonly<Record<GradientName, boolean>> = {
    dq: true,
    dk: problem.rows === undefined,
    dv: problem.rows === undefined,
    dbias: problem.rows === undefined && problem.bias !== undefined,
    dsink: problem.rows === undefined && problem.sink !== undefined,
  };
  for (const name of wanted ?? [])
    if (!has[name])
      throw new RequestError(
        problem.rows === undefined
          ? `${name} is wanted, but the problem has no ${name.slice(1)}; leave it out`
          : `${name} is wanted of a selection of rows, but every row adds to it; give all rows, or ask for dq alone`,
      );
  return new Set(wanted ?? gradientNames.filter((name) => has[name]));
}

/** @throws RequestError for a gradient of O that is not of O's shape */
function checkDout(dout: Tensor, { batch, heads, queries, vDim }: ProblemShape): void {
  const shape = dout.shape.length === 3 ? [1, ...dout.shape] : dout.shape;
  const whole = [batch, heads, queries, vDim];
  if (shape.length !== 4 || shape.some((size, axis) => size !== whole[axis]))
    throw new RequestError(
      `dout has shape [${dout.shape.join(', ')}]; give it that of the output, [${whole.join(', ')}]`,
    );
}

/** @throws RequestError for keys that do not exist, or are not ascending */
function chosenKeys(options: GradientOracleOptions, kvHead: number, count: number): Int32Array {
  if (options.keys === undefined) return Int32Array.from({ length: count }, (_, key) => key);
  const chosen = Int32Array.from(options.keys(kvHead));
  chosen.forEach((key, i) => {
    if (key < 0 || key >= count || (i > 0 && key <= chosen[i - 1]))
      throw new RequestError(
        `key ${key} is chosen of head ${kvHead}; give ascending numbers below ${count}`,
      );
  });
  return chosen;
}

/** Every row of a group that adds to the gradients of keys. */
function* rowsOf(context: GradientContext, group: HeadGroup): Generator<RowToSolve> {
  const { shape, mask } = context;
  for (const head of group.heads) {
    const operands = group.operandsOf(head);
    for (let row = 0; row < shape.queries; row++) {
      const keys = keysToSolve(context, operands, row, mask.ranges(head, row));
      if (keys !== null) yield { operands, row, keys };
    }
  }
}

function solveGroup(
  context: GradientContext,
  group: HeadGroup,
  keys: Int32Array,
  wantsKeys: boolean,
  progress: (head: number, rows: number) => void,
): GroupGradients {
  const { shape, rules, accuracy } = context;
  const { qkDim, vDim } = shape;
  const places = new Int32Array(shape.keys).fill(-1);
  keys.forEach((key, place) => (places[key] = place));
  const sums = wantsKeys
    ? { dk: emptySums(keys.length, qkDim), dv: emptySums(keys.length, vDim) }
    : null;
  const poisoned = { keys: poisonedElements(), values: poisonedElements() };
  const poisoner =
    ({ add }: PoisonedElements, dim: number) =>
    (key: number, column: number, kind: number) => {
      if (places[key] >= 0) add(places[key] * dim + column, kind);
    };
  const targets = {
    sums,
    placeOf: (key: number) => places[key],
    poison: { key: poisoner(poisoned.keys, qkDim), value: poisoner(poisoned.values, vDim) },
  };
  const largestQuery = new Float64Array(qkDim);
  const largestDout = new Float64Array(vDim);
  const raise = (most: Float64Array, of: Float64Array) =>
    of.forEach((x, c) => (most[c] = Math.max(most[c], x)));
  const heads = group.heads.map((head, index) => {
    const operands = group.operandsOf(head);
    raise(largestQuery, operands.query.columnLargest);
    raise(largestDout, operands.dout.columnLargest);
    return solveHead(context, operands, targets, (rows) => progress(index, rows));
  });
  const { kvHead } = group;
  if (sums === null) return { kvHead, heads, keys, dk: null, dv: null };
  const ofKeys = finishSums(sums.dk, { scale: rules.law.scale, largest: largestQuery, accuracy });
  const ofValues = finishSums(sums.dv, { scale: 1, largest: largestDout, accuracy });
  const [dk, dv] = [ofKeys.gradient, ofValues.gradient];
  const inaccurate = [...new Set([...ofKeys.inaccurate, ...ofValues.inaccurate])];
  if (inaccurate.length > 0)
    solveKeys(
      {
        places: new Map(inaccurate.map((place) => [keys[place], place])),
        rows: () => rowsOf(context, group),
      },
      { dk, dv },
      shape,
      rules,
      accuracy,
    );
  applyPoison(dk, poisoned.keys);
  applyPoison(dv, poisoned.values);
  return { kvHead, heads, keys, dk, dv };
}

/**
 * The exact gradients of attention, each with a proven radius (docs/theory/bounds-backward.md), group by group: a head of K
 * and V with the query heads that share it. With P the weights of the forward's `attentionOracle` and dO = `dout`,
 *
 * dV = Pdᵀ dO with Pd = P·kept/(1 − probability), dP = (dO Vᵀ)·kept/(1 − probability), D = Σ P dP (= dO·O),
 * dS = P (dP − D), which is dBias, dT = dS (1 − tanh²) under a softcap, else dS, dQ = scale · dT K,
 * dK = scale · dTᵀ Q, dSink = −Σ P_sink D.
 *
 * Gradients of tensors with scales are taken by their decoded, scaled elements, as training kernels return them.
 * Magnitudes are the same sums with P(|dP| + Σ P|dP|) in place of |dS|, which is the scale of the roundings of dP and
 * D.
 *
 * Rows are solved in fp64 with a running error bound; those whose scores or products it does not know to `accuracy`,
 * rows of dQ, and keys with all their rows are solved again, in fixed-point arithmetic of growing precision from exact
 * dot products. dBias and dSink are sums of the rows' shares: they have honest radii, and are not solved again where
 * rows cancel. Terms below 2^-170 of the largest possible one count as underflow. Memory beside the group's gradients
 * (and dBias) is O(tile) and some numbers a row.
 *
 * Keys that no query sees have exact zeros; rows without keys have dQ = 0 and add nothing. The law for infinities and
 * NaNs is in special-row.ts.
 * @param dout the gradient of O, [batch, heads, queries, vDim]; of rank 3 for a batch of one
 * @returns when the last group is taken, the gradients of tensors that groups share
 * @throws RequestError when the shapes do not fit together, the accuracy is not finite, or a wanted gradient does not
 * exist
 */
export function* gradientOracle(
  problem: Problem,
  dout: Tensor,
  options: GradientOracleOptions = {},
): Generator<GroupGradients, SharedGradients> {
  const accuracy = options.accuracy ?? defaultAccuracy;
  checkAccuracy(accuracy);
  const shape = problemShape(problem);
  checkDout(dout, shape);
  const wanted = wantedOf(problem, options.wanted);
  const { batch, kvHeads, groupSize, heads, queries, keys, qkDim, vDim } = shape;
  const { bias } = problem;
  const context: GradientContext = {
    problem,
    shape,
    rules: rulesOf(problem, shape),
    mask: options.mask ?? problemMask(problem, shape),
    accuracy,
    engine: createGradientEngine(qkDim, vDim),
    wantsQueries: wanted.has('dq'),
    bias: bias !== undefined && wanted.has('dbias') ? biasSums(problem, bias, shape) : null,
    sink: wanted.has('dsink') ? sharedSums(heads, batch * queries) : null,
  };
  const wantsKeys = wanted.has('dk') || wanted.has('dv');
  const groups = batch * kvHeads;
  for (const group of headGroups(problem, dout, shape, options.kvHeads)) {
    const { kvHead } = group;
    const chosen = chosenKeys(options, kvHead, keys);
    yield solveGroup(context, group, chosen, wantsKeys, (head, rows) =>
      options.progress?.((kvHead + (head + rows / queries) / groupSize) / groups),
    );
  }
  return { dbias: context.bias?.finish() ?? null, dsink: context.sink?.finish() ?? null };
}
