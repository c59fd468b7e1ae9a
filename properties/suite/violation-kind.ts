/** What a violation comes down to, by which violations of several laws are told to be of one cause. */
export interface ViolationKind {
  /** The same for violations of one cause. */
  readonly id: string;
  /** The cause in a few words, as in "NaN on rows without keys"; without a full stop. */
  readonly title: string;
  /** Ids of other causes that it may have as well. */
  readonly equivalents: readonly string[];
}

/** Violations of one cause. */
export interface ViolationGroup<T> {
  readonly title: string;
  /** One at least, in the order given. */
  readonly violations: readonly T[];
}

/**
 * Violations by their cause, those first that most have in common: of all causes named, the one that
 * fits most violations takes these, and so on. Each violation is in one group.
 */
export function groupByKind<T>(
  violations: readonly T[],
  kindOf: (violation: T) => ViolationKind,
): ViolationGroup<T>[] {
  const fits = (violation: T, id: string) =>
    kindOf(violation).id === id || kindOf(violation).equivalents.includes(id);
  const groups: ViolationGroup<T>[] = [];
  for (let rest = [...violations]; rest.length > 0;) {
    const best = largest(rest, ({ id }) => rest.filter((other) => fits(other, id)), kindOf);
    groups.push({ title: commonTitle(best.map(kindOf)), violations: best });
    rest = rest.filter((violation) => !best.includes(violation));
  }
  return groups;
}

/** The largest of what each violation's kind is given, the first of equals. */
function largest<T>(
  violations: readonly T[],
  of: (kind: ViolationKind) => T[],
  kindOf: (violation: T) => ViolationKind,
): T[] {
  return violations
    .map((violation) => of(kindOf(violation)))
    .reduce((best, next) => (next.length > best.length ? next : best));
}

/** The title of the kind that most are of, the first of equals. */
function commonTitle(kinds: readonly ViolationKind[]): string {
  const alike = kinds.map(({ id }) => kinds.filter((kind) => kind.id === id));
  return alike.reduce((best, next) => (next.length > best.length ? next : best))[0].title;
}
