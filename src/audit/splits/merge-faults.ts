import {
  encodeFromFloat64,
  decodeToFloat64,
  formats,
  type FormatName,
} from '../../formats/index.js';
import type { PartialResults, PartWeight } from './merge-parts.js';

/** The merge of a kernel with a mistake: what it merges, with which weights, and whether it divides by their sum. */
export interface WrongMerge {
  readonly parts: PartialResults;
  readonly weight?: PartWeight | undefined;
  readonly isDivided?: boolean;
  /** What it multiplies the merge by; left out where that is right. */
  readonly factor?: number;
  /** What it gives in rows whose parts all have no key; 0 where it is left out. */
  readonly emptyRows?: number;
}

/** A mistake of a merge. */
export interface MergeFault {
  readonly id: string;
  /** In words, without a full stop. */
  readonly sentence: string;
  /** The merge of a kernel with it; null where it changes nothing here. */
  readonly apply: (parts: PartialResults) => WrongMerge | null;
}

const natural = (lse: number, largest: number) => Math.exp(lse - largest);

function ofWeight(id: string, sentence: string, weight: PartWeight): MergeFault {
  return { id, sentence, apply: (parts) => ({ parts, weight }) };
}

/** Parts whose LSEs are taken from other places, [splits, rows]; null for places that are all their own. */
function withLse(
  parts: PartialResults,
  from: (split: number, row: number) => number,
): WrongMerge | null {
  const { splits, rows, lse } = parts;
  const moved = Float64Array.from(
    { length: splits * rows },
    (_, i) => lse[from(Math.floor(i / rows), i % rows)],
  );
  return moved.every((x, i) => Object.is(x, lse[i])) ? null : { parts: { ...parts, lse: moved } };
}

function ofLse(
  id: string,
  sentence: string,
  change: (lse: Float64Array, parts: PartialResults) => Float64Array,
): MergeFault {
  return {
    id,
    sentence,
    apply: (parts) => {
      const lse = change(parts.lse, parts);
      return lse.every((x, i) => Object.is(x, parts.lse[i])) ? null : { parts: { ...parts, lse } };
    },
  };
}

function roundedTo(values: Float64Array, format: FormatName): Float64Array {
  return decodeToFloat64(encodeFromFloat64(formats[format], values), formats[format]);
}

/** LSEs of neighbours: of rows or heads, where the parts say how many rows a head has, and of other parts. */
function neighbours(): MergeFault[] {
  const step = (by: number, of: 'rows' | 'heads') => (parts: PartialResults) => {
    const { rows, layout = { heads: 1, queries: rows } } = parts;
    const size = of === 'rows' ? layout.queries : layout.heads;
    if (size < 2) return null;
    const inner = of === 'rows' ? 1 : layout.queries;
    return withLse(parts, (split, row) => {
      const at = Math.floor(row / inner) % size;
      return split * rows + row + (((at + by + size) % size) - at) * inner;
    });
  };
  const ofParts = (by: number) => (parts: PartialResults) =>
    parts.splits < 2
      ? null
      : withLse(
          parts,
          (split, row) => ((split + by + parts.splits) % parts.splits) * parts.rows + row,
        );
  return [
    {
      id: 'lse-of-next-part',
      sentence: 'each part is weighed by the LSE of the next',
      apply: ofParts(1),
    },
    {
      id: 'lse-of-previous-part',
      sentence: 'each part is weighed by the LSE of the one before',
      apply: ofParts(-1),
    },
    {
      id: 'lse-of-next-row',
      sentence: 'each row is weighed by the LSE of the next',
      apply: step(1, 'rows'),
    },
    {
      id: 'lse-of-previous-row',
      sentence: 'each row is weighed by the LSE of the one before',
      apply: step(-1, 'rows'),
    },
    {
      id: 'lse-of-next-head',
      sentence: 'each head is weighed by the LSE of the next',
      apply: step(1, 'heads'),
    },
    {
      id: 'lse-of-previous-head',
      sentence: 'each head is weighed by the LSE of the one before',
      apply: step(-1, 'heads'),
    },
  ];
}

/** Whether there is a row whose parts all have no key. */
function hasEmptyRow({ splits, rows, lse }: PartialResults): boolean {
  for (let row = 0; row < rows; row++)
    if (Array.from({ length: splits }, (_, i) => lse[i * rows + row]).every((x) => x === -Infinity))
      return true;
  return false;
}

/** One part left out, counted twice, or alone. */
function ofEachPart(splits: number): MergeFault[] {
  const each = Array.from({ length: splits }, (_, split) => split);
  const factor = (of: (split: number) => number): PartWeight => {
    return (lse, largest, split) => of(split) * natural(lse, largest);
  };
  return [
    ...each.map((left) =>
      ofWeight(
        'part-missing',
        `part ${left} was left out of the merge`,
        factor((split) => (split === left ? 0 : 1)),
      ),
    ),
    ...each.map((twice) =>
      ofWeight(
        'part-twice',
        `part ${twice} was counted twice in the merge`,
        factor((split) => (split === twice ? 2 : 1)),
      ),
    ),
    ...(splits < 3
      ? []
      : each.map((alone) =>
          ofWeight(
            'part-alone',
            `part ${alone} alone is in the merge`,
            factor((split) => (split === alone ? 1 : 0)),
          ),
        )),
  ];
}

