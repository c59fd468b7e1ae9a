import type { FormatName } from '../../../formats/index.js';
import {
  readFeatures,
  scaledTensors,
  scaleTensorName,
  storedOf,
  unusedRows,
  type Problem,
  type StoredRows,
} from '../../../problem/index.js';
import { formatCount, formatNumber } from '../../../words/index.js';

/** A range from the smallest to the largest. */
interface Range {
  readonly least: number;
  readonly most: number;
}

/** The features of a problem beside q, k, v, scale, causal, window and softcap; features that it lacks are left out. */
export interface ReportedFeatures {
  readonly mask?: { readonly shape: readonly number[] };
  readonly bias?: { readonly shape: readonly number[]; readonly format: FormatName };
  readonly alibiSlopes?: { readonly shape: readonly number[] };
  readonly sink?: { readonly inLse: boolean };
  /** Number of segments of the queries. */
  readonly segments?: { readonly count: number };
  readonly prefix?: number;
  readonly keyLists?: { readonly length: number; readonly blockKeys: number };
  readonly blockMask?: { readonly blockQueries: number; readonly blockKeys: number };
  readonly dropout?: { readonly probability: number };
  readonly sequences?: { readonly count: number; readonly queries: Range; readonly keys: Range };
  /** The storage of packed sequences; `unusedRows` are rows of outputs that are not judged. */
  readonly stored?: {
    readonly queries: StoredRows['form'];
    readonly keys: StoredRows['form'];
    readonly pageSize: number | null;
    readonly unusedRows: number;
  };
  /** The names of tensors by which q, k and v are multiplied. */
  readonly scales?: readonly string[];
}

function rangeOf(values: readonly number[]): Range {
  return {
    least: values.reduce((least, value) => Math.min(least, value), Infinity),
    most: values.reduce((most, value) => Math.max(most, value), 0),
  };
}

function sequenceFeatures(problem: Problem): ReportedFeatures {
  const { sequences } = problem;
  if (sequences === undefined || sequences.length === 0) return {};
  const stored = storedOf(problem);
  return {
    sequences: {
      count: sequences.length,
      queries: rangeOf(sequences.map(({ queries }) => queries)),
      keys: rangeOf(sequences.map(({ keys }) => keys)),
    },
    ...(stored === null
      ? {}
      : {
          stored: {
            queries: stored.queries.form,
            keys: stored.keys.form,
            pageSize: stored.keys.form === 'paged' ? stored.keys.slotsPerGroup : null,
            unusedRows: unusedRows(problem),
          },
        }),
  };
}

/** The features of a problem beside the members of `ReportedProblem`; null for none. */
export function reportedFeatures(problem: Problem): ReportedFeatures | null {
  const scales = scaledTensors.flatMap((name) =>
    (problem[name].scales?.factors ?? []).map(({ name: kind }) => scaleTensorName(name, kind)),
  );
  const nothing = (): ReportedFeatures => ({});
  const found = readFeatures<ReportedFeatures>(problem, {
    mask: ({ shape }) => ({ mask: { shape: [...shape] } }),
    bias: ({ shape, format }) => ({ bias: { shape: [...shape], format } }),
    alibiSlopes: ({ shape }) => ({ alibiSlopes: { shape: [...shape] } }),
    sink: ({ inLse }) => ({ sink: { inLse } }),
    segments: ({ queries }) => ({ segments: { count: new Set(queries.data).size } }),
    prefix: (prefix) => ({ prefix }),
    blockMask: ({ blockQueries, blockKeys }) => ({ blockMask: { blockQueries, blockKeys } }),
    keyLists: ({ indices, blockKeys }) => ({
      keyLists: { length: indices.shape.at(-1) ?? 0, blockKeys },
    }),
    dropout: ({ probability }) => ({ dropout: { probability } }),
    sequences: () => sequenceFeatures(problem),
    // A part of a problem is reported as the whole.
    keyRanges: nothing,
    rows: nothing,
  });
  const features: ReportedFeatures = Object.assign(
    {},
    ...found,
    scales.length === 0 ? {} : { scales },
  );
  return Object.keys(features).length === 0 ? null : features;
}

function range({ least, most }: Range, one: string, many: string): string {
  if (least !== most) return `${least} to ${most} ${many}`;
  return `${most} ${most === 1 ? one : many}`;
}

function sequenceWords({ sequences, stored }: ReportedFeatures): string[] {
  if (sequences === undefined) return [];
  const { count, queries, keys } = sequences;
  const forms = stored === undefined ? [] : [stored.queries, stored.keys];
  return [
    `${formatCount(count, 'sequence')} of ${range(queries, 'query', 'queries')} and ${range(keys, 'key', 'keys')}`,
    ...(stored === undefined || stored.pageSize === null ? [] : [`pages of ${stored.pageSize}`]),
    ...(forms.includes('padded') ? ['padded'] : []),
    ...(stored === undefined || stored.unusedRows === 0
      ? []
      : [`${formatCount(stored.unusedRows, 'unused row')} of queries, not judged`]),
  ];
}

/** The features of a problem, a few words each. */
export function describeFeatures(features: ReportedFeatures): string[] {
  const { mask, bias, alibiSlopes, sink, segments, prefix, blockMask, keyLists, dropout, scales } =
    features;
  return [
    ...(mask === undefined ? [] : ['mask']),
    ...(bias === undefined ? [] : [`bias in ${bias.format}`]),
    ...(alibiSlopes === undefined ? [] : ['ALiBi']),
    ...(sink === undefined ? [] : [sink.inLse ? 'sink in the LSE' : 'sink not in the LSE']),
    ...(segments === undefined ? [] : [formatCount(segments.count, 'segment')]),
    ...(prefix === undefined ? [] : [`prefix of ${formatCount(prefix, 'key')}`]),
    ...(blockMask === undefined
      ? []
      : [`blocks of ${blockMask.blockQueries} × ${blockMask.blockKeys}`]),
    ...(keyLists === undefined
      ? []
      : [
          keyLists.blockKeys === 1
            ? `lists of ${formatCount(keyLists.length, 'key')}`
            : `lists of ${formatCount(keyLists.length, 'block')} of ${keyLists.blockKeys}`,
        ]),
    ...(dropout === undefined ? [] : [`dropout ${formatNumber(dropout.probability)}`]),
    ...sequenceWords(features),
    ...(scales === undefined ? [] : [scales.join(', ')]),
  ];
}
