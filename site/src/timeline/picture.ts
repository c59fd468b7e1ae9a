import type { Timeline, TimelineEvent } from '../../../src/browser/index.js';
import { svg } from '../element.js';
import { kindOf } from './kinds.js';

const [names, width, rowHeight, head] = [170, 900, 16, 22];

/** Clocks from and to which the picture goes. */
export interface View {
  readonly from: number;
  readonly to: number;
}

/** The part of a timeline that is in view, a row a track, with a line at a clock. */
export function timelinePicture(
  { tracks, events }: Timeline,
  { from, to }: View,
  clock: number,
): SVGElement {
  const rows = new Map(tracks.map(({ id }, row) => [id, row]));
  const x = (time: number) => names + ((time - from) / (to - from)) * (width - names);
  const bar = (event: TimelineEvent) => {
    const [left, right] = [x(Math.max(event.start, from)), x(Math.min(event.end, to))];
    return svg(
      'rect',
      {
        x: left,
        y: head + rows.get(event.track)! * rowHeight + 2,
        width: Math.max(0.5, right - left),
        height: rowHeight - 4,
        fill: kindOf(event).color,
      },
      svg('title', {}, `${event.name}, ${event.start} to ${event.end}`),
    );
  };
  const label = (text: string, at: number, y: number) =>
    svg('text', { x: at, y, 'font-size': 11, fill: 'currentColor' }, text);
  const height = head + tracks.length * rowHeight;
  const ticks = [0, 0.25, 0.5, 0.75].map((share) => Math.round(from + share * (to - from)));
  const say = `Clocks ${from} to ${to}: ${tracks.length} warps and units; the legend names the colours. The table below says what each does at clock ${clock}.`;
  const hasTwo = tracks.some(({ cta }) => cta > 0);
  return svg(
    'svg',
    { viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': say },
    ...ticks.map((tick, i) => label(i === 0 ? `clock ${tick}` : String(tick), x(tick), 12)),
    ...tracks.map(({ name, cta }, row) =>
      label(`${hasTwo ? `CTA ${cta}: ` : ''}${name}`, 0, head + (row + 0.75) * rowHeight),
    ),
    ...events.filter(({ start, end }) => end > from && start < to).map(bar),
    svg('line', {
      x1: x(clock),
      x2: x(clock),
      y1: head - 6,
      y2: height,
      stroke: 'var(--series-2)',
      'stroke-width': 1.5,
    }),
  );
}
