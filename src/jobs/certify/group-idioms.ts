import type { Idiom } from '../../meaning/domains/index.js';
import type { CertificatePlace, IdiomCertificate } from './certificate.js';

/** Idioms of the same function, degree and distance as one, with their places in the order of the run. */
export function groupIdioms(
  idioms: readonly Idiom[],
  placeOf: (site: string) => CertificatePlace,
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
    places: group.map(({ site, count }) => ({ ...placeOf(site), count })),
  }));
}
