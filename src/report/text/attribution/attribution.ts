import { formatScientific, formatTenths } from '../../../words/index.js';
import type { ProblemShape } from '../../../problem/index.js';
import { alignColumns } from '../../layout/index.js';
import type {
  Attribution,
  ErrorMeasure,
  LseMeasure,
  TechniquePart,
} from '../../../attribution/index.js';

/** Number of columns up to which settings share a line. */
const lineLength = 100;

function signed(x: number): string {
  return x > 0 ? `+${formatScientific(x)}` : formatScientific(x);
}

function percent(share: number): string {
  return `${formatTenths(share)} %`;
}

function place({ worst }: ErrorMeasure, shape: ProblemShape): string {
  if (worst === null) return '';
  const { batch, head, query, column } = worst;
  return `[${[...(shape.batch > 1 ? [batch] : []), head, query, column].join(', ')}]`;
}

/** A number of ulps with two digits, more before the point; elements near zero may be off by many of their ulps. */
function ulpCount(x: number): string {
  return x >= 100 ? x.toFixed(0) : x.toPrecision(2);
}

/** The cells of an error, and of the LSE's where there is one, as `errorHeads` names them. */
function errorCells(
  error: ErrorMeasure,
  { shape, largestOutput }: Attribution,
  lse: LseMeasure | null,
): string[] {
  return [
    formatScientific(error.absolute.max / (largestOutput || 1)),
    formatScientific(error.relative.max),
    formatScientific(error.relative.rms),
    signed(error.relative.mean),
    signed(error.outward),
    ulpCount(error.ulps.max),
    ulpCount(error.ulps.rms),
    lse === null ? '' : formatScientific(lse.max),
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
  'LSE max',
  'worst at',
];

function partCells(part: TechniquePart | null): string[] {
  if (part === null) return [];
  const { share, shareAlone, last, without } = part;
  return [
    percent(share),
    percent(shareAlone),
    formatScientific(last.relative.max),
    formatScientific(last.relative.rms),
    formatScientific(without.relative.max),
    formatScientific(without.relative.rms),
  ];
}

/** The parts of all techniques in an error, and the remaining interaction. */
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

function heading({ kernel, shape, outputFormat, total, lse }: Attribution): string {
  const { batch, heads, queries, keys, qkDim, vDim } = shape;
  const left = [
    total.nonFinite === 0 ? '' : `, ${total.nonFinite} not finite and left out`,
    lse.total.nonFinite === 0 ? '' : `, ${lse.total.nonFinite} LSEs likewise`,
  ];
  return (
    `${kernel} to ${outputFormat}, queries [${batch}, ${heads}, ${queries}, ${qkDim}], ` +
    `${keys} keys of ${vDim}: ${total.elements} elements${left.join('')}`
  );
}

/** The settings, as many to a line as fit. */
function settingLines({ settings }: Attribution): string[] {
  const lines: string[] = [];
  for (const [key, value] of Object.entries(settings)) {
    const text = `${key}=${value}`;
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + text.length <= lineLength)
      lines[lines.length - 1] = `${last} ${text}`;
    else lines.push(`  ${text}`);
  }
  return lines;
}

function lagLines({ lag }: Attribution): string[] {
  if (lag === null) return [];
  if (lag.lagging === 0)
    return ['', 'No maximum lags: the largest weight of every row is 2^offset.'];
  return [
    '',
    `The maximum lags in ${lag.lagging} of ${lag.rows} rows, ` +
      `by 2^${lag.mean.toFixed(2)} on average and 2^${lag.max.toFixed(2)} at most.`,
  ];
}

/** The errors of techniques alone and of all together, with the parts of `p-round` below it. */
function errorTable(attribution: Attribution): string[] {
  const { techniques, weightRounding, lse } = attribution;
  const row = (name: string, error: ErrorMeasure, ofLse: LseMeasure | null = null): string[] => [
    name,
    ...errorCells(error, attribution, ofLse),
  ];
  const parts =
    weightRounding === null
      ? []
      : [
          row('  largest weight', weightRounding.largestWeight),
          row('  other weights', weightRounding.otherWeights),
        ];
  return alignColumns([
    ['', ...errorHeads],
    ...techniques.flatMap(({ technique, alone, lse: ofLse }) => [
      row(technique, alone, ofLse),
      ...(technique === 'p-round' ? parts : []),
    ]),
    row('everything', attribution.total, lse.total),
    ...(weightRounding === null
      ? []
      : [row('  largest unrounded', weightRounding.largestUnrounded)]),
    row('before output-round', attribution.beforeRounding),
    row('nothing', attribution.exact, lse.exact),
  ]);
}

/** An attribution as plain text, some fifty lines without a final line end. */
export function renderAttribution(attribution: Attribution): string {
  return [
    heading(attribution),
    ...settingLines(attribution),
    '',
    'Error of each technique alone: its maximum relative to max |O|, then in units of Σ p|v|, then in',
    'ulps of the output; the largest of the LSE in natural logarithm',
    ...errorTable(attribution),
    '',
    'Parts of the whole error: share of Σ error² when added in this order and when alone, what adding',
    'it last changes, what is left without it',
    ...partTable(attribution, 'whole'),
    '',
    'The same of the error before output-round',
    ...partTable(attribution, 'beforeRounding'),
    ...lagLines(attribution),
  ].join('\n');
}

/** The error that a table shares out, and the way: added in the order of the kernel, or each alone. */
export interface ShareChoice {
  readonly error: 'whole' | 'beforeRounding';
  readonly share: 'share' | 'shareAlone';
}

function percentage(share: number | undefined): string {
  return share === undefined ? '' : formatTenths(share);
}

/**
 * A share of every technique on several problems, in per cent, as plain text: a line for each
 * problem, with its error (RMS in units of Σ p|v|) and its largest error in ulps before the shares,
 * and the interaction after shares of techniques alone. A technique that a kernel does not have, or that
 * has no part in the error, is left blank.
 */
export function renderShares(
  attributions: readonly (readonly [name: string, attribution: Attribution])[],
  { error, share }: ShareChoice,
): string {
  const names = new Set(
    attributions.flatMap(([, { techniques }]) => techniques.map(({ technique }) => technique)),
  );
  const isAlone = share === 'shareAlone';
  const rows = attributions.map(([name, attribution]) => {
    const { relative, ulps } = error === 'whole' ? attribution.total : attribution.beforeRounding;
    return [
      name,
      relative.rms.toExponential(1),
      ulps.max.toExponential(1),
      ...[...names].map((name) => {
        const part = attribution.techniques.find(({ technique }) => technique === name);
        return percentage(part?.[error]?.[share]);
      }),
      ...(isAlone ? [percentage(attribution.interaction[error])] : []),
    ];
  });
  const heads = ['', 'RMS', 'max ulp', ...names, ...(isAlone ? ['interaction'] : [])];
  return alignColumns([heads, ...rows]).join('\n');
}
