import {
  decodeToFloat64,
  encodeFromFloat64,
  type FormatName,
  formats,
} from '../../src/formats/index.js';
import type { AttributedKernel, EmulatedNames } from '../techniques.js';
import { checkChoices, runStages } from '../run-groups.js';
import { rowExponentials, rowFinish, rowOutput, rowSum } from './attributed-output.js';
import {
  type Operand,
  readOperand,
  rowDots,
  rowExponents,
  type RowOperands,
  type NaiveScoreLaw,
} from './attributed-scores.js';
import { type NaiveTechnique, naiveTechniqueDefinitions, naiveTechniquesOf } from './techniques.js';
import { rowFeatures } from '../row-features.js';
import { type Problem, problemShape } from '../../src/problem/index.js';

/** The results of a row in one run. */
interface AttributedRow {
  /** [vDim] */
  readonly out: Float64Array;
  /** Natural logarithm of the sum of exponentials. */
  readonly lse: number;
}

/** Parameters of a row's computation, besides its operands. */
interface NaiveLaw extends NaiveScoreLaw {
  /** Divisor of the weights that dropout keeps, 1 − its probability. */
  readonly share: number;
}

/** The techniques that act in each stage of a row. */
const stages = {
  products: ['input-round', 'qk-accumulate'],
  exponents: ['score-round', 'scale-subtract', 'softcap', 'bias'],
  exponentials: ['exp'],
  sums: ['row-sum'],
  finishes: ['normalise'],
  weights: ['p-round'],
  outputs: ['pv-accumulate'],
  rounded: ['output-round'],
} as const satisfies Readonly<Record<string, readonly NaiveTechnique[]>>;

/** Rounds numbers to a format and back, to nearest even, in place. */
function roundingTo(format: FormatName): (values: Float64Array) => void {
  return (values) => {
    decodeToFloat64(encodeFromFloat64(formats[format], values), formats[format], values);
  };
}

/**
 * The textbook kernel on a row that sees keys, in every run: stage by stage, each computed once for all
 * runs that have emulated the same techniques until then.
 */
function createAttributedRow(
  choices: readonly EmulatedNames[],
  law: NaiveLaw,
  outFormat: FormatName,
): (operands: RowOperands) => readonly AttributedRow[] {
  const [products, exponents, exponentials, sums, finishes, weights, outputs, rounded] = runStages(
    choices,
    [
      ...[stages.products, stages.exponents, stages.exponentials, stages.sums],
      ...[stages.finishes, stages.weights, stages.outputs, stages.rounded],
    ],
  );
  const roundOutput = roundingTo(outFormat);

  return (operands) => {
    const { kept } = operands;
    const dropout = kept === null ? null : { kept, share: law.share };
    const ofProducts = products.groups.map(({ emulated }) => rowDots(operands, emulated));
    const ofExponents = exponents.groups.map(({ emulated }, i) =>
      rowExponents(ofProducts[exponents.parents[i]], operands, law, emulated),
    );
    const ofExponentials = exponentials.groups.map(({ emulated }, i) => {
      const from = ofExponents[exponentials.parents[i]];
      return { maximum: from.maximum, ...rowExponentials(from, emulated) };
    });
    const ofSums = sums.groups.map(({ emulated }, i) => {
      const from = ofExponentials[sums.parents[i]];
      return { ...from, sum: rowSum(from, emulated) };
    });
    const ofFinishes = finishes.groups.map(({ emulated }, i) => {
      const from = ofSums[finishes.parents[i]];
      return rowFinish(from.values, from, dropout, emulated);
    });
    const ofWeights = weights.groups.map(({ emulated }, i) => {
      const { weights: unrounded, lse } = ofFinishes[weights.parents[i]];
      if (!emulated.has('p-round')) return { values: unrounded, lse };
      const values = unrounded.slice();
      law.round(values);
      return { values, lse };
    });
    const ofOutputs = outputs.groups.map(({ emulated }, i) => {
      const { values, lse } = ofWeights[outputs.parents[i]];
      return { out: rowOutput(values, operands, emulated), lse };
    });
    const ofRounded = rounded.groups.map(({ emulated }, i) => {
      const { out: unrounded, lse } = ofOutputs[rounded.parents[i]];
      if (!emulated.has('output-round')) return { out: unrounded, lse };
      const out = unrounded.slice();
      roundOutput(out);
      return { out, lse };
    });
    return rounded.groupOf.map((group) => ofRounded[group]);
  };
}

/** Queries of a piece: few enough to sample a long problem, enough to decode K and V once for. */
const pieceRows = 32;

const nothing: EmulatedNames = new Set();

