import { countKeys, type Problem, type ProblemShape } from '../../problem/index.js';
import type { DiagnosisInput } from './diagnosis.js';
import type { HypothesisContext, SampleRow } from './hypothesis.js';
import type { RowDamage } from './row-damage.js';
import { damageOf } from './row-sample.js';
import type { RowReader } from './row-reader.js';

/** "3", "3 and 5", "3, 5 and 7"; ranges as "3 to 7"; many as "3, 5, 7 and 20 more". */
export function listNumbers(numbers: readonly number[]): string {
  const sorted = [...new Set(numbers)].sort((a, b) => a - b);
  const [first] = sorted;
  const last = sorted.at(-1);
  if (sorted.length > 2 && last! - first! === sorted.length - 1) return `${first} to ${last}`;
  if (sorted.length === 1) return String(first);
  const most = 4;
  return sorted.length <= most
    ? `${sorted.slice(0, -1).join(', ')} and ${last}`
    : `${sorted.slice(0, most - 1).join(', ')} and ${sorted.length - most + 1} more`;
}

function countOf(noun: string, count: number): string {
  return count === 1 ? noun : `${noun}s`;
}

function headsOf(rows: readonly number[], { queries }: ProblemShape): number[] {
  return [...new Set(rows.map((row) => Math.floor(row / queries)))];
}

/** "head 2" of [batch, heads], with the batch when there is more than one. */
export function nameHeads(heads: readonly number[], shape: ProblemShape): string {
  if (shape.batch === 1) return `${countOf('head', heads.length)} ${listNumbers(heads)}`;
  const [first] = heads as [number];
  return heads.length === 1
    ? `batch ${Math.floor(first / shape.heads)}, head ${first % shape.heads}`
    : `${heads.length} of ${shape.batch * shape.heads} heads over the batch`;
}

/** The damaged elements' columns, when they are few or repeat; columns count when they are far off. */
function describeColumns({ input, rows, noise }: ColumnFacts): string[] {
  const {
    reference,
    outputs: {
      out: { values: out },
    },
  } = input;
  const { vDim } = reference.shape;
  const { out: exactOut } = reference.quantities;
  const hits = new Int32Array(vDim);
  for (const row of rows) {
    const typical = Math.sqrt(noise[row] / vDim);
    for (let c = 0; c < vDim; c++) {
      const error = Math.abs(out[row * vDim + c] - exactOut.values[row * vDim + c]);
      if (!(error <= 6 * typical)) hits[c]++;
    }
  }
  const struck = [...hits.keys()].filter((c) => hits[c] > 0);
  if (struck.length === 0 || struck.length === vDim) return [];
  if (struck.length <= vDim / 8)
    return [`only ${countOf('column', struck.length)} ${listNumbers(struck)} err`];
  for (const period of [8, 16, 32, 64]) {
    if (vDim <= period) break;
    const residues = [...new Set(struck.map((c) => c % period))];
    if (residues.length <= period / 2 && struck.length > (residues.length * vDim) / period / 2)
      return [`only columns ${listNumbers(residues)} of each ${period} err`];
  }
  return [];
}

interface ColumnFacts {
  readonly input: DiagnosisInput;
  readonly rows: readonly number[];
  readonly noise: Float64Array;
}

/** The query of a flat row, by its number in the whole problem. */
export function queryOf(
  row: number,
  { queries }: ProblemShape,
  { rows }: Pick<Problem, 'rows'>,
): number {
  return rows === undefined ? row % queries : rows.queries[row];
}

/** The pattern of the damaged rows among the queries, in words; null without one. */
function queryPattern(
  rows: readonly number[],
  shape: ProblemShape,
  problem: Pick<Problem, 'rows'>,
): string | null {
  const { queries } = shape;
  const numbers = rows.map((row) => queryOf(row, shape, problem));
  const local = [...new Set(numbers)].sort((a, b) => a - b);
  if (local.length === queries) return null;
  if (local.length <= 4) return `${local.length === 1 ? 'query' : 'queries'} ${listNumbers(local)}`;
  // Nobody knows which of the rows between err.
  if (problem.rows !== undefined) return null;
  for (const period of [8, 16, 32, 64, 128]) {
    if (queries <= period) break;
    const residues = [...new Set(local.map((query) => query % period))];
    const expected = (residues.length * queries) / period;
    if (residues.length <= period / 2 && local.length > expected / 2)
      return `queries ${listNumbers(residues)} of each ${period}`;
  }
  const [first] = local;
  const last = local.at(-1)!;
  const contiguous = local.length > 0.9 * (last - first! + 1);
  return contiguous ? `queries ${first} to ${last}` : null;
}

