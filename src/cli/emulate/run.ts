import { availableParallelism } from 'node:os';
import {
  findModelAmong,
  type KernelModel,
  kernelModels,
  type ProgramMutant,
} from '../../../kernels/index.js';
import {
  emulateKernel,
  emulationDocument,
  listHead,
  type ListHead,
  machineNames,
  schedules,
} from '../../jobs/index.js';
import { memoryModels } from '../../machine/index.js';
import { toolVersion } from '../tool-version.js';
import { emulate, type Emulation } from '../../emulate/index.js';
import { hashTensorFile, openDeclaring, readProblem, writeSafetensors } from '../../io/index.js';
import {
  describeKernels,
  describeMachineNames,
  renderEmulation,
} from '../../report/text/machine/index.js';
import { RequestError } from '../../request-error.js';
import { publishList, writeJson } from '../files/publish.js';
import { warnOfUnusedInputs } from '../files/file-tensors.js';
import { rejectClashes } from '../options/given-options.js';
import type { CommandContext } from '../options/command-rows.js';
import {
  declaredFormats,
  kernelSettings,
  problemSettings,
  tensorPlaces,
} from '../options/settings.js';
import { createPeriodicProgress, terminalLooks } from '../terminal.js';
import { type EmulateCommandOptions, emulateOptions } from './options.js';
import { runEmulateBackward } from './run-backward.js';

/** The kernel models with their settings, as `emulate list --json` writes them. */
export interface KernelList extends ListHead<'emulate-list'> {
  readonly models: readonly {
    readonly name: string;
    readonly description: string;
    /** Whether it has a backward pass. */
    readonly backward: boolean;
    readonly settings: readonly {
      readonly key: string;
      readonly description: string;
      /** Whether the backward pass alone has it. */
      readonly backward: boolean;
    }[];
  }[];
}

/** The JSON document of the kernel models. */
function kernelList(models: readonly KernelModel[]): KernelList {
  return {
    ...listHead('emulate-list', toolVersion()),
    models: models.map(({ name, description, settings, backward }) => ({
      name,
      description,
      backward: backward !== null,
      settings: [
        ...settings.map((setting) => ({ ...setting, backward: false })),
        ...(backward?.settings ?? []).map((setting) => ({ ...setting, backward: true })),
      ].map(({ key, description, backward }) => ({ key, description, backward })),
    })),
  };
}

/** The values of the machine's options, as `emulate list --machine --json` writes them. */
export interface MachineList extends ListHead<'machine-list'> {
  /** Adversarial schedules have no description but their name. */
  readonly schedules: readonly { readonly name: string; readonly description: string | null }[];
  readonly models: readonly { readonly name: string; readonly description: string }[];
  readonly mutants: readonly Pick<
    ProgramMutant,
    'id' | 'site' | 'kind' | 'description' | 'needsPair' | 'model'
  >[];
}

/** The JSON document of the values of the machine's options. */
async function machineList(models: readonly KernelModel[]): Promise<MachineList> {
  const { mutants, adversarial } = await machineNames(models);
  return {
    ...listHead('machine-list', toolVersion()),
    schedules: [...schedules, ...adversarial.map((name) => ({ name, description: null }))],
    models: Object.values(memoryModels).map(({ name, description }) => ({ name, description })),
    mutants: mutants.map(({ id, site, kind, description, needsPair, model }) => ({
      id,
      site,
      kind,
      description,
      needsPair,
      model,
    })),
  };
}

/** Exit status of an emulation; with --machine there is another. */
const done = 0;

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
    const list = () => describeMachineNames(models, columns);
    await publishList(list, () => machineList(models), options);
    return done;
  }
  rejectClashes(emulateOptions, options);
  if (path !== undefined || model !== 'list') findModelAmong(models, model);
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
  if (options.backward === true) {
    await runEmulateBackward(model, path, options, models);
    return done;
  }
  const settings = kernelSettings(options.set);
  const { threads = availableParallelism(), save: target, json, quiet } = options;
  const start = performance.now();
  const file = await openDeclaring(path, declaredFormats(options), tensorPlaces(options));
  const progress = createPeriodicProgress('emulate');
  try {
    const given = problemSettings(options);
    const problem = await readProblem(file, given);
    warnOfUnusedInputs(file, given);
    file.checkDeclared();
    const result = await emulateKernel(
      { problem, model, settings, models, start },
      (problem, model, settings, progress) =>
        emulate(problem, model, { settings, threads, progress }),
      progress.update,
    );
    progress.done();
    if (target !== undefined) await save(target, result.emulation);
    if (json !== '-' && quiet !== true)
      process.stdout.write(renderEmulation(result, target, columns));
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
