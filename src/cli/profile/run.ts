import { availableParallelism } from 'node:os';
import { toolVersion } from '../tool-version.js';
import { atomicWriteFile } from '../../io/index.js';
import { profileDocument } from '../../report/json/index.js';
import { profileSketch, renderProfile } from '../../report/text/profile/index.js';
import { renderSvg } from '../../report/svg/index.js';
import {
  type InputRange,
  type Profile,
  type ProfiledTechnique,
  techniqueNamed,
  type TechniqueOption,
  type TradeOffOptions,
} from '../../profile/index.js';
import { documentHead } from '../../jobs/index.js';
import { createPeriodicProgress, type PeriodicProgress, terminalLooks } from '../terminal.js';
import { writeJson } from '../files/publish.js';
import {
  describeShard,
  partDocument,
  profileRequest,
  type ProfileRequest,
  runProfileUnits,
  secondsOf,
  wholeShard,
} from '../../campaign/index.js';
import { RequestError } from '../../request-error.js';
import { type Campaign, openLog, readCampaign } from '../options/campaign.js';
import type { ProfileCommandOptions } from './options.js';

/** The range and architecture of a profile, and the time that it took. */
export interface ProfileProvenance {
  readonly range: InputRange;
  readonly architecture: string;
  readonly seconds: number;
}

/** Destinations of a profile. */
export interface ProfileTargets {
  readonly json?: string | undefined;
  readonly svg?: string | undefined;
  readonly quiet?: boolean | undefined;
}

/** The JSON document of a profile. */
function document(
  profile: Profile,
  { range: { from, to }, architecture, seconds }: ProfileProvenance,
): object {
  return {
    ...documentHead('profile', toolVersion(), seconds),
    range: { from: from ?? null, to: to ?? null },
    architecture,
    ...profileDocument(profile),
  };
}

/**
 * Prints a profile, and writes the files that were asked for. The text comes first: a file that cannot be
 * written must not lose the results.
 * @throws RequestError when a file cannot be written
 */
export async function publishProfile(
  profile: Profile,
  provenance: ProfileProvenance,
  { json, svg, quiet }: ProfileTargets,
): Promise<void> {
  if (json !== '-' && quiet !== true) {
    const { sparklines } = terminalLooks(process.stdout);
    process.stdout.write(renderProfile(profile) + (sparklines ? profileSketch(profile) : ''));
  }
  if (json !== undefined) await writeJson(json, document(profile, provenance));
  if (svg !== undefined && 'plots' in profile)
    await atomicWriteFile(svg, renderSvg(profile.title, profile.plots));
}

/** @throws RequestError for a plot of a part, since plots are drawn when parts are merged */
function rejectPlot({ shard }: Campaign, { svg }: ProfileCommandOptions): void {
  if (shard !== null && svg !== undefined)
    throw new RequestError(
      '--svg plots a whole profile; leave it out, and give it to flashproof merge',
    );
}

/**
 * Measures a shard of a sweep, or all of it with a journal, prints the results and writes the part or,
 * for all of it, the profile.
 * @throws RequestError for a request that cannot be carried out, and a journal of another
 */
async function runProfileCampaign(
  campaign: Campaign,
  asked: Omit<ProfileRequest, 'command' | 'version'>,
  threads: number,
  progress: PeriodicProgress,
  options: ProfileCommandOptions,
): Promise<void> {
  rejectPlot(campaign, options);
  const { json, quiet } = options;
  const request = profileRequest({ version: toolVersion(), ...asked });
  const log = openLog(campaign, request);
  const { shard } = campaign;
  const { records } = log;
  const { units, profile } = await runProfileUnits(request, shard ?? wholeShard, log, {
    threads,
    progress: (done, total) => progress.update(done / total),
  }).finally(() => {
    progress.done();
    log.close();
  });
  if (shard === null) {
    const { range, architecture } = request;
    const seconds = secondsOf(records.values());
    return publishProfile(profile!, { range, architecture, seconds }, options);
  }
  const sentence = `Measured ${records.size} of ${units} units of work, ${describeShard(shard)}; flashproof merge joins the parts.`;
  const part = { request, shard, records, outOfTime: false, execution: null };
  if (json !== undefined) await writeJson(json, partDocument(part, { pass: true, sentence }));
  if (json !== '-' && quiet !== true) process.stdout.write(`${sentence}\n`);
}

/** The flags of each option that only some techniques have. */
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

/** The architecture whose evidence is stated, or whose forward pass is emulated; a default if the request names none. */
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
