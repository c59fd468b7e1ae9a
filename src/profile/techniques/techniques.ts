import { RequestError } from '../../request-error.js';
import { profileExp2, type Exp2Profile } from './exp2-profile.js';
import { profilePolynomialShare, type PolynomialShareProfile } from './polynomial-share.js';
import { profileWeightRounding, type WeightRoundingProfile } from './p-round.js';
import type { ProfileOptions } from './profile.js';
import { profileRangeReduction, type RangeReductionProfile } from './range-reduction.js';
import { profileRescale, type RescaleProfile } from './rescale.js';
import { profileSplit, type SplitProfile } from './split.js';
import { profileUnit, type UnitErrorProfile } from './special-functions.js';

/** A profile of any technique. */
export type Profile =
  | Exp2Profile
  | UnitErrorProfile
  | WeightRoundingProfile
  | SplitProfile
  | RangeReductionProfile
  | RescaleProfile
  | PolynomialShareProfile;

/** Options that only some techniques have; `problems` are those of `TradeOffOptions`. */
export type TechniqueOption = 'range' | 'degrees' | 'tuning' | 'plot' | 'problems';

/** A technique that can be profiled. */
export interface ProfiledTechnique {
  readonly name: Profile['technique'];
  readonly description: string;
  readonly options: readonly TechniqueOption[];
  readonly run: (options: ProfileOptions) => Promise<Profile>;
}

/** The techniques that can be profiled. */
export const techniques: readonly ProfiledTechnique[] = [
  {
    name: 'exp2',
    description:
      "FlashAttention-4's polynomials beside the hardware's ex2, in fp32, bf16, fp16, e4m3",
    options: ['range', 'degrees', 'plot'],
    run: profileExp2,
  },
  {
    name: 'range-reduction',
    description: 'where x = b + f of the polynomial is exact and where not',
    options: ['range', 'degrees'],
    run: profileRangeReduction,
  },
  {
    name: 'rcp',
    description: 'rcp.approx.ftz.f32 against 1/x',
    options: ['range', 'plot'],
    run: (options) => profileUnit('rcp', options),
  },
  {
    name: 'log2',
    description: 'lg2.approx.ftz.f32 against log2 x',
    options: ['range', 'plot'],
    run: (options) => profileUnit('log2', options),
  },
  {
    name: 'rsqrt',
    description: 'rsqrt.approx.ftz.f32 against 1/√x',
    options: ['range', 'plot'],
    run: (options) => profileUnit('rsqrt', options),
  },
  {
    name: 'p-round',
    description: 'P rounded to bf16, fp16 and e4m3, at offsets 2^0 and 2^8',
    options: ['range', 'plot'],
    run: profileWeightRounding,
  },
  {
    name: 'split',
    description: 'the step between polynomial and hardware lanes, by tuning',
    options: ['range', 'degrees', 'tuning', 'plot'],
    run: profileSplit,
  },
  {
    name: 'rescale',
    description: 'rescale thresholds: error, rescales skipped, headroom, and proven limits',
    options: ['problems'],
    run: profileRescale,
  },
  {
    name: 'polynomial-share',
    description: 'error of O and LSE by degree and share of polynomial lanes',
    options: ['degrees', 'tuning', 'problems'],
    run: profilePolynomialShare,
  },
];

/** Maximum number of characters of an unknown name that a message repeats. */
const mostShown = 80;

/**
 * The technique of that name.
 * @throws RequestError for an unknown name
 */
export function techniqueNamed(name: string): ProfiledTechnique {
  const technique = techniques.find((known) => known.name === name);
  // A name may come from a file, and be of any length.
  const asked = name.length > mostShown ? `${name.slice(0, mostShown)}…` : name;
  if (technique === undefined)
    throw new RequestError(
      `no profile of ${JSON.stringify(asked)}; known are ${techniques.map((known) => known.name).join(', ')}`,
    );
  return technique;
}
