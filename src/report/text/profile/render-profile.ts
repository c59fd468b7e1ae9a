import type {
  Profile,
  Underflow,
  UnitErrorProfile,
  WeightRoundingProfile,
} from '../../../profile/index.js';
import { exp2Text } from './exp2.js';
import { polynomialShareText } from './polynomial-share.js';
import { rangeReductionText } from './range-reduction.js';
import { rescaleText } from './rescale.js';
import { splitText } from './split.js';
import { headText, terminalWidth } from './head.js';
import { alignColumns, wrapAtSpaces } from '../../layout/index.js';
import { breaksText, cornersText, worstInputsText } from './inputs.js';
import { type DomainStyle, domainText } from './domain.js';
import { formatDigits } from '../../../words/index.js';

function linesOf(profile: Profile): string[] {
  switch (profile.technique) {
    case 'exp2':
      return exp2Text(profile);
    case 'range-reduction':
      return rangeReductionText(profile);
    case 'p-round':
      return weightRoundingText(profile);
    case 'split':
      return splitText(profile);
    case 'rescale':
      return rescaleText(profile);
    case 'polynomial-share':
      return polynomialShareText(profile);
    default:
      return unitText(profile);
  }
}

/** A line in at most 80 columns: what is broken goes on below the text that follows the line's name. */
function fitted(line: string): string[] {
  if ([...line].length <= terminalWidth) return [line];
  const [name = ''] = /^ *(?:\S+(?: \S+)* {2,})?/.exec(line) ?? [];
  const margin = name.length > 2 && name.length < terminalWidth / 2 ? name.length : 2;
  const [first = '', ...rest] = wrapAtSpaces(line.slice(margin), terminalWidth - margin);
  const lines = [line.slice(0, margin) + first, ...rest.map((text) => ' '.repeat(margin) + text)];
  return lines.map((text) => text.trimEnd());
}

/** A profile as text for a terminal of 80 columns. */
export function renderProfile(profile: Profile): string {
  return linesOf(profile).flatMap(fitted).join('\n');
}

/** The profile of an instruction of the special function unit as text. */
function unitText(profile: UnitErrorProfile): string[] {
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

function underflowRow(underflow: Underflow): string[] {
  const { format, offset, lostUpTo, lostUpToX, subnormalUpTo, subnormalUpToX } = underflow;
  return [
    offset === 0 ? format : `${format}, P·2^${offset}`,
    `${formatDigits(lostUpTo, 9)}`,
    formatDigits(lostUpToX, 9),
    formatDigits(subnormalUpTo, 9),
    formatDigits(subnormalUpToX, 9),
  ];
}

/** The profile of the rounding of P as text. */
function weightRoundingText(profile: WeightRoundingProfile): string[] {
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
