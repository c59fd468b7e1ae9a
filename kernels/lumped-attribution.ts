import {
  decodeTensor,
  decodeToFloat64,
  encodeFromFloat64,
  formats,
  type FormatName,
} from '../src/formats/index.js';
import {
  countKeys,
  keysOf,
  problemMask,
  scoreLaw,
  scoreOf,
  type Problem,
  type ProblemShape,
} from '../src/problem/index.js';
import { rowFeatures } from './row-features.js';
import type { AttributedKernel, TechniqueDefinition } from './techniques.js';
import { checkChoices } from './run-groups.js';

/** The values of some rows before they are rounded: [rows × vDim], and [rows] of the LSE. */
export interface UnroundedRows {
  readonly out: Float64Array;
  readonly lse: Float64Array;
}

/** A kernel whose output rounding alone is separated from the rest of its arithmetic. */
export interface LumpedKernel {
  /** The model's name. */
  readonly model: string;
  readonly shape: ProblemShape;
  readonly outFormat: FormatName;
  readonly settings: AttributedKernel['settings'];
  readonly pieces: number;
  readonly rowsOf: AttributedKernel['rowsOf'];
  /** The kernel's results for a piece's rows before it rounds the output to its format. */
  readonly unrounded: (piece: number) => UnroundedRows;
}

const techniques = ['arithmetic', 'output-round'];

const definitions: Readonly<Record<string, TechniqueDefinition>> = {
  arithmetic: {
    emulated: 'everything up to the output as the kernel computes it',
    exact: 'everything up to the output in fp64',
    bound: 'all',
  },
  'output-round': { emulated: "rounded once to the output's format", exact: 'not rounded' },
};

/** Attention of rows [first, first + rows) of all rows, in fp64 by the definition. */
function float64Attention(
  problem: Problem,
  shape: ProblemShape,
  { first, rows }: { readonly first: number; readonly rows: number },
): UnroundedRows {
  const { heads, kvHeads, groupSize, queries, keys, qkDim, vDim } = shape;
  const [q, k, v] = [problem.q, problem.k, problem.v].map((tensor) => decodeTensor(tensor));
  const [law, mask] = [scoreLaw(problem), problemMask(problem)];
  const featuresOf = rowFeatures(problem, shape);
  const share = 1 - (problem.dropout?.probability ?? 0);
  const out = new Float64Array(rows * vDim);
  const lse = new Float64Array(rows).fill(-Infinity);
  for (let row = 0; row < rows; row++) {
    const head = Math.floor((first + row) / queries);
    const query = (first + row) % queries;
    const ranges = mask.ranges(head, query);
    const { sink, kept } = featuresOf(head, query);
    const inLse = problem.sink?.inLse ?? false;
    if (countKeys(ranges) === 0) {
      if (inLse) lse[row] = sink;
      continue;
    }
    const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
    const visible = [...keysOf(ranges)];
    const scores = visible.map((key) => {
      let product = 0;
      for (let t = 0; t < qkDim; t++)
        product += q[(first + row) * qkDim + t] * k[(kv * keys + key) * qkDim + t];
      return scoreOf(law, product, head, query, key);
    });
    const largest = scores.reduce((a, b) => Math.max(a, b), sink);
    const weights = scores.map((score) => Math.exp(score - largest));
    const ofKeys = weights.reduce((a, b) => a + b, 0);
    const sum = sink === -Infinity ? ofKeys : ofKeys + Math.exp(sink - largest);
    lse[row] = largest + Math.log(inLse ? sum : ofKeys);
    visible.forEach((key, j) => {
      for (let c = 0; c < vDim; c++)
        out[row * vDim + c] +=
          (((kept?.[j] ?? 1) * weights[j]) / sum / share) * v[(kv * keys + key) * vDim + c];
    });
  }
  return { out, lse };
}

/**
 * A kernel with two techniques: `arithmetic`, all of it together, and `output-round`. It serves models
 * whose techniques are not separated: the audit measures the whole beside the sum of all bounds, and an
 * identification names the kernel but not its techniques.
 */
export function attributeLumped(problem: Problem, kernel: LumpedKernel): AttributedKernel {
  const { model, shape, outFormat, settings, pieces, rowsOf, unrounded } = kernel;
  const format = formats[outFormat];
  const rounded = (values: Float64Array): Float64Array =>
    decodeToFloat64(encodeFromFloat64(format, values), format);
  return {
    model,
    shape,
    outFormat,
    settings,
    techniques,
    definitions,
    pieces,
    rowsOf,
    prepareRuns: (choices) => {
      checkChoices(model, techniques, choices);
      return (piece) => {
        const { first, rows } = rowsOf(piece);
        const emulated = unrounded(piece);
        const exact = float64Attention(problem, shape, { first, rows });
        const runs = choices.map((choice) => ({
          ...(choice.has('arithmetic') ? emulated : exact),
          rounds: choice.has('output-round'),
        }));
        return {
          firstRow: first,
          rows,
          outputs: runs.map(({ out, rounds }) => (rounds ? rounded(out) : out)),
          lse: runs.map(({ lse }) => lse),
          largestWeights: null,
          lags: null,
        };
      };
    },
  };
}
