import { attentionOracle, levels, type Accuracy } from '../../../oracles/index.js';
import { arbitraryLevel } from '../../../oracles/attention/arbitrary-level.js';
import { doubleDoubleLevel } from '../../../oracles/attention/double-double-level.js';
import { headOperands } from '../../../oracles/attention/head-operands.js';
import { tileRows } from '../../../oracles/attention/operand.js';
import { emptyRow, type Row, type RowResult } from '../../../oracles/attention/row.js';
import { rulesOf } from '../../../oracles/attention/rules.js';
import { scoreConstants } from '../../../oracles/attention/scores.js';
import { createTileEngine } from '../../../oracles/attention/tile-engine.js';
import { tileLevel } from '../../../oracles/attention/tile-level.js';
import { visibleRow } from '../../../oracles/attention/visible-row.js';
import {
  keysOf,
  problemMask,
  problemShape,
  type Problem,
  type ScoreLaw,
} from '../../../src/problem/index.js';

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
          denominator: reference.denominator[row],
        },
        level: levels[reference.level[row]],
      };
    });
  };
}

/** One level called directly on every row, whatever accuracy it gives. */
export function levelSolver(level: string, solve: (row: Row, law: ScoreLaw) => RowResult): Solver {
  return (problem) => {
    const shape = problemShape(problem);
    const rules = rulesOf(problem, shape);
    const mask = problemMask(problem, shape);
    const rows: LevelledRow[] = [];
    for (const operands of headOperands(problem, shape))
      for (let i = 0; i < shape.queries; i++) {
        const ranges = mask.ranges(operands.head, i);
        if (ranges.length === 0) {
          const result = emptyRow(shape.vDim, rules.sinkOf(operands.head));
          rows.push({ result, level: 'empty' });
          continue;
        }
        const visible = Int32Array.from(keysOf(ranges));
        const row = visibleRow(operands, i, rules, visible, new Int8Array(visible.length));
        rows.push({ result: solve(row, rules.law), level });
      }
    return rows;
  };
}

/** The double-double level on every row, from compensated dot products. */
export const doubleDoubleSolver = levelSolver('double-double', (row, law) =>
  doubleDoubleLevel(row, law, scoreConstants(law)),
);

/** The double-double level on every row, from exact dot products. */
export const exactDotsSolver = levelSolver('double-double', (row, law) =>
  doubleDoubleLevel(row, law, scoreConstants(law), 'exact'),
);

/** The fp64 level on every row, whatever accuracy it gives. */
export const tileSolver: Solver = (problem) => {
  const shape = problemShape(problem);
  const rules = rulesOf(problem, shape);
  const mask = problemMask(problem, shape);
  const engine = createTileEngine(shape.qkDim, shape.vDim);
  const rows: LevelledRow[] = [];
  for (const operands of headOperands(problem, shape))
    for (let firstRow = 0; firstRow < shape.queries; firstRow += tileRows) {
      const count = Math.min(tileRows, shape.queries - firstRow);
      const ranges = Array.from({ length: count }, (_, i) =>
        mask.ranges(operands.head, firstRow + i),
      );
      tileLevel(engine, { operands, firstRow, ranges }, rules).forEach((result, i) =>
        rows.push({ result, level: ranges[i].length === 0 ? 'empty' : 'fp64' }),
      );
    }
  return rows;
};

/** The arbitrary level on every row with a given number of fraction bits. */
export function arbitrarySolver(bits: number): Solver {
  return levelSolver('arbitrary', (row, law) => arbitraryLevel(row, law, bits));
}

/** What an audit of a bf16 output asks the oracle for. */
export const accuracyOfAudit: Accuracy = {
  outputFormat: 'bf16',
  ulpFraction: 0,
  magnitudeFraction: 2 ** -40,
};

/** Every way the oracle has to solve a row. */
export const everySolver = {
  'default accuracy': oracleSolver(),
  'audit accuracy': oracleSolver(accuracyOfAudit),
  'fp64 level': tileSolver,
  'double-double level': doubleDoubleSolver,
  'double-double level, exact dots': exactDotsSolver,
  'arbitrary level, 192 bits': arbitrarySolver(192),
} as const satisfies Readonly<Record<string, Solver>>;
