import type { TimelineEvent } from '../../../src/browser/index.js';

/** What an action is, with its colour in the picture and its name in the legend. */
export interface EventKind {
  readonly name: string;
  readonly color: string;
}

const waits: EventKind = { name: 'waits', color: 'var(--line)' };
const other: EventKind = { name: 'barriers, fences, set-up', color: 'var(--kind-sync)' };

/** Kinds of what is done, by the names of actions; the first that fits. */
const kinds: readonly (EventKind & { readonly fits: RegExp })[] = [
  { name: 'MMA', color: 'var(--kind-mma)', fits: /: multiplied$/ },
  {
    name: 'copies and loads',
    color: 'var(--kind-copy)',
    fits: /: (loaded|stored|staged|read|bulk store|group)$/,
  },
  {
    name: 'softmax, correction',
    color: 'var(--kind-math)',
    fits: /^(softmax|correction): |: (normalised|lanes joined)$/,
  },
];

/** The kind of an action. */
export function kindOf({ name, isWait }: Pick<TimelineEvent, 'name' | 'isWait'>): EventKind {
  if (isWait) return waits;
  return kinds.find(({ fits }) => fits.test(name)) ?? other;
}

/** All kinds, in the order of the legend. */
export const eventKinds: readonly EventKind[] = [...kinds, other, waits];
