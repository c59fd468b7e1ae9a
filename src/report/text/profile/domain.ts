import {
  weightings,
  type Averages,
  type DomainReport,
  type FunctionReport,
  type HistogramBin,
  type MeasureReport,
  type ReferenceReport,
  type Weighting,
} from '../../../profile/index.js';
import {
  formatCertainDigits,
  formatDigits,
  formatGrouped,
  formatPercentage,
} from '../../../words/index.js';
import { alignColumns } from '../../layout/index.js';
import { terminalWidth } from './head.js';

/** The style in which a domain is shown. */
export interface DomainStyle {
  /** Bounds on the uncertainty of relative and absolute errors. */
  readonly reference: ReferenceReport;
  /** The baseline of the column of differences; null for none. */
  readonly baseline: string | null;
  /** The shares that are shown: of results that are not correctly rounded, or of those that underflow. */
  readonly shares: 'correctness' | 'underflow' | 'none';
  /** The input's letter. */
  readonly variable: 'x' | 'p';
}

/** Columns of a table: for each measure, or for each format where the measures do not matter. */
interface Columns {
  readonly per: 'measure' | 'format';
  /** Names that are appended to the measure's name, one for each text that `cells` gives. */
  readonly names: readonly string[];
  readonly cells: (measure: MeasureReport) => readonly string[];
}

/** The measures, or the first of those in the same format. */
function chosen({ measures }: FunctionReport, per: Columns['per']): readonly MeasureReport[] {
  if (per === 'measure') return measures;
  const formats = measures.map(({ rounding }) => rounding.format);
  return measures.filter(({ rounding }, m) => formats.indexOf(rounding.format) === m);
}

function columnNames(functions: readonly FunctionReport[], { per, names }: Columns): string[] {
  return chosen(functions[0], per).flatMap(({ rounding, error }) => {
    const isPlain = per === 'format' || error === 'relative';
    const measure = isPlain ? rounding.format : `${rounding.format} ${error}`;
    return names.map((name) => `${measure} ${name}`.trim());
  });
}

/** One row for each function. */
function byFunction({ functions }: DomainReport, heading: string, columns: Columns): string[] {
  const rows = functions.map((one) => [
    one.name,
    ...chosen(one, columns.per).flatMap(columns.cells),
  ]);
  return alignColumns([[heading, ...columnNames(functions, columns)], ...rows], terminalWidth);
}

function averagesOf(measure: MeasureReport, weighting: Weighting): Averages {
  return measure.averages.find((averages) => averages.weighting === weighting)!;
}

function largestTables(domain: DomainReport, { reference }: DomainStyle): string[] {
  const { certainty, absoluteCertainty } = reference;
  const largest = ({ largest: [worst], scaledInputs, error }: MeasureReport): string => {
    const offBy = error === 'absolute' ? (absoluteCertainty ?? certainty) : certainty;
    return scaledInputs === 0 ? '-' : formatCertainDigits(worst?.error ?? 0, offBy);
  };
  const ulps = ({ largestUlp: [worst], ulpInputs }: MeasureReport): string =>
    ulpInputs === 0 ? '-' : formatDigits(worst?.error ?? 0, 6);
  return [
    ...byFunction(domain, 'largest error', {
      per: 'measure',
      names: [''],
      cells: (measure) => [largest(measure)],
    }),
    '',
    ...byFunction(domain, 'largest, in ulps', {
      per: 'format',
      names: [''],
      cells: (measure) => [ulps(measure)],
    }),
    '',
  ];
}

function weightingName(weighting: Weighting, variable: string): string {
  return weighting === 'every number'
    ? 'every fp32 number counts once'
    : `each weighed by its ulp: ${variable} uniform`;
}

function meanTables(domain: DomainReport, { variable }: DomainStyle): string[] {
  return weightings.flatMap((weighting) => [
    `  ${weightingName(weighting, variable)}`,
    ...byFunction(domain, 'error', {
      per: 'measure',
      names: ['mean', 'rms'],
      cells: (measure) => {
        const { mean, rootMeanSquare } = averagesOf(measure, weighting);
        return [formatDigits(mean), formatDigits(rootMeanSquare)];
      },
    }),
    ...byFunction(domain, 'in ulps', {
      per: 'format',
      names: ['mean', 'rms'],
      cells: (measure) => {
        const { meanUlp, rootMeanSquareUlp } = averagesOf(measure, weighting);
        return [formatDigits(meanUlp), formatDigits(rootMeanSquareUlp)];
      },
    }),
    '',
  ]);
}

