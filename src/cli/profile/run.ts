import { availableParallelism } from 'node:os';
import {
  techniqueNamed,
  type Profile,
  type ProfiledTechnique,
  type TechniqueOption,
  type TradeOffOptions,
} from '../../profile/index.js';
import { RequestError } from '../../request-error.js';
import { readCampaign } from '../options/campaign.js';
import { createPeriodicProgress } from '../terminal/progress.js';
import type { ProfileCommandOptions } from './options.js';
import { publishProfile } from './publish.js';

/** The flags of each option that not every technique has. */
const flags: Readonly<Record<TechniqueOption, readonly (keyof ProfileCommandOptions)[]>> = {
  range: ['from', 'to'],
  degrees: ['degree'],
  tuning: ['tuning'],
  plot: ['svg'],
  problems: ['regime', 'format', 'queries', 'keys', 'dim', 'seed'],
};

function checkOptions(
  { name, options: known }: ProfiledTechnique,
  options: ProfileCommandOptions,
): void {
  for (const [option, names] of Object.entries(flags) as [TechniqueOption, typeof flags.range][])
    for (const flag of names)
      if (options[flag] !== undefined && !known.includes(option))
        throw new RequestError(`the profile of ${name} has no --${flag}; leave it out`);
  const { from = -Infinity, to = Infinity } = options;
  if (from > to) throw new RequestError(`--from ${from} is above --to ${to}; exchange them`);
}

/** Whose evidence is stated, or whose forward is emulated, where the request does not say. */
function architectureOf({ options: known }: ProfiledTechnique, options: ProfileCommandOptions) {
  return options.architecture ?? (known.includes('problems') ? 'sm_100' : 'sm_90');
}

/** The problems that the request asks for. */
function problemOptions(options: ProfileCommandOptions): TradeOffOptions {
  const { regime: regimes, format: formats, queries, keys, dim, seed } = options;
  const given = Object.entries({ regimes, formats, queries, keys, dim, seed });
  return Object.fromEntries(given.filter(([, value]) => value !== undefined));
}

/**
 * Runs `flashproof profile`: sweeps, prints and writes the profile. Returns the exit status.
 * @throws RequestError for a request that cannot be carried out
 */
export async function runProfile(name: string, options: ProfileCommandOptions): Promise<number> {
  const technique = techniqueNamed(name);
  checkOptions(technique, options);
  const { degree, from, to, tuning } = options;
  const architecture = architectureOf(technique, options);
  const { threads = availableParallelism() } = options;
  const range = { ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) };
  const scope = {
    ...(degree === undefined ? {} : { degrees: degree }),
    ...(tuning === undefined ? {} : { tuning }),
  };
  const problems = problemOptions(options);
  const campaign = readCampaign(options);
  const start = performance.now();
  const progress = createPeriodicProgress(`profile ${name}`);
  if (campaign !== null) {
    const { runProfileCampaign } = await import('./campaign.js');
    const asked = { technique: name, range, architecture, ...scope, problems };
    await runProfileCampaign(campaign, asked, threads, progress, options);
    return 0;
  }
  let profile: Profile;
  try {
    profile = await technique.run({
      range,
      architecture,
      threads,
      ...problems,
      ...scope,
      progress: (done, total) => progress.update(done / total),
    });
  } finally {
    progress.done();
  }
  const seconds = (performance.now() - start) / 1000;
  await publishProfile(profile, { range, architecture, seconds }, options);
  return 0;
}