/** Describes where the damage sits: how many rows, which heads, queries and columns. */
export function describeDamage(
  input: DiagnosisInput,
  { noise }: RowDamage,
  damaged: readonly number[],
  what: 'output' | 'LSE' = 'output',
): string[] {
  const { shape } = input.reference;
  const heads = headsOf(damaged, shape);
  const total = input.reference.quantities.lse.values.length;
  const places = queryPattern(damaged, shape, input.problem);
  const sampled = input.problem.rows === undefined ? '' : 'sampled ';
  const by = `${what === 'LSE' ? 'in the LSE' : ''} by more than rounding explains`.trim();
  const count =
    damaged.length === total
      ? `every ${sampled}row errs ${by}`
      : `${damaged.length} of ${total} ${sampled}rows ${damaged.length === 1 ? 'errs' : 'err'} ${by}`;
  return [
    count,
    ...(heads.length < shape.batch * shape.heads
      ? [`only ${nameHeads(heads, shape)} ${heads.length === 1 ? 'errs' : 'err'}`]
      : []),
    ...(places === null ? [] : [`only ${places} err${/^query/.test(places) ? 's' : ''}`]),
    ...(what === 'LSE' ? [] : describeColumns({ input, rows: damaged, noise })),
  ];
}

/** Least |rank correlation| worth a mention, and the fewest rows that give one. */
const noticeable = 0.6;
const fewestRows = 12;

/** Average ranks: equal values share theirs. */
function ranks(values: readonly number[]): number[] {
  const order = [...values.keys()].sort((a, b) => values[a] - values[b]);
  const result = new Array<number>(values.length).fill(0);
  for (let i = 0; i < order.length;) {
    let end = i;
    while (end < order.length && values[order[end]] === values[order[i]]) end++;
    for (let k = i; k < end; k++) result[order[k]] = (i + end - 1) / 2;
    i = end;
  }
  return result;
}

/** Spearman's rank correlation, ties averaged; 0 when one side is constant. */
export function rankCorrelation(a: readonly number[], b: readonly number[]): number {
  const [x, y] = [ranks(a), ranks(b)];
  const mean = (x.length - 1) / 2;
  let cross = 0;
  let xx = 0;
  let yy = 0;
  x.forEach((value, i) => {
    cross += (value - mean) * (y[i] - mean);
    xx += (value - mean) ** 2;
    yy += (y[i] - mean) ** 2;
  });
  return xx === 0 || yy === 0 ? 0 : cross / Math.sqrt(xx * yy);
}

/** The distance by which the maximum of the first block visited, of 128 keys, lies below the row's. */
function lagBehindMaximum(reader: RowReader, row: SampleRow, fromLast: boolean): number {
  const { begin, end } = row.span;
  if (begin === end) return 0;
  const scores = reader.scores(row.row);
  const block = Math.floor((fromLast ? end - 1 : begin) / 128) * 128;
  const largest = (values: Float64Array) => values.reduce((x, y) => Math.max(x, y), -Infinity);
  return largest(scores) - largest(scores.subarray(block, block + 128));
}

/** Describes what the size of the damage correlates with, over the damaged rows of the sample; for the unexplained. */
export function describeCorrelations(
  { sample, reader }: HypothesisContext,
  damage: RowDamage,
): string[] {
  const rows = sample.filter((row) => row.damaged);
  if (rows.length < fewestRows) return [];
  const sizes = rows.map(({ row }) => damageOf(damage, row));
  const quantities: readonly (readonly [string, (row: SampleRow) => number])[] = [
    ['the number of visible keys', ({ ranges }) => countKeys(ranges)],
    [
      'the row maximum',
      ({ row }) => reader.scores(row).reduce((a, b) => Math.max(a, b), -Infinity),
    ],
    [
      "the row maximum's lag over blocks visited last to first",
      (row) => lagBehindMaximum(reader, row, true),
    ],
    [
      "the row maximum's lag over blocks visited first to last",
      (row) => lagBehindMaximum(reader, row, false),
    ],
  ];
  return quantities.flatMap(([name, quantity]) => {
    const correlation = rankCorrelation(rows.map(quantity), sizes);
    return Math.abs(correlation) < noticeable
      ? []
      : [
          `the error ${correlation > 0 ? 'grows' : 'shrinks'} with ${name} (rank correlation ${correlation.toFixed(2)})`,
        ];
  });
}