/** The mistakes of a factor that a merge is multiplied by; none where it is 1. */
export function factorFaults(factor: number): readonly MergeFault[] {
  if (factor === 1) return [];
  const ofFactor = (id: string, sentence: string, other: number): MergeFault => ({
    id,
    sentence,
    apply: (parts) => ({ parts, factor: other }),
  });
  return [
    ofFactor('factor-missing', 'the factor of O is missing', 1),
    ofFactor('factor-inverted', 'the factor of O is inverted', 1 / factor),
    ofFactor('factor-twice', 'the factor of O is applied twice', factor ** 2),
  ];
}

/** The mistakes that a failed merge of so many parts is compared with, in the order in which they are named. */
export function mergeFaults(splits: number): readonly MergeFault[] {
  return [
    ofWeight(
      'base-2',
      'the parts were merged with weights 2^LSE, as of LSEs in base 2',
      (lse, largest) => 2 ** (lse - largest),
    ),
    ofWeight(
      'base-e',
      'the parts were merged with weights e^(LSE·log2 e), as of LSEs that were multiplied by log2 e already',
      (lse, largest) => Math.exp((lse - largest) * Math.LOG2E),
    ),
    ofWeight('equal-weights', 'the parts were merged with equal weights', () => 1),
    ...ofEachPart(splits),
    ...neighbours(),
    ofWeight(
      'weights-not-exponentials',
      'the parts were merged with their LSEs as weights',
      (lse) => lse,
    ),
    ofWeight(
      'squared-weights',
      'the weights of parts were applied twice',
      (lse, largest) => natural(lse, largest) ** 2,
    ),
    {
      id: 'not-divided',
      sentence: 'the weighted parts were added and not divided by the sum of the weights',
      apply: (parts) => ({ parts, isDivided: false }),
    },
    {
      id: 'parts-added',
      sentence: 'the parts were added without weights',
      apply: (parts) => ({ parts, weight: () => 1, isDivided: false }),
    },
    ofLse('empty-part-counted', 'parts without keys were weighed as if their LSE were 0', (lse) =>
      lse.map((x) => (x === -Infinity ? 0 : x)),
    ),
    {
      id: 'empty-rows-nan',
      sentence: 'rows without keys in any part are 0/0, NaN, and not 0',
      apply: (parts) => (hasEmptyRow(parts) ? { parts, emptyRows: NaN } : null),
    },
    ...(['bf16', 'fp16'] as const).map((format) =>
      ofLse(
        `lse-in-${format}`,
        `the LSEs of parts were rounded to ${format} before they were merged`,
        (lse) => roundedTo(lse, format),
      ),
    ),
  ];
}

/** A mistake of a merged LSE, with the LSE of a kernel with it. */
export interface MergedLseFault {
  readonly id: string;
  readonly sentence: string;
  readonly lse: (exact: Float64Array, parts: PartialResults) => Float64Array;
}

function overParts(
  { splits, rows, lse }: PartialResults,
  join: (ofRow: readonly number[]) => number,
): Float64Array {
  return Float64Array.from({ length: rows }, (_, row) =>
    join(Array.from({ length: splits }, (_, split) => lse[split * rows + row])),
  );
}

/** The mistakes that a wrong merged LSE is compared with. */
export const mergedLseFaults: readonly MergedLseFault[] = [
  {
    id: 'merged-lse-base-2',
    sentence: 'the merged LSE is in base 2',
    lse: (exact) => exact.map((x) => x * Math.LOG2E),
  },
  {
    id: 'merged-lse-base-e',
    sentence: 'the merged LSE is that of base 2 divided by log2 e once more',
    lse: (exact) => exact.map((x) => x * Math.LN2),
  },
  {
    id: 'merged-lse-largest',
    sentence: 'the merged LSE is the largest of the parts',
    lse: (_, parts) => overParts(parts, (all) => Math.max(...all)),
  },
  {
    id: 'merged-lse-last',
    sentence: 'the merged LSE is that of the last part',
    lse: (_, parts) => overParts(parts, (all) => all.at(-1) ?? -Infinity),
  },
  {
    id: 'merged-lse-first',
    sentence: 'the merged LSE is that of the first part',
    lse: (_, parts) => overParts(parts, (all) => all[0]),
  },
  {
    id: 'merged-lse-added',
    sentence: 'the merged LSE is the sum of the LSEs of the parts',
    lse: (_, parts) => overParts(parts, (all) => all.reduce((a, b) => a + b, 0)),
  },
  {
    id: 'merged-lse-without-maximum',
    sentence: 'the merged LSE lacks the maximum that was taken off before',
    lse: (exact, parts) =>
      exact.map(
        (x, row) =>
          x -
          Math.max(
            ...Array.from(
              { length: parts.splits },
              (_, split) => parts.lse[split * parts.rows + row],
            ),
          ),
      ),
  },
  ...(
    [
      ['merged-lse-zero', 0, '0'],
      ['merged-lse-plus-infinity', Infinity, '+∞'],
      ['merged-lse-nan', NaN, 'NaN'],
    ] as const
  ).map(([id, value, word]): MergedLseFault => ({
    id,
    sentence: `rows without keys have a merged LSE of ${word} and not −∞`,
    lse: (exact) => exact.map((x) => (x === -Infinity ? value : x)),
  })),
];
