import {
  hashTensorFile,
  namesRead,
  problemLayout,
  readProblem,
  unusedInputs,
  type ReadNames,
  type TensorFile,
} from '../../io/index.js';
import {
  tensorsBeside,
  type LaunchTemplate,
  type TensorReading,
  type JudgedOutputs,
} from '../../jobs/index.js';
import type { Problem } from '../../problem/index.js';
import type { Provenance, WidenedTensor } from '../../report/json/index.js';
import { toolVersion } from '../tool-version.js';
import type { AuditSettings } from './audit-settings.js';
import { emulationCommand } from './judged-outputs.js';
import type { AuditCommandOptions } from './options.js';

/** A problem's file while it is being judged. */
export interface OpenProblem {
  readonly file: TensorFile;
  readonly problem: Problem;
  readonly reading: TensorReading;
  /** The names of the tensors in the file that make up the problem. */
  readonly read: ReadNames;
}

/**
 * Reads the problem of an open file.
 * @param template of a compiled kernel, which may take other tensors of the file; null where there is none
 * @throws RequestError for a file that holds none
 */
export async function openProblem(
  file: TensorFile,
  { problem: settings, options }: AuditSettings,
  template: LaunchTemplate | null,
): Promise<OpenProblem> {
  // A process is given what is not used too.
  const keepsPosed = options.exec !== undefined;
  const problem = await readProblem(file, { ...settings, keepsPosed });
  const headsFirst = problemLayout(file, settings) === 'bhsd';
  const { tensors, notes } = namesRead(file, settings);
  const beside = template === null ? [] : tensorsBeside(template);
  const read = { tensors: [...tensors, ...beside], notes };
  return { file, problem, reading: { headsFirst, problem }, read };
}

/** The command that makes the judged outputs; null if they were read from files. */
function commandOf(
  { kernel, exec, launch, set }: AuditCommandOptions,
  path: string,
  withBackward: boolean,
): string | null {
  if (kernel !== undefined) return emulationCommand(kernel, set, withBackward);
  return launch === undefined ? (exec ?? null) : `flashproof run ${launch} --problem ${path}`;
}

/** The tensors of the problem's file, and outputs in other files, that are read in a narrower format than they are stored in. */
function widenedTensors(
  { path, entries }: TensorFile,
  sources: Provenance['outputs'],
): WidenedTensor[] {
  const others = Object.values(sources).flatMap((source) =>
    source === null || source.path === path ? [] : [{ ...source, name: source.tensor }],
  );
  return [...entries.values(), ...others].flatMap(({ name, format, storedAs }) =>
    format === null || storedAs === undefined ? [] : [{ name, format, storedAs }],
  );
}

/** The sources of the problem and its outputs; no outputs if the kernel's process gave none. */
export async function originOf(
  { file, read, unasked = [] }: Pick<OpenProblem, 'file' | 'read'> & Pick<JudgedOutputs, 'unasked'>,
  sources: Provenance['outputs'] | null,
  options: AuditCommandOptions,
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
    command: commandOf(options, path, Object.hasOwn(sources ?? {}, 'dq')),
    unused: { ...unused, unknown: [...unused.unknown, ...written] },
    widened: widenedTensors(file, sources ?? {}),
  };
}
