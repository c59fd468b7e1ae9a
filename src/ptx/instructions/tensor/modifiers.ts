/** The number after a prefix among modifiers, as 2 of `cta_group::2`; null where there is none. */
export function numberAfter(modifiers: readonly string[], prefix: string): number | null {
  const modifier = modifiers.find((one) => one.startsWith(prefix));
  return modifier === undefined ? null : Number(modifier.slice(prefix.length));
}

/** The rest of the modifier with a prefix, as `f16` of `kind::f16`; null where there is none. */
export function wordAfter(modifiers: readonly string[], prefix: string): string | null {
  return modifiers.find((one) => one.startsWith(prefix))?.slice(prefix.length) ?? null;
}
