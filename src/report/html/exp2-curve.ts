import { formatNumber } from '../../words/index.js';
import type { Drawing } from './drawing.js';
import { figure } from './figure.js';
import type { Html } from '../layout/index.js';

/** Signed relative errors of 2^x at the inputs of a narrow range around x. */
interface Exp2ErrorRange {
  readonly x: number;
  readonly low: number;
  readonly high: number;
}

/** The error of one of a kernel's implementations of 2^x over one octave. */
export interface Exp2Curve {
  readonly name: string;
  /** The weights that it computes, in words. */
  readonly use: string;
  /** The ranges, in ascending order of x. */
  readonly ranges: readonly Exp2ErrorRange[];
  /** Number of inputs that were tried. */
  readonly inputs: number;
}

/** Rows of a curve's table. */
const tableRows = 8;

/** Draws the range of errors around each x as a band. */
export function exp2Figure({ plot, svg }: Drawing, { name, use, ranges, inputs }: Exp2Curve): Html {
  const largest = ranges.reduce((most, { low, high }) => Math.max(most, -low, high), 0);
  const exponent = Math.floor(Math.log10(largest || 1));
  const unit = Number(`1e${exponent}`);
  const rows = Array.from({ length: tableRows }, (_, i) => {
    const part = ranges.slice(
      Math.floor((i * ranges.length) / tableRows),
      Math.floor(((i + 1) * ranges.length) / tableRows),
    );
    return [
      `from ${formatNumber(part[0].x)}`,
      formatNumber(Math.min(...part.map(({ low }) => low))),
      formatNumber(Math.max(...part.map(({ high }) => high))),
    ];
  });
  return figure({
    title: name,
    caption: `${use} Lowest and highest relative error of 2^x around each x, of ${inputs} inputs; at most ${formatNumber(largest)}.`,
    table: {
      caption: `Relative error of 2^x, ${name}`,
      rows: [['x', 'lowest', 'highest'], ...rows],
      numberColumns: 2,
    },
    svg: svg(
      {
        title: `Relative error of 2^x: ${name}`,
        description: `For x from ${formatNumber(ranges[0].x)} to ${formatNumber(ranges.at(-1)!.x)}; at most ${formatNumber(largest)}.`,
      },
      {
        width: 360,
        height: 250,
        marginLeft: 48,
        marginRight: 14,
        marginTop: 26,
        marginBottom: 40,
        x: { label: 'x', labelAnchor: 'center', labelArrow: 'none', ticks: 5 },
        y: {
          label: `relative error (units of 1e${exponent})`,
          labelArrow: 'none',
          ticks: 5,
          tickFormat: formatNumber,
          transform: (y: number) => y / unit,
        },
        marks: [
          plot.ruleY([0], { stroke: 'var(--line)' }),
          plot.areaY(ranges, {
            x: 'x',
            y1: 'low',
            y2: 'high',
            fill: 'var(--found)',
            stroke: 'var(--found)',
            strokeWidth: 1.2,
          }),
        ],
      },
    ),
  });
}
