/** The mistakes of a program by what they do: the words before the first colon of their ids. */
export function groupMistakes<Mistake extends { readonly id: string }>(
  mistakes: readonly Mistake[],
): ReadonlyMap<string, readonly Mistake[]> {
  const groups = new Map<string, Mistake[]>();
  for (const mistake of mistakes) {
    const kind = mistake.id.slice(0, Math.max(0, mistake.id.indexOf(':'))) || 'others';
    groups.set(kind, [...(groups.get(kind) ?? []), mistake]);
  }
  return groups;
}
