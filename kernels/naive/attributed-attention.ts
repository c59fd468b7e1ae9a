import type { FormatName } from '../../src/formats/index.js';
import { type Problem, problemShape, type ProblemShape } from '../../src/problem/index.js';
import { rowFeatures } from '../row-features.js';
import { checkChoices } from '../run-groups.js';
import type { AttributedKernel } from '../techniques.js';
import {
  createAttributedRow,
  largestWeight,
  roundingTo,
  type AttributedRow,
  type AttributedRun,
  type NaiveLaw,
} from './attributed-row.js';
import { type Operand, readOperand } from './attributed-scores.js';
import { naiveTechniqueDefinitions, naiveTechniquesOf } from './techniques.js';

/** Queries of a piece: few enough to sample a long problem, enough to decode K and V once for. */
const pieceRows = 32;

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

/** A problem's rows, in pieces of rows of one head. */
function rowPieces({
  batch,
  heads,
  queries,
}: ProblemShape): Pick<AttributedKernel, 'pieces' | 'rowsOf'> {
  const piecesOfHead = Math.ceil(queries / pieceRows);
  return {
    pieces: batch * heads * piecesOfHead,
    rowsOf: (piece) => {
      const inHead = (piece % piecesOfHead) * pieceRows;
      return {
        first: Math.floor(piece / piecesOfHead) * queries + inHead,
        rows: Math.min(pieceRows, queries - inHead),
      };
    },
  };
}

/** The results of a piece, which rows are put into. */
class PieceResults {
  readonly outputs: readonly Float64Array[];
  readonly lse: readonly Float64Array[];
  readonly #keys: Int32Array;
  readonly #weights: Float64Array;
  readonly #vDim: number;

  constructor(runs: number, rows: number, vDim: number) {
    this.outputs = Array.from({ length: runs }, () => new Float64Array(rows * vDim));
    this.lse = Array.from({ length: runs }, () => new Float64Array(rows).fill(-Infinity));
    this.#keys = new Int32Array(rows).fill(-1);
    this.#weights = new Float64Array(rows);
    this.#vDim = vDim;
  }

  /** Puts a row of all runs; its LSEs may be of other results. */
  put(row: number, results: readonly AttributedRow[], ofLse: readonly AttributedRow[]): void {
    this.outputs.forEach((outputs, run) => {
      outputs.set(results[run].out, row * this.#vDim);
      this.lse[run][row] = ofLse[run].lse;
    });
  }

  putLargestWeight(row: number, { key, weight }: { key: number; weight: number }): void {
    this.#keys[row] = key;
    this.#weights[row] = weight;
  }

  largestWeights(round: NaiveLaw['round']) {
    const rounded = this.#weights.slice();
    round(rounded);
    const divisors = this.outputs.map(() => new Float64Array(rounded.length).fill(1));
    return { keys: this.#keys, weights: this.#weights, rounded, divisors };
  }
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
  const { queries, qkDim, vDim } = shape;
  const techniques = naiveTechniquesOf(problem, intermediate);
  const roundsWeights = techniques.includes('p-round');
  const outFormat = problem.q.format;
  const law: NaiveLaw = {
    scale: problem.scale,
    softcap: problem.softcap,
    round: roundingTo(intermediate),
    share: 1 - (problem.dropout?.probability ?? 0),
  };
  const featuresOf = rowFeatures(problem, shape);
  const isSinkInLse = problem.sink?.inLse ?? false;
  const pieces = rowPieces(shape);
  const readHead = headReader(problem);

  /** Computes query `row` of a head as row `i` of a piece. */
  function runRow(run: AttributedRun, results: PieceResults, i: number, head: number, row: number) {
    const features = featuresOf(head, row);
    if (features.keys.length === 0) {
      if (isSinkInLse) for (const ofRun of results.lse) ofRun[i] = features.sink;
      return;
    }
    const ofRow = { ...readHead(head), ...features, row, qkDim, vDim };
    const computed = run(ofRow);
    // Where the LSE does not include the sink it comes from a maximum and a sum of its own.
    const hasOwnLse = features.sink !== -Infinity && !isSinkInLse;
    const ofLse = hasOwnLse ? run({ ...ofRow, sink: -Infinity, vDim: 0 }) : computed;
    results.put(i, computed, ofLse);
    if (roundsWeights) results.putLargestWeight(i, largestWeight(ofRow, law));
  }

  return {
    model,
    shape,
    outFormat,
    settings: {},
    techniques,
    definitions: naiveTechniqueDefinitions,
    ...pieces,
    prepareRuns: (choices) => {
      checkChoices(model, techniques, choices);
      const run = createAttributedRow(choices, law, outFormat);
      return (piece) => {
        const { first, rows } = pieces.rowsOf(piece);
        const head = Math.floor(first / queries);
        const results = new PieceResults(choices.length, rows, vDim);
        for (let i = 0; i < rows; i++) runRow(run, results, i, head, (first % queries) + i);
        const { outputs, lse } = results;
        const largestWeights = roundsWeights ? results.largestWeights(law.round) : null;
        return { firstRow: first, rows, outputs, lse, largestWeights, lags: null };
      };
    },
  };
}
