import { formatCount, formatNumber } from '../../words/index.js';
import { decadeDomain, decadeLabel, decades, type Drawing } from './drawing.js';
import { type DataTable, figure } from './figure.js';
import { element, type Html } from '../layout/index.js';
import type { RowGroup, RowPoint, RowScatter } from './row-scatter-data.js';

interface Words {
  readonly title: string;
  readonly axis: string;
  readonly meaning: string;
}

const words: Readonly<Record<RowScatter['name'], Words>> = {
  lag: {
    title: 'Lag of the maximum',
    axis: 'lag of the maximum (log2)',
    meaning:
      'How far the maximum in use is below the largest exponent of the row when the last block is done, since rescales were skipped.',
  },
  'largest weight': {
    title: 'Largest weight',
    axis: 'largest weight (log2)',
    meaning: 'The largest weight of the row: 0 is a single key with all of it.',
  },
  entropy: {
    title: 'Entropy of the weights',
    axis: 'entropy (bits)',
    meaning: '0 bits is one key with all the weight; n bits is as if 2ⁿ keys shared it evenly.',
  },
  'visible keys': {
    title: 'Visible keys',
    axis: 'visible keys',
    meaning: 'How many keys the masks leave to the row.',
  },
};

/** Part of the largest error below which errors of rows would take the room of all others. */
const shownRange = 1e-5;

function scatterTable({ name, groups }: RowScatter): DataTable {
  return {
    caption: `Largest error of a row by ${words[name].axis}`,
    rows: [
      [words[name].axis, 'rows', 'median', 'largest'],
      ...groups.map(({ low, high, rows, medianError, largestError }) => [
        low === high ? formatNumber(low) : `${formatNumber(low)} to ${formatNumber(high)}`,
        String(rows),
        formatNumber(medianError),
        formatNumber(largestError),
      ]),
    ],
    numberColumns: 3,
  };
}

/** In place of a plot: no row has a point, or all have the same. */
function scatterNote({ name }: RowScatter, first: RowGroup | undefined): Html {
  const { title, axis } = words[name];
  const text =
    first === undefined
      ? 'No row has weights and a finite error.'
      : `Every row has the same: ${axis} ${formatNumber(first.low)}. The largest error of a row is ${formatNumber(first.medianError)} in the median, ${formatNumber(first.largestError)} at most.`;
  return element('div', { class: 'figure-note' }, element('h3', {}, title), element('p', {}, text));
}

/** The points and medians of a scatter that are drawn, and the range of their errors. */
interface DrawnScatter {
  readonly domain: readonly [number, number];
  readonly points: readonly RowPoint[];
  readonly medians: readonly RowGroup[];
}

function drawnScatter({ points, groups }: RowScatter): DrawnScatter {
  const positive = points.filter(({ error }) => error > 0);
  const [low, high] = decadeDomain(positive.map(({ error }) => error));
  const domain = [Math.max(low, high * shownRange), high] as const;
  return {
    domain,
    points: positive.filter(({ error }) => error >= domain[0]),
    medians: groups.filter(({ medianError }) => medianError >= domain[0]),
  };
}

function scatterCaption({ name, rows, points }: RowScatter, drawn: DrawnScatter): string {
  const notDrawn = points.length - drawn.points.length;
  return [
    words[name].meaning,
    points.length < rows
      ? `${formatCount(points.length, 'row')} of ${rows} drawn, those that err most among them.`
      : `${formatCount(rows, 'row')}.`,
    ...(notDrawn > 0
      ? [
          `${formatCount(notDrawn, 'row')} with less than ${decadeLabel(drawn.domain[0])} not drawn.`,
        ]
      : []),
    'The line joins medians.',
  ].join(' ');
}

/** The axes of a scatter, and the room around them. */
function scatterFrame(axis: string, domain: DrawnScatter['domain']) {
  return {
    width: 360,
    height: 270,
    marginLeft: 48,
    marginRight: 14,
    marginTop: 26,
    marginBottom: 40,
    x: {
      label: axis,
      labelAnchor: 'center',
      labelArrow: 'none',
      ticks: 5,
      tickFormat: formatNumber,
    },
    y: {
      type: 'log',
      domain,
      label: 'largest error of the row (log)',
      labelArrow: 'none',
      ticks: decades(...domain, 5),
      tickFormat: decadeLabel,
    },
  } as const;
}

/** The error of rows against a statistic, with the medians of groups of rows as a line. */
export function rowScatterFigure({ plot, svg }: Drawing, scatter: RowScatter): Html {
  const { name, groups } = scatter;
  const { title, axis } = words[name];
  const [first, last] = [groups[0], groups.at(-1)];
  const alike = first !== undefined && first.low === last!.high;
  if (first === undefined || alike) return scatterNote(scatter, first);
  const largest = Math.max(...groups.map(({ largestError }) => largestError));
  const drawn = drawnScatter(scatter);
  const { domain, points, medians } = drawn;
  return figure({
    title,
    caption: scatterCaption(scatter, drawn),
    table: scatterTable(scatter),
    svg: svg(
      {
        title: `Largest error of each row against ${axis}`,
        description: `${axis} from ${formatNumber(first.low)} to ${formatNumber(last!.high)}; errors up to ${formatNumber(largest)}.`,
      },
      {
        ...scatterFrame(axis, domain),
        marks: [
          plot.gridY(decades(...domain, 5), { stroke: 'var(--line)', strokeOpacity: 1 }),
          plot.dot(points, {
            x: (point: RowPoint) => point.x,
            y: (point: RowPoint) => point.error,
            r: 2,
            fill: 'var(--found)',
            fillOpacity: 0.55,
          }),
          plot.line(medians, {
            x: (group: RowGroup) => (group.low + group.high) / 2,
            y: (group: RowGroup) => group.medianError,
            stroke: 'currentColor',
            strokeWidth: 2,
          }),
        ],
      },
    ),
  });
}
