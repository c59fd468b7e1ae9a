import type { FormatName } from '../../../src/formats/index.js';
import { problemShape, visibleKeys, type Problem } from '../../../src/problem/index.js';
import type { AttributedKernel, EmulatedNames } from '../../attributed-kernel.js';
import { checkChoices } from '../../run-groups.js';
import { createAttributedRow, roundingTo } from './attributed-row.js';
import { readOperand, type Operand } from './operands.js';
import { rowDots, rowExponents, type RowOperands, type ScoreLaw } from './row-scores.js';
import { naiveTechniqueDefinitions, naiveTechniquesOf } from './techniques.js';

/** Queries of a piece: few enough to sample a long problem, enough to decode K and V once for. */
const pieceRows = 32;

const nothing: EmulatedNames = new Set();

/** A row's largest weight, exact, and its key among those seen; the first among equals. */
function largestWeight(operands: RowOperands, law: ScoreLaw): { key: number; weight: number } {
  const { exponents } = rowExponents(rowDots(operands, nothing), law, nothing);
  const sum = exponents.reduce((total, x) => total + Math.exp(x), 0);
  return { key: exponents.indexOf(0), weight: 1 / sum };
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
 * exact, in pieces of 32 rows of a head. What each combination means is told in techniques.ts.
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
  const law: ScoreLaw = {
    scale: problem.scale,
    softcap: problem.softcap,
    round: roundingTo(intermediate),
  };
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
          const { begin, end } = visibleKeys(problem, shape, row);
          if (begin === end) continue;
          const ofRow = { ...operands, row, begin, end, qkDim, vDim };
          runRow(ofRow).forEach((result, run) => {
            outputs[run].set(result.out, i * vDim);
            lse[run][i] = result.lse;
          });
          if (!techniques.includes('p-round')) continue;
          const { key, weight } = largestWeight(ofRow, law);
          keys[i] = key < 0 ? -1 : begin + key;
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