type ShareName = 'notCorrectlyRounded' | 'differing' | 'zeros' | 'subnormals';

const shareTables: Readonly<
  Record<DomainStyle['shares'], readonly (readonly [heading: string, key: ShareName])[]>
> = {
  correctness: [['not correctly rounded', 'notCorrectlyRounded']],
  underflow: [
    ['rounded to 0', 'zeros'],
    ['rounded to a subnormal', 'subnormals'],
  ],
  none: [],
};

function shareTable(
  domain: DomainReport,
  heading: string,
  key: ShareName,
  { variable }: DomainStyle,
): string[] {
  return byFunction(domain, heading, {
    per: 'format',
    names: ['numbers', variable],
    cells: (measure) =>
      weightings.map((weighting) => formatPercentage(averagesOf(measure, weighting)[key])),
  });
}

function differenceTables(domain: DomainReport, style: DomainStyle): string[] {
  const { baseline } = style;
  if (baseline === null) return [];
  return [
    ...shareTable(domain, `differs from ${baseline}`, 'differing', style),
    '',
    ...byFunction(domain, `inputs that differ, of ${formatGrouped(domain.inputs)}`, {
      per: 'format',
      names: [''],
      cells: ({ differing }) => [formatGrouped(differing)],
    }),
    '',
  ];
}

function domainHead({ label, inputs }: DomainReport): string[] {
  return [`${label}: ${formatGrouped(inputs)} inputs`, ''];
}

/** The figures of a domain: largest errors, means and shares by both weightings, a histogram. */
export function domainText(domain: DomainReport, style: DomainStyle): string[] {
  return [
    ...domainHead(domain),
    ...largestTables(domain, style),
    ...meanTables(domain, style),
    ...shareTables[style.shares].flatMap(([heading, key]) => [
      ...shareTable(domain, heading, key, style),
      '',
    ]),
    ...differenceTables(domain, style),
    ...histogramText(domain, style.variable),
  ];
}

/** Only the largest errors of a domain. */
export function shortDomainText(domain: DomainReport, style: DomainStyle): string[] {
  return [...domainHead(domain), ...largestTables(domain, style)];
}

/** Number of bins beyond which they are joined by octaves. */
const mostRows = 14;

function edge(ulps: number | null): string {
  return ulps === null ? '' : String(ulps);
}

/** Joins bins that begin in the same octave. */
function byOctave(bins: readonly HistogramBin[]): HistogramBin[] {
  const octaves = new Map<number, HistogramBin>();
  for (const bin of bins) {
    const octave = bin.from === 0 ? 0 : 2 ** Math.floor(Math.log2(bin.from));
    const known = octaves.get(octave);
    octaves.set(octave, {
      from: octave,
      to: octave === 0 ? bin.to : bin.to === null ? null : 2 * octave,
      inputs: bin.inputs + (known?.inputs ?? 0),
      shareUniform: bin.shareUniform + (known?.shareUniform ?? 0),
    });
  }
  return [...octaves.values()];
}

/** The histograms of |ulp error| in the first measure, side by side; the inputs are uniform in the variable. */
function histogramText({ functions }: DomainReport, variable: string): string[] {
  const all = functions.map(({ measures }: FunctionReport) => measures[0].histogram);
  const starts = (bins: readonly (readonly HistogramBin[])[]): number[] =>
    [...new Set(bins.flat().map(({ from }) => from))].sort((a, b) => a - b);
  const shown = starts(all).length > mostRows ? all.map(byOctave) : all;
  const { format } = functions[0].measures[0].rounding;
  const rows = starts(shown).map((from) => {
    const bins = shown.map((bins) => bins.find((bin) => bin.from === from));
    const to = bins.find((bin) => bin !== undefined)!.to;
    const name = to === null ? `from ${edge(from)}` : `${edge(from)} to ${edge(to)}`;
    return [name, ...bins.map((bin) => formatPercentage(bin?.shareUniform ?? 0))];
  });
  const heading = `|ulps|, ${format}, ${variable} uniform`;
  return [
    ...alignColumns([[heading, ...functions.map(({ name }) => name)], ...rows], terminalWidth),
    '',
  ];
}
