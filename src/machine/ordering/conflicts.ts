import type { MissingOrder } from './access-order.js';

/**
 * What can be wrong with an access. The races are named by the earlier access and the later one; what
 * "earlier" was is an accident of the schedule.
 */
export const conflictKinds = {
  'write-read': 'a read of what is written at no known time before',
  'read-write': 'a write over what may still have to be read',
  'write-write': 'two writes in no order',
  uninitialised: 'a read of what nobody has written',
  'overwritten-unread': 'a write over what nobody has read',
} as const;

/** One kind of conflict. */
export type ConflictKind = keyof typeof conflictKinds;

/** A conflict of one access with one earlier access. */
export interface Conflict {
  readonly kind: ConflictKind;
  /** The stamp of the earlier access; 0 where there is none. */
  readonly earlier: number;
  /** The stamp of the access that was checked. */
  readonly later: number;
  /** What a race lacks; null for the others. */
  readonly missing: MissingOrder | null;
  /** The first word of the access with this conflict, in the order of its rows, and how many have it. */
  readonly firstWord: number;
  readonly words: number;
}

/** A conflict that every word of some state has. */
export type WordConflict = Pick<Conflict, 'kind' | 'earlier' | 'missing'>;

/** The conflicts of one access: words with the same kind and earlier access are counted together. */
export interface ConflictCounter {
  readonly add: (conflicts: readonly WordConflict[], firstWord: number, words: number) => void;
  readonly list: () => readonly Conflict[];
}

/** A counter for the access with the stamp `later`. */
export function createConflictCounter(later: number): ConflictCounter {
  const found = new Map<string, Conflict>();
  return {
    add: (conflicts, firstWord, words) => {
      for (const conflict of conflicts) {
        const key = `${conflict.kind} ${conflict.earlier}`;
        const before = found.get(key);
        found.set(
          key,
          before === undefined
            ? { ...conflict, later, firstWord, words }
            : { ...before, words: before.words + words },
        );
      }
    },
    list: () => [...found.values()],
  };
}
