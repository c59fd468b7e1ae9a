import type { MinimaxComparison } from '../techniques/exp2-minimax.js';
import { certainDigits, digits, percentage } from './numbers.js';
import { alignColumns } from '../../align-columns.js';
import { terminalWidth } from './terminal-width.js';

/** What the fp64 evaluation of the polynomials' errors may be off by. */
const certainty = 2 ** -49;

function exactFigure(value: number): string {
  return certainDigits(value, certainty);
}

/** How near the polynomials are to the best ones, and what of the fp32 error is theirs. */
export function minimaxText(comparisons: readonly MinimaxComparison[]): string[] {
  const rows = comparisons.map(({ degree, best, bestFree, largestError, excess }) => [
    `degree ${degree}`,
    exactFigure(Math.abs(largestError.error)),
    exactFigure(best.largestError),
    exactFigure(best.lowerBound),
    String(best.alternation.length),
    `${digits(100 * excess, 3)} %`,
    exactFigure(bestFree.largestError),
    exactFigure(bestFree.lowerBound),
  ]);
  const shares = comparisons
    .filter(({ float32Error }) => float32Error !== null)
    .map(({ degree, largestError, float32Error, rounding }) => [
      `degree ${degree}`,
      certainDigits(float32Error, 2 ** -51),
      exactFigure(Math.abs(largestError.error)),
      digits(rounding),
      percentage(rounding! / float32Error!),
    ]);
  return [
    'The polynomials in exact arithmetic, largest relative error on [0, 1]',
    '',
    ...alignColumns(
      [
        [
          '',
          'FlashAttention-4',
          'best, c0 = 1',
          'no better than',
          'alternations',
          'excess',
          'best, c0 free',
          'no better than',
        ],
        ...rows,
      ],
      terminalWidth,
    ),
    '',
    ...(shares.length === 0
      ? []
      : [
          'What of the largest error in fp32 is the polynomial and what is rounding',
          '',
          ...alignColumns(
            [['', 'fp32', 'polynomial', 'rounding adds', 'of the whole'], ...shares],
            terminalWidth,
          ),
          '',
        ]),
  ];
}
