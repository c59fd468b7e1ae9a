import type { Timeline, TimelineEvent, TimelineTrack } from '../../../src/browser/index.js';
import { create, svg } from '../element.js';
import { kindOf } from './kinds.js';
import { eventAt, nameOf } from './now.js';

/** Clocks from and to which the picture goes. */
export interface View {
  readonly from: number;
  readonly to: number;
}

function barOf(event: TimelineEvent, { from, to }: View, clocks: number): SVGElement {
  const [left, right] = [Math.max(event.start, from), Math.min(event.end, to)];
  return svg(
    'rect',
    {
      x: left - from,
      y: 0,
      // Of what is shorter than a pixel something is seen.
      width: Math.max((to - from) / 2000, right - left),
      height: 1,
      fill: kindOf(event).color,
    },
    svg(
      'title',
      {},
      `${event.name}, ${event.start} ${event.end > clocks ? 'for ever' : `to ${event.end}`}`,
    ),
  );
}

/** What a warp or a unit did and does: its name, what it is at (shown where its name has a line of its own), and its bars. */
function laneOf(timeline: Timeline, track: TimelineTrack, view: View, clock: number): HTMLElement {
  const { from, to } = view;
  const length = to - from;
  const bars = timeline.events
    .filter(({ track: of, start, end }) => of === track.id && end > from && start < to)
    .map((event) => barOf(event, view, timeline.clocks));
  const x = clock - from;
  const line = svg('line', { x1: x, x2: x, y1: 0, y2: 1, 'vector-effect': 'non-scaling-stroke' });
  return create(
    'div',
    { class: 'lane' },
    create(
      'div',
      {},
      nameOf(timeline, track),
      create('small', {}, ` ${eventAt(timeline, track, clock)?.name ?? 'nothing'}`),
    ),
    svg('svg', { viewBox: `0 0 ${length} 1`, preserveAspectRatio: 'none' }, ...bars, line),
  );
}

/** The part of a timeline that is in view: clocks above, and a lane a warp or unit, with a line at a clock. */
export function timelinePicture(
  timeline: Timeline,
  view: View,
  clock: number,
): readonly HTMLElement[] {
  const { from, to } = view;
  const ticks = [0, 0.25, 0.5, 0.75].map((share) => {
    const tick = Math.round(from + share * (to - from));
    return create('span', {}, share === 0 ? `clock ${tick}` : String(tick));
  });
  return [
    create('div', { class: 'lane' }, create('div'), create('div', { class: 'ticks' }, ...ticks)),
    ...timeline.tracks.map((track) => laneOf(timeline, track, view, clock)),
  ];
}

/** What the picture shows, for those who do not see it. */
export function describePicture({ tracks }: Timeline, { from, to }: View, clock: number): string {
  return `Clocks ${from} to ${to}: ${tracks.length} warps and units; the legend names the colours. The table below says what each does at clock ${clock}.`;
}
