import { exp2Hardware } from '../../../../kernels/online-softmax/units.js';
import { decodeTensor, encodeFromFloat64, formats } from '../../../../src/formats/index.js';
import {
  problemMask,
  problemShape,
  type Problem,
  type Tensor,
} from '../../../../src/problem/index.js';

/** What a backward pass does otherwise than exact arithmetic; what is left out is exact. */
export interface Shortcuts {
  /** The LSE that the forward stored, rounded to fp32, in the place of the exact one. */
  readonly storedLse?: Tensor;
  /** P by ex2.approx.ftz of an exponent that is rounded once to fp32. */
  readonly hardwareExp2?: boolean;
  /** D of the O that the forward stored. */
  readonly storedOut?: Tensor;
  /** P rounded for dV, and dS for dQ and dK, to the format of the inputs. */
  readonly roundsWeights?: boolean;
  readonly roundsDerivatives?: boolean;
  /** Results rounded to the format of the inputs. */
  readonly roundsOutput?: boolean;
}

/** Gradients in fp64, and the sums of P of every row. */
export interface ShortcutGradients {
  readonly dq: Float64Array;
  readonly dk: Float64Array;
  readonly dv: Float64Array;
  readonly weightSums: Float64Array;
}

/** The gradients of a problem of one head without further features, in fp64 but for some shortcuts. */
export function gradientsWith(
  problem: Problem,
  dout: Tensor,
  shortcuts: Shortcuts,
): ShortcutGradients {
  const shape = problemShape(problem);
  const { queries, keys, qkDim, vDim } = shape;
  const format = formats[problem.q.format];
  const [q, k, v, g] = [problem.q, problem.k, problem.v, dout].map((tensor) =>
    decodeTensor(tensor),
  );
  const rounded = (values: Float64Array) =>
    decodeTensor({ ...problem.q, shape: [values.length], data: encodeFromFloat64(format, values) });
  const out = shortcuts.storedOut === undefined ? null : decodeTensor(shortcuts.storedOut);
  const lse = shortcuts.storedLse === undefined ? null : decodeTensor(shortcuts.storedLse);
  const dot = (a: Float64Array, i: number, b: Float64Array, j: number, dim: number) => {
    let sum = 0;
    for (let c = 0; c < dim; c++) sum += a[i * dim + c] * b[j * dim + c];
    return sum;
  };
  const mask = problemMask(problem, shape);
  const dq = new Float64Array(queries * qkDim);
  const dk = new Float64Array(keys * qkDim);
  const dv = new Float64Array(keys * vDim);
  const weightSums = new Float64Array(queries);
  const { fround, LOG2E } = Math;
  const c32 = fround(fround(problem.scale) * fround(LOG2E));
  for (let i = 0; i < queries; i++) {
    const seen = mask
      .ranges(0, i)
      .flatMap(({ begin, end }) => Array.from({ length: end - begin }, (_, j) => begin + j));
    if (seen.length === 0) continue;
    const products = seen.map((j) => dot(q, i, k, j, qkDim));
    const largest = Math.max(...products);
    const exact =
      largest * problem.scale +
      Math.log(products.reduce((sum, s) => sum + Math.exp((s - largest) * problem.scale), 0));
    const logSumExp = lse === null ? exact : lse[i];
    const weights = Float64Array.from(products, (s) =>
      shortcuts.hardwareExp2 === true
        ? exp2Hardware(fround(fround(s) * c32 - fround(logSumExp * fround(LOG2E))))
        : Math.exp(s * problem.scale - logSumExp),
    );
    weightSums[i] = weights.reduce((sum, p) => sum + p, 0);
    const derivatives = Float64Array.from(seen, (j) => dot(g, i, v, j, vDim));
    // Of exact weights, whatever those in use are.
    const mean =
      out === null
        ? products.reduce(
            (sum, s, j) => sum + Math.exp(s * problem.scale - exact) * derivatives[j],
            0,
          )
        : dot(g, i, out, i, vDim);
    const ofScores = derivatives.map((x, j) => weights[j] * (x - mean));
    const p = shortcuts.roundsWeights === true ? rounded(weights) : weights;
    const ds = shortcuts.roundsDerivatives === true ? rounded(ofScores) : ofScores;
    seen.forEach((key, j) => {
      for (let c = 0; c < qkDim; c++) {
        dq[i * qkDim + c] += problem.scale * ds[j] * k[key * qkDim + c];
        dk[key * qkDim + c] += problem.scale * ds[j] * q[i * qkDim + c];
      }
      for (let c = 0; c < vDim; c++) dv[key * vDim + c] += p[j] * g[i * vDim + c];
    });
  }
  if (shortcuts.roundsOutput !== true) return { dq, dk, dv, weightSums };
  return { dq: rounded(dq), dk: rounded(dk), dv: rounded(dv), weightSums };
}

/** The root mean square of differences. */
export function rootMeanSquare(a: Float64Array, b: Float64Array): number {
  return Math.sqrt(a.reduce((sum, x, i) => sum + (x - b[i]) ** 2, 0) / a.length);
}
