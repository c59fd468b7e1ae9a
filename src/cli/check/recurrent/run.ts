import {
  checkRecurrence,
  emulatedRecurrence,
  type RecurrenceUnderTest,
} from '../../../jobs/index.js';
import { recurrentLawIds, recurrentRegimeNames } from '../../../../properties/index.js';
import { renderCheckList } from '../../../report/text/index.js';
import { RequestError } from '../../../request-error.js';
import { parseWhole } from '../../../words/index.js';
import { publishList } from '../../files/publish.js';
import { nameList, parsePositive } from '../../options/parse-values.js';
import { createPeriodicProgress, terminalLooks } from '../../terminal.js';
import { toolVersion } from '../../tool-version.js';
import type { CheckCommandOptions } from '../options.js';
import { publishCheck } from '../publish.js';
import { recurrentCheckList } from './list.js';
import { rejectRecurrentOptions } from './options.js';
import { declaredRecurrentPromises } from './promises.js';

/** The properties, regimes and limits of a check. */
function readScope(options: CheckCommandOptions) {
  const { property, regime, runs, seed, seconds, bail = false } = options;
  return {
    laws: property && nameList(property, recurrentLawIds, 'property', '--property'),
    regimes: regime && nameList(regime, recurrentRegimeNames, 'regime', '--regime'),
    runs: parseWhole(runs, '--runs', 1),
    seed:
      seed === undefined
        ? Math.floor(Math.random() * 2 ** 31)
        : parseWhole(seed, '--seed', Number.MIN_SAFE_INTEGER),
    seconds: parsePositive(seconds, '--seconds'),
    bail,
  };
}

/** @throws RequestError for an unknown model or fault */
async function recurrenceUnderTest(options: CheckCommandOptions): Promise<RecurrenceUnderTest> {
  const { kernel, variant } = options;
  if (kernel === undefined) throw new RequestError('name a kernel with --kernel');
  return emulatedRecurrence(kernel, variant);
}

async function checkUnderTest(
  underTest: RecurrenceUnderTest,
  options: CheckCommandOptions,
): Promise<boolean> {
  const promises = await declaredRecurrentPromises(underTest.promises, options);
  const asked = readScope(options);
  const progress = createPeriodicProgress('properties');
  const report = await checkRecurrence(
    { ...asked, underTest, promises, strict: options.strict, version: toolVersion() },
    { progress: progress.update },
  ).finally(progress.done);
  await publishCheck(report, options);
  return report.verdict.pass;
}

/**
 * Runs `flashproof check --contract recurrent`: tries the properties of linear attention on an emulated or a live kernel,
 * prints and writes the report. Returns whether the kernel passes.
 * @throws RequestError for a request that cannot be carried out
 */
export async function runRecurrentCheck(options: CheckCommandOptions): Promise<boolean> {
  rejectRecurrentOptions(options);
  if (options.list === true) {
    const list = () => renderCheckList(recurrentCheckList(), terminalLooks(process.stdout).columns);
    await publishList(list, recurrentCheckList, options);
    return true;
  }
  const underTest = await recurrenceUnderTest(options);
  try {
    return await checkUnderTest(underTest, options);
  } finally {
    await underTest.close();
  }
}
