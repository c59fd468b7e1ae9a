import type { Profile } from '../../profile/index.js';

/** JSON has no NaN and no infinities: these three are strings, "NaN", "Infinity" and "-Infinity". */
function plain(value: unknown): unknown {
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item)]));
}

/**
 * A profile as a JSON document holds it: everything but the plots. Bit patterns are hexadecimal
 * strings; a number that is not finite is a string; null stands for a figure that does not exist.
 */
export function profileDocument(profile: Profile): object {
  const kept = Object.entries(profile).filter(([key]) => key !== 'plots');
  return plain(Object.fromEntries(kept)) as object;
}
