import type { Underflow, WeightRoundingProfile } from '../techniques/p-round.js';
import { domainText, type DomainStyle } from './domain-text.js';
import { headText } from './error-profile-text.js';
import { digits } from './numbers.js';
import { alignColumns } from '../../align-columns.js';
import { terminalWidth } from './terminal-width.js';

function underflowRow(underflow: Underflow): string[] {
  const { format, offset, lostUpTo, lostUpToX, subnormalUpTo, subnormalUpToX } = underflow;
  return [
    offset === 0 ? format : `${format}, P·2^${offset}`,
    `${digits(lostUpTo, 9)}`,
    digits(lostUpToX, 9),
    digits(subnormalUpTo, 9),
    digits(subnormalUpToX, 9),
  ];
}

/** The profile of the rounding of P as text. */
export function weightRoundingText(profile: WeightRoundingProfile): string[] {
  const style: DomainStyle = {
    reference: profile.reference,
    baseline: null,
    shares: 'underflow',
    variable: 'p',
  };
  return [
    ...headText(profile, 'p'),
    ...profile.domains.flatMap((domain) => domainText(domain, style)),
    'Underflow of P = 2^(x + offset)',
    '',
    ...alignColumns(
      [
        ['', '0 up to', 'so for x up to', 'subnormal up to', 'so for x up to'],
        ...profile.underflows.map(underflowRow),
      ],
      terminalWidth,
    ),
    '',
  ];
}
