import {
  type AttentionReference,
  forEachWeightTile,
  levels,
  type WeightVisitor,
  type WorkingMemories,
} from '../../../oracles/index.js';
import { formats, type FormatName } from '../../formats/index.js';
import type { Problem } from '../../problem/index.js';
import { createRowNumbers, isClustered } from '../bounds/index.js';
import { NearlyEqual } from './error-pool.js';
import { walkRows } from './structure-statistic.js';

/** Slots of a row's table of weights, as a power of two. */
const tableBits = 11;

/** Facts about all rows that the structure tests need before they look at any, [batch, heads, queries]. */
export interface RowSurvey {
  /** The key with the largest weight, −1 for a row without weights. */
  readonly heaviest: Int32Array;
  /** Σ w². */
  readonly squares: Float64Array;
  /** 1 for a row most of whose weights round alike: see `isClustered`. */
  readonly clustered: Uint8Array;
}

/** The rows that may err alike, [batch, heads, queries]: see docs/theory/bounds.md, "The spread". */
export interface RowUnits {
  /** Rows of one number may err alike, others err independently. */
  readonly unit: Int32Array;
  /** 1 where another row has the same number. */
  readonly isShared: Uint8Array;
}

/** Facts about rows that the structure tests have before they look at any. */
export interface SurveyedRows {
  readonly survey: RowSurvey;
  readonly units: RowUnits;
}

/** Groups that distinguish weights that do not round alike. */
export function fineGroups(weightFormat: FormatName): NearlyEqual {
  return new NearlyEqual(Math.min(formats[weightFormat].precision + 1, 13), -40, 0);
}

/**
 * Numbers rows by the errors that they may share.
 * @param clustered by row, as a survey or the bounds tell it
 */
export function numberUnits(
  reference: AttentionReference,
  clustered: Uint8Array,
  weightFormat: FormatName,
): RowUnits {
  const numberRow = createRowNumbers(reference, weightFormat);
  const unit = Int32Array.from(clustered, (isAlike, row) => numberRow(row, isAlike === 1));
  const counts = new Map<number, number>();
  for (const number of unit) counts.set(number, (counts.get(number) ?? 0) + 1);
  return { unit, isShared: Uint8Array.from(unit, (number) => (counts.get(number)! > 1 ? 1 : 0)) };
}

/** Walks over the weights once, before the statistics do. */
export function surveyRows(
  problem: Problem,
  reference: AttentionReference,
  weightFormat: FormatName,
  memories?: WorkingMemories,
): RowSurvey {
  const groups = fineGroups(weightFormat);
  const { queries } = reference.shape;
  const rows = reference.quantities.lse.values.length;
  const heaviest = new Int32Array(rows).fill(-1);
  const squares = new Float64Array(rows);
  const clustered = new Uint8Array(rows);
  // Σ w by a hash of the weight's group: too much where two groups meet, as in the bounds' tables.
  const tables = Array.from({ length: walkRows }, () => new Float64Array(2 ** tableBits));
  const mass = new Float64Array(walkRows);
  const toLargest = new Float64Array(walkRows);
  const own = new Float64Array(walkRows);
  const alike = new Float64Array(walkRows);
  const most = new Float64Array(walkRows);
  const at = new Int32Array(walkRows).fill(-1);
  const visitor: WeightVisitor = {
    begin: (head, firstRow, count) => {
      for (let i = 0; i < count; i++) {
        const row = head * queries + firstRow + i;
        toLargest[i] = Math.exp(reference.denominator[row] - reference.maximum[row]);
      }
    },
    visit: ({ rows: count, firstKey, keys, stride, weights }) => {
      for (let i = 0; i < count; i++) {
        const table = tables[i];
        const factor = toLargest[i];
        for (let j = 0; j < keys; j++) {
          const w = weights[i * stride + j];
          if (w === 0) continue;
          const slot = Math.imul(groups.group(w * factor), 0x9e3779b1) >>> (32 - tableBits);
          // The change of the sum's square when w is added.
          alike[i] += w * (2 * table[slot] + w);
          table[slot] += w;
          own[i] += w * w;
          mass[i] += w;
          if (w <= most[i]) continue;
          most[i] = w;
          at[i] = firstKey + j;
        }
      }
    },
    end: (head, firstRow, count) => {
      for (let i = 0; i < count; i++) {
        const row = head * queries + firstRow + i;
        heaviest[row] = at[i];
        squares[row] = own[i];
        const isSpecial = levels[reference.level[row]] === 'special';
        const sums = { mass: mass[i], squares: own[i], squaresAlike: alike[i] };
        clustered[row] = !isSpecial && isClustered(sums) ? 1 : 0;
        tables[i].fill(0);
        most[i] = own[i] = alike[i] = mass[i] = 0;
        at[i] = -1;
      }
    },
  };
  forEachWeightTile(problem, reference, [], visitor, { memories });
  return { heaviest, squares, clustered };
}

/** Surveys the rows of a problem that is not divided. */
export function surveyWhole(
  problem: Problem,
  reference: AttentionReference,
  weightFormat: FormatName,
  memories?: WorkingMemories,
): SurveyedRows {
  const survey = surveyRows(problem, reference, weightFormat, memories);
  return { survey, units: numberUnits(reference, survey.clustered, weightFormat) };
}
