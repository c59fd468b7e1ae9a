import {
  hashTensorFile,
  namesRead,
  problemLayout,
  readProblem,
  unusedInputs,
  type ReadNames,
  type TensorFile,
} from '../../io/index.js';
import type { Problem } from '../../problem/index.js';
import type { Provenance } from '../../report/json/index.js';
import type { TensorReading } from '../files/file-tensors.js';
import { toolVersion } from '../tool-version.js';
import type { AuditSettings } from './audit-settings.js';
import { emulationCommand, type JudgedOutputs } from './judged-outputs.js';
import type { AuditCommandOptions } from './options.js';

/** A problem's file while it is judged. */
export interface OpenProblem {
  readonly file: TensorFile;
  readonly problem: Problem;
  readonly reading: TensorReading;
  /** What of the file is the problem. */
  readonly read: ReadNames;
}

/** Reads the problem of an open file. @throws RequestError for a file that holds none */
export async function openProblem(
  file: TensorFile,
  { problem: settings, formats, options }: AuditSettings,
): Promise<OpenProblem> {
  // A process is given what is not used too.
  const keepsPosed = options.exec !== undefined;
  const problem = await readProblem(file, { ...settings, keepsPosed });
  const headsFirst = problemLayout(file, settings) === 'bhsd';
  const read = namesRead(file, settings);
  return { file, problem, reading: { formats, headsFirst, problem }, read };
}

/** Where the problem and its outputs came from; no outputs where the kernel's process gave none. */
export async function originOf(
  { file, read, unasked = [] }: Pick<OpenProblem, 'file' | 'read'> & Pick<JudgedOutputs, 'unasked'>,
  sources: Provenance['outputs'] | null,
  { kernel, exec, set }: AuditCommandOptions,
): Promise<Omit<Provenance, 'seconds'>> {
  const { path } = file;
  const used = Object.values(sources ?? {}).flatMap((source) =>
    source?.path === path ? [source.tensor] : [],
  );
  const unused = unusedInputs(file, { tensors: [...read.tensors, ...used], notes: read.notes });
  const written = unasked.map((name) => `output ${name}`);
  return {
    version: toolVersion(),
    problem: { path, sha256: await hashTensorFile(path) },
    outputs: sources ?? {},
    command:
      kernel === undefined
        ? (exec ?? null)
        : emulationCommand(kernel, set, Object.hasOwn(sources ?? {}, 'dq')),
    unused: { ...unused, unknown: [...unused.unknown, ...written] },
  };
}
