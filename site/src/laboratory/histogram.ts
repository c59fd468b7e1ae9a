import type { ExperimentOutputs } from '../../../src/browser/index.js';
import { svg } from '../element.js';

const [width, height, bottom, left, right, top] = [720, 260, 44, 64, 8, 12];

/** Parts of the height that have a line and a number. */
const gridLines = [0, 0.25, 0.5, 0.75, 1];

/** Ulps as a person writes them. */
function ulpLabel(ulps: number): string {
  return ulps < 1 ? `1/${Math.round(1 / ulps)}` : String(Math.round(ulps));
}

/** A round number that is at least a count, so that its quarters are short. */
function roundUp(count: number): number {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(count)) - 1) * 4;
  return Math.ceil(count / unit) * unit;
}

/** The histogram of errors in ulps as a picture with axes, with its numbers for who does not see it. */
export function histogramSvg({ exact, bins }: ExperimentOutputs['histogram']): SVGElement {
  const all = exact + bins.reduce((sum, { count }) => sum + count, 0);
  const most = roundUp(Math.max(1, exact, ...bins.map(({ count }) => count)));
  const step = (width - left - right) / (bins.length + 1);
  const room = height - bottom - top;
  const bar = (count: number, i: number, name: string) => {
    const size = (count / most) * room;
    return svg(
      'rect',
      {
        x: left + i * step + 1,
        y: height - bottom - size,
        width: Math.max(1, step - 2),
        height: size,
        fill: 'var(--series)',
      },
      svg('title', {}, `${name}: ${count}`),
    );
  };
  const label = (text: string, i: number) =>
    svg(
      'text',
      {
        x: left + (i + 0.5) * step,
        y: height - bottom + 16,
        'text-anchor': 'middle',
        'font-size': 12,
        fill: 'currentColor',
      },
      text,
    );
  const text = (words: string, x: number, y: number, anchor = 'start') =>
    svg('text', { x, y, 'text-anchor': anchor, 'font-size': 12, fill: 'currentColor' }, words);
  const lines = gridLines.flatMap((share) => {
    const y = height - bottom - share * room;
    return [
      svg('line', { x1: left, x2: width - right, y1: y, y2: y, stroke: 'var(--line)' }),
      text((share * most).toLocaleString('en'), left - 6, y + 4, 'end'),
    ];
  });
  const middle = top + room / 2;
  const upright = text('elements', 0, 0, 'middle');
  upright.setAttribute('transform', `translate(12,${middle}) rotate(-90)`);
  const within = bins.reduce((sum, { high, count }) => sum + (high <= 1 ? count : 0), exact);
  const say = `${all} elements; ${((100 * within) / all).toFixed(1)} % err by at most one ulp.`;
  return svg(
    'svg',
    { viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': say },
    ...lines,
    upright,
    bar(exact, 0, 'exact'),
    label('0', 0),
    ...bins.map(({ low, high, count }, i) =>
      bar(count, i + 1, `${ulpLabel(low || high / 2)} to ${ulpLabel(high)} ulp`),
    ),
    ...bins.flatMap(({ high }, i) => (i % 2 === 0 ? [label(ulpLabel(high), i + 1)] : [])),
    text(
      '|error| in ulps, upper ends; half an octave a bar',
      (left + width) / 2,
      height - 6,
      'middle',
    ),
  );
}
