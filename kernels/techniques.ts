/**
 * The sources of error of an attention kernel that there are bounds for, in the order in which they act
 * on a block of keys.
 */
export const techniques = [
  'qk-accumulate',
  'scale-subtract',
  'exp2-hardware',
  'exp2-polynomial',
  'p-round',
  'rescale',
  'pv-accumulate',
  'row-sum',
  'normalise',
  'output-round',
] as const;
/** One of {@link techniques}. */
export type Technique = (typeof techniques)[number];

/** What a technique of a kernel is, emulated and exact. */
export interface TechniqueDefinition {
  readonly emulated: string;
  readonly exact: string;
  /** Whose bound covers it, `all` for the sum of all bounds; default that of its own name. */
  readonly bound?: Technique | 'all';
}
