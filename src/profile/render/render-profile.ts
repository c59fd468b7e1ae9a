import type { Profile } from '../techniques/techniques.js';
import { exp2Text } from './exp2-text.js';
import { polynomialShareText } from './polynomial-share-text.js';
import { weightRoundingText } from './p-round-text.js';
import { rangeReductionText } from './range-reduction-text.js';
import { rescaleText } from './rescale-text.js';
import { splitText } from './split-text.js';
import { terminalWidth } from './terminal-width.js';
import { unitText } from './unit-text.js';
import { wrapped } from './wrapped.js';

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
  const [first = '', ...rest] = wrapped(line.slice(margin), terminalWidth - margin);
  const lines = [line.slice(0, margin) + first, ...rest.map((text) => ' '.repeat(margin) + text)];
  return lines.map((text) => text.trimEnd());
}

/** A profile as text for a terminal of 80 columns. */
export function renderProfile(profile: Profile): string {
  return linesOf(profile).flatMap(fitted).join('\n');
}
