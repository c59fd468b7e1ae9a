import type { Profile } from '../../profile/index.js';
import { toReported } from './report-number.js';

/**
 * A profile as a JSON document holds it: everything but the plots. Bit patterns are hexadecimal
 * strings; a number that is not finite is a string; null stands for a figure that does not exist.
 */
export function profileDocument(profile: Profile): object {
  const kept = Object.entries(profile).filter(([key]) => key !== 'plots');
  return toReported(Object.fromEntries(kept)) as object;
}
