import type { Timeline, TimelineEvent, TimelineTrack } from '../../../src/browser/index.js';
import { create } from '../element.js';

/** What a warp or a unit is at when a clock has come: the event that began last; undefined for none. */
export function eventAt(
  { events }: Timeline,
  { id }: TimelineTrack,
  time: number,
): TimelineEvent | undefined {
  return events.findLast(({ track, start, end }) => track === id && start <= time && time < end);
}

/** What a track is called: with its CTA, where there are two. */
export function nameOf({ tracks }: Timeline, { cta, name }: TimelineTrack): string {
  return tracks.some((other) => other.cta > 0) ? `CTA ${cta}, ${name}` : name;
}

/** When an event ends: never, if that is after the last clock. */
function endOf(event: TimelineEvent | undefined, { clocks }: Timeline): string {
  if (event === undefined) return '';
  return event.end > clocks ? 'never' : String(event.end);
}

/** Rows of the table that says what every warp and unit does at a clock. */
export function rowsOf(timeline: Timeline, time: number): readonly HTMLElement[] {
  return timeline.tracks.map((track) => {
    const event = eventAt(timeline, track, time);
    return create(
      'tr',
      {},
      create('th', { scope: 'row' }, nameOf(timeline, track)),
      create('td', event?.isWait === true ? { class: 'muted' } : {}, event?.name ?? 'nothing'),
      create('td', { class: 'number' }, event === undefined ? '' : String(event.start)),
      create('td', { class: 'number' }, endOf(event, timeline)),
    );
  });
}
