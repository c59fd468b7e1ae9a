import { RequestError } from '../../request-error.js';

/** Words of a memory: `rows` runs of `count` words, whose first words are `stride` apart. */
export interface Region {
  /** The unit of counts: words (the default), or the bytes of words of four. */
  readonly unit?: 'word' | 'byte';
  readonly start: number;
  readonly count: number;
  /** Not needed for one row. */
  readonly stride?: number;
  /** Default 1. */
  readonly rows?: number;
}

/** The bytes of a word, where a memory is followed byte by byte. */
export const bytesOfWord = 4 as const;

/**
 * The region in cells of a memory that has one, or four, for each word. Null if it has parts of words, and words
 * are not divided. Throws a RequestError for a region that is not within the memory.
 *
 * @param words of the memory
 * @param cellsOfWord 1, or 4 where each byte has a cell
 */
export function regionInCells(
  region: Region,
  words: number,
  cellsOfWord: 1 | 4,
): Required<Region> | null {
  const { unit = 'word', start, count, stride = 0, rows = 1 } = region;
  const perWord = unit === 'byte' ? bytesOfWord : 1;
  checkRegion({ unit, start, count, stride, rows }, words * perWord);
  if (perWord === cellsOfWord) return { unit, start, count, stride, rows };
  if (cellsOfWord > perWord)
    return {
      unit: 'byte',
      start: start * cellsOfWord,
      count: count * cellsOfWord,
      stride: stride * cellsOfWord,
      rows,
    };
  if (start % perWord !== 0 || count % perWord !== 0 || stride % perWord !== 0) return null;
  return {
    unit: 'word',
    start: start / perWord,
    count: count / perWord,
    stride: stride / perWord,
    rows,
  };
}

function checkRegion({ unit, start, count, stride, rows }: Required<Region>, cells: number): void {
  const isWhole =
    Number.isInteger(start) &&
    Number.isInteger(count) &&
    Number.isInteger(stride) &&
    Number.isInteger(rows);
  const isInside =
    start >= 0 &&
    count >= 0 &&
    stride >= 0 &&
    rows >= 0 &&
    start + Math.max(0, rows - 1) * stride + count <= cells;
  if (!isWhole || !isInside)
    throw new RequestError(
      `${rows} rows of ${count} ${unit}s from ${start}, ${stride} apart, are not in a memory of ${cells} ${unit}s: give whole numbers ≥ 0 whose last ${unit} is below ${cells}`,
    );
}
