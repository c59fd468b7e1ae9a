import type { Gradient } from './sums.js';

/** The elements of a gradient that special values make NaN or infinite; no memory where there are none. */
export interface PoisonedElements {
  /** Adds NaN or an infinity to an element; nothing for 0. The sum decides. */
  readonly add: (at: number, kind: number) => void;
  /** The elements so far, with their sums. */
  readonly kinds: () => ReadonlyMap<number, number>;
}

export function poisonedElements(): PoisonedElements {
  const sums = new Map<number, number>();
  return {
    add: (at, kind) => {
      if (kind !== 0) sums.set(at, (sums.get(at) ?? 0) + kind);
    },
    kinds: () => sums,
  };
}

/** Replaces computed elements by their NaNs and infinities. */
export function applyPoison(
  { values, radius, magnitude }: Gradient,
  poisoned: PoisonedElements,
): void {
  for (const [at, kind] of poisoned.kinds()) {
    values[at] = kind;
    radius[at] = 0;
    magnitude[at] = Math.abs(kind);
  }
}
