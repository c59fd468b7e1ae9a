import type { ProblemShape } from '../problem.js';
import { alignColumns } from './align-columns.js';
import type { Attribution, TechniquePart } from './attribution.js';
import type { ErrorMeasure } from './error-measure.js';

/** Two digits: an error is no more exact than the sample of elements. */
function scientific(x: number): string {
  return x === 0 ? '0' : x.toExponential(1);
}

function signed(x: number): string {
  return x > 0 ? `+${scientific(x)}` : scientific(x);
}

function percent(share: number): string {
  const text = (100 * share).toFixed(1);
  return `${text === '-0.0' ? '0.0' : text} %`;
}

function place({ worst }: ErrorMeasure, shape: ProblemShape): string {
  if (worst === null) return '';
  const { batch, head, query, column } = worst;
  return `[${[...(shape.batch > 1 ? [batch] : []), head, query, column].join(', ')}]`;
}

/** Two digits, more before the point; elements near zero may be off by many of their ulps. */
function ulpCount(x: number): string {
  return x >= 100 ? x.toFixed(0) : x.toPrecision(2);
}

/** The cells of an error, as `errorHeads` names them. */
function errorCells(error: ErrorMeasure, { shape, largestOutput }: Attribution): string[] {
  return [
    scientific(error.absolute.max / (largestOutput || 1)),
    scientific(error.relative.max),
    scientific(error.relative.rms),
    signed(error.relative.mean),
    signed(error.outward),
    ulpCount(error.ulps.max),
    ulpCount(error.ulps.rms),
    place(error, shape),
  ];
}

const errorHeads = [
  'of max |O|',
  'max',
  'RMS',
  'mean',
  'outward',
  'max ulp',
  'RMS ulp',
  'worst at',
];

function partCells(part: TechniquePart | null): string[] {
  if (part === null) return [];
  const { share, shareAlone, last, without } = part;
  return [
    percent(share),
    percent(shareAlone),
    scientific(last.relative.max),
    scientific(last.relative.rms),
    scientific(without.relative.max),
    scientific(without.relative.rms),
  ];
}

/** The parts of all techniques in an error, and what is left to their interaction. */
function partTable(attribution: Attribution, error: 'whole' | 'beforeRounding'): string[] {
  return alignColumns([
    ['', 'share', 'alone', 'last max', 'RMS', 'left max', 'RMS'],
    ...attribution.techniques.flatMap((technique) => {
      const cells = partCells(technique[error]);
      return cells.length === 0 ? [] : [[technique.technique, ...cells]];
    }),
    ['interaction', '', percent(attribution.interaction[error])],
  ]);
}

function heading({ shape, outputFormat, configuration, total }: Attribution): string {
  const { batch, heads, queries, keys, qkDim, vDim } = shape;
  const { architecture, exp2, rescaleThreshold } = configuration;
  const split =
    exp2.frequency === 0
      ? 'exp2 by hardware only'
      : `exp2 by degree ${exp2.degree} in ${exp2.reserve} of ${exp2.frequency} columns`;
  const nonFinite = total.nonFinite === 0 ? '' : `, ${total.nonFinite} not finite and left out`;
  return (
    `fa4 (${architecture}, ${split}, rescale threshold ${rescaleThreshold}) on ${outputFormat} ` +
    `[${batch}, ${heads}, ${queries}, ${qkDim}], ${keys} keys of ${vDim}: ` +
    `${total.elements} elements${nonFinite}`
  );
}

function lagLine({ lag }: Attribution): string {
  if (lag.lagging === 0) return 'No maximum lags: the largest weight of every row is 2^offset.';
  return (
    `The maximum lags in ${lag.lagging} of ${lag.rows} rows, ` +
    `by 2^${lag.mean.toFixed(2)} on average and 2^${lag.max.toFixed(2)} at most.`
  );
}

/** An attribution as plain text, some fifty lines without an end of line. */
export function renderAttribution(attribution: Attribution): string {
  const { techniques, weightRounding } = attribution;
  const row = (name: string, error: ErrorMeasure): string[] => [
    name,
    ...errorCells(error, attribution),
  ];
  const rounding = techniques.map(({ technique, alone }) => row(technique, alone));
  const after = techniques.findIndex(({ technique }) => technique === 'p-round') + 1;
  rounding.splice(
    after,
    0,
    row('  largest weight', weightRounding.largestWeight),
    row('  other weights', weightRounding.otherWeights),
  );
  return [
    heading(attribution),
    '',
    'Error of each technique alone: its maximum relative to max |O|, then in units of Σ p|v|, then in',
    'ulps of the output',
    ...alignColumns([
      ['', ...errorHeads],
      ...rounding,
      row('everything', attribution.total),
      row('  largest unrounded', weightRounding.largestUnrounded),
      row('before output-round', attribution.beforeRounding),
      row('nothing', attribution.exact),
    ]),
    '',
    'Parts of the whole error: share of Σ error² when added in this order and when alone, what adding',
    'it last changes, what is left without it',
    ...partTable(attribution, 'whole'),
    '',
    'The same of the error before output-round',
    ...partTable(attribution, 'beforeRounding'),
    '',
    lagLine(attribution),
  ].join('\n');
}
