import type { KernelModel } from '../../../kernels/index.js';
import { hashTensorFile, openTensorFile, readProblem, writeSafetensors } from '../../io/index.js';
import { emulateOnMachine, machineDocument, modelWithProgram } from '../../jobs/index.js';
import { fitLines } from '../../report/layout/index.js';
import { RequestError } from '../../request-error.js';
import { writeJson } from '../files/publish.js';
import { warnOfUnusedInputs } from '../files/unused-warning.js';
import { kernelSettings } from '../options/kernel-settings.js';
import { declaredFormats, problemSettings } from '../options/problem-settings.js';
import { createPeriodicProgress } from '../terminal/progress.js';
import { terminalLooks } from '../terminal/terminal-looks.js';
import { toolVersion } from '../tool-version.js';
import { renderMachine } from './machine-text.js';
import type { EmulateCommandOptions } from './options.js';
import { createTraceFile } from './trace-file.js';

/** Exit statuses of a run without findings, and with them. */
const foundNothing = 0;
const foundSomething = 1;

/** Texts of some lines each, as wide as the terminal is. */
function fitted(texts: readonly string[]): string {
  const { columns } = terminalLooks(process.stdout);
  return fitLines(texts.join('\n').split('\n'), columns).join('\n');
}

/** Where results went, for the first line. */
function written({ save, trace }: EmulateCommandOptions): string {
  const places = [
    ...(save === undefined ? [] : [`, saved to ${save}`]),
    ...(trace === undefined ? [] : [`, trace in ${trace} (open it at https://ui.perfetto.dev)`]),
  ];
  return places.join('');
}

/**
 * Runs `flashproof emulate --machine`: the kernel's program on the emulated machine; saves, traces and
 * prints. Returns the exit status.
 * @throws RequestError for a request that cannot be carried out
 */
export async function runEmulateMachine(
  model: string,
  path: string,
  options: EmulateCommandOptions,
  models: readonly KernelModel[],
): Promise<number> {
  // Before the file is read: a kernel without a program has none for any problem.
  modelWithProgram(model, models);
  const { threads, set, save, trace, json, quiet } = options;
  if (threads !== undefined && threads !== 1)
    throw new RequestError('--machine runs on one thread; leave out --threads');
  const settings = kernelSettings(set);
  const start = performance.now();
  const file = await openTensorFile(path, { formats: declaredFormats(options) });
  const progress = createPeriodicProgress('emulate');
  try {
    const problem = await readProblem(file, problemSettings(options));
    warnOfUnusedInputs(file);
    const result = await emulateOnMachine(
      { problem, model, settings, options, models, start },
      trace === undefined ? null : createTraceFile(trace),
      progress.update,
    );
    progress.done();
    const { request, results, out, lse, machine, evidence, seconds } = result;
    const version = toolVersion();
    if (save !== undefined)
      await writeSafetensors(
        save,
        { out, lse },
        {
          kernel: model,
          settings: JSON.stringify(result.emulation.settings),
          machine: JSON.stringify(machine),
          flashproof: version,
        },
      );
    if (json !== '-' && quiet !== true)
      process.stdout.write(
        fitted([
          `${model}: out ${out.format} [${out.shape.join(', ')}] by ${machine.clusters.toLocaleString('en-US')} × ${machine.ctas} CTAs in ${seconds.toFixed(2)} s${written(options)}`,
          '',
          renderMachine(request, results),
          'Evidence',
          ...evidence.map((line) => `  ${line}`),
          '',
        ]),
      );
    if (json !== undefined) {
      const hashed = { path, sha256: await hashTensorFile(path) };
      const files = { saved: save ?? null, trace: trace ?? null };
      await writeJson(json, machineDocument(version, hashed, result, files));
    }
    return results.findings.length > 0 ? foundSomething : foundNothing;
  } finally {
    progress.done();
    await file.close();
  }
}
