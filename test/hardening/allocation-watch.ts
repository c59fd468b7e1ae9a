/** The typed arrays whose length the readers choose. */
const watched = [
  'ArrayBuffer',
  'Uint8Array',
  'Uint16Array',
  'Uint32Array',
  'Float32Array',
  'Float64Array',
] as const;

/** Tells how much memory is asked for at once, used or not. */
export interface AllocationWatch {
  /** Bytes of the largest array asked for since the last call, granted or refused. */
  readonly largest: () => number;
  /** Puts the runtime's own classes back. */
  readonly end: () => void;
}

/**
 * Watches every array that is made by a length, from now on. Resident memory would not tell: the pages
 * of a large array that nobody touches are never there.
 */
export function watchAllocations(): AllocationWatch {
  const scope = globalThis as unknown as Record<string, new (...values: unknown[]) => object>;
  const own = watched.map((name) => [name, scope[name]] as const);
  let largest = 0;
  for (const [name, original] of own) {
    const size = (original as unknown as { BYTES_PER_ELEMENT?: number }).BYTES_PER_ELEMENT ?? 1;
    const watching: typeof original = new Proxy(original, {
      construct: (target, values, newTarget) => {
        if (typeof values[0] === 'number') largest = Math.max(largest, values[0] * size);
        return Reflect.construct(
          target,
          values,
          newTarget === watching ? target : newTarget,
        ) as object;
      },
    });
    scope[name] = watching;
  }
  return {
    largest: () => {
      const bytes = largest;
      largest = 0;
      return bytes;
    },
    end: () => {
      for (const [name, original] of own) scope[name] = original;
    },
  };
}
