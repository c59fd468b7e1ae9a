import type { Profile } from '../techniques/techniques.js';
import { exp2Text } from './exp2-text.js';
import { polynomialShareText } from './polynomial-share-text.js';
import { weightRoundingText } from './p-round-text.js';
import { rangeReductionText } from './range-reduction-text.js';
import { rescaleText } from './rescale-text.js';
import { splitText } from './split-text.js';
import { unitText } from './unit-text.js';

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

/** A profile as text for a terminal, some 120 columns wide. */
export function renderProfile(profile: Profile): string {
  return linesOf(profile).join('\n');
}