/** A row's largest weight, exact, and its key, −1 for none above 0; the first among equals. */
function largestWeight(operands: RowOperands, law: NaiveLaw): { key: number; weight: number } {
  const exponents = rowExponents(rowDots(operands, nothing), operands, law, nothing);
  const exponentials = rowExponentials(exponents, nothing);
  const from = { maximum: exponents.maximum, sum: rowSum(exponentials, nothing) };
  const { kept } = operands;
  const dropout = kept === null ? null : { kept, share: law.share };
  const { weights } = rowFinish(exponentials.values, from, dropout, nothing);
  const weight = weights.reduce((largest, w) => Math.max(largest, w), 0);
  const at = weight > 0 ? weights.indexOf(weight) : -1;
  return { key: at < 0 ? -1 : operands.keys[at], weight };
}

/** The operands of heads, each kept while pieces of the same head follow one another. */
function headReader(problem: Problem) {
  const { heads, kvHeads, groupSize, queries, keys, qkDim, vDim } = problemShape(problem);
  let last = -1;
  let kept: { readonly q: Operand; readonly k: Operand; readonly v: Operand } | null = null;
  return (head: number) => {
    if (kept === null || head !== last) {
      const kv = Math.floor(head / heads) * kvHeads + Math.floor((head % heads) / groupSize);
      kept = {
        q: readOperand(problem.q, head * queries, queries, qkDim),
        k: readOperand(problem.k, kv * keys, keys, qkDim),
        v: readOperand(problem.v, kv * keys, keys, vDim),
      };
      last = head;
    }
    return kept;
  };
}

/**
 * The textbook kernel of `createNaiveAttention` on a problem with techniques that can be emulated or
 * exact, in pieces of 32 rows of a head. techniques.ts explains each combination.
 *
 * @param intermediate the format that scores and weights are rounded to between the passes
 * @throws RequestError when the problem's shapes do not fit together
 */
export function createAttributedNaive(
  model: string,
  problem: Problem,
  intermediate: FormatName,
): AttributedKernel {
  const shape = problemShape(problem);
  const { batch, heads, queries, qkDim, vDim } = shape;
  const techniques = naiveTechniquesOf(problem, intermediate);
  const outFormat = problem.q.format;
  const law: NaiveLaw = {
    scale: problem.scale,
    softcap: problem.softcap,
    round: roundingTo(intermediate),
    share: 1 - (problem.dropout?.probability ?? 0),
  };
  const featuresOf = rowFeatures(problem, shape);
  const isSinkInLse = problem.sink?.inLse ?? false;
  const piecesOfHead = Math.ceil(queries / pieceRows);
  const rowsOf = (piece: number) => {
    const inHead = (piece % piecesOfHead) * pieceRows;
    return {
      first: Math.floor(piece / piecesOfHead) * queries + inHead,
      rows: Math.min(pieceRows, queries - inHead),
    };
  };
  const readHead = headReader(problem);

  return {
    model,
    shape,
    outFormat,
    settings: {},
    techniques,
    definitions: naiveTechniqueDefinitions,
    rowsOf,
    pieces: batch * heads * piecesOfHead,
    prepareRuns: (choices) => {
      checkChoices(model, techniques, choices);
      const runRow = createAttributedRow(choices, law, outFormat);
      return (piece) => {
        const { first, rows } = rowsOf(piece);
        const operands = readHead(Math.floor(first / queries));
        const outputs = choices.map(() => new Float64Array(rows * vDim));
        const lse = choices.map(() => new Float64Array(rows).fill(-Infinity));
        const keys = new Int32Array(rows).fill(-1);
        const weights = new Float64Array(rows);
        for (let i = 0; i < rows; i++) {
          const row = (first % queries) + i;
          const features = featuresOf(Math.floor(first / queries), row);
          if (features.keys.length === 0) {
            if (isSinkInLse) for (const ofRun of lse) ofRun[i] = features.sink;
            continue;
          }
          const ofRow = { ...operands, ...features, row, qkDim, vDim };
          const results = runRow(ofRow);
          // Where the LSE does not include the sink it comes from a maximum and a sum of its own.
          const hasOwnLse = features.sink !== -Infinity && !isSinkInLse;
          const ofLse = hasOwnLse ? runRow({ ...ofRow, sink: -Infinity, vDim: 0 }) : results;
          choices.forEach((_, run) => {
            outputs[run].set(results[run].out, i * vDim);
            lse[run][i] = ofLse[run].lse;
          });
          if (!techniques.includes('p-round')) continue;
          const { key, weight } = largestWeight(ofRow, law);
          keys[i] = key;
          weights[i] = weight;
        }
        const divisors = choices.map(() => new Float64Array(rows).fill(1));
        const rounded = weights.slice();
        law.round(rounded);
        const largestWeights = techniques.includes('p-round')
          ? { keys, weights, rounded, divisors }
          : null;
        return { firstRow: first, rows, outputs, lse, largestWeights, lags: null };
      };
    },
  };
}
