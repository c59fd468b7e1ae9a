import { createUlpScale, type JudgedElements } from '../../audit/index.js';
import { formatNumber } from '../../words/index.js';
import { heading, type Section, joinLargest, notFiniteMark, sparkline } from '../layout/index.js';

/** The elements whose error in ulps is above `low` and at most `high`; the first bin begins at 0. */
interface UlpCount {
  readonly low: number;
  readonly high: number;
  readonly elements: number;
}

/** The data from which the sparklines of an audit are drawn. */
export interface AuditSketch {
  /**
   * The largest |error| of each query over all batches, heads and columns, in the output's unit: NaN
   * where the output is not finite and the oracle is, null without an element that is finite in the
   * oracle.
   */
  readonly queries: readonly (number | null)[];
  /** Number of elements that equal the exact value, or as good as equal it. */
  readonly exact: number;
  /** Bins of equal ratio, ascending; none beyond the largest error. */
  readonly ulps: readonly UlpCount[];
}

/** Columns of a sparkline: with its label it fits the narrowest report. */
const columns = 40;

/** log2 of the ulps below which errors are not distinguished. */
const lowestOctave = -6;

/** Number of octaves that a bin may have. */
const octavesPerBin = [0.25, 0.5, 1, 2, 4, 8, 16, 32, 64] as const;

function ulpCounts(errors: Float64Array): UlpCount[] {
  const largest = errors.reduce((most, error) => Math.max(most, error), 0);
  if (largest === 0) return [];
  const octaves = Math.max(Math.log2(largest) - lowestOctave, 0);
  const width = octavesPerBin.find((width) => octaves / width < columns - 1)!;
  const bin = (error: number) => Math.max(Math.ceil((Math.log2(error) - lowestOctave) / width), 0);
  const counts = new Float64Array(bin(largest) + 1);
  for (const error of errors) if (error > 0) counts[bin(error)]++;
  return Array.from(counts, (elements, i) => ({
    low: i === 0 ? 0 : 2 ** (lowestOctave + (i - 1) * width),
    high: 2 ** (lowestOctave + i * width),
    elements,
  }));
}

/** Collects the data of an audit's sparklines. Errors are in ulps of the output's format, as in the error profile. */
export function gatherSketch({
  reference,
  outputs: {
    out: { values: out, format: outputFormat },
  },
}: Pick<JudgedElements, 'reference'> & {
  readonly outputs: Pick<JudgedElements['outputs'], 'out'>;
}): AuditSketch {
  const { queries: count, vDim } = reference.shape;
  const { out: exactOut } = reference.quantities;
  const ulpAt = createUlpScale(exactOut.values, vDim, outputFormat);
  const queries = new Array<number | null>(count).fill(null);
  const ulps = new Float64Array(out.length);
  let exact = 0;
  for (let i = 0; i < out.length; i++) {
    const oracle = exactOut.values[i];
    if (!Number.isFinite(oracle)) continue;
    const error = Math.abs(out[i] - oracle);
    const query = Math.floor(i / vDim) % count;
    const known = queries[query] ?? 0;
    queries[query] = Number.isFinite(error) ? Math.max(known, error) : NaN;
    if (error === 0) exact++;
    if (Number.isFinite(error)) ulps[i] = error / ulpAt(i);
  }
  return { queries, exact, ulps: ulpCounts(ulps) };
}

/** The meaning of each column of the errors along the sequence, in words. */
function queriesNote(count: number, { values, each }: ReturnType<typeof joinLargest>): string {
  const finite = values.filter((error) => error !== null && Number.isFinite(error));
  const top = formatNumber(Math.max(0, ...(finite as number[])));
  const what = each === 1 ? 'one' : String(each);
  const mark = values.some(Number.isNaN) ? `; ${notFiniteMark} is not finite` : '';
  return `largest |error|, queries 0 to ${count - 1}, ${what} a column; █ is ${top}${mark}`;
}

function ulpsNote({ ulps, exact }: AuditSketch): string {
  const most = Math.max(...ulps.map(({ elements }) => elements));
  const first = formatNumber(ulps[0].high);
  const last = formatNumber(ulps.at(-1)!.high);
  const zero = exact === 0 ? '' : `; ${exact} exact beside them`;
  return `elements off by up to ${first} to ${last} ulp, in equal ratios; █ is ${most}${zero}`;
}

/** The sparklines of an audit: the error along the sequence, and the number of elements by their error in ulps. */
export function sketchSection(sketch: AuditSketch): Section {
  const joined = joinLargest(sketch.queries, columns);
  const hasErrors = joined.values.some((value) => value !== null && value !== 0);
  return {
    rows: [
      [heading('Sketch'), ''],
      ...(hasErrors
        ? [
            ['  by query', sparkline(joined.values)],
            ['', queriesNote(sketch.queries.length, joined)],
          ]
        : []),
      ...(sketch.ulps.length === 0
        ? hasErrors
          ? []
          : [['  nothing', 'every element is exact']]
        : [
            ['  by ulps', sparkline(sketch.ulps.map(({ elements }) => elements))],
            ['', ulpsNote(sketch)],
          ]),
    ],
    numberColumns: 0,
  };
}
