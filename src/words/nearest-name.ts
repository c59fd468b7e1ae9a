/** The longest name that is compared; a longer one is no slip of the keyboard. */
const comparedLength = 200;

/** The most names that are compared with a missing one. */
const comparedNames = 10_000;

/** Levenshtein distance: the fewest insertions, deletions and substitutions from `a` to `b`. */
function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const substitution = previous[column - 1] + (a[row - 1] === b[column - 1] ? 0 : 1);
      current.push(Math.min(substitution, previous[column] + 1, current[column - 1] + 1));
    }
    previous = current;
  }
  return previous[b.length];
}

/**
 * The known name that a mistyped one most likely stands for: equal but for case, or else the one at
 * the least edit distance when that is at most a third of its length. Null when none is close.
 */
export function nearestName(mistyped: string, known: Iterable<string>): string | null {
  if (mistyped.length > comparedLength) return null;
  let nearest: string | null = null;
  let least = Infinity;
  let compared = 0;
  for (const name of known) {
    if (++compared > comparedNames) break;
    if (name.length > comparedLength) continue;
    if (name.toLowerCase() === mistyped.toLowerCase()) return name;
    const distance = editDistance(mistyped, name);
    if (distance < least && distance * 3 <= Math.max(name.length, mistyped.length)) {
      nearest = name;
      least = distance;
    }
  }
  return nearest;
}
