import { availableParallelism } from 'node:os';
import { kernelModels } from '../../../kernels/index.js';
import { emulate, type Emulation } from '../../emulate/index.js';
import { hashTensorFile, openTensorFile, readProblem, writeSafetensors } from '../../io/index.js';
import { emulateKernel, emulationDocument } from '../../jobs/index.js';
import { fitLines } from '../../report/layout/index.js';
import { RequestError } from '../../request-error.js';
import { publishList, writeJson } from '../files/publish.js';
import { warnOfUnusedInputs } from '../files/file-tensors.js';
import { rejectClashes } from '../options/given-options.js';
import type { CommandContext } from '../options/command-rows.js';
import { declaredFormats, kernelSettings, problemSettings } from '../options/settings.js';
import { createPeriodicProgress, terminalLooks } from '../terminal.js';
import { toolVersion } from '../tool-version.js';
import { describeKernels, kernelList } from './kernel-list.js';
import { emulateOptions, type EmulateCommandOptions } from './options.js';

/** Exit status of an emulation; with --machine there is another. */
const done = 0;

function section(title: string, entries: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...entries.map(([name]) => name.length));
  return [title, ...entries.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`), ''];
}

function render(
  emulation: Emulation,
  seconds: number,
  saved: string | undefined,
  columns: number,
): string {
  const { model, out, settings, counters, evidence } = emulation;
  const text = (values: Readonly<Record<string, unknown>>) =>
    Object.entries(values).map(
      ([name, value]) =>
        [name, typeof value === 'number' ? value.toLocaleString('en-US') : String(value)] as const,
    );
  const lines = [
    `${model}: out ${out.format} [${out.shape.join(', ')}] in ${seconds.toFixed(2)} s${saved === undefined ? '' : `, saved to ${saved}`}`,
    '',
    ...(Object.keys(settings).length > 0 ? section('Settings', text(settings)) : []),
    ...(Object.keys(counters).length > 0 ? section('Counted', text(counters)) : []),
    'Evidence',
    ...evidence.map((line) => `  ${line}`),
    '',
  ];
  return fitLines(lines, columns).join('\n');
}

/** The tensors and notes of the file that --save names. */
async function save(path: string, emulation: Emulation): Promise<void> {
  const { out, lse, rescales, model, settings } = emulation;
  const tensors = { out, lse, ...(rescales === null ? {} : { rescales }) };
  await writeSafetensors(path, tensors, {
    kernel: model,
    settings: JSON.stringify(settings),
    flashproof: toolVersion(),
  });
}

/**
 * Runs `flashproof emulate`: the kernel model on the problem; saves and prints. Returns the exit
 * status.
 * @throws RequestError for a request that cannot be carried out
 */
export async function runEmulate(
  model: string,
  path: string | undefined,
  options: EmulateCommandOptions,
  context: CommandContext = {},
): Promise<number> {
  const { models = kernelModels } = context;
  const { columns } = terminalLooks(process.stdout);
  if (path === undefined && model === 'list' && options.machine === true) {
    const { describeMachineNames, machineList } = await import('./machine-list.js');
    const list = () => describeMachineNames(models, columns);
    await publishList(list, () => machineList(models), options);
    return done;
  }
  rejectClashes(emulateOptions, options);
  if (path === undefined) {
    if (model !== 'list')
      throw new RequestError(`name a problem for ${model}, or list to see the kernel models`);
    const list = () => describeKernels(models, columns);
    await publishList(list, () => kernelList(models), options);
    return done;
  }
  if (options.machine === true) {
    const { runEmulateMachine } = await import('./run-machine.js');
    return runEmulateMachine(model, path, options, models);
  }
  const settings = kernelSettings(options.set);
  const { threads = availableParallelism(), save: target, json, quiet } = options;
  const start = performance.now();
  const file = await openTensorFile(path, { formats: declaredFormats(options) });
  const progress = createPeriodicProgress('emulate');
  try {
    const problem = await readProblem(file, problemSettings(options));
    warnOfUnusedInputs(file);
    const result = await emulateKernel(
      { problem, model, settings, models, start },
      (problem, model, settings, progress) =>
        emulate(problem, model, { settings, threads, progress }),
      progress.update,
    );
    progress.done();
    if (target !== undefined) await save(target, result.emulation);
    if (json !== '-' && quiet !== true)
      process.stdout.write(render(result.emulation, result.seconds, target, columns));
    if (json !== undefined) {
      const hashed = { path, sha256: await hashTensorFile(path) };
      await writeJson(json, emulationDocument(toolVersion(), hashed, result, target ?? null));
    }
    return done;
  } finally {
    progress.done();
    await file.close();
  }
}
