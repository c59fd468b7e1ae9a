import type { ExperimentOutputs } from '../../../src/browser/index.js';
import { svg } from '../element.js';

const [width, height, bottom, left] = [720, 220, 36, 8];
/** Ulps as a person writes them. */
function ulpLabel(ulps: number): string {
  return ulps < 1 ? `1/${Math.round(1 / ulps)}` : String(Math.round(ulps));
}

/** The histogram of errors in ulps as a picture, with its numbers for who does not see it. */
export function histogramSvg({ exact, bins }: ExperimentOutputs['histogram']): SVGElement {
  const all = exact + bins.reduce((sum, { count }) => sum + count, 0);
  const most = Math.max(1, exact, ...bins.map(({ count }) => count));
  const step = (width - 2 * left) / (bins.length + 1);
  const bar = (count: number, i: number, name: string) => {
    const size = (count / most) * (height - bottom - 10);
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
  const within = bins.reduce((sum, { high, count }) => sum + (high <= 1 ? count : 0), exact);
  const say = `${all} elements; ${((100 * within) / all).toFixed(1)} % err by at most one ulp.`;
  return svg(
    'svg',
    { viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': say },
    bar(exact, 0, 'exact'),
    label('0', 0),
    ...bins.map(({ low, high, count }, i) =>
      bar(count, i + 1, `${ulpLabel(low || high / 2)} to ${ulpLabel(high)} ulp`),
    ),
    ...bins.flatMap(({ high }, i) => (i % 2 === 0 ? [label(ulpLabel(high), i + 1)] : [])),
    svg(
      'text',
      { x: left, y: height - 4, 'font-size': 12, fill: 'currentColor' },
      `ulps, half an octave a bar. ${say}`,
    ),
  );
}
