import { availableParallelism } from 'node:os';
import { findModelAmong, type KernelModel } from '../../../kernels/index.js';
import { emulateBackward, type BackwardEmulation } from '../../emulate/index.js';
import {
  hashTensorFile,
  openDeclaring,
  problemLayout,
  readProblem,
  writeSafetensors,
} from '../../io/index.js';
import { backwardDocument, secondsSince, readOutputGradient } from '../../jobs/index.js';
import { renderBackwardEmulation } from '../../report/text/machine/index.js';
import { warnOfUnusedInputs } from '../files/file-tensors.js';
import { writeJson } from '../files/publish.js';
import {
  declaredFormats,
  kernelSettings,
  problemSettings,
  tensorPlaces,
} from '../options/settings.js';
import { createPeriodicProgress, terminalLooks } from '../terminal.js';
import { toolVersion } from '../tool-version.js';
import type { EmulateCommandOptions } from './options.js';

/** Writes the results of both passes, under the names that an audit looks for. */
async function save(path: string, emulation: BackwardEmulation): Promise<void> {
  const { forward, ownForward, dq, dk, dv, model, settings } = emulation;
  const rescales = ownForward?.rescales ?? null;
  await writeSafetensors(
    path,
    { ...forward, ...(rescales === null ? {} : { rescales }), dq, dk, dv },
    {
      kernel: model,
      settings: JSON.stringify({ ...ownForward?.settings, ...settings }),
      flashproof: toolVersion(),
    },
  );
}

/**
 * Runs `flashproof emulate --backward`: both passes of the kernel model on the problem; saves and prints.
 * @throws RequestError for a request that cannot be carried out
 */
export async function runEmulateBackward(
  name: string,
  path: string,
  options: EmulateCommandOptions,
  models: readonly KernelModel[],
): Promise<void> {
  const model = findModelAmong(models, name);
  const settings = kernelSettings(options.set);
  const { threads = availableParallelism(), save: target, json, quiet } = options;
  const start = performance.now();
  const file = await openDeclaring(path, declaredFormats(options), tensorPlaces(options));
  const progress = createPeriodicProgress('emulate');
  try {
    const given = problemSettings(options);
    const problem = await readProblem(file, given);
    warnOfUnusedInputs(file, given);
    const headsFirst = problemLayout(file, given) === 'bhsd';
    const dout = await readOutputGradient(
      file,
      { named: options.dout, wants: '--backward' },
      { headsFirst, problem },
    );
    file.checkDeclared();
    const emulation = await emulateBackward(
      problem,
      model,
      { dout: dout.tensor },
      { settings, threads, progress: (done, total) => progress.update(done / total) },
    );
    const result = { emulation, seconds: secondsSince(start) };
    progress.done();
    if (target !== undefined) await save(target, emulation);
    if (json !== '-' && quiet !== true)
      process.stdout.write(
        renderBackwardEmulation(result, target, terminalLooks(process.stdout).columns),
      );
    if (json !== undefined) {
      const hashed = { path, sha256: await hashTensorFile(path) };
      const files = { saved: target ?? null, dout: dout.source };
      await writeJson(json, backwardDocument(toolVersion(), hashed, result, files));
    }
  } finally {
    progress.done();
    await file.close();
  }
}
