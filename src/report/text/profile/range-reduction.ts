import type { BinadeReduction, RangeReductionProfile } from '../../../profile/index.js';
import {
  formatDigits,
  formatGrouped,
  formatPercentage,
  formatPowerOfTwo,
} from '../../../words/index.js';
import { alignColumns } from '../../layout/index.js';
import { terminalWidth } from './head.js';

/** Binades that behave alike, from one exponent to another. */
interface Band {
  readonly sign: '+' | '-';
  readonly from: number | null;
  to: number | null;
  binades: BinadeReduction[];
}

/** The key of binades that share a row of the table: the shares of their inputs. */
function behaviour(binade: BinadeReduction): string {
  const { sign, inputs, inexact, notFloor, fractionIsOne, nearestDiffers, exponent } = binade;
  const shares = [inexact, notFloor, fractionIsOne].map((count) => count / inputs);
  const nearest = nearestDiffers === 0 ? 'none' : nearestDiffers === inputs ? 'all' : 'some';
  return JSON.stringify([sign, exponent === null, ...shares, nearest]);
}

function bandsOf(binades: readonly BinadeReduction[]): Band[] {
  const bands: Band[] = [];
  for (const binade of binades) {
    const last = bands.at(-1);
    const previous = last?.binades.at(-1);
    if (last !== undefined && behaviour(previous!) === behaviour(binade)) {
      last.to = binade.exponent;
      last.binades.push(binade);
    } else {
      const { sign, exponent } = binade;
      bands.push({ sign, from: exponent, to: exponent, binades: [binade] });
    }
  }
  return bands;
}

function bandName({ sign, from, to }: Band): string {
  if (from === null || to === null) return `${sign}0 and subnormal`;
  const [low, high] = [Math.min(from, to), Math.max(from, to)];
  return `2^${low} <= ${sign === '-' ? '-x' : 'x'} < 2^${high + 1}`;
}

function bandRow(band: Band): string[] {
  const sum = (key: 'inputs' | 'inexact' | 'notFloor' | 'fractionIsOne' | 'nearestDiffers') =>
    band.binades.reduce((total, binade) => total + binade[key], 0);
  const laws = band.binades.map(({ inexactByLaw }) => inexactByLaw);
  const byLaw = laws.some((law) => law === null)
    ? '-'
    : formatGrouped(laws.reduce<number>((total, law) => total + law!, 0));
  const largest = Math.max(...band.binades.map(({ largestError }) => largestError));
  return [
    bandName(band),
    formatGrouped(sum('inputs')),
    formatGrouped(sum('inexact')),
    byLaw,
    formatPowerOfTwo(largest),
    formatGrouped(sum('notFloor')),
    formatGrouped(sum('fractionIsOne')),
    formatPercentage(sum('nearestDiffers') / sum('inputs')),
  ];
}

/** The profile of the range reduction as text. */
export function rangeReductionText(profile: RangeReductionProfile): string[] {
  const { title, total, binades, effects } = profile;
  const headings = ['x', 'inputs', 'inexact', 'by law', 'largest', 'b ≠ ⌊x⌋', 'f = 1', 'add.rn ≠'];
  return [
    title,
    '',
    `  ${formatGrouped(total.inputs)} inputs; b + f ≠ x at ${formatGrouped(total.inexact)}, by ${formatDigits(total.largestError, 9)} = ${formatPowerOfTwo(total.largestError)} at most; f = 1 at ${formatGrouped(total.fractionIsOne)}.`,
    '',
    'Law: b + f = x but for negative normal x that are no multiple of 2^-24; those lie in (-1/2, 0),',
    'where f = 1 - |x| lies above 1/2 and fp32 holds multiples of 2^-24 only. A subnormal x < 0 counts',
    `as 0: b = 0 and f = x < 0. Inputs that contradict the law: ${formatGrouped(total.lawBroken)}.`,
    `f outside [0, 1]: ${formatGrouped(total.fractionOutside)} inputs, b ≠ ⌊x⌋: ${formatGrouped(total.notFloor)} inputs.`,
    '',
    ...alignColumns([headings, ...bandsOf(binades).map(bandRow)], terminalWidth),
    '',
    '"add.rn ≠": inputs with another b when the addition rounds to nearest even. The fraction then lies in',
    '[-1/2, 1/2], where the polynomials are not meant to be used:',
    '',
    ...alignColumns(
      [
        ['', 'p(1)/2 - 1', 'largest error on [0, 1]', 'on [-1/2, 1/2]'],
        ...effects.map(({ degree, errorAtOne, largestError, largestErrorNearest }) => [
          `degree ${degree}`,
          formatDigits(errorAtOne, 6),
          formatDigits(largestError, 6),
          formatDigits(largestErrorNearest, 6),
        ]),
      ],
      terminalWidth,
    ),
    '',
  ];
}
