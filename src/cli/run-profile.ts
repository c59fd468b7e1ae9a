import { availableParallelism } from 'node:os';
import { atomicWriteFile } from '../io/index.js';
import {
  profileDocument,
  renderProfile,
  renderSvg,
  techniqueNamed,
  type Profile,
  type Technique,
  type TechniqueOption,
} from '../profile/index.js';
import { RequestError } from '../request-error.js';
import { createPeriodicProgress } from './periodic-progress.js';
import type { ProfileCommandOptions } from './profile.js';
import { toolVersion } from './tool-version.js';
import { writeJson } from './write-json.js';

/** The flag of each option that not every technique has. */
const flags: Readonly<Record<TechniqueOption, 'degree' | 'tuning' | 'svg'>> = {
  degrees: 'degree',
  tuning: 'tuning',
  plot: 'svg',
};

function checkOptions({ name, options: known }: Technique, options: ProfileCommandOptions): void {
  for (const [option, flag] of Object.entries(flags) as [TechniqueOption, 'degree'][])
    if (options[flag] !== undefined && !known.includes(option))
      throw new RequestError(`the profile of ${name} has no --${flag}; leave it out`);
  const { from = -Infinity, to = Infinity } = options;
  if (from > to) throw new RequestError(`--from ${from} is above --to ${to}; exchange them`);
}

/** The JSON document of a profile. */
function document(profile: Profile, options: ProfileCommandOptions, seconds: number): object {
  const { from = null, to = null, architecture } = options;
  return {
    kind: 'profile',
    schemaVersion: 1,
    tool: { name: 'flashproof', version: toolVersion() },
    created: new Date().toISOString(),
    seconds,
    range: { from, to },
    architecture,
    ...profileDocument(profile),
  };
}

/**
 * Runs `flashproof profile`: sweeps, prints and writes the profile.
 * @throws RequestError for a request that cannot be carried out
 */
export async function runProfile(name: string, options: ProfileCommandOptions): Promise<void> {
  const technique = techniqueNamed(name);
  checkOptions(technique, options);
  const { degree, from, to, architecture, tuning, json, svg } = options;
  const { threads = availableParallelism() } = options;
  const start = performance.now();
  const progress = createPeriodicProgress(`profile ${name}`);
  let profile: Profile;
  try {
    profile = await technique.run({
      range: { ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) },
      ...{ architecture, threads },
      ...(degree === undefined ? {} : { degrees: degree }),
      ...(tuning === undefined ? {} : { tuning }),
      progress: (done, total) => progress.update(done / total),
    });
  } finally {
    progress.done();
  }
  const seconds = (performance.now() - start) / 1000;
  if (json !== undefined) await writeJson(json, document(profile, options, seconds));
  if (svg !== undefined && 'plots' in profile)
    await atomicWriteFile(svg, renderSvg(profile.title, profile.plots));
  if (json !== '-') process.stdout.write(renderProfile(profile));
}
