import {
  dimensionNames,
  featureKinds,
  limitedDimensions,
  type InvarianceOptions,
} from '../../../properties/index.js';
import { openDeclaring, readProblem } from '../../io/index.js';
import { searchInvariance } from '../../jobs/index.js';
import { renderInvariance } from '../../report/text/index.js';
import { validateInvarianceReport } from '../../report/validation/index.js';
import { RequestError } from '../../request-error.js';
import { parseWhole } from '../../words/index.js';
import { warnOfUnusedInputs } from '../files/file-tensors.js';
import { writeJson } from '../files/publish.js';
import type { CommandContext } from '../options/command-rows.js';
import { rejectClashes } from '../options/given-options.js';
import { kernelUnderTest } from '../options/kernel-under-test.js';
import { nameList, parseName } from '../options/parse-names.js';
import { parseSizes } from '../options/parse-values.js';
import { declaredFormats, problemSettings, tensorPlaces } from '../options/settings.js';
import { createPeriodicProgress, terminalLooks } from '../terminal.js';
import { toolVersion } from '../tool-version.js';
import { invarianceOptions, type InvarianceCommandOptions } from './options.js';

/** The largest values of --up-to. @throws RequestError for anything but <dimension>=<number> */
function parseLimits(texts: readonly string[]): InvarianceOptions['limits'] {
  return Object.fromEntries(
    texts.map((text) => {
      const [name = '', most = ''] = text.split(/=(.*)/s);
      return [
        parseName(name, limitedDimensions, 'dimension with a largest value', '--up-to'),
        parseWhole(most, `--up-to ${name}`, 1),
      ] as const;
    }),
  );
}

/** What is to be searched. @throws RequestError for options that do not parse */
function searchOptions(options: InvarianceCommandOptions): InvarianceOptions {
  const { dimension, upTo = [], every, sequence, features, runs } = options;
  if (runs === 1)
    throw new RequestError('--runs is 1, which compares nothing; give two or more runs');
  return {
    dimensions: dimension && nameList(dimension, dimensionNames, 'dimension', '--dimension'),
    limits: parseLimits(upTo),
    every,
    sequence: sequence === undefined ? undefined : parseWhole(sequence, '--sequence', 0),
    repeats: runs,
    promises: {
      features:
        features === undefined ? [] : nameList([features], featureKinds, 'feature', '--features'),
    },
  };
}

/** The problem of a file, as it was posed. @throws RequestError where it cannot be read */
async function openProblem(path: string, options: InvarianceCommandOptions) {
  const file = await openDeclaring(path, declaredFormats(options), tensorPlaces(options));
  try {
    const given = problemSettings(options);
    const problem = await readProblem(file, { ...given, keepsPosed: true });
    warnOfUnusedInputs(file, given);
    file.checkDeclared();
    return problem;
  } finally {
    await file.close();
  }
}

/**
 * Runs `flashproof invariance`: searches for the smallest changes of a problem's surroundings that change the bits of its
 * rows, prints and writes them. Returns the exit status.
 * @throws RequestError for a request that cannot be carried out
 */
export async function runInvariance(
  path: string,
  options: InvarianceCommandOptions,
  context: CommandContext = {},
): Promise<number> {
  rejectClashes(invarianceOptions, options);
  const search = searchOptions(options);
  const splits =
    options.splits === undefined ? undefined : parseSizes(options.splits, '--splits', '1,2,4');
  const problem = await openProblem(path, options);
  const underTest = await kernelUnderTest({ ...options, splits }, context);
  const progress = createPeriodicProgress('invariance');
  try {
    const version = toolVersion();
    const report = await searchInvariance(underTest, problem, {
      ...search,
      version,
      progress: progress.update,
    });
    progress.done();
    await validateInvarianceReport(report);
    const { json, quiet } = options;
    if (json !== '-')
      process.stdout.write(
        quiet === true
          ? `${report.verdict.sentence}\n`
          : renderInvariance(report, terminalLooks(process.stdout)),
      );
    if (json !== undefined) await writeJson(json, report);
    return report.verdict.pass ? 0 : 1;
  } finally {
    progress.done();
    await underTest.close();
  }
}
