import type { Exp2Profile } from '../techniques/exp2.js';
import type { DomainReport } from '../error-report.js';
import { breaksText, worstInputsText } from './examples-text.js';
import { cornersText } from './corners-text.js';
import { domainText, shortDomainText, type DomainStyle } from './domain-text.js';
import { headText } from './error-profile-text.js';
import { minimaxText } from './minimax-text.js';
import { certainDigits, grouped, percentage } from './numbers.js';
import { alignTextColumns } from '../../align-columns.js';
import { terminalWidth } from './terminal-width.js';

/** The domains that are shown in full; of the others the largest errors. */
const fullDomains = 2;

/** The figures that are asked for most, in sentences. */
function headline({ domains: [softmax], reference }: Exp2Profile): string[] {
  const degree3 = softmax?.functions.find(({ name }) => name === 'degree 3');
  if (softmax === undefined || degree3 === undefined) return [];
  const [fp32, bf16] = degree3.measures;
  const [everyNumber, uniform] = bf16.averages;
  const figure = certainDigits(fp32.largest[0]?.error ?? 0, reference.certainty);
  return [
    `Degree 3 in fp32, ${softmax.label}: largest relative error ${figure}.`,
    `Degree 3 in bf16, ${softmax.label}: differs from ${softmax.functions[0].name} at ${grouped(bf16.differing)} of ${grouped(softmax.inputs)} inputs, ${percentage(everyNumber.differing)} of the fp32 numbers, ${percentage(uniform.differing)} of x.`,
    '',
  ];
}

function examples(domain: DomainReport): string[] {
  return [...worstInputsText(domain), ...breaksText(domain)];
}

/** The profile of exp2 as text. */
export function exp2Text(profile: Exp2Profile): string[] {
  const style: DomainStyle = {
    reference: profile.reference,
    baseline: profile.functions[0].name,
    shares: 'correctness',
    variable: 'x',
  };
  const { domains, corners, integers, minimax } = profile;
  return [
    ...headText(profile),
    ...headline(profile),
    ...domains.slice(0, fullDomains).flatMap((domain) => domainText(domain, style)),
    ...domains.slice(fullDomains).flatMap((domain) => shortDomainText(domain, style)),
    ...domains.slice(0, fullDomains).flatMap(examples),
    ...cornersText(corners),
    'Integers from -126 to 127',
    '',
    ...alignTextColumns(
      integers.map(({ name, integers: all, exact }) => [name, `exact at ${exact} of ${all}`]),
      terminalWidth,
    ),
    '',
    ...minimaxText(minimax),
  ];
}
