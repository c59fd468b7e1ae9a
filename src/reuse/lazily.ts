/**
 * A function that returns what `create` makes, made at the first call and kept: tables that cost
 * milliseconds to compute cost nothing to those who import them and do not use them.
 */
export function lazily<T>(create: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: create() }).value;
}
