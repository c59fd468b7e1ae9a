import type { TechniqueTable } from '../../attribution/index.js';
import { formatNumber } from '../../words/index.js';
import { decadeLabel, decades, type Drawing } from './drawing.js';
import type { Html } from '../layout/index.js';

/** Ratio to the longest bar below which bars would only push the others together. */
const shownRange = 1e-8;

/**
 * A bar per technique on a logarithmic scale: the error that it may cause in the worst element, and
 * within it the measured error, where there is one, with the largest share of its own bound that an
 * element uses.
 */
export function drawTechniqueBars({ plot, svg }: Drawing, table: TechniqueTable): Html {
  const lines = [...table.techniques, table.total].map(({ technique, bound, measured }) => ({
    technique,
    bound: bound.max,
    found: measured?.max ?? 0,
    share:
      measured === null
        ? formatNumber(bound.max)
        : measured.max === 0
          ? '–'
          : `${Math.round(100 * measured.used)} %`,
  }));
  const positive = lines
    .flatMap(({ bound, found }) => [bound, found])
    .filter((value) => value > 0 && value < Infinity);
  const high = Math.max(...positive, Number.MIN_VALUE * 2 ** 60);
  const low = Math.max(Math.min(...positive, high) / 3, high * shownRange);
  const within = (value: number) => value > low;
  const isMeasured = table.kernel !== null;
  const bar = (of: 'bound' | 'found', inset: number, fill: string) =>
    plot.barX(
      lines.filter((line) => within(line[of])),
      {
        x1: low,
        x2: (line: (typeof lines)[number]) => Math.min(line[of], high),
        y: 'technique',
        insetTop: inset,
        insetBottom: inset,
        fill,
      },
    );
  const described = lines
    .map(({ technique, bound, found, share }) =>
      isMeasured
        ? `${technique} ${formatNumber(found)} of ${formatNumber(bound)} (${share})`
        : `${technique} ${formatNumber(bound)}`,
    )
    .join('; ');
  return svg(
    {
      title: isMeasured
        ? 'What each technique may do to the worst element, and what it does'
        : 'What each technique may do to the worst element',
      description: `In the output's unit: ${described}.`,
    },
    {
      width: 480,
      height: 52 + 24 * lines.length,
      marginLeft: 108,
      marginRight: 64,
      marginTop: 8,
      marginBottom: 40,
      x: {
        type: 'log',
        domain: [low, high],
        label: "error in the output's unit (log)",
        labelAnchor: 'center',
        labelArrow: 'none',
        ticks: decades(low, high),
        tickFormat: decadeLabel,
      },
      y: { domain: lines.map(({ technique }) => technique), label: null, padding: 0.25 },
      marks: [
        plot.gridX(decades(low, high), { stroke: 'var(--line)', strokeOpacity: 1 }),
        bar('bound', 0, 'var(--bound)'),
        bar('found', 4.5, 'var(--found)'),
        plot.text(lines, {
          x: high,
          y: 'technique',
          text: 'share',
          textAnchor: 'start',
          dx: 6,
          fill: 'currentColor',
        }),
      ],
    },
  );
}
