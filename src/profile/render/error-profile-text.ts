import type { InputRange } from '../cells.js';
import type { ErrorProfile } from '../techniques/profile.js';
import { digits, powerOfTwo } from './numbers.js';
import { alignTextColumns } from '../../align-columns.js';
import { terminalWidth } from './terminal-width.js';

/** A row that says which inputs were swept, if not all. */
function rangeRows({ from, to }: InputRange): string[][] {
  if (from === undefined && to === undefined) return [];
  return [['inputs', `only those from ${from ?? '-Infinity'} to ${to ?? 'Infinity'}`]];
}

/** The title, what the functions and the exact values rest on, and the notes. */
export function headText(
  { title, range, functions, reference, notes }: ErrorProfile,
  variable = 'x',
): string[] {
  const { formula, relativeError, certainty, absoluteCertainty } = reference;
  const exactness =
    relativeError === 0 ? 'exact' : `in fp64, relative error below ${powerOfTwo(relativeError)}`;
  const absolute =
    absoluteCertainty === null ? '' : `, ${digits(absoluteCertainty, 2)} in absolute ones`;
  return [
    title,
    '',
    ...alignTextColumns(
      [
        ...functions.map(({ name, evidence }) => [name, evidence]),
        ['measured against', `${formula}, ${exactness}`],
        [
          'certainty',
          `${digits(certainty, 2)} in relative errors${absolute}; in means 2^-40 of the mean magnitude more`,
        ],
        ['shares', `of fp32 numbers, each once, and of ${variable}, each number by its ulp`],
        ...rangeRows(range),
      ],
      terminalWidth,
    ),
    '',
    ...notes.flatMap((note) => [note, '']),
  ];
}
