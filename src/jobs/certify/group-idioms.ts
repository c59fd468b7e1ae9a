import type { Idiom } from '../../meaning/domains/index.js';
import type { SourceLine } from '../../ptx/syntax/index.js';
import type { IdiomCertificate } from './certificate.js';
import { placeOf } from './followed-run.js';

/** Idioms of the same function, degree and distance as one, with their places in the order of the run. */
export function groupIdioms(
  idioms: readonly Idiom[],
  sources: ReadonlyMap<number, SourceLine>,
): readonly IdiomCertificate[] {
  const groups = new Map<string, Idiom[]>();
  for (const idiom of idioms) {
    const key = `${idiom.function} ${idiom.degree} ${idiom.distance}`;
    groups.set(key, [...(groups.get(key) ?? []), idiom]);
  }
  return [...groups.values()].map((group) => ({
    function: group[0].function,
    degree: group[0].degree,
    distance: group[0].distance,
    places: group.map(({ site, count }) => ({ ...placeOf(site, sources), count })),
  }));
}
