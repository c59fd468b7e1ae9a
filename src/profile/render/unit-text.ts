import type { UnitErrorProfile } from '../techniques/unit.js';
import { cornersText } from './corners-text.js';
import { domainText, type DomainStyle } from './domain-text.js';
import { headText } from './error-profile-text.js';
import { breaksText, worstInputsText } from './examples-text.js';

/** The profile of an instruction of the special function unit as text. */
export function unitText(profile: UnitErrorProfile): string[] {
  const style: DomainStyle = {
    reference: profile.reference,
    baseline: null,
    shares: 'correctness',
    variable: 'x',
  };
  const { domains, corners } = profile;
  return [
    ...headText(profile),
    ...domains.flatMap((domain) => [
      ...domainText(domain, style),
      ...worstInputsText(domain),
      ...breaksText(domain),
    ]),
    ...cornersText(corners),
  ];
}
