import {
  fromUnits,
  joinAudits,
  joinCheck,
  joinConform,
  joinParts,
  joinProfile,
  readPart,
  secondsOf,
  type CampaignCommand,
  type JoinedParts,
  type ProfileRequest,
} from '../../campaign/index.js';
import { validateAuditsReport, validateCheckReport } from '../../report/validation/index.js';
import { RequestError } from '../../request-error.js';
import { rejectEmptyReport } from '../../jobs/index.js';
import { auditsStatus, publishAudits } from '../audit/publish-many.js';
import { publishCheck } from '../check/publish.js';
import { publishConformance } from '../conform/run.js';
import { rejectClashes } from '../options/given-options.js';
import { mergeOptions, type MergeCommandOptions } from './options.js';
import { publishProfile } from '../profile/run.js';
import { toolVersion } from '../tool-version.js';

/** Exit statuses of a pass and of a failure. */
const passed = 0;
const failed = 1;

/** Joins the parts of one command, and publishes the report; the exit status. */
type Merge = (joined: JoinedParts, options: MergeCommandOptions) => Promise<number>;

const merges: Readonly<Record<CampaignCommand, Merge>> = {
  audit: async (joined, options) => {
    const report = await fromUnits(joined, async () => {
      const made = joinAudits(joined);
      await validateAuditsReport(made);
      return made;
    });
    await publishAudits(report, options);
    return auditsStatus(report);
  },
  check: async (joined, options) => {
    const report = await fromUnits(joined, async () => {
      const made = joinCheck(joined, { strict: options.strict });
      await validateCheckReport(made);
      return made;
    });
    rejectEmptyReport(report);
    await publishCheck(report, options);
    return report.verdict.pass ? passed : failed;
  },
  conform: async (joined, options) => {
    const conformance = await fromUnits(joined, () => joinConform(joined));
    await publishConformance(conformance, secondsOf(joined.records.values()), options);
    return conformance.pass ? passed : failed;
  },
  profile: async (joined, options) => {
    const { range, architecture } = joined.request as ProfileRequest;
    const profile = await fromUnits(joined, () => joinProfile(joined));
    const seconds = secondsOf(joined.records.values());
    await publishProfile(profile, { range, architecture, seconds }, options);
    return passed;
  },
};

/** The options that only reports of one command have. */
const ownOptions: readonly (readonly [
  option: 'junit' | 'html' | 'strict' | 'svg',
  of: CampaignCommand[],
])[] = [
  ['junit', ['audit', 'check']],
  ['html', ['audit']],
  ['strict', ['check']],
  ['svg', ['profile']],
];

function rejectOptions({ request }: JoinedParts, options: MergeCommandOptions): void {
  const { command, version } = request;
  const here = toolVersion();
  if (version !== here)
    throw new RequestError(
      `the parts are of flashproof ${version}, and this is ${here}; merge them with the version that made them`,
    );
  for (const [option, of] of ownOptions)
    if (options[option] !== undefined && !of.includes(command))
      throw new RequestError(
        `--${option} is for parts of ${of.join(' and ')}, and these are of ${command}; leave it out`,
      );
  rejectClashes(mergeOptions, options);
}

/**
 * Runs `flashproof merge`: joins parts and journals, prints and writes the report. Returns the exit
 * status.
 * @throws RequestError for parts that do not belong together, with the names of files
 */
export async function runMerge(
  paths: readonly string[],
  options: MergeCommandOptions,
): Promise<number> {
  const joined = joinParts(paths.map(readPart));
  rejectOptions(joined, options);
  return merges[joined.request.command](joined, options);
}
