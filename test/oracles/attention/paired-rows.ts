import { headOperands } from '../../../oracles/attention/head-operands.js';
import { rulesOf } from '../../../oracles/attention/rules.js';
import { visibleRow } from '../../../oracles/attention/visible-row.js';
import type { RandomValues } from '../../../properties/problems/values.js';
import { keysOf, problemMask, problemShape, type Problem } from '../../../src/problem/index.js';
import { filledProblem, tensor } from '../../setup/problems.js';

/** How a problem of paired keys is drawn. */
interface PairedSettings {
  /** What random numbers of Q and K are multiplied by. */
  readonly size: number;
  readonly softcap?: number;
  readonly sink?: { readonly logit: number; readonly inLse: boolean };
  /** The probability of dropout; what it keeps are whole pairs. */
  readonly dropout?: number;
  readonly hasBias?: boolean;
  /** Whether the values of a pair cancel; else they are alike. */
  readonly cancels: boolean;
  readonly scale?: number;
}

/**
 * One query and keys of which each is there twice, with opposite values or the same: of opposite ones O is exactly 0 while
 * Σ p|v| is not, so that a radius has no rounding of O in it. The last column of V is 0.
 */
export function pairedProblem(random: RandomValues, settings: PairedSettings): Problem {
  const { size, softcap = null, sink, dropout, hasBias = false, cancels, scale = 0.5 } = settings;
  const [pairs, dim, vDim] = [random.integer(1, 5), random.integer(1, 6), 3];
  const k = Array.from({ length: pairs * dim }, () => size * random.normal());
  const v = Array.from({ length: pairs * vDim }, () => random.normal());
  const bias = Array.from({ length: pairs }, () => 3 * random.normal());
  const isKept = Array.from({ length: pairs }, (_, pair) => pair === 0 || random.uniform() < 0.5);
  const keys = 2 * pairs;
  const pairOf = (key: number) => Math.floor(key / 2);
  return filledProblem(
    { queries: 1, keys, dim, vDim, format: 'fp64' },
    {
      q: () => size * random.normal(),
      k: (at) => k[pairOf(Math.floor(at / dim)) * dim + (at % dim)],
      v: (at) => {
        const [key, column] = [Math.floor(at / vDim), at % vDim];
        if (column === vDim - 1) return 0;
        return v[pairOf(key) * vDim + column] * (cancels && key % 2 === 1 ? -1 : 1);
      },
    },
    {
      scale,
      softcap,
      ...(hasBias ? { bias: tensor('fp32', [1, keys], (key) => bias[pairOf(key)]) } : {}),
      ...(sink === undefined
        ? {}
        : { sink: { logits: tensor('fp64', [1], () => sink.logit), inLse: sink.inLse } }),
      ...(dropout === undefined
        ? {}
        : {
            dropout: {
              probability: dropout,
              kept: {
                shape: [1, keys],
                data: Uint8Array.from({ length: keys }, (_, key) => (isKept[pairOf(key)] ? 1 : 0)),
              },
            },
          }),
    },
  );
}

/** The only row of a problem, as the slower levels take it, and the rules of the problem. */
export function onlyRow(problem: Problem) {
  const shape = problemShape(problem);
  const rules = rulesOf(problem, shape);
  const [operands] = [...headOperands(problem, shape)];
  const visible = Int32Array.from(keysOf(problemMask(problem, shape).ranges(0, 0)));
  const row = visibleRow(operands, 0, rules, visible, new Int8Array(visible.length));
  return { row, rules, operands };
}
