import {
  type AttentionReference,
  forEachWeightTile,
  levels,
  type WeightVisitor,
  WorkingMemories,
} from '../../../oracles/index.js';
import { formats, type FormatName } from '../../formats/index.js';
import type { Problem } from '../../problem/index.js';
import { createAllocator } from '../../reuse.js';
import { createRowNumbers, isClustered } from '../bounds/index.js';
import { NearlyEqual } from './error-pool.js';
import { surveyedRows } from './structure.generated.js';
import { instantiateLoops } from './structure-loops.js';
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

/** Memory for the sums of 64 rows. */
function createMemory() {
  const kernels = instantiateLoops();
  const tableLength = walkRows * 2 ** tableBits;
  const numbers = walkRows * walkRows + tableLength + 6 * walkRows;
  const { allocate, struct } = createAllocator(kernels.memory, 8 * numbers);
  const { buffer } = kernels.memory;
  const block = (length: number) => new Float64Array(buffer, allocate(8 * length), length);
  const views = {
    weights: block(walkRows * walkRows),
    toLargest: block(walkRows),
    mass: block(walkRows),
    squares: block(walkRows),
    alike: block(walkRows),
    most: block(walkRows),
    heaviest: new Int32Array(buffer, allocate(4 * walkRows), walkRows),
  };
  const table = block(tableLength);
  const places = Object.entries(views).map(([name, { byteOffset }]) => [name, byteOffset]);
  const addresses = {
    ...(Object.fromEntries(places) as Record<keyof typeof views, number>),
    tables: table.byteOffset,
  };
  return { kernels, ...views, table, addresses, all: struct(surveyedRows) };
}

/** What the loop needs of groups. */
function placesOf({ shift, lowest, size }: NearlyEqual) {
  return { shift, lowest, size };
}

/** Walks over the weights once, before the statistics do. */
export function surveyRows(
  problem: Problem,
  reference: AttentionReference,
  weightFormat: FormatName,
  memories = new WorkingMemories(),
): RowSurvey {
  const groups = fineGroups(weightFormat);
  const { queries } = reference.shape;
  const rows = reference.quantities.lse.values.length;
  const heaviest = new Int32Array(rows).fill(-1);
  const squares = new Float64Array(rows);
  const clustered = new Uint8Array(rows);
  memories.lend('survey', createMemory, (memory) => {
    const { kernels } = memory;
    const all = memory.all.write({ ...memory.addresses, ...placesOf(groups), tableBits });
    const { toLargest, most, mass, alike } = memory;
    const visitor: WeightVisitor = {
      begin: (head, firstRow, count) => {
        memory.table.fill(0);
        for (const sums of [most, mass, memory.squares, alike]) sums.fill(0);
        memory.heaviest.fill(-1);
        for (let i = 0; i < count; i++) {
          const row = head * queries + firstRow + i;
          toLargest[i] = Math.exp(reference.denominator[row] - reference.maximum[row]);
        }
      },
      visit: ({ rows: count, firstKey, keys, weights }) => {
        memory.weights.set(weights.subarray(0, count * walkRows));
        kernels.surveyWeights(all, count, keys, firstKey);
      },
      end: (head, firstRow, count) => {
        for (let i = 0; i < count; i++) {
          const row = head * queries + firstRow + i;
          heaviest[row] = memory.heaviest[i];
          squares[row] = memory.squares[i];
          const isSpecial = levels[reference.level[row]] === 'special';
          const sums = { mass: mass[i], squares: squares[row], squaresAlike: alike[i] };
          clustered[row] = !isSpecial && isClustered(sums) ? 1 : 0;
        }
      },
    };
    forEachWeightTile(problem, reference, visitor, { memories });
  });
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
