import { attentionOracle, levels, type Accuracy } from '../../../oracles/index.js';
import { arbitraryLevel } from '../../../oracles/attention/arbitrary-level.js';
import { doubleDoubleLevel } from '../../../oracles/attention/double-double-level.js';
import { readOperand } from '../../../oracles/attention/operand.js';
import type { Row, RowResult } from '../../../oracles/attention/row.js';
import { problemShape, scoreLaw, type Problem, type ScoreLaw } from '../../../src/problem/index.js';
import { scoreConstants } from '../../../oracles/attention/scores.js';
import { sees } from './reference-attention.js';

/** A row's result with the level that gave it; null for a row without keys. */
export interface LevelledRow {
  readonly result: RowResult;
  readonly level: string;
}

/** A way to have every row of a problem solved. */
export type Solver = (problem: Problem) => LevelledRow[];

/** The whole oracle at one accuracy. */
export function oracleSolver(accuracy?: Accuracy): Solver {
  return (problem) => {
    const reference = attentionOracle(problem, accuracy === undefined ? {} : { accuracy });
    const { vDim } = reference.shape;
    return Array.from(reference.quantities.lse.values, (lse, row) => {
      const columns = (values: Float64Array) => values.subarray(row * vDim, (row + 1) * vDim);
      return {
        result: {
          out: columns(reference.quantities.out.values),
          outRadius: columns(reference.quantities.out.radius),
          magnitude: columns(reference.quantities.out.magnitude),
          lse,
          lseRadius: reference.quantities.lse.radius[row],
          maximum: reference.maximum[row],
        },
        level: levels[reference.level[row]],
      };
    });
  };
}

/** What a row without keys must come to. */
function emptyRow(vDim: number): RowResult {
  return {
    out: new Float64Array(vDim),
    outRadius: new Float64Array(vDim),
    magnitude: new Float64Array(vDim),
    lse: -Infinity,
    lseRadius: 0,
    maximum: -Infinity,
  };
}

/** One level called directly on every row, whatever accuracy it gives. */
export function levelSolver(level: string, solve: (row: Row, law: ScoreLaw) => RowResult): Solver {
  return (problem) => {
    const { batch, heads, kvHeads, queries, keys, qkDim, vDim } = problemShape(problem);
    const rows: LevelledRow[] = [];
    for (let head = 0; head < batch * heads; head++) {
      const kv = Math.floor((head * kvHeads) / heads);
      const query = readOperand(problem.q, head * queries * qkDim, queries, qkDim);
      const key = readOperand(problem.k, kv * keys * qkDim, keys, qkDim);
      const value = readOperand(problem.v, kv * keys * vDim, keys, vDim);
      for (let i = 0; i < queries; i++) {
        const visible = Int32Array.from({ length: keys }, (_, j) => j).filter((j) =>
          sees(problem, i, j),
        );
        if (visible.length === 0) {
          rows.push({ result: emptyRow(vDim), level: 'empty' });
          continue;
        }
        const row = {
          query: query.values.subarray(i * qkDim, (i + 1) * qkDim),
          keys: key.values,
          queryNorm: query.norm[i],
          keyNorms: key.norm,
          values: value.values,
          qkDim,
          vDim,
          visible,
          infinite: new Int8Array(visible.length),
        };
        rows.push({ result: solve(row, scoreLaw(problem)), level });
      }
    }
    return rows;
  };
}

/** The double-double level on every row. */
export const doubleDoubleSolver = levelSolver('double-double', (row, law) =>
  doubleDoubleLevel(row, law, scoreConstants(law)),
);

/** The arbitrary level on every row with a given number of fraction bits. */
export function arbitrarySolver(bits: number): Solver {
  return levelSolver('arbitrary', (row, law) => arbitraryLevel(row, law, bits));
}
