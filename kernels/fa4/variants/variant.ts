import type { Fa4Configuration, Fa4Format } from '../configuration.js';
import type { ForwardVariation } from '../forward.js';

/** The forward with one bug switched on. */
export interface KernelVariant {
  readonly id: string;
  readonly title: string;
  /** The public thread as repository #number, or the paper; `synthetic` for none. */
  readonly source: string;
  readonly mechanism: string;
  /** The problems that show it. */
  readonly visibleWhen: string;
  /** Settings, as text by key, in place of the kernel's where these would hide the bug. */
  readonly settings: Readonly<Record<string, string>>;
  /** The reason that it cannot be switched on in a configuration; null for none. */
  readonly objection: (configuration: Fa4Configuration, format: Fa4Format) => string | null;
  readonly variation: ForwardVariation;
}

/** A variant with the kernel's settings and no objection to any configuration, unless given. */
export function variant(
  facts: Omit<KernelVariant, 'settings' | 'objection' | 'variation' | 'source'> &
    Partial<Pick<KernelVariant, 'settings' | 'objection' | 'source'>>,
  variation: ForwardVariation,
): KernelVariant {
  return { source: 'synthetic', settings: {}, objection: () => null, ...facts, variation };
}
