import { startLiveRecurrence } from '../../../io/live/index.js';
import {
  checkRecurrence,
  emulatedRecurrence,
  liveRecurrence,
  type RecurrenceUnderTest,
} from '../../../jobs/index.js';
import { recurrentLawIds, recurrentRegimeNames } from '../../../../properties/index.js';
import { renderCheckList } from '../../../report/text/index.js';
import { parseWhole } from '../../../words/index.js';
import { publishList } from '../../files/publish.js';
import { withoutFolder } from '../../options/kernel-under-test.js';
import { nameList, parsePositive } from '../../options/parse-values.js';
import { createPeriodicProgress, terminalLooks } from '../../terminal.js';
import { toolVersion } from '../../tool-version.js';
import type { CheckCommandOptions } from '../options.js';
import { publishCheck } from '../publish.js';
import { recurrentCheckList } from './list.js';
import { rejectRecurrentOptions } from './options.js';
import { declaredRecurrentPromises } from './promises.js';
import { saveRecurrentExecutionFailure, saveRecurrentFailures } from './save-failures.js';
import { replayRecurrence } from './saved-case.js';

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

/** The kernel that --kernel or --exec names. @throws RequestError for an unknown model or fault, and no time limit */
async function recurrenceUnderTest(options: CheckCommandOptions): Promise<RecurrenceUnderTest> {
  const { kernel, variant, exec } = options;
  if (exec === undefined) return emulatedRecurrence(kernel!, variant);
  const timeout = parsePositive(options.timeout, '--timeout');
  return liveRecurrence(withoutFolder(await startLiveRecurrence(exec, timeout)), exec);
}

async function checkUnderTest(
  underTest: RecurrenceUnderTest,
  options: CheckCommandOptions,
): Promise<boolean> {
  const promises = await declaredRecurrentPromises(underTest.promises, options);
  const asked = readScope(options);
  if (options.replay !== undefined)
    return replayRecurrence(options.replay, underTest, promises, options);
  const progress = createPeriodicProgress('properties');
  const report = await checkRecurrence(
    { ...asked, underTest, promises, strict: options.strict, version: toolVersion() },
    {
      progress: progress.update,
      saveFailures: (results) => saveRecurrentFailures(results, asked.seed, options),
      saveExecutionFailure: (failure) =>
        saveRecurrentExecutionFailure(failure, asked.seed, options),
    },
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
