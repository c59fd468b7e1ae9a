/** Runs that have given the same results so far, told apart as results come in. */
export interface RunClasses {
  /** Takes what each run has made of the same rows: arrays to be compared element by element. */
  readonly add: (results: readonly (readonly Float64Array[])[]) => void;
  /** The runs of each class, in the order of their first. */
  readonly classes: () => readonly (readonly number[])[];
}

/** Whether arrays hold the same numbers, NaN being equal to itself and −0 to +0 not. */
function areSame(a: readonly Float64Array[], b: readonly Float64Array[]): boolean {
  return a.every((array, i) => {
    const other = b[i];
    for (let j = 0; j < array.length; j++) if (!Object.is(array[j], other[j])) return false;
    return true;
  });
}

/** All runs in one class at first. */
export function createRunClasses(runs: number): RunClasses {
  let classes: (readonly number[])[] =
    runs === 0 ? [] : [Array.from({ length: runs }, (_, i) => i)];
  return {
    add: (results) => {
      classes = classes.flatMap((members) => {
        const parts: number[][] = [];
        for (const run of members) {
          const part = parts.find(([first]) => areSame(results[first], results[run]));
          if (part === undefined) parts.push([run]);
          else part.push(run);
        }
        return parts;
      });
    },
    classes: () => [...classes].sort((a, b) => a[0] - b[0]),
  };
}
