import { InvalidArgumentError, type Command } from 'commander';
import type { PolynomialDegree } from '../../kernels/index.js';
import type { MufuArchitecture } from '../hardware/index.js';
import { addCampaignOptions, campaignDetails, type CampaignOptions } from './campaign-options.js';
import { collect } from './kernel-settings.js';

/** What the options of `flashproof profile` parse to. */
export interface ProfileCommandOptions extends CampaignOptions {
  readonly degree?: readonly PolynomialDegree[];
  readonly from?: number;
  readonly to?: number;
  readonly architecture?: MufuArchitecture;
  readonly tuning?: string;
  readonly regime?: readonly string[];
  readonly format?: readonly string[];
  readonly queries?: number;
  readonly keys?: number;
  readonly dim?: number;
  readonly seed?: number;
  readonly threads?: number;
  readonly json?: string;
  readonly svg?: string;
  readonly quiet?: boolean;
}

const mostThreads = 1024;

function threadCount(text: string): number {
  const count = Number(text);
  if (!/^\d+$/.test(text) || count < 1 || count > mostThreads)
    throw new InvalidArgumentError(`give a whole number from 1 to ${mostThreads}.`);
  return count;
}

function wholeNumber(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value))
    throw new InvalidArgumentError('give a whole number.');
  return value;
}

function degree(text: string, before: readonly PolynomialDegree[] = []): PolynomialDegree[] {
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

/** The architectures by name; a table, so that the compiler tells when one is missing. */
const architectures: Readonly<Record<MufuArchitecture, true>> = {
  sm_90: true,
  sm_100: true,
  sm_103: true,
};

/** The architectures that --architecture takes. */
export const architectureNames = Object.keys(architectures) as readonly MufuArchitecture[];

function architecture(text: string): MufuArchitecture {
  const found = architectureNames.find((name) => name === text);
  if (found === undefined)
    throw new InvalidArgumentError(`known are ${architectureNames.join(', ')}.`);
  return found;
}

/** Beside the options, what can be profiled; equal to `techniques` of src/profile, which is heavy. */
export const techniqueNames: readonly string[] = [
  ...['exp2', 'range-reduction', 'rcp', 'log2', 'rsqrt', 'p-round', 'split', 'rescale'],
  'polynomial-share',
];

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

/** Registers `flashproof profile`. */
export function addProfileCommand(program: Command): void {
  const command = program
    .command('profile')
    .description('error profile of one technique over its whole input range, or of a trade-off')
    .argument('<technique>', `one of ${techniqueNames.join(', ')}`)
    .option('--degree <n>', 'degree of the polynomial, 1 to 5; repeat for several', degree)
    .option('--from <x>', 'smallest input (default: all)', limit)
    .option('--to <x>', 'largest input', limit)
    .option(
      '--architecture <name>',
      'whose evidence is stated (default: sm_90), or whose forward is emulated (default: sm_100)',
      architecture,
    )
    .option('--tuning <entry>', 'one tuning entry of FlashAttention-4 (split, polynomial-share)')
    .option('--regime <name>', 'a regime of scores of the problems; repeat for several', collect)
    .option('--format <name>', 'a format of Q, K and V; repeat for several', collect)
    .option('--queries <n>', 'queries of a problem', wholeNumber)
    .option('--keys <n>', 'keys of a problem', wholeNumber)
    .option('--dim <n>', 'head dimension of a problem', wholeNumber)
    .option('--seed <n>', 'seed of the problems', wholeNumber)
    .option('--threads <n>', 'worker threads (default: one per core)', threadCount);
  addCampaignOptions(command)
    .option('--json <file>', 'write the profile as JSON (- for standard output)')
    .option('--svg <file>', 'plot the error against x')
    .option('-q, --quiet', 'print nothing')
    .addHelpText('after', details)
    .action(async (technique: string, options: ProfileCommandOptions) => {
      const { runProfile } = await import('./run-profile.js');
      await runProfile(technique, options);
    });
}
