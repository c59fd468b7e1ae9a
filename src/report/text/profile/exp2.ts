import type { DomainReport, Exp2Profile, MinimaxComparison } from '../../../profile/index.js';
import { breaksText, cornersText, worstInputsText } from './inputs.js';
import { type DomainStyle, domainText, shortDomainText } from './domain.js';
import { headText, terminalWidth } from './head.js';
import {
  formatCertainDigits,
  formatDigits,
  formatGrouped,
  formatPercentage,
} from '../../../words/index.js';
import { alignColumns, alignTextColumns } from '../../layout/index.js';

/** Number of domains that are shown in full; the others only with their largest errors. */
const fullDomains = 2;

/** The figures that readers ask for most, in sentences. */
function headline({ domains: [softmax], reference }: Exp2Profile): string[] {
  const degree3 = softmax?.functions.find(({ name }) => name === 'degree 3');
  if (softmax === undefined || degree3 === undefined) return [];
  const [fp32, bf16] = degree3.measures;
  const [everyNumber, uniform] = bf16.averages;
  const figure = formatCertainDigits(fp32.largest[0]?.error ?? 0, reference.certainty);
  return [
    `Degree 3 in fp32, ${softmax.label}: largest relative error ${figure}.`,
    `Degree 3 in bf16, ${softmax.label}: differs from ${softmax.functions[0].name} at ${formatGrouped(bf16.differing)} of ${formatGrouped(softmax.inputs)} inputs, ${formatPercentage(everyNumber.differing)} of the fp32 numbers, ${formatPercentage(uniform.differing)} of x.`,
    '',
  ];
}

function examples(domain: DomainReport): string[] {
  return [...worstInputsText(domain), ...breaksText(domain)];
}

/** The profile of exp2 as text. */
export function exp2Text(profile: Exp2Profile): string[] {
  const style: DomainStyle = {
    reference: profile.reference,
    baseline: profile.functions[0].name,
    shares: 'correctness',
    variable: 'x',
  };
  const { domains, corners, integers, minimax } = profile;
  return [
    ...headText(profile),
    ...headline(profile),
    ...domains.slice(0, fullDomains).flatMap((domain) => domainText(domain, style)),
    ...domains.slice(fullDomains).flatMap((domain) => shortDomainText(domain, style)),
    ...domains.slice(0, fullDomains).flatMap(examples),
    ...cornersText(corners),
    'Integers from -126 to 127',
    '',
    ...alignTextColumns(
      integers.map(({ name, integers: all, exact }) => [name, `exact at ${exact} of ${all}`]),
      terminalWidth,
    ),
    '',
    ...minimaxText(minimax),
  ];
}

/** Bound on the error of the fp64 evaluation of the polynomials' errors. */
const certainty = 2 ** -49;

function exactFigure(value: number): string {
  return formatCertainDigits(value, certainty);
}

/** Distance of the polynomials from the best ones, and their part of the fp32 error. */
function minimaxText(comparisons: readonly MinimaxComparison[]): string[] {
  const rows = comparisons.map(({ degree, best, bestFree, largestError, excess }) => [
    `degree ${degree}`,
    exactFigure(Math.abs(largestError.error)),
    exactFigure(best.largestError),
    exactFigure(best.lowerBound),
    String(best.alternation.length),
    `${formatDigits(100 * excess, 3)} %`,
    exactFigure(bestFree.largestError),
    exactFigure(bestFree.lowerBound),
  ]);
  const shares = comparisons
    .filter(({ float32Error }) => float32Error !== null)
    .map(({ degree, largestError, float32Error, rounding }) => [
      `degree ${degree}`,
      formatCertainDigits(float32Error, 2 ** -51),
      exactFigure(Math.abs(largestError.error)),
      formatDigits(rounding),
      formatPercentage(rounding! / float32Error!),
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
