import type { Timeline, TimelineMutant, TimelineRequest } from '../../../src/browser/index.js';

/** What the page asks for: the mistakes that there are, or a run. */
export type TimelineQuestion =
  { readonly kind: 'mutants' } | { readonly kind: 'run'; readonly request: TimelineRequest };

/** What the worker answers. */
export type TimelineAnswer =
  | { readonly kind: 'mutants'; readonly mutants: readonly TimelineMutant[] }
  | { readonly kind: 'timeline'; readonly timeline: Timeline }
  | { readonly kind: 'refused'; readonly line: string };
