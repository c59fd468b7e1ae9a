import { formatCosine, formatNumber, formatUse } from '../../words/index.js';
import type { Baselines, ElementTest, ErrorProfile, OutputDifference } from '../../audit/index.js';
import {
  fromReported,
  type JudgedReport,
  mainOutput,
  type ReportedComparison,
} from '../json/index.js';
import { differenceSections } from '../text/index.js';
import { type Cell, element, type Html, join } from '../layout/index.js';
import { dataTable, figure, figures, sectionTable } from './figure.js';
import type { Drawing } from './drawing.js';
import { drawHeatMap, heatTable } from './heat-map.js';
import type { PlotData } from './plot-data.js';
import { drawUlpHistogram, histogramAxes, ulpTable } from './ulp-histogram.js';

/** Another output of the same problem, judged like the first. */
export interface ComparedOutput {
  readonly name: string;
  readonly report: JudgedReport;
  /** Plots with one heat map of all heads. */
  readonly plots: PlotData;
  /** The difference from the first output; null for the first. */
  readonly difference: OutputDifference | null;
}

function comparisonRow({ name, report }: ComparedOutput): Cell[] {
  const { absolute, ulps, slope } = fromReported<ErrorProfile>(mainOutput(report).error);
  const elements = fromReported<ElementTest>(mainOutput(report).elements);
  const { allclose, flashAttention, cosine } = fromReported<Baselines>(report.baselines);
  const word = (ok: boolean) => (ok ? 'pass' : 'fail');
  const share = formatUse(elements.worstRatio);
  return [
    name,
    elements.worstRatio > 1 ? { text: share, tone: 'failure' } : share,
    ...[absolute.max, absolute.rms, absolute.mean, ulps.max].map(formatNumber),
    slope === null ? '' : slope.toFixed(6),
    formatCosine(cosine.similarity),
    report.verdict.pass ? 'PASS' : { text: report.verdict.status, tone: 'failure' },
    word(allclose.pass),
    word(flashAttention.pass),
  ];
}

/**
 * The outputs as a table, the difference of each from the first, and for each the places and sizes of its
 * errors in ulps, on the same axes.
 */
export function comparisonContent(
  drawing: Drawing,
  outputs: readonly ComparedOutput[],
  comparison: ReportedComparison | null,
): Html {
  const axes = histogramAxes(outputs.map(({ plots }) => plots.ulps));
  const table = dataTable({
    caption: `Outputs of the same problem, each judged by the bounds of ${outputs[0].report.arithmetic}`,
    rows: [
      [
        ...['output', 'share of bound', 'largest error', 'rms', 'mean', 'ulps', 'slope', 'cosine'],
        ...['verdict', 'allclose 1e-2', "FlashAttention's rule"],
      ],
      ...outputs.map(comparisonRow),
    ],
    numberColumns: 7,
  });
  const failures = outputs.filter(({ report }) => !report.verdict.pass);
  const multiples = outputs.map(({ name, report, plots }) => {
    const { format } = mainOutput(report);
    const worst = fromReported<ElementTest>(mainOutput(report).elements).worst;
    const [map] = plots.heat.maps;
    return element(
      'div',
      {},
      map === undefined
        ? ''
        : figure({
            title: `${name}: share of the bound`,
            caption: `The worst of all heads${map.largest > 1 ? '' : `; at most ${formatUse(map.largest)}`}.`,
            svg: drawHeatMap(
              drawing,
              plots.heat,
              map,
              worst === null ? null : { query: worst.at.query!, column: worst.at.column! },
            ),
            table: heatTable(plots.heat),
          }),
      figure({
        title: `${name}: ulps`,
        caption: 'Elements by their error; the axes are the same for all outputs.',
        svg: drawUlpHistogram(
          drawing,
          plots.ulps,
          {
            title: `Elements by their error in ulps, ${name}`,
            description: `The largest is ${formatNumber(fromReported<ErrorProfile>(mainOutput(report).error).ulps.max)} ulp.`,
          },
          { axes, format },
        ),
        table: ulpTable(plots.ulps, format),
      }),
    );
  });
  return join(
    table,
    failures.length === 0
      ? ''
      : element(
          'ul',
          {},
          failures.map(({ name, report }) =>
            element('li', {}, `${name}: ${report.verdict.sentence}`),
          ),
        ),
    ...(comparison === null ? [] : differenceSections(comparison)).map(({ title, section }) =>
      sectionTable(title, section),
    ),
    figures(...multiples),
  );
}
