import type { FormatName } from '../src/formats/index.js';

/**
 * Kinds of scale: `default` is 1/√(qk dim), `negative` any negative number, `zero` 0, and `odd` any
 * positive number, such as a tuned 0.3 or a scale somebody forgot to divide.
 */
export const scaleKinds = ['default', 'negative', 'zero', 'odd'] as const;
/** One of {@link scaleKinds}. */
export type ScaleKind = (typeof scaleKinds)[number];

/**
 * What a kernel model promises of itself: which problems it takes, which laws it obeys and how well. Each
 * member is as that of `KernelPromises` in flashproof/properties, which says what holds where it is left
 * out. How the model computes is its `arithmetic` and `premises`.
 */
export interface ModelPromises {
  readonly formats: readonly FormatName[];
  readonly causal?: boolean;
  readonly window?: boolean;
  readonly softcap?: boolean;
  readonly groupedHeads?: boolean;
  readonly emptyRows?: boolean;
  readonly scales?: readonly ScaleKind[];
  readonly specialValues?: boolean;
  readonly lse?: boolean;
  readonly dims?: readonly number[];
  readonly sizes?: Readonly<
    Partial<Record<'qkDim' | 'vDim' | 'queries' | 'keys', { readonly max: number }>>
  >;
  readonly blockKeys?: number;
  readonly rescaleThreshold?: number;
  readonly scoreLimit?: { readonly raw: number; readonly scaled: number };
  /** By the id of a law. */
  readonly laws?: Readonly<Record<string, 'bits' | 'bound' | 'none'>>;
  /** Other settings, each beside those that are chosen, under which it must stay within the bound. */
  readonly configurations?: readonly Readonly<Record<string, string>>[];
}

/** Laws that every model obeys to the last bit, though not every kernel does. */
export const exactLaws = {
  'query-order': 'bits',
  'grouped-heads': 'bits',
  'weights-sum-to-one': 'bits',
} as const;
