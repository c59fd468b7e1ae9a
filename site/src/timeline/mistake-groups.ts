/** The mistakes of a program by what they do: the words before the first colon of their ids. */
export function groupMistakes(ids: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const groups = new Map<string, string[]>();
  for (const id of ids) {
    const kind = id.slice(0, Math.max(0, id.indexOf(':'))) || 'others';
    groups.set(kind, [...(groups.get(kind) ?? []), id]);
  }
  return groups;
}
