/** Last writers that are no stamps. */
export const noWriter = 0;
export const initialWriter = -1;

/** Words that nobody has touched: without contents, or with contents from the start. */
export const uninitialisedState = 0;
export const initialState = 1;

/** What words are in: who wrote them last and who has read them since. Many words share a state. */
export interface ShadowStates {
  readonly count: number;
  readonly writerOf: (state: number) => number;
  /** The stamps of the reads since, without those that a later one covers. */
  readonly readersOf: (state: number) => readonly number[];
  /** The state with this writer and these readers; a new one at each call. */
  readonly add: (writer: number, readers: readonly number[]) => number;
  /**
   * The state that an access makes of another; -1 if it is not known. Only what the latest access to ask
   * has remembered is.
   */
  readonly recall: (state: number, stamp: number) => number;
  readonly remember: (state: number, stamp: number, next: number) => void;
  /** Drops all states that no cell is in, and renumbers those in the cells. */
  readonly compact: (cells: Int32Array) => void;
}

const noReaders: readonly number[] = [];
const firstCapacity = 256;

/** The states of one memory, with {@link uninitialisedState} and {@link initialState}. */
export function createShadowStates(): ShadowStates {
  let writers: number[] = [noWriter, initialWriter];
  let readers: (readonly number[])[] = [noReaders, noReaders];
  // What the access `askedBy[state]` makes of the state.
  let askedBy = new Int32Array(firstCapacity);
  let next = new Int32Array(firstCapacity);
  return {
    get count() {
      return writers.length;
    },
    writerOf: (state) => writers[state],
    readersOf: (state) => readers[state],
    add: (writer, reads) => {
      readers.push(reads);
      const state = writers.push(writer) - 1;
      if (state >= askedBy.length) {
        const [olderAskedBy, olderNext] = [askedBy, next];
        askedBy = new Int32Array(2 * olderAskedBy.length);
        askedBy.set(olderAskedBy);
        next = new Int32Array(askedBy.length);
        next.set(olderNext);
      }
      return state;
    },
    recall: (state, stamp) => (askedBy[state] === stamp ? next[state] : -1),
    remember: (state, stamp, following) => {
      askedBy[state] = stamp;
      next[state] = following;
    },
    compact: (cells) => {
      const renumbered = new Int32Array(writers.length).fill(-1);
      renumbered[uninitialisedState] = uninitialisedState;
      renumbered[initialState] = initialState;
      const keptWriters = [noWriter, initialWriter];
      const keptReaders = [noReaders, noReaders];
      for (let index = 0; index < cells.length; index++) {
        const state = cells[index];
        if (renumbered[state] === -1) {
          renumbered[state] = keptWriters.push(writers[state]) - 1;
          keptReaders.push(readers[state]);
        }
        cells[index] = renumbered[state];
      }
      writers = keptWriters;
      readers = keptReaders;
      askedBy = new Int32Array(Math.max(firstCapacity, 2 * writers.length));
      next = new Int32Array(askedBy.length);
    },
  };
}
