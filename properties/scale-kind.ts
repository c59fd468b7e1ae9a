/**
 * Kinds of scale: `default` is 1/√(qk dim), `negative` any negative number, `zero` 0, and `odd` any
 * positive number, such as a tuned 0.3 or a scale somebody forgot to divide.
 */
export const scaleKinds = ['default', 'negative', 'zero', 'odd'] as const;
/** One of {@link scaleKinds}. */
export type ScaleKind = (typeof scaleKinds)[number];
