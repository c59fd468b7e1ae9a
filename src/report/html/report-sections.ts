import type { TechniqueTable } from '../../attribution/index.js';
import { formatNumber, formatShare } from '../../words/index.js';
import type { ElementTest, ErrorProfile } from '../../audit/index.js';
import { fromReported, type JudgedReport, mainOutput, numbersOf } from '../json/index.js';
import {
  errorSections,
  techniqueNotes,
  techniqueSections,
  usualChecksSection,
} from '../text/index.js';
import { dataTable, definitions, figure, figures, sectionTable } from './figure.js';
import type { Drawing } from './drawing.js';
import { heatFigure, heatLegend, heatTable } from './heat-map.js';
import { element, join, type Html } from '../layout/index.js';
import type { PlotData } from './plot-data.js';
import { rowScatterFigure } from './row-scatter.js';
import { drawTechniqueBars } from './technique-bars.js';
import { drawUlpHistogram, histogramAxes, ulpTable } from './ulp-histogram.js';

/** The error that each technique may cause, and the error that it causes. */
export function techniquesContent(drawing: Drawing, { techniques }: JudgedReport): Html {
  if (techniques === null)
    return element('p', {}, 'The table of techniques was left out (--no-techniques).');
  const table = fromReported<TechniqueTable>(techniques);
  const isMeasured = table.kernel !== null;
  const swatch = (name: string) =>
    element(
      'svg',
      { width: 16, height: 16, viewBox: '0 0 16 16', 'aria-hidden': 'true', class: 'swatch' },
      element('rect', { width: 16, height: 16, class: name }),
    );
  const legend = element(
    'ul',
    { class: 'legend', 'aria-label': 'Colours of the bars' },
    element('li', {}, swatch('bound'), 'allowed: the largest bound of an element'),
    isMeasured
      ? element('li', {}, swatch('found'), 'found: the largest error with this technique alone')
      : '',
    element(
      'li',
      {},
      isMeasured
        ? 'at the right: the largest share of its own bound that an element uses'
        : 'at the right: the bound',
    ),
  );
  const [output, lse] = techniqueSections(table);
  return join(
    element('p', { class: 'note' }, techniqueNotes(table)),
    element(
      'div',
      { class: 'figures wide' },
      figure({
        title: 'In the output',
        caption: "In the output's unit, on a logarithmic scale.",
        svg: join(drawTechniqueBars(drawing, table), legend),
        table: null,
      }),
      element(
        'div',
        {},
        sectionTable('In the output', output!),
        lse!.rows.length > 1 ? sectionTable('In the LSE', lse!) : '',
      ),
    ),
  );
}

/** The head of the worst element, counted over [batch, heads]; null where no element is finite. */
export function worstHeadOf(report: JudgedReport, { heads }: PlotData['heat']): number | null {
  const { worst } = fromReported<ElementTest>(mainOutput(report).elements);
  return worst === null ? null : worst.at.batch * heads + worst.at.head;
}

/** The places of the errors. */
export function heatContent(drawing: Drawing, report: JudgedReport, { heat }: PlotData): Html {
  const { worst } = fromReported<ElementTest>(mainOutput(report).elements);
  if (heat.maps.length === 0) return element('p', {}, 'The output has no elements.');
  const worstHead = worstHeadOf(report, heat);
  const anySpecial = heat.maps.some(({ special }) => special.includes(1));
  const shown =
    heat.leftOut > 0
      ? ` The ${heat.maps.length} heads with the largest shares are shown; ${heat.leftOut} others stay below.`
      : '';
  const maps = heat.maps.map((map) =>
    heatFigure(
      drawing,
      heat,
      map,
      worst !== null && map.head === worstHead
        ? { query: worst.at.query!, column: worst.at.column! }
        : null,
    ),
  );
  return join(
    element(
      'p',
      {},
      `The share of its bound that each element's error uses. Lines outline tiles of 128 queries and columns.${shown}`,
    ),
    heatLegend(anySpecial),
    heat.maps.length === 1
      ? element('div', { class: 'figures wide' }, maps, dataTable(heatTable(heat)))
      : figures(...maps),
  );
}

/** The errors of the rows. */
export function rowsContent(drawing: Drawing, { scatters }: PlotData): Html {
  return join(
    element('p', {}, "The largest error of each row, in the output's unit, against its weights."),
    figures(...scatters.map((scatter) => rowScatterFigure(drawing, scatter))),
  );
}

/** The sizes of the errors. */
export function ulpsContent(drawing: Drawing, report: JudgedReport, { ulps }: PlotData): Html {
  const { format } = mainOutput(report);
  const [error, notes, ...others] = errorSections(report);
  const { ulps: measured } = fromReported<ErrorProfile>(mainOutput(report).error);
  return element(
    'div',
    { class: 'figures wide' },
    figure({
      title: `Elements by their error in ulps of ${format}`,
      caption:
        'An ulp is taken at the oracle’s value, or at the root mean square of its row where that is larger.',
      svg: drawUlpHistogram(
        drawing,
        ulps,
        {
          title: `Elements by their error in ulps of ${format}`,
          description: `Median ${formatNumber(measured.percentiles.p50)}, largest ${formatNumber(measured.max)} ulp.`,
        },
        { axes: histogramAxes([ulps]), format, width: 480 },
      ),
      table: ulpTable(ulps, format),
    }),
    element(
      'div',
      {},
      sectionTable('Error', error),
      dataTable({
        caption: 'In words',
        rows: [[], ...notes.rows],
        numberColumns: 0,
      }),
      others.map((section) => sectionTable('Error', section)),
    ),
  );
}

/** The verdicts of the usual checks on the output. */
export function usualContent(report: JudgedReport): Html {
  return join(
    element('p', {}, 'What others would have said. None of it takes part in the verdict.'),
    sectionTable('Usual checks', usualChecksSection(report)),
  );
}

/** The numbers that readers ask for first. */
export function figuresOfMerit(report: JudgedReport): Html {
  const elements = fromReported<ElementTest>(mainOutput(report).elements);
  const { absolute, ulps } = fromReported<ErrorProfile>(mainOutput(report).error);
  const { format } = mainOutput(report);
  const figure = (name: string, value: number, shown = formatNumber(value)) =>
    [name, element('data', { value }, shown)] as const;
  return definitions('figures-of-merit', [
    figure('largest share of a bound', elements.worstRatio, formatShare(elements.worstRatio)),
    figure('elements beyond their bound', elements.outside, String(elements.outside)),
    figure('largest error', absolute.max),
    figure('root mean square error', absolute.rms),
    // A larger number of them says no more than the error itself.
    ...(ulps.max > 100 ? [] : [figure(`largest error, ulps of ${format}`, ulps.max)]),
    ...numbersOf(report).map(({ prose, numbers }) =>
      figure(`largest error of ${prose}`, fromReported<number>(numbers.max)),
    ),
  ]);
}
