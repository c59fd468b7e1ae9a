import { InvalidArgumentError } from 'commander';
import type { MufuArchitecture } from '../../hardware/index.js';
import type { PolynomialDegree } from '../../../kernels/index.js';
import { campaignDetails, campaignOptions } from '../options/shared-options.js';
import { commandRow } from '../options/command-rows.js';
import { optionRows, type ParsedOptions } from '../options/option-rows.js';
import type { ProfiledTechnique } from '../../profile/index.js';
import { threadCount } from '../options/parse-values.js';

function wholeNumber(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value))
    throw new InvalidArgumentError('give a whole number.');
  return value;
}

function degree(
  text: string,
  before: readonly PolynomialDegree[] = [],
): readonly PolynomialDegree[] {
  const value = Number(text);
  if (!/^[1-5]$/.test(text))
    throw new InvalidArgumentError('FlashAttention-4 has polynomials of degree 1 to 5.');
  const chosen = new Set([...before, value as PolynomialDegree]);
  return [...chosen].sort((a, b) => a - b);
}

function limit(text: string): number {
  const value = text.trim() === '' ? NaN : Number(text);
  if (!Number.isFinite(value)) throw new InvalidArgumentError('give a finite number.');
  return value;
}

/** The architectures by name; a table, so that the compiler reports a missing one. */
const architectures: Readonly<Record<MufuArchitecture, true>> = {
  sm_90: true,
  sm_100: true,
  sm_103: true,
  sm_110: true,
  sm_120: true,
};

/** The architectures that --architecture takes. */
export const architectureNames = Object.keys(architectures) as readonly MufuArchitecture[];

function architecture(text: string): MufuArchitecture {
  const found = architectureNames.find((name) => name === text);
  if (found === undefined)
    throw new InvalidArgumentError(`known are ${architectureNames.join(', ')}.`);
  return found;
}

/** The techniques that can be profiled; a table, so that the compiler reports a missing one: src/profile is heavy. */
const techniques: Readonly<Record<ProfiledTechnique['name'], true>> = {
  exp2: true,
  'range-reduction': true,
  rcp: true,
  log2: true,
  rsqrt: true,
  'p-round': true,
  split: true,
  rescale: true,
  'polynomial-share': true,
};

/** The names of the techniques that can be profiled. */
export const techniqueNames: readonly string[] = Object.keys(techniques);

const profileOptions = optionRows({
  degree: {
    argument: '<n>',
    description: 'degree of the polynomial, 1 to 5; repeat for several',
    parse: degree,
    completes: ['1', '2', '3', '4', '5'],
  },
  from: { argument: '<x>', description: 'smallest input (default: all)', parse: limit },
  to: { argument: '<x>', description: 'largest input', parse: limit },
  architecture: {
    argument: '<name>',
    description:
      'whose evidence is stated (default: sm_90), or whose forward is emulated (default: sm_100)',
    parse: architecture,
    completes: 'architecture',
  },
  tuning: {
    argument: '<entry>',
    description: 'one tuning entry of FlashAttention-4 (split, polynomial-share)',
    completes: 'tuning',
  },
  regime: {
    argument: '<name>',
    description: 'a regime of scores of the problems; repeat for several',
    repeats: true,
    completes: 'score-regime',
  },
  format: {
    argument: '<name>',
    description: 'a format of Q, K and V; repeat for several',
    repeats: true,
    completes: 'format',
  },
  queries: { argument: '<n>', description: 'queries of a problem', parse: wholeNumber },
  keys: { argument: '<n>', description: 'keys of a problem', parse: wholeNumber },
  dim: { argument: '<n>', description: 'head dimension of a problem', parse: wholeNumber },
  seed: { argument: '<n>', description: 'seed of the problems', parse: wholeNumber },
  threads: {
    argument: '<n>',
    description: 'worker threads (default: one per core)',
    parse: threadCount,
  },
  ...campaignOptions,
  json: {
    argument: '<file>',
    description: 'write the profile as JSON (- for standard output)',
    stdout: true,
  },
  svg: { argument: '<file>', description: 'plot the error against x' },
  quiet: { short: 'q', description: 'print nothing, since there is no verdict' },
});

/** The options of `flashproof profile` as they are given. */
export type ProfileCommandOptions = ParsedOptions<typeof profileOptions>;

const details = `
Techniques:
  exp2              FlashAttention-4's polynomials beside the hardware's ex2, in
                    fp32, bf16, fp16, e4m3
  range-reduction   where x = b + f of the polynomial is exact and where not
  rcp               rcp.approx.ftz.f32 against 1/x
  log2              lg2.approx.ftz.f32 against log2 x
  rsqrt             rsqrt.approx.ftz.f32 against 1/√x
  p-round           P rounded to bf16, fp16 and e4m3, at offsets 2^0 and 2^8
  split             the step between polynomial and hardware lanes, by tuning
  rescale           rescale thresholds: error, rescales skipped, headroom, and
                    proven limits
  polynomial-share  error of O and LSE by degree and share of polynomial lanes

The last two emulate whole forwards on problems of several regimes of scores. Of
the others every fp32 input of the range is evaluated; the whole range of exp2
takes some minutes.

Examples:
  flashproof profile exp2
  flashproof profile exp2 --degree 3 --from -1 --to 0 --svg octave.svg
  flashproof profile split --tuning d128-causal-1cta-sm_100 --json split.json
  flashproof profile rescale --format fp16 --regime normal-16 --keys 16384
${campaignDetails}
Exit status: 0 the profile was made, 2 the request is wrong.`;

/** `flashproof profile`. */
export const profileCommand = commandRow({
  name: 'profile',
  description: 'error profile of one technique over its whole input range, or of a trade-off',
  arguments: [
    {
      syntax: '<technique>',
      description: `one of ${techniqueNames.join(', ')}`,
      completes: 'technique',
    },
  ],
  options: profileOptions,
  details,
});
