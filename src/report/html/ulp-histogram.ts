import { createUlpScale, type JudgedElements } from '../../audit/index.js';
import {
  decadeDomain,
  decadeLabel,
  decades,
  type Drawing,
  octaveLabel,
  octaves,
  type PlotLabel,
} from './drawing.js';
import type { DataTable } from './figure.js';
import type { Html } from '../layout/index.js';

/** Elements whose error in ulps of the output format is above `low` and at most `high`. */
interface UlpBin {
  readonly low: number;
  readonly high: number;
  readonly count: number;
}

/** Number of elements by their error in ulps, over the elements finite in output and oracle. */
export interface UlpHistogram {
  /** Number of elements whose output is the exact value, which a format represents only by chance. */
  readonly exact: number;
  /** Bins of half an octave each, except the first, which begins at 0; none beyond the largest error. */
  readonly bins: readonly UlpBin[];
}

/** Upper ends of the first and the last bin, in half octaves: errors below the first are not distinguished. */
const [lowest, highest] = [-16, 2 * 1100];

/** Counts errors in ulps of the output format, as the error profile measures them. */
export function createUlpHistogram({
  reference,
  outputs,
}: Pick<JudgedElements, 'reference' | 'outputs'>): UlpHistogram {
  const { values: out, format } = outputs.out;
  const { out: exactOut } = reference.quantities;
  const ulpAt = createUlpScale(exactOut.values, reference.shape.vDim, format);
  const counts = new Float64Array(highest - lowest + 1);
  let exact = 0;
  let last = -1;
  for (let i = 0; i < out.length; i++) {
    const size = Math.abs(out[i] - exactOut.values[i]);
    if (!Number.isFinite(size)) continue;
    if (size === 0) {
      exact++;
      continue;
    }
    const ulps = size / ulpAt(i);
    const octaves = Math.ceil(2 * Math.log2(ulps));
    const bin = Math.min(Math.max(octaves, lowest), highest) - lowest;
    counts[bin]++;
    last = Math.max(last, bin);
  }
  const bins = Array.from({ length: last + 1 }, (_, bin) => ({
    low: bin === 0 ? 0 : 2 ** ((bin + lowest - 1) / 2),
    high: 2 ** ((bin + lowest) / 2),
    count: counts[bin],
  }));
  return { exact, bins };
}

/** The axes that several histograms side by side share. */
interface HistogramAxes {
  /** Exponents (base 2) of the errors. */
  readonly octaves: readonly [number, number];
  readonly largestCount: number;
}

/** Options for drawing a histogram. */
interface HistogramOptions {
  readonly axes: HistogramAxes;
  /** The format whose ulps are counted. */
  readonly format: string;
  /** Width in pixels; default 360. */
  readonly width?: number;
}

/** The ends of a bin as exponents; the first bin, which begins at 0, gets the width of the others. */
function span({ low, high }: UlpBin): readonly [number, number] {
  const end = Math.log2(high);
  return [low === 0 ? end - 0.5 : Math.log2(low), end];
}

/** Axes that fit all of the histograms. */
export function histogramAxes(histograms: readonly UlpHistogram[]): HistogramAxes {
  const filled = histograms.flatMap(({ bins }) => bins.filter(({ count }) => count > 0));
  const spans = filled.map(span);
  const low = Math.floor(Math.min(-2, ...spans.map(([begin]) => begin)));
  const high = Math.ceil(Math.max(0, ...spans.map(([, end]) => end)));
  return {
    octaves: [low, high],
    largestCount: Math.max(1, ...filled.map(({ count }) => count)),
  };
}

/** The axes of a histogram, and the room around them. */
function histogramFrame(
  { axes, format, width = 360 }: HistogramOptions,
  domain: readonly [number, number],
) {
  return {
    width,
    height: 250,
    marginLeft: 44,
    marginRight: 14,
    marginTop: 26,
    marginBottom: 40,
    x: {
      domain: axes.octaves,
      label: `error in ulps of ${format} (log)`,
      labelAnchor: 'center',
      labelArrow: 'none',
      ticks: octaves(...axes.octaves),
      tickFormat: octaveLabel,
    },
    y: {
      type: 'log',
      domain,
      label: 'elements (log)',
      labelArrow: 'none',
      ticks: decades(...domain, 5),
      tickFormat: decadeLabel,
    },
  } as const;
}

/** Draws counts on a logarithmic scale, with a line at half an ulp: the largest error of correct rounding. */
export function drawUlpHistogram(
  { plot, svg }: Drawing,
  { exact, bins }: UlpHistogram,
  label: PlotLabel,
  options: HistogramOptions,
): Html {
  const domain = [0.5, decadeDomain([1, options.axes.largestCount])[1]] as const;
  const filled = bins.filter(({ count }) => count > 0);
  return svg(
    {
      title: label.title,
      description: `${label.description}${exact > 0 ? ` ${exact} elements are exact and not drawn.` : ''}`,
    },
    {
      ...histogramFrame(options, domain),
      marks: [
        plot.gridY(decades(...domain, 5), { stroke: 'var(--line)', strokeOpacity: 1 }),
        plot.rect(filled, {
          x1: (bin: UlpBin) => span(bin)[0],
          x2: (bin: UlpBin) => span(bin)[1],
          y1: domain[0],
          y2: (bin: UlpBin) => bin.count,
          fill: 'var(--found)',
          insetLeft: 0.5,
          insetRight: 0.5,
        }),
        plot.ruleX([-1], { stroke: 'currentColor', strokeDasharray: '4 3' }),
        plot.text([{ x: -1 }], {
          x: 'x',
          frameAnchor: 'top',
          text: () => '½ ulp',
          dx: 4,
          dy: -14,
          textAnchor: 'start',
          fill: 'currentColor',
        }),
      ],
    },
  );
}

/** The counts by octave. */
export function ulpTable({ exact, bins }: UlpHistogram, format: string): DataTable {
  const rows = new Map<string, number>([['exact', exact]]);
  for (const bin of bins) {
    const octave = Math.ceil(Math.log2(bin.high));
    const name =
      bin.low === 0 || bin.high <= 2 ** -8
        ? `up to ${octaveLabel(-8)}`
        : `${octaveLabel(octave - 1)} to ${octaveLabel(octave)}`;
    rows.set(name, (rows.get(name) ?? 0) + bin.count);
  }
  return {
    caption: `Elements by their error in ulps of ${format}`,
    rows: [
      ['error in ulps', 'elements'],
      ...[...rows].map(([name, count]) => [name, String(count)]),
    ],
    numberColumns: 1,
  };
}
