import { toolVersion } from '../tool-version.js';
import { atomicWriteFile } from '../../io/index.js';
import { profileDocument } from '../../report/json/index.js';
import { profileSketch, renderProfile } from '../../report/text/profile/index.js';
import { renderSvg } from '../../report/svg/index.js';
import type { InputRange, Profile } from '../../profile/index.js';
import { documentHead } from '../../jobs/index.js';
import { terminalLooks } from '../terminal/terminal-looks.js';
import { writeJson } from '../files/publish.js';

/** What was profiled, and how long it took. */
export interface ProfileProvenance {
  readonly range: InputRange;
  readonly architecture: string;
  readonly seconds: number;
}

/** Where a profile goes. */
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
 * written must not lose what was measured.
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
